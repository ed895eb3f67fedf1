//! What a chain is to become because of the load.

use super::plan::{Case, Target};
use super::replica_counts::Intent;
use super::sight::Sight;
use crate::placement::Change;
use cluster::NodeId;

impl Case<'_> {
    /// The copy that moves load to another node.
    pub(super) fn moving(&self, members: &[NodeId]) -> Option<Intent> {
        let Some(&Change::Move { from, to, .. }) = self.change else { return None };
        let Sight { serving, departing, leaving, refuses_copies, .. } = self.sight(to);
        let stays = serving && !departing && !leaving;
        let fit = stays && !refuses_copies && self.tally.of(to).can_take();
        let strange =
            !self.partition.concerns(to) && !self.leftovers.may_hold(to, self.partition.id);
        if !fit || !strange || !members.contains(&from) {
            return None;
        }
        Some(Intent { giver: self.giver(members)?, taker: to })
    }

    /// Whether another member is to be the tail.
    pub(super) fn turns(&self, target: &Target) -> bool {
        let Some(&Change::Turn { tail, .. }) = self.change else { return false };
        self.partition.tail() != Some(tail) && target.members.contains(&tail)
    }

    /// Who is to be the tail because of the load.
    pub(super) fn wanted_tail(&self, members: &[NodeId]) -> Option<NodeId> {
        let wanted = match *self.change? {
            Change::Turn { tail, .. } => tail,
            Change::Move { to, reads: true, .. } => to,
            Change::Move { .. } | Change::Split { .. } | Change::Merge { .. } => {
                self.partition.tail()?
            }
        };
        members.contains(&wanted).then_some(wanted)
    }
}
