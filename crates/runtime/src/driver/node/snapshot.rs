//! How a node and its shards are, as they say when they are asked.

use super::limits::busy_us;
use super::{Shard, ShardEngine, joint_store};
use crate::driver::latency::Latency;
use crate::mailbox::MailError;
use cluster::{NodeReport, Resources, ShardRecord};
use machine::Instant;
use node::Counters;
use std::collections::BTreeMap;
use wire::Op;

/// How a node is.
#[derive(Clone, Debug)]
pub struct NodeSnapshot {
    /// When the first of the shards said this, by its clock.
    pub at: Instant,
    /// For the controller, over all shards.
    pub report: NodeReport,
    /// Of each shard, in order.
    pub shards: Vec<ShardSnapshot>,
}

/// How a shard is.
#[derive(Clone, Debug)]
pub struct ShardSnapshot {
    /// When it said this, by its clock.
    pub at: Instant,
    /// For the controller.
    pub report: NodeReport,
    /// What was counted since the start.
    pub counters: Counters,
    /// Client sessions held.
    pub sessions: usize,
    /// Clients that have said goodbye.
    pub sessions_ended: usize,
    /// Partitions it has a role in.
    pub partitions: usize,
    /// Hot keys marked in them.
    pub hot_keys: usize,
    /// Copies of hot keys it holds to answer reads from.
    pub hot_copies: usize,
    /// Uploads of big values that are not values, or not any more.
    pub uploads: usize,
    /// Hot delegated keys of which it holds a write.
    pub hot_delegated_keys: usize,
    /// Bytes of parts of big values that are not values yet.
    pub upload_bytes: u64,
    /// Whether it has a lease.
    pub leased: bool,
    /// What it has on record of the map.
    pub record: ShardRecord,
    /// Datagrams that the kernel refused to send.
    pub unsent: u64,
    /// Turns that took longer than they should.
    pub long_turns: u64,
    /// How long packets were here, by operation.
    pub latencies: BTreeMap<Op, Latency>,
}

/// The whole node.
pub(super) fn join(shards: Vec<ShardSnapshot>) -> Result<NodeSnapshot, MailError> {
    let at = shards.iter().map(|shard| shard.at).min().ok_or(MailError::Ended)?;
    let reports = shards.iter().map(|shard| &shard.report);
    let store = joint_store(reports.clone().map(|report| report.store));
    let report = NodeReport::of_shards(reports, store, node::HOT_MAX);
    Ok(NodeSnapshot { at, report, shards })
}

impl<E: ShardEngine> Shard<E> {
    /// How the shard is.
    pub(super) fn snapshot(&self, now: Instant) -> ShardSnapshot {
        let queued = self.service.as_ref().map_or(0, |service| service.waiting() as u64);
        let (waiting, busy_us) = (queued + u64::from(self.waiting), busy_us());
        let report = self.node.report(now);
        let resources = Resources {
            disk_free: self.disk.map(|disk| disk.free),
            disk_floor: self.disk.map(|disk| disk.floor),
            disk_used: self.node.engine().disk_used(),
            durability: Some(self.node.engine().durability()),
            ..report.resources
        };
        ShardSnapshot {
            at: now,
            report: NodeReport { waiting, busy_us, resources, ..report },
            counters: self.node.counters().clone(),
            sessions: self.node.sessions(),
            sessions_ended: self.node.sessions_ended(),
            partitions: self.node.partitions(),
            hot_keys: self.node.hot_keys(),
            hot_copies: self.node.hot_copies(),
            uploads: self.node.uploads(),
            hot_delegated_keys: self.node.hot_delegated_keys(),
            upload_bytes: self.node.upload_bytes(),
            leased: self.node.is_leased(now),
            record: self.node.on_record(),
            unsent: self.unsent,
            long_turns: self.watch.long(),
            latencies: self.latencies.counted(),
        }
    }
}
