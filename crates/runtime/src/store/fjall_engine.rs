//! The durable engine of a shard, on fjall (a log-structured store).
//!
//! Changes are kept in memory, where reads see them, until [`sync`](Engine::sync) commits all of
//! them as one batch of fjall's journal: a crash leaves all or none. Many writes share one sync,
//! and with it one fsync: that is group commit, and the caller decides how many.
//!
//! The first I/O error is remembered for ever. What fjall holds in memory may then be ahead of
//! what is on disk, so that only a new start can tell what is true.

mod codec;
mod directory;
mod policy;
#[cfg(test)]
mod tests;
mod tree;

pub use directory::ShardIdentity;
pub use policy::{PERSIST_INTERVAL, SyncPolicy, UnknownSyncPolicy};

use super::StoreError;
use cluster::{KeyspaceId, PartitionId, StoreId};
use codec::DueKey;
use directory::{Directory, Trees};
use fjall::{Database, Keyspace, PersistMode};
use machine::Instant;
use node::engine::{Engine, EngineError, Interval, KeyRef, Record};
use std::cell::OnceCell;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use tree::{Direction, Tree};

/// The store of one shard, in a directory of its own.
pub struct FjallEngine {
    store_id: StoreId,
    policy: SyncPolicy,
    records: Tree,
    due: Tree,
    notes: Tree,
    /// Holds `len` alone.
    counts: Keyspace,
    database: Database,
    len: u64,
    /// Whether there are commits that [`FjallEngine::persist_due`] is to ask the disk to keep.
    unpersisted: bool,
    /// When it is to do so.
    persist_at: Option<Instant>,
    /// Also set by reads, which have no other way to say that they failed.
    failed: OnceCell<EngineError>,
    /// Dropped last, so that nobody gets in before fjall has finished.
    _directory: Directory,
}

const LEN: &[u8] = b"len";

impl FjallEngine {
    /// Opens the store in `dir`, or creates it there with `fresh_id` as its identity.
    ///
    /// # Errors
    ///
    /// If another process has it open, it belongs to another shard, was written in another format,
    /// is damaged, or cannot be read.
    pub fn open(
        dir: &Path,
        shard: ShardIdentity,
        fresh_id: StoreId,
        policy: SyncPolicy,
    ) -> Result<Self, StoreError> {
        let directory = Directory::open(dir, shard, fresh_id)?;
        let Trees { database, records, due, notes, counts } = directory.open_trees()?;
        let len = match counts.get(LEN).map_err(|error| directory.error(error))? {
            None => 0,
            Some(bytes) => {
                codec::decode_len(&bytes).ok_or_else(|| StoreError::damaged(dir, "no length"))?
            }
        };
        Ok(Self {
            store_id: directory.store_id(),
            policy,
            records: Tree::new(records),
            due: Tree::new(due),
            notes: Tree::new(notes),
            counts,
            database,
            len,
            unpersisted: false,
            persist_at: None,
            failed: OnceCell::new(),
            _directory: directory,
        })
    }

    /// With [`SyncPolicy::Interval`], does the fsync that is due by `now`, and says when the next
    /// one will be; with the others there is nothing to do. To be called after each sync, and at
    /// the instant it names.
    ///
    /// # Errors
    ///
    /// As for [`sync`](Engine::sync).
    pub fn persist_due(&mut self, now: Instant) -> Result<Option<Instant>, EngineError> {
        if !self.unpersisted {
            return self.health().map(|()| None);
        }
        let at = *self.persist_at.get_or_insert(now + PERSIST_INTERVAL);
        if now < at {
            return self.health().map(|()| Some(at));
        }
        self.persist_at = None;
        self.attempt(|engine| engine.database.persist(PersistMode::SyncData))?;
        self.unpersisted = false;
        Ok(None)
    }

    fn health(&self) -> Result<(), EngineError> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Does what may fail, unless something has failed already.
    fn attempt(
        &mut self,
        what: impl FnOnce(&mut Self) -> fjall::Result<()>,
    ) -> Result<(), EngineError> {
        self.health()?;
        if let Err(error) = what(self) {
            self.fail(error);
        }
        self.health()
    }

    fn fail(&self, error: impl ToString) {
        // A second error changes nothing: the first is what went wrong.
        let _ = self.failed.set(EngineError(error.to_string()));
    }

    /// The value of a fallible read, or `None` with the failure remembered.
    fn ok<T>(&self, result: fjall::Result<T>) -> Option<T> {
        result.inspect_err(|error| self.fail(error)).ok()
    }

