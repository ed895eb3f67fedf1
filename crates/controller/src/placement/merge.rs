//! Which partitions are to be merged: neighbours that have been cold and small for long.

use super::change::Change;
use super::decide::Scene;
use super::quiet::Quiet;
use super::room::PIECES;
use crate::neighbours::{are_at_one_shard, have_the_same_nodes};
use cluster::{NodeId, Partition, PartitionId};
use std::collections::BTreeSet;

/// What comes of a merge holds at most one part in so many of what is large.
const SMALL_PART: u64 = 2;

/// Pairs that are merged at once.
const MERGES_MAX: usize = 4;

impl Scene<'_> {
    /// Pairs of neighbours that are to become one, of which each partition is in one. Where they
    /// have different nodes a replica of the second moves first.
    pub(super) fn merges(&self, quiet: &Quiet) -> Vec<Change> {
        let mut taken = None;
        let pairs = self.map.partitions.windows(2).filter_map(|pair| {
            let [one, next] = pair else { return None };
            if taken == Some(one.id) || !self.is_to_merge(quiet, (one, next)) {
                return None;
            }
            let change = if have_the_same_nodes(one, next) {
                Change::Merge { partition: one.id, with: next.id }
            } else {
                self.bring_together((one, next))?
            };
            taken = Some(next.id);
            Some(change)
        });
        pairs.take(MERGES_MAX).collect()
    }

    /// Partitions that are to become one with a neighbour as soon as both have rested.
    pub(super) fn paired(&self, quiet: &Quiet) -> BTreeSet<PartitionId> {
        let pairs = self.map.partitions.windows(2).filter_map(|pair| {
            let [one, next] = pair else { return None };
            let paired = self.is_small_pair(quiet, (one, next)) && have_the_same_nodes(one, next);
            paired.then_some([one.id, next.id])
        });
        pairs.flatten().collect()
    }

    fn is_to_merge(&self, quiet: &Quiet, (one, next): (&Partition, &Partition)) -> bool {
        let is_free = |it: &Partition| {
            let open = it.open && !it.has_learner && !self.under_way.contains_key(&it.id);
            open && !self.rests(it.id) && (self.can_be_remade)(it)
        };
        let may_be_one = self.map.may_be_partition(one.keyspace, one.first, next.last);
        self.is_small_pair(quiet, (one, next)) && may_be_one && [one, next].into_iter().all(is_free)
    }

    fn is_small_pair(&self, quiet: &Quiet, (one, next): (&Partition, &Partition)) -> bool {
        let pair = [one, next];
        let volume = |it: &Partition| Some(self.samples.held(it)?.bytes);
        let bytes: Option<Vec<u64>> = pair.into_iter().map(volume).collect();
        // Nor would a node without much room have to give it away in parts again.
        let small = |bytes: Vec<u64>| {
            let all = bytes.iter().sum::<u64>();
            let mut nodes = one.chain.iter().chain(&next.chain);
            all * SMALL_PART <= self.split_bytes
                && !nodes.any(|node| self.fills.is_part(*node, all, PIECES))
        };
        one.keyspace == next.keyspace
            && next.grown
            && pair.into_iter().all(|it| quiet.is_quiet(self.now, it.id))
            && bytes.is_some_and(small)
            && one.chain.len() == next.chain.len()
            && are_at_one_shard(self.map, &one.chain, [one.id, next.id])
    }

    /// One step to where both have the same nodes.
    fn bring_together(&self, (one, next): (&Partition, &Partition)) -> Option<Change> {
        let other = |node: &&NodeId| !one.chain.contains(node);
        let wanted = |node: &&NodeId| {
            let can_take = self.takers.contains(node) && self.has_room(next.id, **node);
            !next.concerns(**node) && can_take && self.may_go(next.id, **node)
        };
        let from = *next.chain.iter().find(other)?;
        let to = *one.chain.iter().find(wanted)?;
        let reads = next.tail() == Some(from);
        (next.chain.len() < wire::CHAIN_MAX).then_some(Change::Move {
            partition: next.id,
            from,
            to,
            reads,
        })
    }
}
