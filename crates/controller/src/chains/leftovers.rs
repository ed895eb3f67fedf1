//! Which nodes may still hold something of partitions that they have no replica in.
//!
//! A node that loses a replica forgets what it held piece by piece, so that it goes on serving its
//! other partitions. It must be through with that before it is placed there again: else it would
//! have to forget the rest at once, and fall silent over it.
//!
//! What is left of a partition that others were made of may lie in the way of any of those. So a
//! node that may hold some is given nothing before it is through.

use cluster::{Map, NodeId, NodeReport, PartitionId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use wire::Revision;

/// What is known of that. Nothing of it is durable: nodes say it again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leftovers {
    /// Revision that this controller began with. Who lost which replica before it has not seen.
    begun: Revision,
    /// Nodes that have followed that revision or a later one, and so have said all that they still
    /// had to forget.
    known: BTreeSet<NodeId>,
    /// Partitions that a node has not said to be free of, though it may have lost its replica.
    lost: BTreeMap<(NodeId, PartitionId), Lost>,
}

/// A replica that a node has lost.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// The revision with which it did.
    revision: Revision,
    /// Whether others were made of the partition.
    was_made_into_others: bool,
}

impl Leftovers {
    /// For a controller that begins with this revision.
    pub(crate) fn new(begun: Revision) -> Self {
        Self { begun, ..Self::default() }
    }

    /// Whether this node, which has no replica in the partition, may hold something of it.
    pub(crate) fn may_hold(&self, node: NodeId, partition: PartitionId) -> bool {
        let mut lost = self.lost.range(all_of(node));
        !self.known.contains(&node)
            || lost.any(|((_, id), lost)| *id == partition || lost.was_made_into_others)
    }

    /// A node has lost its replica with this revision.
    pub(crate) fn note_lost(&mut self, node: NodeId, partition: PartitionId, revision: Revision) {
        let lost = Lost { revision, was_made_into_others: false };
        self.lost.insert((node, partition), lost);
    }

    /// Others were made of a partition, whose nodes have all lost their replicas of it.
    pub(crate) fn note_made_into_others(&mut self, partition: PartitionId) {
        for (_, lost) in self.lost.iter_mut().filter(|((_, id), _)| *id == partition) {
            lost.was_made_into_others = true;
        }
    }

    /// Takes what a node says by what it has installed, its `vacating` in order; returns whether
    /// that is news. Who has installed nothing since it lost a replica, after a restart say, may
    /// not know that yet.
    pub(crate) fn note_report(&mut self, map: &Map, node: NodeId, report: &NodeReport) -> bool {
        let mut news = report.revision >= self.begun && self.known.insert(node);
        for partition in &report.vacating {
            let lost = self.lost.entry((node, *partition));
            lost.or_insert_with(|| {
                news = true;
                let was_made_into_others = map.partitions.iter().all(|it| it.id != *partition);
                Lost { revision: report.revision, was_made_into_others }
            });
        }
        let free = self.lost.extract_if(all_of(node), |(_, partition), lost| {
            lost.revision <= report.revision && report.vacating.binary_search(partition).is_err()
        });
        free.count() > 0 || news
    }
}

fn all_of(node: NodeId) -> RangeInclusive<(NodeId, PartitionId)> {
    (node, PartitionId(0))..=(node, PartitionId(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::Partition;

    const NODE: NodeId = NodeId(3);

    /// Of partitions 1 to 3.
    fn map() -> Map {
        let partition = |id| Partition { id: PartitionId(id), ..Partition::default() };
        Map { partitions: (1..=3).map(partition).collect(), ..Map::default() }
    }

    fn says(leftovers: &mut Leftovers, revision: u64, vacating: &[u32]) -> bool {
        let vacating = vacating.iter().copied().map(PartitionId).collect();
        leftovers.note_report(
            &map(),
            NODE,
            &NodeReport { revision: Revision::new(revision), vacating, ..NodeReport::default() },
        )
    }

    fn held(leftovers: &Leftovers) -> Vec<u32> {
        (1..=3).filter(|id| leftovers.may_hold(NODE, PartitionId(*id))).collect()
    }

    #[test]
    fn a_node_that_has_lost_a_seat_holds_it_until_it_knows_and_says_that_it_does_not() {
        let mut leftovers = Leftovers::new(Revision::new(5));
        assert!(says(&mut leftovers, 5, &[]));
        assert!(held(&leftovers).is_empty());
        leftovers.note_lost(NODE, PartitionId(2), Revision::new(7));
        for (revision, vacating, news) in [
            (6, &[][..], false),
            (0, &[], false),
            (7, &[2], false),
            (0, &[], false),
            (8, &[2], false),
        ] {
            assert_eq!(says(&mut leftovers, revision, vacating), news, "revision {revision}");
            assert_eq!(held(&leftovers), [2]);
        }
        assert!(says(&mut leftovers, 8, &[]));
        assert!(held(&leftovers).is_empty());
        assert!(!says(&mut leftovers, 0, &[]), "what it is free of it stays free of");
        assert!(held(&leftovers).is_empty());
    }

    #[test]
    fn what_was_lost_before_the_controller_began_the_node_has_to_say() {
        let mut leftovers = Leftovers::new(Revision::new(5));
        assert_eq!(held(&leftovers), [1, 2, 3]);
        assert!(!says(&mut leftovers, 4, &[]), "it may not have heard of it yet");
        assert_eq!(held(&leftovers), [1, 2, 3]);
        assert!(says(&mut leftovers, 5, &[1, 3]));
        assert_eq!(held(&leftovers), [1, 3]);
        assert!(!says(&mut leftovers, 0, &[]), "it was started anew and knows nothing");
        assert_eq!(held(&leftovers), [1, 3]);
        assert!(says(&mut leftovers, 5, &[3]));
        assert_eq!(held(&leftovers), [3]);
    }

    #[test]
    fn what_is_left_of_a_partition_that_others_were_made_of_is_in_the_way_of_all() {
        let mut leftovers = Leftovers::new(Revision::new(5));
        assert!(says(&mut leftovers, 5, &[]));
        leftovers.note_lost(NODE, PartitionId(9), Revision::new(7));
        assert!(held(&leftovers).is_empty());
        leftovers.note_made_into_others(PartitionId(9));
        assert_eq!(held(&leftovers), [1, 2, 3]);
        assert!(says(&mut leftovers, 7, &[]));
        assert!(held(&leftovers).is_empty());
        assert!(says(&mut leftovers, 8, &[8]), "of a partition that is not in the map");
        assert_eq!(held(&leftovers), [1, 2, 3]);
        assert!(says(&mut leftovers, 8, &[]));
        assert!(held(&leftovers).is_empty());
    }
}
