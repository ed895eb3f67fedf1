//! What can be changed of a partition to take load from a node.

use cluster::{Match, NodeId, PartitionId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A change of a partition that takes load from a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Others are made of it.
    Split {
        /// Which partition.
        partition: PartitionId,
        /// Where each but the first of them begins, in order.
        cuts: Vec<Cut>,
        /// Whether it is for its load or size, and not somebody's wish: then what is cold and small
        /// again may be merged.
        grown: bool,
    },
    /// It and a neighbour become one.
    Merge {
        /// Which partition.
        partition: PartitionId,
        /// Which neighbour.
        with: PartitionId,
    },
}

/// Where a part of a partition begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Its first match value.
    pub at: Match,
    /// Which member answers its reads.
    pub tail: NodeId,
}

impl Change {
    /// Which partition changes.
    #[must_use]
    pub fn partition(&self) -> PartitionId {
        match self {
            Self::Turn { partition, .. }
            | Self::Move { partition, .. }
            | Self::Split { partition, .. }
            | Self::Merge { partition, .. } => *partition,
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
            Self::Split { partition, cuts, .. } => match cuts.as_slice() {
                [cut] => write!(f, "split partition {partition} at {}", cut.at),
                many => write!(f, "split partition {partition} into {}", many.len() + 1),
            },
            Self::Merge { partition, with } => write!(f, "merge partitions {partition} and {with}"),
        }
    }
}
