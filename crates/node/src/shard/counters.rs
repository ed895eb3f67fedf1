//! What a node counts. Plain numbers: a shard is one thread, and its driver publishes them.

use cluster::Findings;
use machine::Work;
use wire::{Code, DropReason, Op};

/// Counts since the node started, under the names of the layout's metrics.
#[derive(Clone, Debug)]
pub struct Counters {
    requests: [u64; 256],
    replies: [u64; 256],
    dropped: [u64; 256],
    /// `keyway_node_resends`.
    pub resends: u64,
    /// `keyway_node_duplicates`.
    pub duplicates: u64,
    /// `keyway_node_superseded`.
    pub superseded: u64,
    /// `keyway_node_expired`.
    pub expired: u64,
    /// `keyway_node_collected`.
    pub collected: u64,
    /// `keyway_node_parts_dropped`.
    pub parts_dropped: u64,
    /// `keyway_node_sessions_forgotten`.
    pub sessions_forgotten: u64,
    /// `keyway_node_notes_ignored`.
    pub notes_ignored: u64,
    /// `keyway_node_scanned`.
    pub scanned: u64,
    /// `keyway_node_syncs`.
    pub syncs: u64,
    /// `keyway_node_verified`.
    pub verified: u64,
    /// `keyway_node_differences`.
    pub differences: u64,
    /// `keyway_node_absurd`.
    pub absurd: u64,
    /// `keyway_node_mended`.
    pub mended: u64,
    /// `keyway_node_hot_reads`.
    pub hot_reads: u64,
    /// `keyway_node_hot_copies_sent`.
    pub hot_copies_sent: u64,
    /// `keyway_node_hot_delegated_writes`.
    pub hot_delegated_writes: u64,
    /// `keyway_node_loans`.
    pub loans: u64,
    /// `keyway_node_parked`.
    pub parked: u64,
    /// `keyway_node_by_address`.
    pub by_address: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            requests: [0; 256],
            replies: [0; 256],
            dropped: [0; 256],
            resends: 0,
            duplicates: 0,
            superseded: 0,
            expired: 0,
            collected: 0,
            parts_dropped: 0,
            sessions_forgotten: 0,
            notes_ignored: 0,
            scanned: 0,
            syncs: 0,
            verified: 0,
            differences: 0,
            absurd: 0,
            mended: 0,
            hot_reads: 0,
            hot_copies_sent: 0,
            hot_delegated_writes: 0,
            loans: 0,
            parked: 0,
            by_address: 0,
        }
    }
}

#[expect(clippy::indexing_slicing, reason = "a byte indexes 256 places")]
impl Counters {
    /// `keyway_node_requests`: packets of this operation that the node took.
    #[must_use]
    pub fn requests(&self, op: Op) -> u64 {
        self.requests[usize::from(op as u8)]
    }

    /// `keyway_node_replies`: replies with this code.
    #[must_use]
    pub fn replies(&self, code: Code) -> u64 {
        self.replies[usize::from(code as u8)]
    }

    /// `keyway_node_dropped`: packets dropped for this reason.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[usize::from(reason as u8)]
    }

    /// Packets taken that are work for a node, as [`Work`] has it.
    #[must_use]
    pub fn work_total(&self) -> u64 {
        let work = Op::ALL.into_iter().filter(|op| Work::of_op(*op).is_some());
        work.map(|op| self.requests(op)).sum()
    }

    /// The comparison of a partition has come to its end.
    pub(crate) fn count_verified(&mut self, found: &Findings) {
        self.verified += found.keys;
        self.differences += found.different;
        self.absurd += found.absurd;
    }

    pub(crate) fn count_request(&mut self, op: Op) {
        self.requests[usize::from(op as u8)] += 1;
    }

    pub(crate) fn count_reply(&mut self, code: Code) {
        self.replies[usize::from(code as u8)] += 1;
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        self.dropped[usize::from(reason as u8)] += 1;
    }
}
