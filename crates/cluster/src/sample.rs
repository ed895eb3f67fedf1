//! What nodes say of single partitions: how much lies in them, and where a cut would halve it.

use crate::ids::{Match, PartitionId};
use crate::resources::Volume;
use serde::{Deserialize, Serialize};

/// What a node says of a partition whose tail it is. A report speaks of a few of them at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionSample {
    /// Which.
    pub partition: PartitionId,
    /// What is held of it; `None` if that is not known: it is yet to be counted, or the store
    /// below is another one's.
    pub held: Option<Volume>,
    /// Match values that reads and writes were for lately, in order; each stands for the same share
    /// of the load. Only of the busiest partitions.
    #[serde(default)]
    pub asked: Vec<Match>,
    /// How long ago the first of these requests came at the earliest, in milliseconds: what has
    /// changed since then they need not tell.
    #[serde(default)]
    pub asked_age_ms: u64,
    /// Match values of keys with a value, in order; between each and the next lies about the same
    /// number of bytes. Only of the largest partitions.
    #[serde(default)]
    pub stored: Vec<Match>,
}

impl PartitionSample {
    /// Match values in a list at most.
    pub const POINTS_MAX: usize = 64;
}