    fn decode<'a>(&self, bytes: &'a [u8]) -> Option<Record<'a>> {
        let record = codec::decode_record(bytes);
        if record.is_none() {
            self.fail("a record cannot be decoded");
        }
        record
    }

    /// Calls back with the record under an encoded key.
    fn with_record<R>(&self, at: &[u8], with: impl FnOnce(Option<Record<'_>>) -> R) -> R {
        let bytes = self.ok(self.records.get(at)).flatten();
        with(bytes.as_ref().and_then(|bytes| self.decode(bytes)))
    }

    /// The expiry of the record under an encoded key, if there is one.
    fn expiry_ms(&self, at: &[u8]) -> Option<u64> {
        self.with_record(at, |record| record.map(|record| record.expiry_ms))
    }

    fn reschedule(&mut self, at: &[u8], before_ms: u64, after_ms: u64) {
        if before_ms == after_ms {
            return;
        }
        if before_ms != 0 {
            self.due.remove(&codec::due_key(before_ms, at));
        }
        if after_ms != 0 {
            self.due.put(&codec::due_key(after_ms, at), &[]);
        }
    }

    fn commit(&mut self) -> fjall::Result<()> {
        let mut batch = self.database.batch().durability(Some(self.policy.commit_mode()));
        self.records.move_changes(&mut batch);
        self.due.move_changes(&mut batch);
        self.notes.move_changes(&mut batch);
        batch.insert(&self.counts, LEN, codec::encode_len(self.len));
        batch.commit()
    }
}

impl Engine for FjallEngine {
    fn read<R>(&self, key: &KeyRef<'_>, with: impl FnOnce(Option<Record<'_>>) -> R) -> R {
        self.with_record(&codec::record_key(key), with)
    }

    /// Reads the old record first, for what it says about expiry; the node has just read it too,
    /// so that it is in memory.
    fn write(&mut self, key: &KeyRef<'_>, record: &Record<'_>) {
        let at = codec::record_key(key);
        let before_ms = self.expiry_ms(&at);
        if before_ms.is_none() {
            self.len += 1;
        }
        self.reschedule(&at, before_ms.unwrap_or(0), record.expiry_ms);
        self.records.put(&at, &codec::encode_record(record));
    }

    fn remove(&mut self, key: &KeyRef<'_>) {
        let at = codec::record_key(key);
        let Some(before_ms) = self.expiry_ms(&at) else { return };
        self.len = self.len.saturating_sub(1);
        self.reschedule(&at, before_ms, 0);
        self.records.remove(&at);
    }

    fn scan(
        &self,
        interval: &Interval<'_>,
        mut visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        let (start, end) = codec::interval(interval);
        let direction = if interval.reverse { Direction::Backward } else { Direction::Forward };
        let scanned = self.records.scan(&start, &end, direction, |at, bytes| {
            let parsed = codec::parse_record_key(at).zip(self.decode(bytes));
            let Some(((_, key), record)) = parsed else {
                self.fail("a key cannot be decoded");
                return ControlFlow::Break(());
            };
            if !interval.holds_key(key) {
                return ControlFlow::Continue(());
            }
            visit(key, record)
        });
        self.ok(scanned);
    }

    fn due(
        &self,
        until_ms: u64,
        mut visit: impl FnMut(KeyspaceId, &[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        let (start, end) = codec::due_until(until_ms);
        let scanned = self.due.scan(&start, &end, Direction::Forward, |entry, _| {
            let Some(DueKey { at, keyspace, key }) = codec::parse_due_key(entry) else {
                self.fail("an entry of the due index cannot be decoded");
                return ControlFlow::Break(());
            };
            self.with_record(at, |record| match record {
                Some(record) => visit(keyspace, key, record),
                None => {
                    self.fail("the due index names a record that is not there");
                    ControlFlow::Break(())
                }
            })
        });
        self.ok(scanned);
    }

    fn note(&mut self, partition: PartitionId, name: &[u8], note: Option<&[u8]>) {
        let at = codec::note_key(partition, name);
        match note {
            Some(note) => self.notes.put(&at, note),
            None => self.notes.remove(&at),
        }
    }

    fn notes(&self, partition: PartitionId, mut visit: impl FnMut(&[u8], &[u8])) {
        let start = codec::note_key(partition, &[]);
        let end = codec::after_notes(partition);
        let scanned =
            self.notes.scan(&Bound::Included(start), &end, Direction::Forward, |at, note| {
                visit(codec::note_name(at), note);
                ControlFlow::Continue(())
            });
        self.ok(scanned);
    }

    /// With no change since the last sync this touches no disk.
    fn sync(&mut self) -> Result<(), EngineError> {
        self.health()?;
        if !(self.records.is_changed() || self.due.is_changed() || self.notes.is_changed()) {
            return Ok(());
        }
        self.attempt(Self::commit)?;
        self.unpersisted = self.policy == SyncPolicy::Interval;
        Ok(())
    }

    fn store_id(&self) -> StoreId {
        self.store_id
    }

    fn len(&self) -> usize {
        usize::try_from(self.len).unwrap_or(usize::MAX)
    }
}
