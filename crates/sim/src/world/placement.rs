//! Looking at what a controller changes because of the load (G7 of the promises): nothing goes
//! back, and nothing changes too often.

use super::World;
use cluster::{NodeId, PartitionId};
use controller::{Controller, PlacementChange, PlacementDecision};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A partition is left alone for so long after its first change, and for twice as long after each
/// one more.
const REST: Duration = Duration::from_secs(10);

/// What one controller has changed so far. Worlds do not last for ten minutes, after which a
/// replica may go back.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// Decisions that were looked at.
    seen: u64,
    left: BTreeSet<(PartitionId, NodeId)>,
    changes: BTreeMap<PartitionId, (u32, Instant)>,
}

impl Placed {
    /// Looks at what is new. Says how many turns and moves that is, and what should not be.
    fn look(&mut self, now: Instant, controller: &Controller) -> ([u64; 2], Vec<String>) {
        let (mut counts, mut wrong) = ([0; 2], Vec::new());
        if self.seen == controller.placements_noted() {
            return (counts, wrong);
        }
        for decision in controller.placements_since(self.seen) {
            let PlacementDecision { changes, saw_permille, predicted_permille, .. } = decision;
            if predicted_permille > saw_permille {
                wrong.push(format!("load is to become less even: {decision:?}"));
            }
            for change in changes {
                wrong.extend(self.take(now, change));
                match change {
                    PlacementChange::Turn { .. } => counts[0] += 1,
                    PlacementChange::Move { .. } => counts[1] += 1,
                }
            }
        }
        self.seen = controller.placements_noted();
        (counts, wrong)
    }

    fn take(&mut self, now: Instant, change: &PlacementChange) -> Option<String> {
        let partition = change.partition();
        let (count, first) = self.changes.entry(partition).or_insert((0, now));
        *count += 1;
        let rested = REST * (2_u32.saturating_pow(*count - 1) - 1);
        if now.since(*first) < rested {
            let times = format!("{count} times within {:?}", now.since(*first));
            return Some(format!("partition {partition} changes because of load {times}"));
        }
        let PlacementChange::Move { from, to, .. } = *change else { return None };
        self.left.insert((partition, from));
        let back = self.left.contains(&(partition, to));
        back.then(|| format!("partition {partition} goes back to node {to}, which it had left"))
    }
}

impl World {
    /// Looks at what a controller has changed because of the load.
    pub(super) fn look_at_placement(&mut self, index: usize) {
        let now = self.now;
        let Some(master) = self.controllers.get_mut(index) else { return };
        let Some(machine) = &master.machine else { return };
        let ([turns, moves], wrong) = master.placed.look(now, machine);
        self.stats.turns += turns;
        self.stats.moves += moves;
        for text in wrong {
            self.history.violation(text);
        }
    }
}
