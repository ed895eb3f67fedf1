//! The head of a key that is delegated: asks all nodes of its delegation, once that is over, what
//! they hold of it, and brings the newest of it home.

use crate::engine::Engine;
use crate::hot::delegation::records::{OVER_MAX, Present, bits_of, spans};
use crate::replica::Replica;
use crate::replica::write::PENDING_MAX;
use crate::shard::context::Context;
use cluster::{Delegation, HotEntry, Keyspace, MaybeMutant, Mutant, NodeId};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::{
    ChainWriteBody, DelegateBody, DelegationEndBody, DelegationFetchBody, DelegationId,
    DelegationOverBody, DropReason, Effect, Endpoint, Found, Header, Op, RecallBody, Revision,
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
    newest: Option<(u64, Box<[u8]>)>,
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
}

/// What the order asks of the head for one key's delegations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DelegationStep {
    /// Nothing, or nothing that could be done.
    None,
    /// The key is to go under this delegation.
    Delegate(Delegation),
    /// The delegation that it is under is over.
    Fetch,
}

/// Before a node that has not answered is asked again.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// For how long a RECALL is told of, and how often.
const TELL_FOR: Duration = Duration::from_secs(5);
const TELL_EVERY: Duration = Duration::from_millis(500);

impl Replica {
    /// What is to be done about the delegations of a key. The caller has seen that no change of the
    /// key is pending.
    pub(crate) fn next_step<E: Engine>(&self, ctx: &Context<'_, E>, key: &[u8]) -> DelegationStep {
        let entry = ctx.hot.entry(self.partition.keyspace, key);
        let wanted = entry.and_then(|entry| entry.delegation);
        if let Some(present) = self.delegations.present(key) {
            // A delegation with a later number than the order's was begun by a newer one than is
            // installed here.
            let late = present.number > DelegationId::begun_by(ctx.hot.revision());
            let goes_on = wanted.is_some_and(|delegation| delegation.number == present.number);
            return if late || goes_on { DelegationStep::None } else { DelegationStep::Fetch };
        }
        match (entry, wanted) {
            (Some(entry), Some(delegation)) if self.may_delegate(ctx, key, entry, delegation) => {
                DelegationStep::Delegate(delegation)
            }
            _ => DelegationStep::None,
        }
    }

    fn may_delegate<E: Engine>(
        &self,
        ctx: &Context<'_, E>,
        key: &[u8],
        entry: &HotEntry,
        delegation: Delegation,
    ) -> bool {
        let registered = self
            .registrations
            .get(key)
            .is_some_and(|registration| registration.generation == entry.generation);
        let delegations = self.delegations.get(key);
        let fresh =
            delegations.is_none_or(|it| !it.knows(delegation.number) && it.over.len() < OVER_MAX);
        let keyspace = ctx.directory.keyspace(self.partition.keyspace);
        let hashed = keyspace.is_some_and(|it| !Keyspace::is_ordered(it));
        if !registered || !fresh || !hashed || key.len() > wire::DELEGATED_KEY_MAX {
            return false;
        }
        // What time ends has to be ended at home.
        let ends = |expiry_ms: u64, tombstone: bool| expiry_ms != 0 && !tombstone;
        let pending = self.newest_pending(key);
        let pending_ends = pending
            .is_some_and(|write| ends(write.fixed.expiry_ms, write.effect() != Some(Effect::Put)));
        let Some(at) = self.place_of(ctx, key) else { return false };
        let committed_ends = ctx.engine.read(&self.key_ref(&at, key), |record| {
            record.is_some_and(|r| ends(r.expiry_ms, r.tombstone))
        });
        !pending_ends && !committed_ends
    }

