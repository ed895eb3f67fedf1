//! The engine that keeps everything in memory and loses it with the process.
//!
//! One shard owns it alone: no lock, no sharing. Keys in order are in one tree for each keyspace.
//! Those without are in hash tables, placed by the keyhash that the request brought along; each
//! table has a slice of the match values, so that none grows so large that its growing is felt.
//! Partitions are nothing to it but bounds: they may be split and merged, and no record moves.
//!
//! A hash table has no order, and scans and walks must be able to begin anywhere in that of match
//! values: beside it stands an index by match value. Keys that share one (of a tag, parts of a big
//! value) would stand there in one place; all but the first few of them are in a tree instead.
//!
//! What a record costs beyond its key and value, for keys of 16 and values of 128 bytes (held to by
//! tests, printed by a benchmark): about 100 bytes in a hash keyspace, of which 22 are version,
//! expiry and lengths, 10 the allocator keeps or rounds up, 25 its place in the index, and the rest
//! is its slot in a table that is between half and seven eighths full. In an ordered keyspace, and
//! if it shares its match value with many, it is about 125, because the key is a piece of memory of
//! its own. An expiry costs as much again. The engine keeps the total, and has no limit of its own:
//! the node has ([`MemoryLimit`](crate::MemoryLimit)).

mod block;
mod due;
mod index;
mod order;
mod slot;
mod table;
#[cfg(test)]
mod tests;
mod walk;

pub use walk::Cursor;

use crate::engine::{Area, Engine, EngineError, Interval, KeyRef, Record};
use block::Block;
use cluster::{Keyspace, KeyspaceId, Match, PartitionId, StoreId};
use due::{Due, DuePlace, due_bytes};
use hashbrown::HashTable;
use order::{OrderedKey, Placed, Tree};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use table::{Hashed, Slice, bytes_of, ordered_bytes};
use wire::big::time_of;

/// The store of one shard, in memory.
pub struct MemoryEngine {
    store_id: StoreId,
    hashed: HashTable<Hashed>,
    ordered: BTreeMap<KeyspaceId, Tree>,
    /// Those that it has heard of, to tell match values.
    keyspaces: BTreeMap<KeyspaceId, Keyspace>,
    due: BTreeMap<Due, DuePlace>,
    len: usize,
    /// What all records take.
    bytes: usize,
}

impl MemoryEngine {
    /// An empty store; `store_id` must never have been another's.
    #[must_use]
    pub fn new(store_id: StoreId) -> Self {
        Self {
            store_id,
            hashed: HashTable::new(),
            ordered: BTreeMap::new(),
            keyspaces: BTreeMap::new(),
            due: BTreeMap::new(),
            len: 0,
            bytes: 0,
        }
    }

    #[inline]
    fn find(&self, key: &KeyRef<'_>) -> Option<&Block> {
        let KeyRef { keyspace, match_value, keyhash, key, ordered, .. } = *key;
        if ordered {
            self.find_ordered(keyspace, match_value, key)
        } else {
            self.find_hashed(keyspace, match_value, keyhash, key)
        }
    }

    #[inline]
    fn find_hashed(
        &self,
        keyspace: KeyspaceId,
        at: Match,
        keyhash: u64,
        key: &[u8],
    ) -> Option<&Block> {
        self.table(Slice::of(keyspace, at))?.find(at, keyhash, key)
    }

    #[inline]
    fn table(&self, slice: Slice) -> Option<&Hashed> {
        self.hashed.find(slice.hash(), |table| table.slice == slice)
    }

    fn find_ordered(&self, keyspace: KeyspaceId, at: Match, key: &[u8]) -> Option<&Block> {
        self.ordered.get(&keyspace)?.get(&(at, key) as &dyn Placed)
    }

    /// Stores the record and returns the expiry of the one it replaced.
    fn put(&mut self, key: &KeyRef<'_>, record: &Record<'_>) -> Option<u64> {
        if key.ordered { self.put_ordered(key, record) } else { self.put_hashed(key, record) }
    }

