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
        let mut shares = self.shares(map);
        changes.iter().find_map(|change| {
            let wrong = shares.wrong(change);
            shares.apply(change);
            wrong
        })
    }

    /// What each node has to do when all that is under way has come to its end.
    fn shares<'a>(&'a self, map: &'a Map) -> Shares<'a> {
        let mut shares = Shares { about: self, map, nodes: BTreeMap::new() };
        for partition in &map.partitions {
            let rate = self.rate(partition);
            let (reads, writes) = (rate.reading(), rate.writes);
            for node in partition.members() {
                let reads = if partition.tail() == Some(*node) { reads } else { 0 };
                *shares.nodes.entry(*node).or_default() += reads + writes;
            }
        }
        self.under_way.iter().for_each(|change| shares.apply(change));
        shares
    }

    fn rate(&self, partition: &Partition) -> PartitionRate {
        let id = partition.id;
        let found = self.rates.iter().find(|it| it.partition == id).copied();
        found.unwrap_or(PartitionRate { partition: id, ..PartitionRate::default() })
    }
}

impl Shares<'_> {
    /// How much load a change takes from which node to which. While a replica is copied, another
    /// member than the one that leaves may be the tail: then reads come from there.
    fn flows(&self, change: &PlacementChange) -> Vec<(NodeId, NodeId, u64)> {
        let partition = self.map.partitions.iter().find(|it| it.id == change.partition());
        let Some((partition, now)) = partition.and_then(|it| Some((it, it.tail()?))) else {
            return Vec::new();
        };
        let rate = self.about.rate(partition);
        let (reads, writes) = (rate.reading(), rate.writes);
        match *change {
            PlacementChange::Turn { tail: to, .. } => vec![(now, to, reads)],
            PlacementChange::Move { from, to, reads: moves_reads, .. } => {
                let members = partition.members();
                let leaves = members.contains(&from) && !members.contains(&to);
                let writes = leaves.then_some((from, to, writes));
                let reads = moves_reads.then_some((now, to, reads));
                writes.into_iter().chain(reads).collect()
            }
            PlacementChange::Split { .. } | PlacementChange::Merge { .. } => Vec::new(),
        }
    }

    fn of(&self, node: NodeId) -> u64 {
        self.nodes.get(&node).copied().unwrap_or(0)
    }

    fn apply(&mut self, change: &PlacementChange) {
        for (from, to, load) in self.flows(change) {
            let given = self.nodes.entry(from).or_default();
            *given = given.saturating_sub(load);
            *self.nodes.entry(to).or_default() += load;
        }
    }

    /// What is wrong with a change that is yet to begin: all that it moves comes from one node.
    fn wrong(&self, change: &PlacementChange) -> Option<String> {
        let flows = self.flows(change);
        let (from, to, _) = *flows.first()?;
        let load: u64 = flows.iter().map(|(_, _, load)| load).sum();
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

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::PartitionId;

    const ONE: PartitionId = PartitionId(1);

    #[test]
    fn while_a_replica_is_copied_reads_come_from_whoever_is_the_tail() {
        let node = NodeId;
        let rates =
            [PartitionRate { partition: ONE, reads: 20, writes: 10, ..PartitionRate::default() }];
        let under_way =
            [PlacementChange::Move { partition: ONE, from: node(1), to: node(3), reads: true }];
        let about = Evening { rates: &rates, under_way: &under_way, floor: 0 };
        // Node 1 was the tail; node 2 is as long as it gives the copy.
        let chain = vec![node(1), node(2), node(3)];
        let partition = Partition { id: ONE, chain, has_learner: true, ..Partition::default() };
        let map = Map { partitions: vec![partition], ..Map::default() };
        let after = about.shares(&map).nodes;
        assert_eq!(after, BTreeMap::from([(node(1), 0), (node(2), 10), (node(3), 30)]));
    }
}
