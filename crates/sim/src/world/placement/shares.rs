//! What nodes have to do, reckoned once more beside the controller: each change that it decides
//! because of the load has to take something off a node that has much.

use cluster::{Map, NodeId, Partition};
use controller::{PartitionRate, PlacementChange};
use std::collections::BTreeMap;

/// What changes of the load go by.
pub(super) struct Evening<'a> {
    /// What partitions are asked for.
    pub(super) rates: &'a [PartitionRate],
    /// What had been decided before and has not come to its end.
    pub(super) under_way: &'a [PlacementChange],
    /// Requests per second under which no node is too busy.
    pub(super) floor: u64,
}

/// What each node has to do in the end.
struct Shares<'a> {
    about: &'a Evening<'a>,
    map: &'a Map,
    nodes: BTreeMap<NodeId, u64>,
}

impl Evening<'_> {
    /// What is wrong with these changes if partitions lie as this map says.
    pub(super) fn wrong(&self, map: &Map, changes: &[PlacementChange]) -> Option<String> {
        let mut shares = Shares { about: self, map, nodes: BTreeMap::new() };
        for partition in &map.partitions {
            let PartitionRate { reads, writes, .. } = self.rate(partition);
            for node in partition.members() {
                let reads = if partition.tail() == Some(*node) { reads } else { 0 };
                *shares.nodes.entry(*node).or_default() += reads + writes;
            }
        }
        self.under_way.iter().for_each(|change| shares.apply(change));
        changes.iter().find_map(|change| {
            let wrong = shares.wrong(change);
            shares.apply(change);
            wrong
        })
    }

    fn rate(&self, partition: &Partition) -> PartitionRate {
        let (none, id) = (None, partition.id);
        let found = self.rates.iter().find(|it| it.partition == id).copied();
        found.unwrap_or(PartitionRate { partition: id, reads: 0, writes: 0, held: none })
    }
}

impl Shares<'_> {
    /// How much load a change takes from which node to which.
    fn flow(&self, change: &PlacementChange) -> Option<(NodeId, NodeId, u64)> {
        let partition = self.map.partitions.iter().find(|it| it.id == change.partition())?;
        let (tail, rate) = (partition.tail()?, self.about.rate(partition));
        match *change {
            PlacementChange::Turn { tail: to, .. } => Some((tail, to, rate.reads)),
            PlacementChange::Move { from, to, reads, .. } => {
                let members = partition.members();
                let leaves = members.contains(&from) && !members.contains(&to);
                let writes = if leaves { rate.writes } else { 0 };
                let reads = if reads && tail != to { rate.reads } else { 0 };
                Some((from, to, reads + writes))
            }
            PlacementChange::Split { .. } | PlacementChange::Merge { .. } => None,
        }
    }

    fn of(&self, node: NodeId) -> u64 {
        self.nodes.get(&node).copied().unwrap_or(0)
    }

    fn apply(&mut self, change: &PlacementChange) {
        let Some((from, to, load)) = self.flow(change) else { return };
        let given = self.nodes.entry(from).or_default();
        *given = given.saturating_sub(load);
        *self.nodes.entry(to).or_default() += load;
    }

    fn wrong(&self, change: &PlacementChange) -> Option<String> {
        let (from, to, load) = self.flow(change)?;
        let (before, other) = (self.of(from), self.of(to));
        if before <= self.about.floor {
            let floor = self.about.floor;
            return Some(format!("node {from} has {before}, and {floor} is little: {change}"));
        }
        (other + load >= before).then(|| {
            format!("node {from} will have {before} and node {to} {other}: {change} moves {load}")
        })
    }
}
