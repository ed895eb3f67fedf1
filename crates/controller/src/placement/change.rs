//! What can be changed of a partition to take load from a node.

use cluster::{NodeId, PartitionId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A change of a partition that takes load from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// Another member becomes the tail.
    Turn {
        /// Of which partition.
        partition: PartitionId,
        /// Which member.
        tail: NodeId,
    },
    /// A replica moves.
    Move {
        /// Of which partition.
        partition: PartitionId,
        /// Which node gives it up.
        from: NodeId,
        /// Which node gets it.
        to: NodeId,
        /// Whether it answers reads, and is to go on with that.
        reads: bool,
    },
}

impl Change {
    /// Which partition changes.
    #[must_use]
    pub fn partition(&self) -> PartitionId {
        match self {
            Self::Turn { partition, .. } | Self::Move { partition, .. } => *partition,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn { partition, tail } => {
                write!(f, "have partition {partition} read at node {tail}")
            }
            Self::Move { partition, from, to, .. } => {
                write!(f, "move partition {partition} from node {from} to node {to}")
            }
        }
    }
}