    /// Lets a key go.
    pub(crate) fn order_delegate<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        key: &[u8],
        delegation: Delegation,
    ) {
        let readers = ctx.hot.readers(self.partition.keyspace, key);
        let nodes: Vec<NodeId> = readers.map(|(node, _)| node).collect();
        let fixed = DelegateBody { switch: ctx.hot.switch().0, replicas: delegation.replicas };
        let value = [&fixed.to_bytes()[..], &bits_of(&nodes)].concat();
        self.order_change(ctx, key, Effect::Delegate, delegation.number.get(), &value);
    }

    /// Orders a change of what is known of a hot key: of its registration or its delegations.
    pub(crate) fn order_change<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        key: &[u8],
        effect: Effect,
        number: u64,
        value: &[u8],
    ) {
        let Some(at) = self.place_of(ctx, key) else { return };
        let header = self.own_header(&at, key);
        let fixed = ChainWriteBody {
            base: self.newest_version_pending(key).unwrap_or(0),
            stable: self.history.stable(),
            result: number,
            effect: effect as u8,
            ordered: 1,
            ..ChainWriteBody::default()
        };
        self.order(ctx, &header, fixed, key, value);
    }

    /// Asks those nodes of a delegation that have not yet told what they hold of it, if that
    /// matters.
    pub(crate) fn fetch<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let Some(present) = self.delegations.present(key) else { return };
        let (now, id) = (ctx.now, self.id());
        let Some(at) = self.place_of(ctx, key) else { return };
        let known = self.recalls.table.get(key).filter(|it| it.delegation == present.number);
        if known.is_some_and(|it| it.is_told(present, ctx.mutant)) {
            // There was no room for the RECALL when the last of them told.
            self.bring_home(ctx, key);
            return;
        }
        if known.is_some_and(|it| now < it.asked_at + ASK_EVERY) {
            return;
        }
        let ended = known.map_or(ctx.hot.revision(), |it| it.ended);
        let silent = |node: &&NodeId| known.is_none_or(|it| !it.told.contains(node));
        let nodes = present.nodes.iter().filter(silent);
        let to: Vec<Endpoint> = nodes.filter_map(|it| ctx.directory.endpoint(*it, id)).collect();
        let delegation = present.number;
        let body = DelegationFetchBody { delegation, ended }.to_bytes();
        self.tell_nodes(ctx, Op::DelegationFetch, (&at, key), &body, &to);
        let fresh =
            || Recall { delegation, ended, asked_at: now, told: BTreeSet::new(), newest: None };
        let it = self.recalls.table.entry(key.into()).or_insert_with(fresh);
        if it.delegation != delegation {
            *it = fresh();
        }
        it.asked_at = now;
    }

    fn tell_nodes<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        op: Op,
        (at, key): (&Header, &[u8]),
        body: &[u8],
        to: &[Endpoint],
    ) {
        let header = Header {
            op: op as u8,
            key_len: u16::try_from(key.len()).expect("keys are at most KEY_MAX long"),
            ..self.hot_header(ctx, at)
        };
        for to in to.iter().filter(|_| ctx.leased) {
            ctx.out.push(*to, |out| {
                wire::emit(out, &header, &[body, key]);
            });
        }
    }

    /// A node tells what it holds of a key from a delegation.
    pub(crate) fn handle_found<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        from: Endpoint,
        header: &Header,
        (delegation, key): (DelegationId, &[u8]),
        found: Found<'_>,
    ) -> Result<(), DropReason> {
        let node = NodeId(header.node);
        if !ctx.directory.owns(node, from) {
            return Err(DropReason::NotFromMember);
        }
        let Some(present) = self.delegations.present(key).filter(|it| it.number == delegation)
        else {
            return Ok(());
        };
        let Some(it) = self.recalls.table.get_mut(key).filter(|it| it.delegation == delegation)
        else {
            return Ok(());
        };
        if !present.nodes.contains(&node) {
            return Err(DropReason::NotFromMember);
        }
        match found {
            Found::Value(value) => {
                let version = header.object_version;
                if !spans(present.delegated_at, version) {
                    return Err(DropReason::Implausible);
                }
                if it.newest.as_ref().is_none_or(|(known, _)| *known < version) {
                    it.newest = Some((version, value.into()));
                }
            }
            Found::Young if !ctx.mutant.is(Mutant::TrustTheYoung) => return Ok(()),
            Found::Young | Found::Nothing => {}
        }
        it.told.insert(node);
        if it.is_told(present, ctx.mutant) {
            self.bring_home(ctx, key);
        }
        Ok(())
    }

    /// Orders the RECALL of a key, if that may be ordered now; else it is tried again.
    fn bring_home<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let room = self.pending_registration(key).is_none() && self.pending.len() + 1 < PENDING_MAX;
        if !self.is_head() || !self.partition.open || !ctx.leased || !room {
            return;
        }
        let Some(Present { delegated_at, switch, .. }) = self.delegations.present(key).cloned()
        else {
            return;
        };
        let Some(it) = self.recalls.table.remove(key) else { return };
        let (newest, value) = it.newest.unwrap_or_default();
        let fixed = RecallBody { newest, ended: it.ended, delegated_at, switch: switch.0 };
        let value = [&fixed.to_bytes()[..], &value].concat();
        self.order_change(ctx, key, Effect::Recall, it.delegation.get(), &value);
    }

    /// Tells the nodes of delegations that ended lately that they may forget them.
    pub(crate) fn tell_ends<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        if !self.is_head() || ctx.now < self.recalls.told_at + TELL_EVERY {
            return;
        }
        self.recalls.told_at = ctx.now;
        let now_ms = ctx.time.0;
        let tell_ms = u64::try_from(TELL_FOR.as_millis()).expect("seconds");
        let lately =
            |delegation: &&DelegationOverBody| delegation.since_ms.saturating_add(tell_ms) > now_ms;
        let ended = |(key, delegations): (&[u8], &crate::hot::delegation::records::Delegations)| {
            let last = delegations.over.last().filter(lately)?;
            Some((Box::<[u8]>::from(key), last.number))
        };
        let ended: Vec<(Box<[u8]>, DelegationId)> =
            self.delegations.iter().filter_map(ended).collect();
        for (key, delegation) in ended {
            let Some(at) = self.place_of(ctx, &key) else { continue };
            let to = ctx.directory.endpoints(self.id());
            let body = DelegationEndBody { delegation }.to_bytes();
            self.tell_nodes(ctx, Op::DelegationEnd, (&at, &key), &body, &to);
        }
    }
}

impl Present {
    /// How many of its nodes need not answer: of each chain one has.
    fn may_be_silent(&self, mutant: MaybeMutant) -> usize {
        if mutant.is(Mutant::RecallEarly) {
            return self.nodes.len().saturating_sub(1);
        }
        usize::from(self.replicas).saturating_sub(1)
    }
}
