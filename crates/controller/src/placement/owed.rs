//! What nodes have given away and have not freed yet. A store frees what it holds of a replica some
//! time after the replica has left, a durable one when it next rewrites its files. Until then the
//! node is as full as before, and would give away one after the other in vain.

use super::samples::Samples;
use crate::holdings::Holdings;
use cluster::{Map, NodeId, PartitionId};
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a node has not freed after so long it keeps, for all that is known.
const OWED_FOR: Duration = Duration::from_secs(600);

/// A debt of which all but one part in so many is freed is none.
const REST_PART: u64 = 8;

/// What each node is still to free.
#[derive(Clone, Debug, Default)]
pub(super) struct Owed {
    nodes: BTreeMap<NodeId, Debt>,
    /// Who had a replica when it was looked last.
    members: BTreeMap<PartitionId, Vec<NodeId>>,
    /// What each node held then.
    held: BTreeMap<NodeId, u64>,
}

#[derive(Clone, Copy, Debug)]
struct Debt {
    /// Bytes of what it has given away, as clients wrote them.
    given: u64,
    /// Bytes by which it has come to hold less since, as it holds them.
    freed: u64,
    until: Instant,
}

impl Debt {
    fn is_paid(self) -> bool {
        self.freed >= self.given - self.given / REST_PART
    }
}

impl Owed {
    /// Looks who has a replica no more, and who has freed something.
    pub(super) fn note(
        &mut self,
        now: Instant,
        (map, holdings): (&Map, &Holdings),
        samples: &Samples,
    ) {
        let before = std::mem::take(&mut self.members);
        for partition in &map.partitions {
            let members = partition.members();
            // What is made of others lies at the same nodes.
            let left = before.get(&partition.id).into_iter().flatten();
            for node in left.filter(|node| !members.contains(node)) {
                let until = now + OWED_FOR;
                let debt = self.nodes.entry(*node).or_insert(Debt { given: 0, freed: 0, until });
                debt.given += samples.last_held(partition.id).unwrap_or(0);
                debt.until = until;
            }
            self.members.insert(partition.id, members.to_vec());
        }
        let after = holdings.iter().map(|(node, it)| (*node, it.held)).collect();
        let before = std::mem::replace(&mut self.held, after);
        for (node, debt) in &mut self.nodes {
            let fell = before.get(node).zip(self.held.get(node));
            debt.freed += fell.map_or(0, |(before, after)| before.saturating_sub(*after));
        }
        self.nodes.retain(|_, debt| now < debt.until && !debt.is_paid());
    }

    /// Bytes, as clients wrote them, that a node has given away and not freed all of, if it holds
    /// so many now; and bytes, as it holds them, that it has freed of these.
    pub(super) fn of(&self, node: NodeId, held: u64) -> (u64, u64) {
        let Some(debt) = self.nodes.get(&node) else { return (0, 0) };
        let fell = self.held.get(&node).map_or(0, |before| before.saturating_sub(held));
        let debt = Debt { freed: debt.freed.saturating_add(fell), ..*debt };
        if debt.is_paid() { (0, 0) } else { (debt.given, debt.freed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holdings::Holding;
    use cluster::{Partition, PartitionSample, Volume};

    const NODE: NodeId = NodeId(1);

    #[test]
    fn what_a_node_has_given_away_counts_as_freed_until_it_is_or_ten_minutes_are_over() {
        for frees in [false, true] {
            let mut now = Instant::from_unix_ms(1_000);
            let mut samples = Samples::default();
            let held = Some(Volume { keys: 1, bytes: 100 });
            let sample = PartitionSample { held, ..PartitionSample::default() };
            samples.hear(now, NODE, &[sample]);
            let map = |node: u16| Map {
                partitions: vec![Partition { chain: vec![NodeId(node)], ..Partition::default() }],
                ..Map::default()
            };
            let mut owed = Owed::default();
            let mut note = |now: Instant, node, held: u64| {
                let holding = Holding { held, most: 1_000, on_disk: true, stored: held };
                owed.note(now, (&map(node), &[(NODE, holding)].into()), &samples);
                (owed.of(NODE, held), owed.of(NODE, held - 60))
            };
            let none = ((0, 0), (0, 0));
            assert_eq!(note(now, 1, 800), none);
            let (owes, soon) = note(now, 2, 820);
            assert_eq!(owes, (100, 0), "more has come, and nothing was freed");
            assert_eq!(soon, (100, 60), "as soon as it says so");
            assert_eq!(note(now, 2, 780), ((100, 40), (0, 0)));
            if frees {
                assert_eq!(note(now, 2, 730), none);
            }
            now = now + OWED_FOR;
            assert_eq!(note(now, 2, 900), none);
        }
    }
}
