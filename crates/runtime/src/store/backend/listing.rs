//! What was in a backend before any node wrote there becomes records piece by piece: a walk through
//! all that it holds, for all partitions that wait for it.
//!
//! A walk that is broken off is begun anew by the next incarnation: what is a record then is passed
//! over.

use super::ListedValue;
use cluster::PartitionId;
use std::collections::BTreeSet;

/// How far it has come.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Partitions that wait for the end of a walk that has seen everything since they began.
    unlisted: BTreeSet<PartitionId>,
    /// Those of them that began in the middle of the present walk.
    late: BTreeSet<PartitionId>,
    /// Where the backend goes on; `None` before the first page.
    cursor: Option<u64>,
    /// What it has listed and was not dealt with yet.
    page: std::vec::IntoIter<ListedValue>,
}

/// Names that are dealt with at once: some milliseconds.
pub(super) const PIECE_MAX: usize = 1_000;

impl Listing {
    pub(super) fn of(unlisted: BTreeSet<PartitionId>) -> Self {
        Self { unlisted, ..Self::default() }
    }

    pub(super) fn begin(&mut self, partition: PartitionId) {
        self.unlisted.insert(partition);
        if self.cursor.is_some() {
            self.late.insert(partition);
        }
    }

    pub(super) fn concerns(&self, partition: PartitionId) -> bool {
        self.unlisted.contains(&partition)
    }

    pub(super) fn is_under_way(&self) -> bool {
        !self.unlisted.is_empty()
    }

    /// Whether the backend is to be asked for more.
    pub(super) fn needs_page(&self) -> bool {
        self.page.len() == 0
    }

    pub(super) fn cursor(&self) -> u64 {
        self.cursor.unwrap_or(0)
    }

    pub(super) fn take_page(&mut self, next: u64, names: Vec<ListedValue>) {
        (self.cursor, self.page) = (Some(next), names.into_iter());
    }

    pub(super) fn piece(&mut self) -> Vec<ListedValue> {
        self.page.by_ref().take(PIECE_MAX).collect()
    }

    /// The partitions of which everything is listed now.
    pub(super) fn done(&mut self) -> BTreeSet<PartitionId> {
        if self.cursor != Some(0) || self.page.len() > 0 {
            return BTreeSet::new();
        }
        self.cursor = None;
        let late = std::mem::take(&mut self.late);
        std::mem::replace(&mut self.unlisted, late).difference(&self.unlisted).copied().collect()
    }
}
