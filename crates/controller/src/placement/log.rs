//! What was decided because of the load, and what came of it.

use super::change::Change;
use crate::ring::Ring;
use cluster::PartitionId;
use machine::Instant;
use serde::{Deserialize, Serialize};

/// Decisions about the load that are remembered. All are in the driver's log, among others.
const PLACEMENT_DECISIONS_MAX: usize = 64;

/// What a decision is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To even out what nodes have to do.
    #[default]
    Load,
    /// To make room at nodes that are nearly full.
    Room,
    /// To split what is large, or to merge what is cold and small.
    Size,
}

/// One decision to take load from nodes, or to make room at them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementDecision {
    /// When, in Unix milliseconds.
    pub at_ms: u64,
    /// What it was for.
    #[serde(default)]
    pub purpose: Purpose,
    /// What the busiest node had to do then, in thousandths of the mean.
    pub saw_permille: u64,
    /// What was to be changed.
    pub changes: Vec<Change>,
    /// What the busiest node would have to do after that.
    pub predicted_permille: u64,
    /// What it had to do when all of that had been carried out and was counted; not there before.
    pub found_permille: Option<u64>,
}

/// The last decisions, and how much was decided in all.
#[derive(Clone, Debug)]
pub(super) struct Log {
    decisions: Ring<PlacementDecision>,
    /// The last one, if it is not known what came of it.
    open: Option<u64>,
    pub(super) turns: u64,
    pub(super) moves: u64,
    pub(super) splits: u64,
    pub(super) merges: u64,
}

impl Default for Log {
    fn default() -> Self {
        let decisions = Ring::new(PLACEMENT_DECISIONS_MAX);
        Self { decisions, open: None, turns: 0, moves: 0, splits: 0, merges: 0 }
    }
}

impl Log {
    pub(super) fn note(
        &mut self,
        now: Instant,
        (purpose, (saw, predicted)): (Purpose, (u64, u64)),
        changes: &[Change],
    ) {
        for change in changes {
            match change {
                Change::Turn { .. } => self.turns += 1,
                Change::Move { .. } => self.moves += 1,
                Change::Split { .. } => self.splits += 1,
                Change::Merge { .. } => self.merges += 1,
            }
        }
        self.open = Some(self.decisions.note(PlacementDecision {
            at_ms: now.unix_ms(),
            purpose,
            saw_permille: saw,
            changes: changes.to_vec(),
            predicted_permille: predicted,
            found_permille: None,
        }));
    }

    /// Nothing is under way: if all that was changed last is counted anew, that is what came of it.
    pub(super) fn find(&mut self, worst: u64, is_counted: impl Fn(PartitionId) -> bool) {
        let Some(decision) = self.open.and_then(|number| self.decisions.get_mut(number)) else {
            return;
        };
        if decision.changes.iter().all(|change| is_counted(change.partition())) {
            decision.found_permille = Some(worst);
            self.open = None;
        }
    }

    pub(super) fn noted(&self) -> u64 {
        self.decisions.noted()
    }

    pub(super) fn since(&self, seen: u64) -> impl Iterator<Item = &PlacementDecision> {
        self.decisions.since(seen)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &PlacementDecision> {
        self.decisions.iter()
    }
}
