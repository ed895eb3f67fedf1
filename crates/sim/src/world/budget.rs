//! How much memory may be lost: what the promise publishes, and no more.
//!
//! A write that was answered survives any `r - 1` nodes that fail. So, for every partition as the
//! durable map has it, with `m` full members and `r` wanted:
//!
//! > of its full members at most `min(m, r) - 1` may have failed when one loses its disk, that one
//! > included.
//!
//! A member *has failed* if its disk is not the one that it was taken in with, or an older copy of
//! it, whether it is up or down, and until the chain has gone on without it. It has failed as well
//! if the controller at work has fenced it, had no answer from it, or not heard it for
//! [`UNHEARD_MAX`]: the chain may go on without it before the controller can know of the disk. The
//! same holds for a member that was asked to end.
//!
//! For `m <= r` the rule says that one full member is left. While a member changes places there are
//! `m = r + 1`, and the controller may already have decided, by the last reports, to let one of
//! them go: hence `min(m, r)` and not `m`. Learners do not count, for they hold nothing that the
//! members do not, nor do members that had left for a while, which lack what was written since. But
//! of a closed partition the rule has to hold with all of these as well: the controller may already
//! have decided to go on with one of them in the place of a member.
//!
//! While the keyspaces are created, every node counts as a member.
//!
//! Hot delegated keys lie elsewhere: [`delegations`](super::delegations) says what that allows.
//!
//! All nodes may be down at once, and a power cut may take all of them: what is on disks returns.

use super::World;
use crate::role::Role;
use cluster::{Keyspace, Member, NodeId, StoreId};
use controller::{MemberState, Saved};
use node::engine::Engine as _;
use std::collections::BTreeSet;

impl World {
    /// Whether the promise still holds if this node loses its disk.
    pub(super) fn may_forget(&mut self, node: u16) -> bool {
        self.forget_the_healed();
        let mut failed = self.saved.as_ref().map(|it| self.failed(it)).unwrap_or_default();
        failed.insert(NodeId(node));
        // Keyspaces that are created now may have been given to any node already.
        if self.keyspaces.is_none() && failed.len() >= usize::from(self.options.replicas) {
            return false;
        }
        let Some(saved) = &self.saved else { return true };
        saved.map.partitions.iter().all(|partition| {
            let had_left =
                |id: &NodeId| partition.returned.iter().any(|it| it.node == *id && it.left);
            let keyspace = saved.map.keyspaces.iter().find(|it| it.id == partition.keyspace);
            let wanted = keyspace.map_or(1, |it| usize::from(it.replicas));
            let may = |members: &[&NodeId]| {
                let may_fail = members.len().min(wanted).saturating_sub(1);
                let fails = members.iter().filter(|id| failed.contains(id)).count();
                !members.contains(&&NodeId(node)) || fails <= may_fail
            };
            let full: Vec<&NodeId> =
                partition.members().iter().filter(|id| !had_left(id)).collect();
            let all: Vec<&NodeId> = partition.chain.iter().collect();
            may(&full) && (partition.open || may(&all))
        })
    }

    pub(super) fn forget_the_healed(&mut self) {
        let Some(saved) = &self.saved else { return };
        // Its chains have been closed in a later incarnation, and opened again.
        self.aged.retain(|id, (before, _)| {
            let mut returned = saved.map.partitions.iter().flat_map(|it| &it.returned);
            saved.incarnations.get(id).is_some_and(|incarnation| before.contains(incarnation))
                || returned.any(|it| it.node == *id)
        });
    }

    /// Whether all delegated keys can still return if this node loses its disk.
    pub(super) fn can_recall_without(&mut self, node: u16) -> bool {
        let machines = self.shards.iter().map(|shard| shard.machine.as_ref());
        let reports: Option<Vec<_>> =
            machines.map(|machine| Some(machine?.report(self.now))).collect();
        // The head of a chain of one tells nobody of a delegation that it begins. Who is down may
        // have.
        let reports = reports.unwrap_or_default();
        if reports.iter().all(|report| report.recall == 0)
            && let Some(revision) = reports.iter().map(|report| report.hot_revision).min()
        {
            self.delegations.all_have(revision);
        }
        // A delegation may be ordered before the controller has noticed.
        let saved = self.saved.as_ref();
        let delegates = |it: &&Keyspace| it.hot.delegates() && !it.is_ordered();
        let keyspaces = saved.into_iter().flat_map(|saved| &saved.map.keyspaces);
        let fewest = keyspaces.filter(delegates).map(|it| usize::from(it.replicas)).min();
        let mut unnoticed = saved.map(|saved| self.forgetful(saved)).unwrap_or_default();
        unnoticed.insert(NodeId(node));
        let unnoticed = fewest.is_some_and(|replicas| unnoticed.len() >= replicas);
        !unnoticed && self.delegations.may_forget(NodeId(node))
    }

    /// Nodes that have another memory than the controller knows of, or less in it.
    pub(super) fn forgetful(&self, saved: &Saved) -> BTreeSet<NodeId> {
        let others = saved.stores.iter().filter(|(id, store)| self.store(id.0) != Some(**store));
        others.map(|(id, _)| *id).chain(self.aged.keys().copied()).collect()
    }

    pub(super) fn failed(&self, saved: &Saved) -> BTreeSet<NodeId> {
        let mut failed = self.forgetful(saved);
        let nodes = (0..self.cast.nodes).filter(|node| self.process(Role::Node(*node)).leaving);
        failed.extend(nodes.map(NodeId));
        if let Some(controller) = self.controller() {
            let local = self.process(Role::Controller(self.leader)).clock.clone().read(self.now);
            let members = controller.status(local).members;
            let map = controller.map();
            failed.extend(members.iter().filter_map(|it| {
                let Member::Node(id) = it.member else { return None };
                let unheard = it.heard_ms_ago.is_none_or(|ms| ms > UNHEARD_MAX);
                let missed = it.state == MemberState::Silent || map.fence(id).is_some();
                (unheard || missed).then_some(id)
            }));
        }
        failed
    }

    /// The memory that a node has, up or down.
    pub(super) fn store(&self, node: u16) -> Option<StoreId> {
        let shard = self.shards.get(self.shards_of(node).start)?;
        let running = shard.machine.as_ref().map(|machine| machine.engine().store_id());
        running.or_else(|| Some(shard.disk.as_ref()?.store_id()))
    }
}

/// Milliseconds: a little more than from one order to the next.
const UNHEARD_MAX: u64 = 150;
