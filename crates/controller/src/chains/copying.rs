//! Which copy is to run in a chain.

use super::plan::Case;
use super::replica_counts::Intent;
use super::sight::Sight;
use crate::placement::Change;
use cluster::{NodeId, Partition};

impl Case<'_> {
    /// The copy that runs, if it is still of use.
    pub(super) fn running(&self, members: &[NodeId], learner: Option<NodeId>) -> Option<Intent> {
        let taker = learner.filter(|node| self.is_wanted(members, *node))?;
        let goes_on = |node: &NodeId| members.contains(node) && self.sight(*node).serving;
        let giver = self
            .partition
            .tail()
            .filter(goes_on)
            .or_else(|| self.giver(members))
            .or(members.first().copied())?;
        Some(Intent { giver, taker })
    }

    /// The copy for a member that has come back with less than the others hold. How many others run
    /// does not matter: what it lacks is little, and it counts for nothing until it has that.
    pub(super) fn resuming(&self, members: &[NodeId]) -> Option<Intent> {
        let (taker, _) = self.compared?.resumes?;
        if self.outlook.paused || !self.is_wanted(members, taker) {
            return None;
        }
        let fit = members.iter().filter(|node| self.sight(**node).serving);
        let giver = fit.min_by_key(|node| (self.tally.of(**node).tail_permille(), **node)).copied();
        Some(Intent { giver: giver.or(members.first().copied())?, taker })
    }

    /// The copy to begin.
    pub(super) fn beginning(&self, members: &[NodeId]) -> Option<Intent> {
        if self.outlook.paused {
            return None;
        }
        if let Some(Intent { giver, taker }) = self.intent
            && self.sight(taker).serving
            && !self.partition.concerns(taker)
            && self.is_wanted(members, taker)
        {
            let kept = members.contains(&giver).then_some(giver);
            let giver = kept.or_else(|| self.giver(members))?;
            return Some(Intent { giver, taker });
        }
        if let Some(copy) = self.moving(members) {
            return Some(copy);
        }
        let whole = members.len() + self.absent(members) >= self.replicas;
        if whole && !self.is_anyone_departing(members) {
            return None;
        }
        let Partition { id, .. } = self.partition;
        let strange =
            |node: &NodeId| !self.partition.concerns(*node) && !self.leftovers.may_hold(*node, *id);
        let free = |node: &NodeId| strange(node) && self.tally.of(*node).can_take();
        let takers = self.outlook.takers().filter(free);
        // Better at a node that is nearly full than nowhere.
        let rank =
            |node: &NodeId| (self.sight(*node).short_of_room, self.with_one_more(*node), *node);
        let taker = takers.min_by_key(rank)?;
        Some(Intent { giver: self.giver(members)?, taker })
    }

    /// Who gives a copy: one that gives no other.
    pub(super) fn giver(&self, members: &[NodeId]) -> Option<NodeId> {
        let fit = |node: &NodeId| self.sight(*node).serving && self.tally.of(*node).can_give();
        let free = members.iter().filter(|node| fit(node));
        free.min_by_key(|node| (self.tally.of(**node).tail_permille(), **node)).copied()
    }

    /// How full a node is with a replica in this partition.
    pub(super) fn with_one_more(&self, node: NodeId) -> usize {
        self.outlook.weights.fullness(node, self.tally.of(node).replicas_held + 1)
    }

    /// Whether these members had better be joined by that node.
    fn is_wanted(&self, members: &[NodeId], node: NodeId) -> bool {
        let full = |node: NodeId| self.with_one_more(node);
        let evens_out = || members.iter().any(|member| full(*member) > full(node));
        let there = members.len() + self.absent(members);
        let missing = there < self.replicas || self.is_anyone_departing(members);
        let moves = matches!(self.change, Some(Change::Move { to, .. }) if *to == node);
        let Sight { departing, leaving, refuses_copies, .. } = self.sight(node);
        // What can be without waits for no room: both nodes would give and take nothing meanwhile.
        let fits = !refuses_copies && (moves || evens_out());
        !departing && !leaving && (missing || fits)
    }

    pub(super) fn is_anyone_departing(&self, members: &[NodeId]) -> bool {
        members.iter().any(|node| self.sight(*node).departing)
    }
}
