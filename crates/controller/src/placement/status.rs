//! Where placement stands, for people.

use super::change::Change;
use super::log::PlacementDecision;
use super::rate::reading;
use cluster::{NodeId, PartitionId, Volume};
use serde::{Deserialize, Serialize};

/// Who has how much to do, and what is changed because of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementStatus {
    /// Partitions, as far as it is known what they are asked for.
    pub partitions: Vec<PartitionRate>,
    /// Nodes, as they will be when what is under way has come to its end.
    pub nodes: Vec<NodeBurden>,
    /// Nothing is to begin: an operator has paused this, or copies.
    pub paused: bool,
    /// Changes that were begun.
    pub under_way: Vec<Change>,
    /// Changes that would be begun if load has been as uneven as it is for long enough.
    pub planned: Vec<Change>,
    /// Nodes, as they would be then.
    pub predicted: Vec<NodeBurden>,
    /// The last decisions, oldest first.
    pub decisions: Vec<PlacementDecision>,
    /// How often another member was made the tail since this controller began.
    pub turns: u64,
    /// How often a replica was moved.
    pub moves: u64,
    /// How often a partition was split.
    #[serde(default)]
    pub splits: u64,
    /// How often two became one.
    #[serde(default)]
    pub merges: u64,
}

/// Requests per second for a partition, without those that copies of hot keys answer and writes of
/// keys that are delegated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionRate {
    /// Which.
    pub partition: PartitionId,
    /// GETs, MGET keys and RANGE pieces.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Records that scans examined: [`cluster::RECORDS_PER_REQUEST`] cost as much as a request.
    #[serde(default)]
    pub scanned: u64,
    /// Bytes of requests.
    #[serde(default)]
    pub bytes_in: u64,
    /// Bytes of answers to reads.
    #[serde(default)]
    pub bytes_out: u64,
    /// What lies in it, as its tail has said; not there while that is not known.
    #[serde(default)]
    pub held: Option<Volume>,
}

impl PartitionRate {
    /// What its reads cost its tail per second, in requests.
    #[must_use]
    pub fn reading(&self) -> u64 {
        reading(self.reads, self.scanned)
    }

    /// What all of it costs its tail.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.reading().saturating_add(self.writes)
    }
}

/// What a node has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeBurden {
    /// Which.
    pub node: NodeId,
    /// Reads of the partitions whose tail it is, by what they cost, and writes of those that it is
    /// a member of, per second. For a node that serves half as much as the fastest each counts
    /// twice.
    pub load: u64,
    /// The same in thousandths of the mean.
    pub permille: u64,
    /// Thousandths of what it may hold that it holds, of its memory or its disk; not there if
    /// nothing limits it, or that is not known.
    #[serde(default)]
    pub room_permille: Option<u64>,
}
