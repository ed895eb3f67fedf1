//! What a store has on disk, for whichever thread writes to it.

use super::directory::Memtables;
use fjall::{AbstractTree as _, Database, Keyspace, OwnedWriteBatch, PersistMode};

/// How many trees a store has.
pub(super) const TREES: usize = 4;

/// What a compaction writes before it removes what it has read: some memtables' worth, mostly.
const COMPACTED_BYTES: u64 = 64 << 20;

/// The database and its trees.
#[derive(Clone)]
pub(super) struct ShardDatabase {
    database: Database,
    /// In the order of [`FjallEngine::trees`](super::FjallEngine), and how large their memtables
    /// become.
    trees: [(Keyspace, u64); TREES],
}

impl ShardDatabase {
    /// The trees are those of records, of what is due, of folded notes and of turns.
    pub(super) fn new(database: Database, trees: [Keyspace; TREES], memtables: Memtables) -> Self {
        let Memtables { records, small } = memtables;
        let [of_records, due, folded, turns] = trees;
        let trees = [(of_records, records), (due, small), (folded, small), (turns, small)];
        Self { database, trees }
    }

    #[cfg(test)]
    pub(super) fn fjall(&self) -> &Database {
        &self.database
    }

    /// A batch to write.
    pub(super) fn batch(&self) -> OwnedWriteBatch {
        self.database.batch()
    }

    /// Has the disk keep what is written.
    pub(super) fn persist(&self) -> fjall::Result<()> {
        self.database.persist(PersistMode::SyncData)
    }

    /// After a batch: has what is full flushed to tables, and what keeps a sealed journal. Says
    /// which trees that was for.
    ///
    /// fjall flushes what is full by itself, but asks its thread to with every batch until that has
    /// come to it. The thread ends up waiting for room among its own errands, for ever, and neither
    /// memory nor journals are bounded any more (fjall-rs/fjall#323). So nothing is ever full for
    /// more than a batch. And what was hardly written keeps sealed journals for long.
    pub(super) fn rotate(&self) -> fjall::Result<[bool; TREES]> {
        let flushes = |(tree, _): &(Keyspace, u64)| tree.sealed_memtable_count() > 0;
        let is_kept = self.database.journal_count() > 1 && !self.trees.iter().any(flushes);
        let mut rotated = [false; TREES];
        for ((tree, most), rotated) in self.trees.iter().zip(&mut rotated) {
            if is_kept || tree.tree.active_memtable().size() > *most {
                *rotated = tree.rotate_memtable()?;
            }
        }
        Ok(rotated)
    }

    /// Bytes that have to be written although nothing more is asked for.
    pub(super) fn needs(&self) -> u64 {
        let tables: u64 = self.trees.iter().map(|(tree, _)| tree.disk_space()).sum();
        self.unflushed() + tables.min(COMPACTED_BYTES)
    }

    /// Bytes of what is not flushed to tables yet.
    pub(super) fn unflushed(&self) -> u64 {
        self.database.write_buffer_size()
    }

    /// Bytes of all files, if that can be told.
    pub(super) fn disk_space(&self) -> Option<u64> {
        self.database.disk_space().ok()
    }
}
