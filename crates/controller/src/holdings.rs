//! How much nodes hold of what they may hold, as their last reports say.

use cluster::{NodeId, NodeReport, Resources, Volume};
use std::collections::BTreeMap;
use wire::Revision;

/// What is full, in millionths.
const ALL: u64 = 1_000_000;

/// Thousandths of what it may hold from which on a node is given nothing that another can take.
const NO_TAKER_PERMILLE: u64 = 750;

/// What a node holds, of what it has least room for: memory, or its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    /// Bytes that it holds.
    pub(crate) held: u64,
    /// Bytes that it may hold.
    pub(crate) most: u64,
    /// Whether these are bytes of a disk, which nodes of one machine may share.
    pub(crate) on_disk: bool,
    /// Bytes of keys and values there, as clients wrote them.
    pub(crate) stored: u64,
    /// The map that it follows by now.
    pub(crate) follows: Revision,
}

/// Those of all nodes of which it is known how much they may hold.
pub(crate) type Holdings = BTreeMap<NodeId, Holding>;

impl Holding {
    /// `None` if nothing limits it, or that is not known.
    pub(crate) fn of(report: &NodeReport) -> Option<Self> {
        let Resources { memory, memory_max, disk_free, disk_floor, disk_used, .. } =
            report.resources;
        let stored = report.stored.iter().map(|it| it.held).sum::<Volume>().bytes;
        let new = |held, most, on_disk| {
            let follows = report.revision;
            Self { held, most, on_disk, stored, follows }
        };
        let in_memory = memory_max.map(|most| new(memory, most, false));
        let on_disk = disk_used.zip(disk_free).map(|(held, free)| {
            let left = free.saturating_sub(disk_floor.unwrap_or(0));
            new(held, held.saturating_add(left), true)
        });
        let known = [in_memory, on_disk].into_iter().flatten().filter(|it| it.most > 0);
        known.max_by_key(|it| it.fullness())
    }

    /// In millionths of what it may hold.
    pub(crate) fn fullness(&self) -> u64 {
        self.held.saturating_mul(ALL).checked_div(self.most).unwrap_or(0)
    }

    /// Bytes that it may hold more.
    pub(crate) fn left(&self) -> u64 {
        self.most.saturating_sub(self.held)
    }

    /// Whether it had better be given nothing.
    pub(crate) fn is_no_taker(&self) -> bool {
        self.fullness() >= permille(NO_TAKER_PERMILLE)
    }
}

/// So many thousandths, in millionths.
pub(crate) const fn permille(thousandths: u64) -> u64 {
    thousandths * (ALL / 1_000)
}

/// So many millionths, in thousandths.
pub(crate) const fn in_permille(millionths: u64) -> u64 {
    millionths / (ALL / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{KeyspaceId, Stored};

    fn of(resources: Resources) -> Option<Holding> {
        let volume = Volume { keys: 1, bytes: 40 };
        let stored =
            |id| Stored { keyspace: KeyspaceId(id), held: volume, as_tail: volume, counted: true };
        let stored = vec![stored(1), stored(2)];
        Holding::of(&NodeReport { resources, stored, ..NodeReport::default() })
    }

    #[test]
    fn what_a_node_holds_is_of_its_memory_or_its_disk_whichever_is_fuller() {
        let memory = Resources { memory: 80, memory_max: Some(100), ..Resources::default() };
        let disk = Resources {
            memory: 80,
            disk_used: Some(300),
            disk_free: Some(150),
            disk_floor: Some(50),
            ..Resources::default()
        };
        let follows = Revision::default();
        let in_memory = Holding { held: 80, most: 100, on_disk: false, stored: 80, follows };
        let on_disk = Holding { held: 300, most: 400, on_disk: true, stored: 80, follows };
        assert_eq!((of(memory), of(disk)), (Some(in_memory), Some(on_disk)));
        assert_eq!(of(Resources { memory_max: Some(100), ..disk }), Some(in_memory));
        assert_eq!(of(Resources { memory_max: Some(200), ..disk }), Some(on_disk));
        assert_eq!((in_permille(in_memory.fullness()), on_disk.left()), (800, 100));
        assert!(in_memory.is_no_taker() && on_disk.is_no_taker());
        assert_eq!(of(Resources { disk_used: None, ..disk }), None);
        assert_eq!(of(Resources::default()), None);
        let below = Resources { disk_free: Some(20), ..disk };
        assert_eq!(of(below).map(|it| it.fullness()), Some(ALL), "it has less than the floor");
    }
}
