//! The durable engine of a shard, on fjall (a log-structured store).
//!
//! Changes are kept in memory, where reads see them, until [`sync`](Engine::sync) commits all of
//! them as one batch of fjall's journal: a crash leaves all or none. Many writes share one sync,
//! and with it one fsync: that is group commit, and the caller decides how many. Only what removes
//! a large partition goes to the journal before, because it would not fit in memory.
//!
//! A sync that goes on apart leaves its batch and the fsync to whoever takes its
//! [job](FjallEngine::sync_job). The next batch is written when that has ended: so nothing that a
//! power cut tears is followed by anything whole.
//!
//! The first I/O error is remembered for ever. What fjall holds in memory may then be ahead of
//! what is on disk, so that only a new start can tell what is true.

mod apart;
mod clearing;
mod codec;
mod database;
mod directory;
mod due;
mod failure;
mod folded;
mod notes;
mod policy;
mod records;
#[cfg(test)]
mod tests;
mod tree;
mod unfolded;
mod whole;

pub use apart::SyncJob;
pub(crate) use directory::OPEN_FILES_MAX;
pub use directory::{FORMAT, ShardIdentity, inspect};
pub use policy::{PERSIST_INTERVAL, SyncPolicy, UnknownSyncPolicy};

use super::StoreError;
use crate::disk::{Disk, DiskRoom, Need};
use apart::Apart;
use clearing::NextPiece;
use cluster::{KeyspaceId, PartitionId, StoreId};
use codec::{DueKey, RecordKey};
use database::{ShardDatabase, TREES};
use directory::{CACHE_BYTES, Memtables, StoreDirectory, Trees};
use due::DueIndex;
use fjall::{OwnedWriteBatch, PersistMode};
use machine::Instant;
use node::engine::{Area, Engine, EngineError, Interval, KeyRef, Record};
use notes::Notes;
use records::Records;
use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::time::Duration;
use tree::{Direction, Tree};

/// The store of one shard, in a directory of its own.
pub struct FjallEngine {
    store_id: StoreId,
    policy: SyncPolicy,
    records: Records,
    due: DueIndex,
    notes: Notes,
    apart: Apart,
    /// Bytes of all files, as far as that is known.
    disk_used: Cell<Option<u64>>,
    database: ShardDatabase,
    len: u64,
    /// The same as the last batch has left it.
    len_on_disk: u64,
    /// Whether there are commits that [`FjallEngine::persist_due`] is to ask the disk to keep.
    unpersisted: bool,
    /// When it is to do so.
    persist_at: Option<Instant>,
    /// Partitions that are being cleared, and where to go on.
    clearing: BTreeMap<PartitionId, NextPiece>,
    /// The disk it lies on, if somebody watches it, and when it last said what it needs of that.
    disk: Option<Need>,
    needs_at: Instant,
    /// Whether a sync has said so since somebody asked for the room.
    needs_said: bool,
    /// Also set by reads, which have no other way to say that they failed.
    failed: OnceCell<EngineError>,
    /// Dropped last, so that nobody gets in before fjall has finished.
    directory: StoreDirectory,
}

/// Notes in memory are at most this part of what a small memtable may hold.
const NOTES_PART: u64 = 4;

/// How often the engine says what it needs of the disk: in so short a time little is written.
const NEEDS_EVERY: Duration = Duration::from_millis(20);

