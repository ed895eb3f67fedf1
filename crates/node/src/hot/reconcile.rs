//! What the head does about an order of hot keys: it registers what that names and unregisters
//! what it names no more; it delegates keys, and recalls them (`recall`).

use crate::engine::Engine;
use crate::hot::delegation::recall::DelegationStep;
use crate::node::{Node, context};
use crate::replica::Replica;
use crate::replica::write::PENDING_MAX;
use crate::shard::context::Context;
use cluster::{HotOrder, PartitionId, is_plausible_revision};
use machine::Instant;
use std::sync::Arc;
use std::time::Duration;
use wire::Effect;

impl<E: Engine> Node<E> {
    /// Takes the controller's order of hot keys. One that is not newer than the present one changes
    /// nothing, nor does one that is older than an earlier incarnation had. Its revision is kept on
    /// record, the order is not: a node that starts anew waits for the next.
    pub fn install_hot(&mut self, now: Instant, order: Arc<HotOrder>) {
        let ours = self.replica_records.cluster.is_none_or(|cluster| cluster == order.cluster);
        let can_be = ours && is_plausible_revision(now, order.revision);
        if !can_be || self.stock.is_frozen() || !self.hot.install(&mut self.engine, order) {
            return;
        }
        self.dirty = true;
        if let Some(directory) = &self.directory {
            let mut ctx = context!(self, directory, now, 0);
            for replica in self.replicas.values_mut() {
                replica.follow_order(&mut ctx);
            }
        }
        self.find_work(now);
    }

    /// Finds the registrations that this node, as a head, may have to change, and begins to.
    pub(crate) fn find_work(&mut self, now: Instant) {
        self.hot.todo.clear();
        let Some(directory) = &self.directory else { return };
        let mut found: Vec<(PartitionId, Box<[u8]>)> = Vec::new();
        for entry in self.hot.keys() {
            let Some(keyspace) = directory.keyspace(entry.keyspace) else { continue };
            let table = self.ranges.get(&entry.keyspace);
            let id = table.and_then(|table| table.find(keyspace.match_value(&entry.key)));
            let head = id.and_then(|id| self.replicas.get(id)).filter(|r| r.is_head());
            let Some(replica) = head else { continue };
            let registered = replica
                .registrations
                .get(&entry.key)
                .is_some_and(|registration| registration.generation == entry.generation);
            let present =
                replica.delegations.present(&entry.key).map(|delegation| delegation.number);
            if !registered || present != entry.delegation.map(|delegation| delegation.number) {
                found.push((replica.id(), entry.key.as_slice().into()));
            }
        }
        for replica in self.replicas.values().filter(|replica| replica.is_head()) {
            let unnamed = |key: &[u8]| self.hot.entry(replica.partition.keyspace, key).is_none();
            let cold = replica.registrations.iter().filter(|(key, _)| unnamed(key));
            found.extend(cold.map(|(key, _)| (replica.id(), key.into())));
            let delegated =
                replica.delegations.iter().filter(|(key, it)| it.present.is_some() && unnamed(key));
            found.extend(delegated.map(|(key, _)| (replica.id(), key.into())));
            // What becomes of these, the table does not say yet.
            found.extend(
                replica.keys_with_pending_registration().map(|key| (replica.id(), key.into())),
            );
        }
        self.hot.todo.extend(found);
        self.reconcile(now);
    }

    /// Changes some of the registrations that are to be changed.
    pub(crate) fn reconcile(&mut self, now: Instant) {
        let Some(directory) = &self.directory else { return };
        let mut ctx = context!(self, directory, now, 0);
        let mut next = now + STEP_EVERY;
        for _ in 0..ctx.hot.todo.len().min(CHANGES_AT_ONCE) {
            let Some((id, key)) = ctx.hot.todo.pop_front() else { break };
            let Some(replica) = self.replicas.get_mut(&id) else { continue };
            if !replica.change_to_order(&mut ctx, &key) {
                ctx.hot.todo.push_back((id, key));
                next = now + RETRY_EVERY;
            }
        }
        ctx.hot.next_work = next;
    }
}

impl Replica {
    /// Starts a change of what is ordered of a key down the chain, if the order asks for one. Says
    /// whether nothing is left to do.
    fn change_to_order<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) -> bool {
        if !self.is_head() {
            return true;
        }
        // One change of a key at a time: so they are committed everywhere in the order of versions.
        // One place is kept, as for a client's write.
        let room = self.pending_registration(key).is_none() && self.pending.len() + 1 < PENDING_MAX;
        if !self.partition.open || !ctx.leased || !room {
            return false;
        }
        match self.next_step(ctx, key) {
            DelegationStep::Fetch => {
                self.fetch(ctx, key);
                return false;
            }
            DelegationStep::Delegate(delegation) => {
                self.order_delegate(ctx, key, delegation);
                return true;
            }
            DelegationStep::None if self.delegations.present(key).is_some() => return true,
            DelegationStep::None => {}
        }
        let entry = ctx.hot.entry(self.partition.keyspace, key);
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
        self.order_change(ctx, key, effect, generation.get(), &[]);
        !goes
    }
}

/// Registrations changed in one step, and how soon the next step follows: 12,800 in a second, and
/// all that there can be in 5.
const CHANGES_AT_ONCE: usize = 64;
const STEP_EVERY: Duration = Duration::from_millis(5);
/// When to try again what could not be done: the partition is closed, or an earlier change of the
/// key is still under way.
const RETRY_EVERY: Duration = Duration::from_millis(10);