    #[inline]
    fn put_hashed(&mut self, key: &KeyRef<'_>, record: &Record<'_>) -> Option<u64> {
        let KeyRef { keyspace, match_value, keyhash, key, .. } = *key;
        let slice = Slice::of(keyspace, match_value);
        let table = self
            .hashed
            .entry(slice.hash(), |table| table.slice == slice, |table| table.slice.hash())
            .or_insert_with(|| Hashed::new(slice))
            .into_mut();
        let Some(block) = table.find_mut(match_value, keyhash, key) else {
            self.bytes += table.insert(match_value, keyhash, key, record);
            return None;
        };
        let before_ms = block.expiry_ms();
        self.bytes -= block.allocated_bytes();
        block.replace(record);
        self.bytes += block.allocated_bytes();
        Some(before_ms)
    }

    fn put_ordered(&mut self, key: &KeyRef<'_>, record: &Record<'_>) -> Option<u64> {
        let KeyRef { keyspace, match_value, key, .. } = *key;
        let tree = self.ordered.entry(keyspace).or_default();
        if let Some(block) = tree.get_mut(&(match_value, key) as &dyn Placed) {
            let before_ms = block.expiry_ms();
            self.bytes -= block.allocated_bytes();
            block.replace(record);
            self.bytes += block.allocated_bytes();
            return Some(before_ms);
        }
        let block = Block::new(&[], record);
        self.bytes += ordered_bytes(key.len()) + block.allocated_bytes();
        tree.insert(OrderedKey::new(match_value, key), block);
        None
    }

    /// Takes the record out; a table that runs empty gives its memory back.
    fn take(&mut self, key: &KeyRef<'_>) -> Option<Block> {
        let KeyRef { keyspace, match_value, keyhash, key, ordered, .. } = *key;
        if ordered {
            let tree = self.ordered.get_mut(&keyspace)?;
            let block = tree.remove(&(match_value, key) as &dyn Placed)?;
            if tree.is_empty() {
                self.ordered.remove(&keyspace);
            }
            return Some(block);
        }
        let slice = Slice::of(keyspace, match_value);
        let found = self.hashed.find_entry(slice.hash(), |table| table.slice == slice);
        let mut table = found.ok()?;
        let block = table.get_mut().take(match_value, keyhash, key);
        if table.get().len() == 0 {
            table.remove();
        }
        block
    }

    /// Clears a piece of a partition, and says the keys that it forgets.
    pub fn clear_with(
        &mut self,
        area: &Area,
        at_most: usize,
        mut forgotten: impl FnMut(&[u8]),
    ) -> ControlFlow<()> {
        let mut found: Vec<(Match, u64, Box<[u8]>)> = Vec::new();
        let flow = self.visit_places(area, &mut Cursor::new(area), |at, keyhash, key, _| {
            if found.len() == at_most {
                return ControlFlow::Break(());
            }
            found.push((at, keyhash, key.into()));
            ControlFlow::Continue(())
        });
        let Area { keyspace, partition, ordered, .. } = *area;
        for (match_value, keyhash, key) in &found {
            forgotten(key);
            let (match_value, keyhash) = (*match_value, *keyhash);
            self.remove(&KeyRef { keyspace, partition, ordered, match_value, keyhash, key });
        }
        flow
    }

    /// Visits the next records of a walk with a match value of their table and the keyhash that
    /// they are found by.
    fn visit_places(
        &self,
        area: &Area,
        cursor: &mut Cursor,
        mut visit: impl FnMut(Match, u64, &[u8], &Block) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if area.ordered {
            return cursor.go_on_in_order(area, self.ordered.get(&area.keyspace), &mut visit);
        }
        let keyspace = self.keyspaces.get(&area.keyspace);
        for slice in Slice::all_from(area, cursor.at()) {
            cursor.go_on(area, keyspace, (slice, self.table(slice)), &mut visit)?;
        }
        ControlFlow::Continue(())
    }

    fn unschedule(&mut self, key: &KeyRef<'_>, expiry_ms: u64) {
        if time_of(expiry_ms) != 0 {
            self.remove_due(&Due::new(key, expiry_ms));
        }
    }

