//! Merging two partitions: both are closed, settle, and become one with the same nodes.

use super::compare::Comparison;
use super::plan::{Case, Mate, Reason, Step, Union};
use crate::neighbours::have_the_same_nodes;
use crate::placement::Change;
use cluster::{NodeId, Partition};

impl Case<'_> {
    /// Whether it is to be closed for a merge: with its neighbour, in one step.
    pub(super) fn is_to_merge(&self) -> bool {
        let can = |node: &NodeId| self.sight(*node).splits;
        let Some(Mate { partition: mate, .. }) = self.mate else { return false };
        let [one, other] = [self.partition, mate];
        one.open && other.open && have_the_same_nodes(one, other) && one.chain.iter().all(can)
    }

    /// Makes one of this closed partition and its neighbour, if all members of both hold the same.
    /// Otherwise both open as they are.
    pub(super) fn union(&self, compared: &Comparison) -> Union {
        let Some(Mate { partition: mate, compared: mates }) = self.mate else { return Union::Not };
        if mate.open || !matches!(self.change, Some(Change::Merge { .. })) {
            return Union::Not;
        }
        let Some(mates) = mates else { return Union::Later };
        let is_whole = |it: &Comparison| it.behind.is_empty() && !it.delegated;
        let [one, other] = [self.partition, mate];
        if !is_whole(compared) || !is_whole(mates) || !have_the_same_nodes(one, other) {
            return Union::Not;
        }
        if mate.first < self.partition.first {
            return Union::Later;
        }
        let Some(joint) = self.remade([self.partition, mate]) else { return Union::Not };
        let next = Partition { last: mate.last, ..joint };
        Union::Now(Box::new(Step { absorbs: true, ..Step::new(next, Reason::Remade) }))
    }
}
