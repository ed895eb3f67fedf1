//! The head of a key that is delegated: asks all nodes of its delegation, once that is over, what
//! they hold of it, and brings the newest of it home.

use crate::hot::delegation::records::{DelegationTable, Present, spans};
use crate::replica::member::Member;
use crate::shard::context::Context;
use cluster::{MaybeMutant, Mutant, NodeId};
use machine::Instant;
use std::collections::BTreeMap;
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
    begun_at: Instant,
    asked_at: Instant,
    /// What has been heard of its nodes.
    answers: BTreeMap<NodeId, Answer>,
    newest: Option<(Version, Box<[u8]>)>,
}

/// How far a node can know what it took of a delegation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// It takes no more writes of it and has said all.
    All,
    /// Likewise, but it has started anew since, and may have lost some that it had acknowledged.
    Anew,
    /// Not at all: its store is younger.
    Young,
}

/// What a node tells.
pub(crate) struct Told<'a> {
    /// Version of the write that it found.
    pub(crate) version: Version,
    pub(crate) found: Found<'a>,
    /// Whether it has started anew since the delegation began.
    pub(crate) anew: bool,
}

impl Recall {
    fn new(delegation: DelegationId, ended: Revision, now: Instant) -> Self {
        let (answers, newest) = (BTreeMap::new(), None);
        Self { delegation, ended, begun_at: now, asked_at: now, answers, newest }
    }

    /// Whether a node need not be asked again.
    fn has_told(&self, node: NodeId) -> bool {
        self.answers.get(&node).is_some_and(|it| *it != Answer::Young)
    }

    /// Whether so many nodes have told that nothing of the delegation can be unknown. Each write is
    /// at one more node than may have failed. Those have failed that do not answer, or whose store
    /// is younger; if that may not be all of them, so may some that started anew have, for as long
    /// as one does not wait for those that do not answer.
    fn is_told<E>(&self, ctx: &Context<'_, E>, present: &Present) -> bool {
        let count = |which: Answer| self.answers.values().filter(|it| **it == which).count();
        let (may_fail, young) = (present.may_be_silent(ctx.mutant), count(Answer::Young));
        let silent = present.nodes.len().saturating_sub(self.answers.len());
        let waits = ctx.now < self.begun_at + ctx.lease * DOUBT_LEASES;
        let doubtful = if waits { may_fail.saturating_sub(young) } else { 0 };
        young + silent + count(Answer::Anew).min(doubtful) <= may_fail
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
        if known.is_some_and(|it| it.is_told(ctx, present)) {
            return true; // There was no room for the RECALL when the last of them told.
        }
        if known.is_some_and(|it| now < it.asked_at + ASK_EVERY) {
            return false;
        }
        let ended = known.map_or(ctx.hot.revision(), |it| it.ended);
        let silent = |node: &&NodeId| known.is_none_or(|it| !it.has_told(**node));
        let nodes = present.nodes.iter().filter(silent);
        let to: Vec<Endpoint> = nodes.filter_map(|it| ctx.directory.endpoint(*it, id)).collect();
        let delegation = present.number;
        let body = DelegationFetchBody { delegation, ended }.to_bytes();
        tell_nodes(ctx, member, Op::DelegationFetch, (&at, key), &body, &to);
        let fresh = || Recall::new(delegation, ended, now);
        let it = self.table.entry(key.into()).or_insert_with(fresh);
        if it.delegation != delegation {
            *it = fresh();
        }
        it.asked_at = now;
        false
    }

    /// A node tells what it holds of a key from the delegation that it is under. Says whether all
    /// is told.
    pub(crate) fn hear<E>(
        &mut self,
        ctx: &Context<'_, E>,
        present: &Present,
        (node, key): (NodeId, &[u8]),
        told: &Told<'_>,
    ) -> Result<bool, DropReason> {
        let Some(it) = self.table.get_mut(key).filter(|it| it.delegation == present.number) else {
            return Ok(false);
        };
        if !present.nodes.contains(&node) {
            return Err(DropReason::NotFromMember);
        }
        if let Found::Value(value) = told.found {
            if !spans(present.delegated_at, told.version) {
                return Err(DropReason::Implausible);
            }
            if it.newest.as_ref().is_none_or(|(known, _)| *known < told.version) {
                it.newest = Some((told.version, value.into()));
            }
        }
        let trusts = |mutant: Mutant| ctx.mutant.is(mutant);
        let answer = match told.found {
            Found::Young if trusts(Mutant::TrustTheYoung) => Answer::All,
            Found::Young => Answer::Young,
            _ if told.anew && !trusts(Mutant::TrustTheRestarted) => Answer::Anew,
            _ => Answer::All,
        };
        it.answers.insert(node, answer);
        Ok(it.is_told(ctx, present))
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

/// For so many leases one waits for a node that does not answer, although it need not, where
/// another has started anew: as for a member of a chain of which all have.
const DOUBT_LEASES: u32 = 6;

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
