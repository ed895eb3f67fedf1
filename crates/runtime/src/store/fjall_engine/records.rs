//! The records, and in memory those of them that were looked at or written last.
//!
//! Whoever replaces a record looks at it first, more than once, and fjall has to go through all its
//! levels for each look. What was found is kept, also that there is no record.

use super::tree::Tree;
use fjall::{OwnedWriteBatch, Slice};
use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use std::cell::RefCell;

/// Bytes of records in memory at most, with what it takes to find them.
pub(super) const RECENT_BYTES: u64 = 32 << 20;

/// What a record in memory takes besides its key and itself, about.
pub(super) const RECENT_EACH: u64 = 128;

/// All records by their encoded keys.
pub(super) struct Records {
    tree: Tree,
    /// As reads see them; `None` is a key without a record.
    recent: RefCell<Cache<Slice, Option<Slice>, Bytes>>,
}

/// Weighs a record in memory.
#[derive(Clone)]
struct Bytes;

impl Weighter<Slice, Option<Slice>> for Bytes {
    fn weight(&self, key: &Slice, record: &Option<Slice>) -> u64 {
        let bytes = key.len() + record.as_ref().map_or(0, |it| it.len());
        RECENT_EACH + bytes as u64
    }
}

impl Records {
    pub(super) fn new(tree: Tree) -> Self {
        let about = RECENT_BYTES / (2 * RECENT_EACH);
        let recent = Cache::with_weighter(about as usize, RECENT_BYTES, Bytes);
        Self { tree, recent: RefCell::new(recent) }
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// To take changes to disk. Changes are made below.
    pub(super) fn tree_mut(&mut self) -> &mut Tree {
        &mut self.tree
    }

    pub(super) fn get(&self, at: &[u8]) -> fjall::Result<Option<Slice>> {
        if let Some(known) = self.recent.borrow().get(at) {
            return Ok(known.clone());
        }
        let found = self.tree.get(at)?;
        // A copy: what is found in a table is a piece of a block, and holds all of that.
        let kept = found.as_deref().map(Slice::from);
        self.recent.borrow_mut().insert(at.into(), kept);
        Ok(found)
    }

    pub(super) fn put(&mut self, at: &[u8], record: Vec<u8>) {
        let (at, record) = (Slice::from(at), Slice::from(record));
        self.recent.get_mut().insert(at.clone(), Some(record.clone()));
        self.tree.put(at, record);
    }

    pub(super) fn remove(&mut self, at: &[u8]) {
        let at = Slice::from(at);
        self.recent.get_mut().insert(at.clone(), None);
        self.tree.remove(at);
    }

    /// Makes the batch remove what is on disk under a key that is not changed.
    pub(super) fn remove_on_disk(&mut self, at: Vec<u8>, batch: &mut OwnedWriteBatch) {
        let at = Slice::from(at);
        self.recent.get_mut().insert(at.clone(), None);
        self.tree.remove_on_disk(at, batch);
    }

    /// Bytes in memory besides what is written next.
    pub(super) fn usage(&self) -> u64 {
        self.recent.borrow().weight()
    }
}
