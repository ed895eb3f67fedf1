//! What partitions are asked for, the busiest first.

use cluster::{NodeId, PartitionId};
use console::chart::grouped;
use controller::{PartitionRate, Status};
use std::cmp::Reverse;

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionView {
    pub(crate) id: PartitionId,
    pub(crate) keyspace: String,
    /// Per second, without what copies of hot keys answer.
    pub(crate) reads: u64,
    /// Records that scans examine per second.
    pub(crate) scanned: u64,
    /// Per second, without those of delegated keys.
    pub(crate) writes: u64,
    /// Bytes of requests, and of answers to reads, per second.
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Which part of one processor all that takes its tail, in thousandths: what it costs in
    /// requests, times what a request has taken this node on average.
    pub(crate) busy_permille: Option<u64>,
    /// Bytes of keys and values, if known.
    pub(crate) bytes: Option<u64>,
    /// From the head to the tail.
    pub(crate) chain: Vec<NodeId>,
}

impl PartitionView {
    /// What the columns of [`row`](Self::row) are called.
    pub(crate) const HEAD: [&str; 10] = [
        "partition",
        "keyspace",
        "reads/s",
        "scanned/s",
        "writes/s",
        "in B/s",
        "out B/s",
        "tail busy",
        "bytes",
        "chain",
    ];

    /// All of which it is known what they are asked for.
    pub(crate) fn busiest_first(status: &Status) -> Vec<Self> {
        let mut rates: Vec<&PartitionRate> = status.placement.partitions.iter().collect();
        rates.sort_by_key(|it| (Reverse(it.cost()), it.partition));
        let view = rates.into_iter().map(|rate| {
            let (keyspace, chain) = place(status, rate.partition);
            Self {
                id: rate.partition,
                keyspace,
                reads: rate.reads,
                scanned: rate.scanned,
                writes: rate.writes,
                bytes_in: rate.bytes_in,
                bytes_out: rate.bytes_out,
                busy_permille: chain.last().and_then(|tail| busy_permille(status, *tail, rate)),
                bytes: rate.held.map(|held| held.bytes),
                chain,
            }
        });
        view.collect()
    }

    /// For people.
    pub(crate) fn row(&self) -> Vec<String> {
        let chain: Vec<String> = self.chain.iter().map(ToString::to_string).collect();
        let busy = self.busy_permille.map(|it| format!("{}.{} %", it / 10, it % 10));
        vec![
            self.id.to_string(),
            self.keyspace.clone(),
            grouped(self.reads),
            grouped(self.scanned),
            grouped(self.writes),
            grouped(self.bytes_in),
            grouped(self.bytes_out),
            busy.unwrap_or_else(|| "-".to_owned()),
            self.bytes.map_or_else(|| "-".to_owned(), grouped),
            chain.join(" > "),
        ]
    }
}

/// Which part of a processor a partition takes its tail, if that says what it has spent.
fn busy_permille(status: &Status, tail: NodeId, rate: &PartitionRate) -> Option<u64> {
    let load = status.load.iter().find(|it| it.node == tail).filter(|it| it.busy_us > 0)?;
    rate.cost().saturating_mul(load.busy_us).checked_div(load.requests)?.checked_div(1_000)
}

/// The keyspace of a partition, and its chain.
fn place(status: &Status, id: PartitionId) -> (String, Vec<NodeId>) {
    let all = status.keyspaces.iter();
    let mut found = all.flat_map(|it| it.partitions.iter().map(move |partition| (it, partition)));
    let found = found.find(|(_, partition)| partition.id == id);
    found.map(|(it, partition)| (it.name.clone(), partition.chain.clone())).unwrap_or_default()
}
