//! The engine that keeps everything in memory and loses it with the process.
//!
//! One shard owns it alone: no lock, no sharing. Each partition has a table of its own: a hash
//! table for keys without order, placed by the keyhash the request brought along, and a tree for
//! keys in order.
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
mod detached;
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
use cluster::{KeyspaceId, Match, PartitionId, StoreId};
use detached::Detached;
use due::{Due, DuePlace, due_bytes};
use hashbrown::HashTable;
use order::{OrderedKey, Placed};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use table::{Hashed, bytes_of, ordered_bytes};
use wire::big::time_of;

/// The store of one shard, in memory.
pub struct MemoryEngine {
    store_id: StoreId,
    hashed: HashTable<Hashed>,
    ordered: BTreeMap<PartitionId, BTreeMap<OrderedKey, Block>>,
    due: BTreeMap<Due, DuePlace>,
    len: usize,
    /// What all records take, those of partitions that are being cleared as well.
    bytes: usize,
    /// Partitions that are being cleared: their entries in `due` go with their records.
    detached: BTreeMap<PartitionId, Detached>,
}

impl MemoryEngine {
    /// An empty store; `store_id` must never have been another's.
    #[must_use]
    pub fn new(store_id: StoreId) -> Self {
        Self {
            store_id,
            hashed: HashTable::new(),
            ordered: BTreeMap::new(),
            due: BTreeMap::new(),
            len: 0,
            bytes: 0,
            detached: BTreeMap::new(),
        }
    }

    #[inline]
    fn find(&self, key: &KeyRef<'_>) -> Option<&Block> {
        if key.ordered {
            self.find_ordered(key.partition, key.match_value, key.key)
        } else {
            self.table(key.partition)?.find(key.match_value, key.keyhash, key.key)
        }
    }

    #[inline]
    fn table(&self, partition: PartitionId) -> Option<&Hashed> {
        self.hashed.find(partition_hash(partition), |table| table.partition == partition)
    }

    fn find_ordered(&self, partition: PartitionId, at: Match, key: &[u8]) -> Option<&Block> {
        self.ordered.get(&partition)?.get(&(at, key) as &dyn Placed)
    }

    /// Stores the record and returns the expiry of the one it replaced.
    fn put(&mut self, key: &KeyRef<'_>, record: &Record<'_>) -> Option<u64> {
        if key.ordered { self.put_ordered(key, record) } else { self.put_hashed(key, record) }
    }

    #[inline]
    fn put_hashed(&mut self, key: &KeyRef<'_>, record: &Record<'_>) -> Option<u64> {
        let KeyRef { partition, match_value, keyhash, key, .. } = *key;
        let table = self
            .hashed
            .entry(
                partition_hash(partition),
                |table| table.partition == partition,
                |table| partition_hash(table.partition),
            )
            .or_insert_with(|| Hashed::new(partition))
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
        let KeyRef { partition, match_value, key, .. } = *key;
        let tree = self.ordered.entry(partition).or_default();
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

    /// Takes the record out; a partition that runs empty gives its memory back.
    fn take(&mut self, key: &KeyRef<'_>) -> Option<Block> {
        let KeyRef { partition, match_value, keyhash, key, ordered, .. } = *key;
        if ordered {
            let tree = self.ordered.get_mut(&partition)?;
            let block = tree.remove(&(match_value, key) as &dyn Placed)?;
            if tree.is_empty() {
                self.ordered.remove(&partition);
            }
            return Some(block);
        }
        let mut table = self
            .hashed
            .find_entry(partition_hash(partition), |table| table.partition == partition)
            .ok()?;
        let block = table.get_mut().take(match_value, keyhash, key);
        if table.get().len() == 0 {
            table.remove();
        }
        block
    }

    /// Takes a partition out of sight; what it takes in memory stays for now.
    fn detach(&mut self, area: &Area) -> Detached {
        let Area { keyspace, partition, ordered, .. } = *area;
        let detached = if ordered {
            Detached::ordered(keyspace, self.ordered.remove(&partition).unwrap_or_default())
        } else {
            let of_partition = |table: &Hashed| table.partition == partition;
            let found = self.hashed.find_entry(partition_hash(partition), of_partition);
            let table = found.map_or_else(|_| Hashed::new(partition), |table| table.remove().0);
            Detached::hashed(keyspace, table)
        };
        self.len -= detached.len();
        detached
    }

    /// Clears a piece of a partition, and says the keys that it forgets. The first piece takes all
    /// of the partition out of sight. Each takes as long as it takes to give the memory of its
    /// records back, and for each with an expiry to find its entry among those of all partitions.
    pub fn clear_with(
        &mut self,
        area: &Area,
        at_most: usize,
        mut forgotten: impl FnMut(&[u8]),
    ) -> ControlFlow<()> {
        let partition = area.partition;
        let known = self.detached.remove(&partition);
        let mut detached = known.unwrap_or_else(|| self.detach(area));
        for _ in 0..at_most {
            let Some((bytes, due)) = detached.forget_one(partition, &mut forgotten) else { break };
            self.bytes -= bytes;
            due.iter().for_each(|due| self.remove_due(due));
        }
        if detached.len() == 0 {
            return ControlFlow::Continue(());
        }
        self.detached.insert(partition, detached);
        ControlFlow::Break(())
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

/// Partition ids are small and dense, and all of a shard's are alike modulo the number of shards.
#[inline]
fn partition_hash(partition: PartitionId) -> u64 {
    machine::mix(u64::from(partition.0))
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
        if !interval.keyspace.is_ordered() {
            if let Some(table) = self.table(interval.partition) {
                table.scan(interval, visit);
            }
            return;
        }
        let Some(tree) = self.ordered.get(&interval.partition) else { return };
        let Some(mut range) = order::range(tree, interval) else { return };
        let mut visit_one = |(at, block): (&OrderedKey, &Block)| visit(at.key(), block.record());
        // Whether the visitor broke off or the range ended is the same to the caller.
        let _ = if interval.reverse {
            range.rev().try_for_each(&mut visit_one)
        } else {
            range.try_for_each(&mut visit_one)
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
                    let table = self.table(due.partition);
                    table.and_then(|table| table.find(at, keyhash, &due.key))
                }
                DuePlace::Ordered(at) => self.find_ordered(due.partition, at, &due.key),
            };
            let Some(block) = found else {
                let leaves = self.detached.contains_key(&due.partition);
                assert!(leaves, "the due index names records that are there");
                continue;
            };
            if visit(due.keyspace, &due.key, block.record()).is_break() {
                return;
            }
        }
    }

    fn walk(&self, area: &Area) -> Cursor {
        if area.ordered { Cursor::ordered(area.first) } else { Cursor::hashed() }
    }

    fn walk_on(
        &self,
        area: &Area,
        cursor: &mut Cursor,
        visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        cursor.go_on(self.table(area.partition), self.ordered.get(&area.partition), visit)
    }

    fn walked(&self, area: &Area, cursor: &Cursor) -> u16 {
        let in_tree = self.ordered.get(&area.partition).map_or(0, BTreeMap::len);
        cursor.walked(self.table(area.partition).map_or(in_tree, Hashed::len))
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
