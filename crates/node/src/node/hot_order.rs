//! The controller's order of hot keys: what of it this node, as a head, has to do, and when.

use crate::engine::Engine;
use crate::node::Node;
use cluster::{HotOrder, PartitionId, is_plausible_revision};
use machine::Instant;
use std::sync::Arc;
use std::time::Duration;

impl<E: Engine> Node<E> {
    /// Takes the controller's order of hot keys. One that is not newer than the present one changes
    /// nothing, nor does one that is older than an earlier incarnation had. Its revision is kept on
    /// record, the order is not: a node that starts anew waits for the next.
    pub fn install_hot(&mut self, now: Instant, order: Arc<HotOrder>) {
        let ours = self.replica_records.cluster.is_none_or(|cluster| cluster == order.cluster);
        let can_be = ours && is_plausible_revision(now, order.revision);
        if !can_be
            || self.shard.stock.is_frozen()
            || !self.shard.hot.install(&mut self.shard.engine, order)
        {
            return;
        }
        self.dirty = true;
        if let Some(directory) = &self.directory {
            let mut ctx = self.shard.context(directory, now, 0);
            for replica in self.replicas.values_mut() {
                let (propagations, tail) = replica.as_tail();
                propagations.follow_order(&mut ctx, &tail);
            }
        }
        self.find_work(now);
    }

    /// Finds the registrations that this node, as a head, may have to change, and begins to.
    pub(crate) fn find_work(&mut self, now: Instant) {
        self.shard.hot.todo.clear();
        let Some(directory) = &self.directory else { return };
        let mut found: Vec<(PartitionId, Box<[u8]>)> = Vec::new();
        for entry in self.shard.hot.keys() {
            let Some(keyspace) = directory.keyspace(entry.keyspace) else { continue };
            let table = self.ranges.get(&entry.keyspace);
            let id = table.and_then(|table| table.find(keyspace.match_value(&entry.key)));
            let head = id.and_then(|id| self.replicas.get(id)).filter(|r| r.member.is_head());
            let Some(replica) = head else { continue };
            let registered = replica
                .registrations
                .get(&entry.key)
                .is_some_and(|registration| registration.generation == entry.generation);
            let present =
                replica.delegations.present(&entry.key).map(|delegation| delegation.number);
            if !registered || present != entry.delegation.map(|delegation| delegation.number) {
                found.push((replica.member.id(), entry.key.as_slice().into()));
            }
        }
        for replica in self.replicas.values().filter(|replica| replica.member.is_head()) {
            let unnamed =
                |key: &[u8]| self.shard.hot.entry(replica.member.partition.keyspace, key).is_none();
            let cold = replica.registrations.iter().filter(|(key, _)| unnamed(key));
            found.extend(cold.map(|(key, _)| (replica.member.id(), key.into())));
            let delegated =
                replica.delegations.iter().filter(|(key, it)| it.present.is_some() && unnamed(key));
            found.extend(delegated.map(|(key, _)| (replica.member.id(), key.into())));
            // What becomes of these, the table does not say yet.
            found.extend(
                replica
                    .pending
                    .keys_with_registration()
                    .map(|key| (replica.member.id(), key.into())),
            );
        }
        self.shard.hot.todo.extend(found);
        self.reconcile(now);
    }

    /// Changes some of the registrations that are to be changed.
    pub(crate) fn reconcile(&mut self, now: Instant) {
        let Some(directory) = &self.directory else { return };
        let mut ctx = self.shard.context(directory, now, 0);
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

/// Registrations changed in one step, and how soon the next step follows: 12,800 in a second, and
/// all that there can be in 5.
const CHANGES_AT_ONCE: usize = 64;
const STEP_EVERY: Duration = Duration::from_millis(5);
/// When to try again what could not be done: the partition is closed, or an earlier change of the
/// key is still under way.
const RETRY_EVERY: Duration = Duration::from_millis(10);