/// How far a walk through a partition has come: the key to go on with, as it is in the tree of
/// records. `None` if it is over.
#[derive(Debug)]
pub struct Cursor(Option<Vec<u8>>);

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
        Self::open_with(dir, shard, fresh_id, (policy, Memtables::USUAL))
    }

    fn open_with(
        dir: &Path,
        shard: ShardIdentity,
        fresh_id: StoreId,
        (policy, memtables): (SyncPolicy, Memtables),
    ) -> Result<Self, StoreError> {
        let directory = StoreDirectory::open(dir, shard, fresh_id, memtables)?;
        let Trees { database, records, due, notes, turns } = directory.open_trees(policy)?;
        let trees = [&records, &due, &notes, &turns].map(Clone::clone);
        let database = ShardDatabase::new(database, trees, memtables);
        let (folded, turns) = (Tree::new(notes), Tree::new(turns));
        let opened = failure::caught(|| {
            Notes::open(&directory, folded, turns, memtables.small / NOTES_PART)
        });
        let (notes, len) = opened.map_err(|why| StoreError::damaged(dir, why))??;
        Ok(Self {
            store_id: directory.store_id(),
            policy,
            records: Records::new(Tree::new(records)),
            due: DueIndex::new(Tree::new(due)),
            notes,
            apart: Apart::default(),
            disk_used: Cell::new(None),
            database,
            len,
            len_on_disk: len,
            unpersisted: false,
            persist_at: None,
            clearing: BTreeMap::new(),
            disk: None,
            needs_at: Instant(0),
            needs_said: false,
            failed: OnceCell::new(),
            directory,
        })
    }

    /// When a commit is safe from what.
    pub fn policy(&self) -> SyncPolicy {
        self.policy
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
        self.attempt(|engine| engine.database.persist())?;
        self.unpersisted = false;
        Ok(None)
    }

    /// From now on it says what it needs of this disk.
    pub fn watch(&mut self, disk: &Disk) {
        self.disk = Some(disk.need());
        self.set_needs(self.database.needs());
    }

    fn set_needs(&mut self, bytes: u64) {
        if let Some(need) = &mut self.disk {
            need.set(bytes);
        }
    }

    /// What there is room for on the disk, if it is watched.
    pub fn disk_room(&mut self, now: Instant) -> Option<DiskRoom> {
        // Trees are not to be waited for while syncs that go on apart say it. When there are none,
        // what was written before is still flushed and merged.
        if std::mem::take(&mut self.needs_said) {
            self.needs_at = now + NEEDS_EVERY;
        } else if !self.apart.is_under_way() && self.needs_at <= now {
            self.set_needs(self.database.needs());
            self.needs_at = now + NEEDS_EVERY;
        }
        self.disk.as_ref().map(Need::look)
    }

    /// Bytes of its files, if that can be told. While a sync is under way it is what they were
    /// before, for the journal is not to be looked at then.
    pub fn disk_used(&self) -> Option<u64> {
        if !self.apart.is_under_way() {
            self.disk_used.set(self.database.disk_space());
        }
        self.disk_used.get()
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
        let bytes = self.ok(|| self.records.get(at)).flatten();
        with(bytes.as_ref().and_then(|bytes| self.decode(bytes)))
    }

    /// The expiry of the record under an encoded key, which is about to change, if there is one.
    fn expiry_before(&self, at: &[u8]) -> Option<u64> {
        self.with_record(at, |record| record.map(|record| record.expiry_ms))
    }

    fn commit(&mut self) -> fjall::Result<()> {
        self.apart.write()?;
        self.have_written();
        let batch = self.take_batch().durability(Some(self.policy.commit_mode()));
        batch.commit()?;
        self.have_written();
        let rotated = self.database.rotate()?;
        self.have_rotated(rotated);
        Ok(())
    }

    /// Takes all changes as one batch. Reads see them meanwhile.
    fn take_batch(&mut self) -> OwnedWriteBatch {
        let mut batch = self.database.batch();
        self.records.tree_mut().move_changes(&mut batch);
        self.due.tree_mut().move_changes(&mut batch);
        self.notes.move_changes(self.len, &mut batch);
        self.len_on_disk = self.len;
        batch.durability(Some(PersistMode::Buffer))
    }

    /// All batches that were taken are in the trees on disk.
    fn have_written(&mut self) {
        self.trees_mut().into_iter().for_each(Tree::have_written);
    }

    fn have_rotated(&mut self, rotated: [bool; TREES]) {
        for (tree, _) in self.trees_mut().into_iter().zip(rotated).filter(|(_, rotated)| *rotated) {
            tree.have_rotated();
        }
    }

    fn is_changed(&self) -> bool {
        self.records.tree().is_changed() || self.due.tree().is_changed() || self.notes.is_changed()
    }

    fn trees_mut(&mut self) -> [&mut Tree; TREES] {
        let [folded, turns] = self.notes.trees_mut();
        [self.records.tree_mut(), self.due.tree_mut(), folded, turns]
    }

    fn remove_at(&mut self, at: &[u8], expiry_ms: u64) {
        self.len = self.len.saturating_sub(1);
        self.due.reschedule(at, expiry_ms, 0);
        self.records.remove(at);
    }

    /// Visits records with their encoded keys in order (or the reverse) until told to break, or
    /// until something fails.
    fn visit(
        &self,
        start: &Bound<Vec<u8>>,
        end: &Bound<Vec<u8>>,
        direction: Direction,
        mut visit: impl FnMut(&[u8], RecordKey<'_>, Record<'_>) -> ControlFlow<()>,
    ) {
        let visit =
            |at: &[u8], bytes: &[u8]| match codec::parse_record_key(at).zip(self.decode(bytes)) {
                Some((key, record)) => visit(at, key, record),
                None => {
                    self.fail("a key cannot be decoded");
                    ControlFlow::Break(())
                }
            };
        self.ok(|| self.records.tree().scan(start, end, direction, visit));
    }
}

impl Engine for FjallEngine {
    type Cursor = Cursor;

