//! What the head does about an order of hot keys: it registers what that names and unregisters
//! what it names no more; it delegates keys, and recalls them (`recall`).

use crate::engine::Engine;
use crate::hot::delegation::recall::Told;
use crate::hot::delegation::records::{OVER_MAX, bits_of};
use crate::replica::Replica;
use crate::shard::context::Context;
use cluster::{Delegation, HotEntry, Keyspace, NodeId};
use wire::{
    ChainResult, ChainWriteBody, DelegateBody, DelegationFound, DelegationId, DropReason, Effect,
    Found, Header, Version,
};

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

impl Replica {
    /// Starts a change of what is ordered of a key down the chain, if the order asks for one. Says
    /// whether nothing is left to do.
    pub(crate) fn change_to_order<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        key: &[u8],
    ) -> bool {
        if !self.member.is_head() {
            return true;
        }
        // One change of a key at a time: so they are committed everywhere in the order of versions.
        // One place is kept, as for a client's write.
        let room = self.pending.registration(key).is_none() && self.pending.has_room_for(2);
        if !self.member.partition.open || !ctx.leased || !room {
            return false;
        }
        match self.next_step(ctx, key) {
            DelegationStep::Fetch => {
                let present = self.delegations.present(key);
                let told = present.is_some_and(|it| self.recalls.fetch(ctx, &self.member, it, key));
                if told {
                    self.bring_home(ctx, key);
                }
                return false;
            }
            DelegationStep::Delegate(delegation) => {
                self.order_delegate(ctx, key, delegation);
                return true;
            }
            DelegationStep::None if self.delegations.present(key).is_some() => return true,
            DelegationStep::None => {}
        }
        let entry = ctx.hot.entry(self.member.partition.keyspace, key);
        let (wanted, goes) =
            (entry.map(|it| it.generation), entry.is_some_and(|it| it.delegation.is_some()));
        let registered = self.registrations.get(key).map(|registration| registration.generation);
        // A registration with a later number than the order's was made by a newer order than is
        // installed here: this node has restarted, and what it was sent is late.
        let overtaken =
            registered.is_some_and(|generation| generation.order() > ctx.hot.revision());
        if wanted == registered || overtaken {
            return true;
        }
        let effect = if wanted.is_some() { Effect::Register } else { Effect::Unregister };
        let generation = wanted.or(registered).unwrap_or_default();
        self.order_change(ctx, key, effect, ChainResult::of_generation(generation), &[]);
        !goes
    }

    /// What is to be done about the delegations of a key. The caller has seen that no change of the
    /// key is pending.
    pub(crate) fn next_step<E: Engine>(&self, ctx: &Context<'_, E>, key: &[u8]) -> DelegationStep {
        let entry = ctx.hot.entry(self.member.partition.keyspace, key);
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
        let keyspace = ctx.directory.keyspace(self.member.partition.keyspace);
        let hashed = keyspace.is_some_and(|it| !Keyspace::is_ordered(it));
        if !registered || !fresh || !hashed || key.len() > wire::DELEGATED_KEY_MAX {
            return false;
        }
        // What time ends has to be ended at home.
        let ends = |expiry_ms: u64, tombstone: bool| expiry_ms != 0 && !tombstone;
        let pending = self.pending.newest(key);
        let pending_ends = pending
            .is_some_and(|write| ends(write.fixed.expiry_ms, write.effect() != Some(Effect::Put)));
        let Some(at) = self.member.place_of(ctx, key) else { return false };
        let committed_ends = ctx.engine.read(&self.member.key_ref(&at, key), |record| {
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
        let readers = ctx.hot.readers(self.member.partition.keyspace, key);
        let nodes: Vec<NodeId> = readers.map(|(node, _)| node).collect();
        let fixed = DelegateBody { switch: ctx.hot.switch().0, replicas: delegation.replicas };
        let value = [&fixed.to_bytes()[..], &bits_of(&nodes)].concat();
        let result = ChainResult::of_delegation(delegation.number);
        self.order_change(ctx, key, Effect::Delegate, result, &value);
    }

    /// Orders a change of what is known of a hot key: of its registration or its delegations.
    pub(crate) fn order_change<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        key: &[u8],
        effect: Effect,
        result: ChainResult,
        value: &[u8],
    ) {
        let Some(at) = self.member.place_of(ctx, key) else { return };
        let header = self.member.own_header(&at, key);
        let fixed = ChainWriteBody {
            base: self.pending.newest_version(key).unwrap_or(Version::NONE),
            stable: self.history.stable(),
            result,
            effect: effect as u8,
            ordered: 1,
            ..ChainWriteBody::default()
        };
        self.order(ctx, &header, fixed, key, value);
    }

    /// Orders the RECALL of a key, if that may be ordered now; else it is tried again.
    fn bring_home<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let room = self.pending.registration(key).is_none() && self.pending.has_room_for(2);
        if !self.member.is_head() || !self.member.partition.open || !ctx.leased || !room {
            return;
        }
        let present = self.delegations.present(key);
        let Some((delegation, value)) = present.and_then(|it| self.recalls.take(key, it)) else {
            return;
        };
        let result = ChainResult::of_delegation(delegation);
        self.order_change(ctx, key, Effect::Recall, result, &value);
    }

    /// A node tells what it holds of a key from a delegation; its address has been checked.
    pub(crate) fn handle_found<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        header: &Header,
        (delegation, key): (DelegationId, &[u8]),
        found: Found<'_>,
    ) -> Result<(), DropReason> {
        let present = self.delegations.present(key).filter(|it| it.number == delegation);
        let Some(present) = present else { return Ok(()) };
        let DelegationFound { version, anew } = DelegationFound::of(header);
        let told = Told { version, found, anew: anew > 0 };
        if self.recalls.hear(ctx, present, (NodeId(header.node), key), &told)? {
            self.bring_home(ctx, key);
        }
        Ok(())
    }
}
