//! What nodes have given away and have not freed yet. A store frees what it holds of a replica some
//! time after the replica has left, a durable one when it next rewrites its files. Until then the
//! node is as full as before, and would give away one after the other in vain.

use super::footprint::Footprint;
use super::samples::Samples;
use crate::holdings::{Holding, Holdings};
use cluster::{Map, NodeId, PartitionId};
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::Revision;

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
    holdings: Holdings,
}

#[derive(Clone, Copy, Debug)]
struct Debt {
    /// Bytes of what it has given away, as clients wrote them.
    given: u64,
    /// From this map on it has. An older report says nothing of that.
    since: Revision,
    /// What it held before it gave any of it away.
    before: Holding,
    /// Bytes that it has freed since, as it holds them.
    freed: u64,
    until: Instant,
}

impl Debt {
    /// The same as a report shows it. What the node has taken since hides what it has freed: so
    /// that is what it would hold by now if it had freed nothing, without what it does hold.
    fn seen_in(self, now: &Holding) -> Self {
        if now.follows < self.since {
            return self;
        }
        let stored = now.stored.saturating_add(self.given);
        let taken = self.footprint().apply(stored.saturating_sub(self.before.stored));
        let freed = self.before.held.saturating_add(taken).saturating_sub(now.held);
        Self { freed: freed.max(self.freed), ..self }
    }

    fn footprint(&self) -> Footprint {
        Footprint { held: self.before.held, stored: self.before.stored }
    }

    fn is_paid(&self) -> bool {
        let given = self.footprint().apply(self.given);
        self.freed >= given - given / REST_PART
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
        let seen = std::mem::replace(&mut self.holdings, holdings.clone());
        let members = std::mem::take(&mut self.members);
        for partition in &map.partitions {
            // What is made of others lies at the same nodes.
            let left = members.get(&partition.id).into_iter().flatten();
            for node in left.filter(|node| !partition.members().contains(node)) {
                let Some(before) = seen.get(node).copied() else { continue };
                let (since, until) = (map.revision, now + OWED_FOR);
                let fresh = Debt { given: 0, since, before, freed: 0, until };
                let debt = self.nodes.entry(*node).or_insert(fresh);
                debt.given += samples.last_held(partition.id).unwrap_or(0);
                (debt.since, debt.until) = (since, until);
            }
            self.members.insert(partition.id, partition.members().to_vec());
        }
        for (node, debt) in &mut self.nodes {
            *debt = holdings.get(node).map_or(*debt, |now| debt.seen_in(now));
        }
        self.nodes.retain(|_, debt| now < debt.until && !debt.is_paid());
    }

    /// Bytes, as clients wrote them, that a node has given away and not freed all of, if this is
    /// what it holds now; and bytes, as it holds them, that it has freed of these.
    pub(super) fn of(&self, node: NodeId, now: &Holding) -> (u64, u64) {
        let debt = self.nodes.get(&node).map(|debt| debt.seen_in(now));
        debt.filter(|debt| !debt.is_paid()).map_or((0, 0), |debt| (debt.given, debt.freed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holdings::Holding;
    use cluster::{Partition, PartitionSample, Volume};

    const NODE: NodeId = NodeId(1);

    /// A map in which this node has the only replica.
    fn map(node: u16) -> Map {
        Map {
            revision: Revision::new(u64::from(node)),
            partitions: vec![Partition { chain: vec![NodeId(node)], ..Partition::default() }],
            ..Map::default()
        }
    }

    /// The replica has 100 bytes of clients.
    fn samples() -> Samples {
        let mut samples = Samples::default();
        let held = Some(Volume { keys: 1, bytes: 100 });
        let sample = PartitionSample { held, ..PartitionSample::default() };
        samples.hear(Instant(0), NODE, &[sample]);
        samples
    }

    fn holding(held: u64, stored: u64, follows: u64) -> Holding {
        let follows = Revision::new(follows);
        Holding { held, most: 1_000, on_disk: true, stored, follows }
    }

    #[test]
    fn what_a_node_has_given_away_counts_as_freed_until_it_is_or_ten_minutes_are_over() {
        for frees in [false, true] {
            let mut now = Instant::from_unix_ms(1_000);
            let mut owed = Owed::default();
            let mut note = |now: Instant, node: u16, held: u64, stored: u64| {
                let holding = holding(held, stored, node.into());
                owed.note(now, (&map(node), &[(NODE, holding)].into()), &samples());
                let less = Holding { held: held - 60, ..holding };
                (owed.of(NODE, &holding), owed.of(NODE, &less))
            };
            let none = ((0, 0), (0, 0));
            assert_eq!(note(now, 1, 800, 800), none);
            let (owes, soon) = note(now, 2, 820, 700);
            assert_eq!(owes, (100, 0), "more has come, and nothing was freed");
            assert_eq!(soon, (100, 40), "as soon as it says so");
            assert_eq!(note(now, 2, 760, 700), ((100, 40), (0, 0)));
            if frees {
                assert_eq!(note(now, 2, 710, 700), none);
            }
            now = now + OWED_FOR;
            assert_eq!(note(now, 2, 900, 800), none);
        }
    }

    #[test]
    fn what_a_node_takes_meanwhile_does_not_hide_what_it_has_freed() {
        let mut owed = Owed::default();
        let mut note = |node: u16, holding: Holding| {
            owed.note(Instant(0), (&map(node), &[(NODE, holding)].into()), &samples());
            owed.of(NODE, &holding)
        };
        assert_eq!(note(1, holding(800, 400, 1)), (0, 0));
        let stale = holding(800, 400, 1);
        assert_eq!(note(2, stale), (100, 0), "it has not heard of it");
        // 50 bytes of clients more each time, which take 100.
        assert_eq!(note(2, holding(900, 350, 2)), (100, 0));
        assert_eq!(note(2, holding(900, 400, 2)), (100, 100));
        assert_eq!(note(2, holding(900, 450, 2)), (0, 0));
    }
}
