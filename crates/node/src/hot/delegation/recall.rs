//! The head of a key that is delegated: asks all nodes of its delegation, once that is over, what
//! they hold of it, and brings the newest of it home.

use crate::hot::delegation::records::{DelegationTable, Present, spans};
use crate::replica::member::Member;
use crate::shard::context::Context;
use cluster::{MaybeMutant, Mutant, NodeId};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::{
    DelegationEndBody, DelegationFetchBody, DelegationId, DelegationOverBody, DropReason, Endpoint,
    Found, Header, Op, RecallBody, Revision, Version,
};

/// The keys of a partition that are being brought home.
#[derive(Debug, Default)]
pub(crate) struct Recalls {
    table: BTreeMap<Box<[u8]>, Recall>,
    /// When nodes were last told of delegations that have ended.
    told_at: Instant,
}

/// A delegation that is over, as far as its nodes have told of it.
#[derive(Debug)]
struct Recall {
    delegation: DelegationId,
    /// Revision of the order that ended it, as far as this head knows.
    ended: Revision,
    asked_at: Instant,
    /// Who takes no more writes of it and has said all.
    told: BTreeSet<NodeId>,
    newest: Option<(Version, Box<[u8]>)>,
}

impl Recall {
    /// Whether so many nodes have told that nothing of the delegation can be unknown.
    fn is_told(&self, present: &Present, mutant: MaybeMutant) -> bool {
        self.told.len() + present.may_be_silent(mutant) >= present.nodes.len()
    }
}

impl Recalls {
    /// Whether the nodes of the key's delegation are being asked.
    pub(crate) fn knows(&self, key: &[u8]) -> bool {
        self.table.contains_key(key)
    }

    /// In another epoch, another head may ask.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
    }

    /// Asks those nodes of a delegation that have not yet told what they hold of it, if that
    /// matters. Says whether all is told, so that the key can be brought home.
    pub(crate) fn fetch<E>(
        &mut self,
        ctx: &mut Context<'_, E>,
        member: &Member,
        present: &Present,
        key: &[u8],
    ) -> bool {
        let (now, id) = (ctx.now, member.id());
        let Some(at) = member.place_of(ctx, key) else { return false };
        let known = self.table.get(key).filter(|it| it.delegation == present.number);
        if known.is_some_and(|it| it.is_told(present, ctx.mutant)) {
            return true; // There was no room for the RECALL when the last of them told.
        }
        if known.is_some_and(|it| now < it.asked_at + ASK_EVERY) {
            return false;
        }
        let ended = known.map_or(ctx.hot.revision(), |it| it.ended);
        let silent = |node: &&NodeId| known.is_none_or(|it| !it.told.contains(node));
        let nodes = present.nodes.iter().filter(silent);
        let to: Vec<Endpoint> = nodes.filter_map(|it| ctx.directory.endpoint(*it, id)).collect();
        let delegation = present.number;
        let body = DelegationFetchBody { delegation, ended }.to_bytes();
        tell_nodes(ctx, member, Op::DelegationFetch, (&at, key), &body, &to);
        let fresh =
            || Recall { delegation, ended, asked_at: now, told: BTreeSet::new(), newest: None };
        let it = self.table.entry(key.into()).or_insert_with(fresh);
        if it.delegation != delegation {
            *it = fresh();
        }
        it.asked_at = now;
        false
    }

    /// A node tells what it holds of a key from the delegation that it is under. Says whether all
    /// is told.
    pub(crate) fn hear(
        &mut self,
        mutant: MaybeMutant,
        present: &Present,
        (node, key): (NodeId, &[u8]),
        (version, found): (Version, Found<'_>),
    ) -> Result<bool, DropReason> {
        let Some(it) = self.table.get_mut(key).filter(|it| it.delegation == present.number) else {
            return Ok(false);
        };
        if !present.nodes.contains(&node) {
            return Err(DropReason::NotFromMember);
        }
        match found {
            Found::Value(value) => {
                if !spans(present.delegated_at, version) {
                    return Err(DropReason::Implausible);
                }
                if it.newest.as_ref().is_none_or(|(known, _)| *known < version) {
                    it.newest = Some((version, value.into()));
                }
            }
            Found::Young if !mutant.is(Mutant::TrustTheYoung) => return Ok(false),
            Found::Young | Found::Nothing => {}
        }
        it.told.insert(node);
        Ok(it.is_told(present, mutant))
    }

    /// Takes out what was told of a key: the number of its delegation, and what a RECALL of it
    /// says.
    pub(crate) fn take(
        &mut self,
        key: &[u8],
        present: &Present,
    ) -> Option<(DelegationId, Vec<u8>)> {
        let it = self.table.remove(key)?;
        let Present { delegated_at, switch, .. } = *present;
        let (newest, value) = it.newest.unwrap_or_default();
        let fixed = RecallBody { newest, ended: it.ended, delegated_at, switch: switch.0 };
        Some((it.delegation, [&fixed.to_bytes()[..], &value].concat()))
    }

    /// Tells the nodes of delegations that ended lately that they may forget them.
    pub(crate) fn tell_ends<E>(
        &mut self,
        ctx: &mut Context<'_, E>,
        member: &Member,
        delegations: &DelegationTable,
    ) {
        if !member.is_head() || ctx.now < self.told_at + TELL_EVERY {
            return;
        }
        self.told_at = ctx.now;
        let now_ms = ctx.time.0;
        let tell_ms = u64::try_from(TELL_FOR.as_millis()).expect("seconds");
        let lately =
            |delegation: &&DelegationOverBody| delegation.since_ms.saturating_add(tell_ms) > now_ms;
        for (key, of_key) in delegations.iter() {
            let Some(last) = of_key.over.last().filter(lately) else { continue };
            let Some(at) = member.place_of(ctx, key) else { continue };
            let to = ctx.directory.endpoints(member.id());
            let body = DelegationEndBody { delegation: last.number }.to_bytes();
            tell_nodes(ctx, member, Op::DelegationEnd, (&at, key), &body, &to);
        }
    }
}

fn tell_nodes<E>(
    ctx: &mut Context<'_, E>,
    member: &Member,
    op: Op,
    (at, key): (&Header, &[u8]),
    body: &[u8],
    to: &[Endpoint],
) {
    let header = Header {
        op: op as u8,
        key_len: u16::try_from(key.len()).expect("keys are at most KEY_MAX long"),
        ..member.hot_header(ctx, at)
    };
    for to in to.iter().filter(|_| ctx.leased) {
        ctx.out.push(*to, |out| {
            wire::emit(out, &header, &[body, key]);
        });
    }
}

/// Before a node that has not answered is asked again.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// For how long a RECALL is told of, and how often.
const TELL_FOR: Duration = Duration::from_secs(5);
const TELL_EVERY: Duration = Duration::from_millis(500);

impl Present {
    /// How many of its nodes need not answer: of each chain one has.
    fn may_be_silent(&self, mutant: MaybeMutant) -> usize {
        if mutant.is(Mutant::RecallEarly) {
            return self.nodes.len().saturating_sub(1);
        }
        usize::from(self.replicas).saturating_sub(1)
    }
}