    fn read<R>(&self, key: &KeyRef<'_>, with: impl FnOnce(Option<Record<'_>>) -> R) -> R {
        self.with_record(&codec::record_key(key), with)
    }

    /// What the old record says about expiry counts, too.
    fn write(&mut self, key: &KeyRef<'_>, record: &Record<'_>) {
        let at = codec::record_key(key);
        let before_ms = self.expiry_before(&at);
        if before_ms.is_none() {
            self.len += 1;
        }
        self.due.reschedule(&at, before_ms.unwrap_or(0), record.expiry_ms);
        self.records.put(&at, codec::encode_record(record));
    }

    fn remove(&mut self, key: &KeyRef<'_>) {
        let at = codec::record_key(key);
        let Some(before_ms) = self.expiry_before(&at) else { return };
        self.remove_at(&at, before_ms);
    }

    fn scan(
        &self,
        interval: &Interval<'_>,
        mut visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        let (start, end) = codec::interval(interval);
        let direction = if interval.reverse { Direction::Backward } else { Direction::Forward };
        self.visit(&start, &end, direction, |_, RecordKey { key, .. }, record| visit(key, record));
    }

    fn due(
        &self,
        until_ms: u64,
        mut visit: impl FnMut(KeyspaceId, &[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        let visit = |entry: &[u8]| {
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
        };
        self.ok(|| self.due.visit_until(until_ms, visit));
    }

    fn walk(&self, area: &Area) -> Cursor {
        Cursor(Some(codec::start_of(area)))
    }

    /// After a failure there is nothing more to visit.
    fn walk_on(
        &self,
        area: &Area,
        cursor: &mut Cursor,
        mut visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(from) = cursor.0.take() else { return ControlFlow::Continue(()) };
        let (start, end) = (Bound::Included(from), codec::end_of(area));
        self.visit(&start, &end, Direction::Forward, |at, RecordKey { key, .. }, record| {
            let flow = visit(key, record);
            if flow.is_break() {
                cursor.0 = Some(at.to_vec());
            }
            flow
        });
        if cursor.0.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// By match values: rough where keys are not spread evenly, as in most ordered keyspaces.
    fn walked(&self, area: &Area, cursor: &Cursor) -> u16 {
        let next = cursor.0.as_deref().and_then(codec::parse_record_key);
        next.map_or(1_000, |next| area.thousandths_before(next.match_value))
    }

    /// After a failure there is nothing more to clear; the next sync says so.
    fn clear_on(&mut self, area: &Area, at_most: usize) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        let cleared = self.attempt(|engine| {
            flow = engine.clear_piece(area, at_most)?;
            Ok(())
        });
        if cleared.is_ok() { flow } else { ControlFlow::Continue(()) }
    }

    fn note(&mut self, partition: PartitionId, name: &[u8], note: Option<&[u8]>) {
        match note {
            Some(note) => self.notes.put(partition, name, note),
            None => self.notes.remove(partition, name),
        }
    }

    fn notes_from(
        &self,
        partition: PartitionId,
        from: &[u8],
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) {
        self.ok(|| self.notes.scan(partition, from, visit));
    }

    /// With no change since the last sync this touches no disk.
    fn sync(&mut self) -> Result<(), EngineError> {
        self.health()?;
        if !self.is_changed() {
            return Ok(());
        }
        self.attempt(Self::commit)?;
        self.unpersisted = self.policy == SyncPolicy::Interval;
        Ok(())
    }

    fn syncs_apart(&self) -> bool {
        self.policy == SyncPolicy::Always
    }

    fn begin_sync(&mut self) -> Result<bool, EngineError> {
        if !self.syncs_apart() || !self.is_changed() {
            return self.sync().map(|()| false);
        }
        self.begin_apart().map(|()| true)
    }

    fn end_sync(&mut self, how: Result<(), EngineError>) -> Result<(), EngineError> {
        self.end_apart(how)
    }

    fn see_backed(&mut self, key: &KeyRef<'_>) {
        self.records.tree_mut().see_backed(&codec::record_key(key));
    }

    fn is_durable(&self, key: &KeyRef<'_>) -> bool {
        let at = codec::record_key(key);
        !self.records.tree().is_at_risk(&at) && !self.apart.has(&at)
    }

    fn is_all_durable(&self) -> bool {
        self.records.tree().at_risk().next().is_none() && self.apart.has_no_records()
    }

    fn store_id(&self) -> StoreId {
        self.store_id
    }

    /// Values are on disk; in memory are caches and what is not flushed yet.
    fn usage(&self) -> u64 {
        let caches = CACHE_BYTES + self.records.usage();
        caches + self.database.unflushed() + self.notes.usage()
    }

    fn len(&self) -> usize {
        usize::try_from(self.len).unwrap_or(usize::MAX)
    }
}
