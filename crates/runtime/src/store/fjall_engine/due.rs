//! The index of what is due: records with a time, in the order of their times.

use super::codec;
use super::tree::{Direction, Tree};
use fjall::OwnedWriteBatch;
use std::cell::RefCell;
use std::ops::{Bound, ControlFlow};
use wire::big::time_of;

/// An entry for each record with a time.
///
/// It is used as a queue: the first entries are looked at many times a second, and go. fjall keeps
/// a mark for each that is gone until tables are merged, and a scan from the beginning would pass
/// all of them each time. So it begins where the last one found the first entry.
pub(super) struct DueIndex {
    tree: Tree,
    /// No entry is before this.
    floor: RefCell<Vec<u8>>,
}

impl DueIndex {
    pub(super) fn new(tree: Tree) -> Self {
        Self { tree, floor: RefCell::default() }
    }

    /// The expiry of a record changes; 0 stands for none.
    pub(super) fn reschedule(&mut self, at: &[u8], before_ms: u64, after_ms: u64) {
        let (before_ms, after_ms) = (time_of(before_ms), time_of(after_ms));
        if before_ms == after_ms {
            return;
        }
        if before_ms != 0 {
            self.tree.remove(codec::due_key(before_ms, at));
        }
        if after_ms != 0 {
            let key = codec::due_key(after_ms, at);
            self.tree.put(&*key, []);
            if key < *self.floor.get_mut() {
                self.floor.replace(key);
            }
        }
    }

    /// Makes the batch remove a record's entry from disk, where it is not changed.
    pub(super) fn remove_on_disk(
        &mut self,
        at: &[u8],
        expiry_ms: u64,
        batch: &mut OwnedWriteBatch,
    ) {
        if time_of(expiry_ms) != 0 {
            self.tree.remove_on_disk(codec::due_key(time_of(expiry_ms), at), batch);
        }
    }

    /// Visits the entries of all that is due by then, the earliest first, until told to break.
    pub(super) fn visit_until(
        &self,
        until_ms: u64,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> fjall::Result<()> {
        let start = self.floor.borrow().clone();
        let end = codec::due_until(until_ms);
        let mut first: Option<Vec<u8>> = None;
        let see = |entry: &[u8], _: &[u8]| {
            first.get_or_insert_with(|| entry.to_vec());
            visit(entry)
        };
        self.tree.scan(&Bound::Included(start.clone()), &end, Direction::Forward, see)?;
        let floor = first.or(match end {
            Bound::Excluded(end) => Some(end),
            Bound::Included(_) | Bound::Unbounded => None,
        });
        if let Some(floor) = floor {
            self.floor.replace(floor.max(start));
        }
        Ok(())
    }

    /// Where the next visit begins.
    #[cfg(test)]
    pub(super) fn floor(&self) -> Vec<u8> {
        self.floor.borrow().clone()
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(super) fn tree_mut(&mut self) -> &mut Tree {
        &mut self.tree
    }
}
