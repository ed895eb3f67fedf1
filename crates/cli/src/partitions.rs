//! What partitions are asked for, the busiest first.

use cluster::{NodeId, PartitionId};
use console::chart::grouped;
use controller::Status;
use std::cmp::Reverse;

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionView {
    pub(crate) id: PartitionId,
    pub(crate) keyspace: String,
    /// Per second, without what copies of hot keys answer.
    pub(crate) reads: u64,
    /// Per second, without those of delegated keys.
    pub(crate) writes: u64,
    /// Bytes of keys and values, if known.
    pub(crate) bytes: Option<u64>,
    /// From the head to the tail.
    pub(crate) chain: Vec<NodeId>,
}

impl PartitionView {
    /// What the columns of [`row`](Self::row) are called.
    pub(crate) const HEAD: [&str; 6] =
        ["partition", "keyspace", "reads/s", "writes/s", "bytes", "chain"];

    /// All of which it is known what they are asked for.
    pub(crate) fn busiest_first(status: &Status) -> Vec<Self> {
        let rates = status.placement.partitions.iter();
        let mut all: Vec<Self> = rates
            .map(|rate| {
                let (keyspace, chain) = place(status, rate.partition);
                Self {
                    id: rate.partition,
                    keyspace,
                    reads: rate.reads,
                    writes: rate.writes,
                    bytes: rate.held.map(|held| held.bytes),
                    chain,
                }
            })
            .collect();
        all.sort_by_key(|it| (Reverse(it.reads.saturating_add(it.writes)), it.id));
        all
    }

    /// For people.
    pub(crate) fn row(&self) -> Vec<String> {
        let chain: Vec<String> = self.chain.iter().map(ToString::to_string).collect();
        vec![
            self.id.to_string(),
            self.keyspace.clone(),
            grouped(self.reads),
            grouped(self.writes),
            self.bytes.map_or_else(|| "-".to_owned(), grouped),
            chain.join(" > "),
        ]
    }
}

/// The keyspace of a partition, and its chain.
fn place(status: &Status, id: PartitionId) -> (String, Vec<NodeId>) {
    let all = status.keyspaces.iter();
    let mut found = all.flat_map(|it| it.partitions.iter().map(move |partition| (it, partition)));
    let found = found.find(|(_, partition)| partition.id == id);
    found.map(|(it, partition)| (it.name.clone(), partition.chain.clone())).unwrap_or_default()
}