    fn remove_due(&mut self, due: &Due) {
        self.bytes -= due_bytes(due.key.len());
        let was_there = self.due.remove(due);
        assert!(was_there.is_some(), "every record with an expiry is in the due index");
    }
}

impl Engine for MemoryEngine {
    type Cursor = Cursor;

    #[inline]
    fn read<R>(&self, key: &KeyRef<'_>, with: impl FnOnce(Option<Record<'_>>) -> R) -> R {
        with(self.find(key).map(Block::record))
    }

    fn write(&mut self, key: &KeyRef<'_>, record: &Record<'_>) {
        let before_ms = self.put(key, record);
        if before_ms.is_none() {
            self.len += 1;
        }
        if time_of(before_ms.unwrap_or(0)) == time_of(record.expiry_ms) {
            return;
        }
        self.unschedule(key, before_ms.unwrap_or(0));
        if time_of(record.expiry_ms) != 0 {
            self.bytes += due_bytes(key.key.len());
            self.due.insert(Due::new(key, record.expiry_ms), DuePlace::of(key));
        }
    }

    fn remove(&mut self, key: &KeyRef<'_>) {
        let Some(block) = self.take(key) else { return };
        self.len -= 1;
        self.bytes -= bytes_of(key.key.len(), &block);
        self.unschedule(key, block.expiry_ms());
    }

    fn scan(
        &self,
        interval: &Interval<'_>,
        mut visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        // Whether the visitor broke off or the range ended is the same to the caller.
        let _ = if interval.keyspace.is_ordered() {
            let Some(tree) = self.ordered.get(&interval.keyspace.id) else { return };
            let Some(mut range) = order::range(tree, interval) else { return };
            let mut visit_one =
                |(at, block): (&OrderedKey, &Block)| visit(at.key(), block.record());
            if interval.reverse {
                range.rev().try_for_each(&mut visit_one)
            } else {
                range.try_for_each(&mut visit_one)
            }
        } else {
            let mut tables = Slice::all_in(interval).filter_map(|slice| self.table(slice));
            tables.try_for_each(|table| table.scan(interval, &mut visit))
        };
    }

    fn due(
        &self,
        until_ms: u64,
        mut visit: impl FnMut(KeyspaceId, &[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        let due = self.due.iter().take_while(|(due, _)| due.expiry_ms <= until_ms);
        for (due, place) in due {
            let found = match *place {
                DuePlace::Hashed(at, keyhash) => {
                    self.find_hashed(due.keyspace, at, keyhash, &due.key)
                }
                DuePlace::Ordered(at) => self.find_ordered(due.keyspace, at, &due.key),
            };
            let block = found.expect("the due index names records that are there");
            if visit(due.keyspace, &due.key, block.record()).is_break() {
                return;
            }
        }
    }

    fn meet_keyspace(&mut self, keyspace: &Keyspace) {
        self.keyspaces.insert(keyspace.id, keyspace.clone());
    }

    fn walk(&self, area: &Area) -> Cursor {
        Cursor::new(area)
    }

    fn walk_on(
        &self,
        area: &Area,
        cursor: &mut Cursor,
        mut visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.visit_places(area, cursor, |_, _, key, block| visit(key, block.record()))
    }

    fn walked(&self, area: &Area, cursor: &Cursor) -> u16 {
        cursor.passed(area).map_or(1_000, |at| area.thousandths_before(at))
    }

    fn clear_on(&mut self, area: &Area, at_most: usize) -> ControlFlow<()> {
        self.clear_with(area, at_most, |_| {})
    }

    fn note(&mut self, _partition: PartitionId, _name: &[u8], _note: Option<&[u8]>) {}

    fn notes_from(
        &self,
        _partition: PartitionId,
        _from: &[u8],
        _visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) {
    }

    fn sync(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn store_id(&self) -> StoreId {
        self.store_id
    }

    fn usage(&self) -> u64 {
        self.bytes as u64
    }

    fn len(&self) -> usize {
        self.len
    }
}
