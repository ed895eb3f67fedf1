//! What a sync has that somebody waits for.

use crate::hot::delegation::disks::Recorded;
use cluster::PartitionId;
use wire::Version;

/// What was put on record and is not on disk, if the engine syncs apart.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// Pending writes of chains.
    pub(crate) pending: Vec<(PartitionId, Version)>,
    /// Delegated writes.
    pub(crate) delegated: Vec<Recorded>,
}

impl Noted {
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.delegated.is_empty()
    }
}
