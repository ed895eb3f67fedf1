//! The tree of folded notes, and in memory the keys that it holds.
//!
//! Most notes that are removed never came to the tree. To ask fjall of each would cost more than
//! all else that folding does.

use super::tree::Tree;
use fjall::Slice;
use hashbrown::HashSet;
use std::hash::RandomState;

/// What a key takes in memory besides its bytes, about.
const KEY_BYTES: u64 = 36;

pub(super) struct FoldedNotes {
    tree: Tree,
    /// Clients choose parts of keys, so the hash is one that they cannot know.
    keys: HashSet<Slice, RandomState>,
    /// Bytes that these take.
    bytes: u64,
}

impl FoldedNotes {
    /// Goes through all keys of the tree, to the first that cannot be read: of what is damaged
    /// fjall may say so for ever.
    pub(super) fn open(tree: Tree) -> fjall::Result<Self> {
        let keys = tree.on_disk().iter().map(fjall::Guard::key);
        let keys = keys.collect::<fjall::Result<Vec<_>>>()?;
        let mut notes = Self { tree, keys: HashSet::default(), bytes: 0 };
        keys.iter().for_each(|key| notes.note(key));
        Ok(notes)
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// To take changes to disk. Changes are made below.
    pub(super) fn tree_mut(&mut self) -> &mut Tree {
        &mut self.tree
    }

    pub(super) fn put(&mut self, key: Slice, note: Slice) {
        self.note(&key);
        self.tree.put(key, note);
    }

    /// Removes a note if it is there.
    pub(super) fn remove(&mut self, key: Slice) {
        if self.keys.remove(&key) {
            self.bytes -= KEY_BYTES + key.len() as u64;
            self.tree.remove(key);
        }
    }

    /// A copy is kept: what comes from a table is a piece of a block, and holds all of that.
    fn note(&mut self, key: &Slice) {
        if !self.keys.contains(key) {
            self.bytes += KEY_BYTES + key.len() as u64;
            self.keys.insert(Slice::from(&**key));
        }
    }

    /// Bytes of memory that its keys take.
    pub(super) fn usage(&self) -> u64 {
        self.bytes
    }
}
