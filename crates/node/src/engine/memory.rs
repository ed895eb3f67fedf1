//! The engine that keeps everything in memory and loses it with the process.
//!
//! One shard owns it alone: no lock, no sharing. Each partition has a table of its own: a hash
//! table for keys without order, placed by the keyhash the request brought along, and a tree for
//! keys in order.
//!
//! What a record costs beyond its key and value, for keys of 16 and values of 128 bytes (held to by
//! a test, printed by a benchmark): about 75 bytes in a hash keyspace, of which 22 are version,
//! expiry and lengths, 10 the allocator keeps or rounds up, and the rest is its slot in a table
//! that is between half and seven eighths full. In an ordered keyspace it is about 125, because the
//! key is a piece of memory of its own. An expiry costs as much again. The engine has no limit of
//! its own: what a shard stores is bounded by who may write to it.
//!
//! A scan of a partition of a hash keyspace makes an index of it, of about 25 bytes for each
//! record. The index is kept up while scans go on, and forgotten when as many keys have come and
//! gone since the last one as it has.
//!
//! A walk through a partition of a hash keyspace takes 8 bytes for each of its records as long as
//! it lasts, because a table that grows keeps no order of its own.

mod block;
mod detached;
mod index;
mod order;
#[cfg(test)]
mod tests;
mod walk;

pub use walk::Cursor;

use crate::engine::{Area, Engine, EngineError, Interval, KeyRef, Record};
use block::Block;
use cluster::{KeyspaceId, Match, PartitionId, StoreId};
use detached::Detached;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use index::Index;
use order::{Place, Placed};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use wire::big::time_of;

/// The store of one shard, in memory.
pub struct MemoryEngine {
    store_id: StoreId,
    hashed: HashTable<Hashed>,
    ordered: BTreeMap<PartitionId, BTreeMap<Place, Block>>,
    due: BTreeSet<Due>,
    len: usize,
    /// Partitions that are being cleared: their entries in `due` go with their records.
    detached: BTreeMap<PartitionId, Detached>,
}

/// A partition of a hash keyspace.
struct Hashed {
    partition: PartitionId,
    slots: HashTable<Slot>,
    /// The order of its keys, while somebody scans it.
    index: RefCell<Option<Index>>,
}

/// The keyhash stands beside the pointer, so that neither a growing table nor a key that looks
/// alike in seven bits has to fetch the block.
struct Slot {
    keyhash: u64,
    block: Block,
}

/// A record with an expiry, and where it is. Sorted by expiry first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    expiry_ms: u64,
    keyspace: KeyspaceId,
    partition: PartitionId,
    place: DuePlace,
    key: Box<[u8]>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum DuePlace {
    Hashed(u64),
    Ordered(Match),
}

impl MemoryEngine {
    /// An empty store; `store_id` must never have been another's.
    #[must_use]
    pub fn new(store_id: StoreId) -> Self {
        Self {
            store_id,
            hashed: HashTable::new(),
            ordered: BTreeMap::new(),
            due: BTreeSet::new(),
            len: 0,
            detached: BTreeMap::new(),
        }
    }

    #[inline]
    fn find(&self, key: &KeyRef<'_>) -> Option<&Block> {
        if key.ordered {
            self.find_ordered(key.partition, key.match_value, key.key)
        } else {
            self.find_hashed(key.partition, key.keyhash, key.key)
        }
    }

    #[inline]
    fn find_hashed(&self, partition: PartitionId, keyhash: u64, key: &[u8]) -> Option<&Block> {
        let slot = self.slots(partition)?.find(keyhash, |slot| slot.holds(keyhash, key))?;
        Some(&slot.block)
    }

    #[inline]
    fn slots(&self, partition: PartitionId) -> Option<&HashTable<Slot>> {
        Some(&self.table(partition)?.slots)
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
        let held = |slot: &Slot| slot.holds(keyhash, key);
        match table.slots.entry(keyhash, held, |slot| slot.keyhash) {
            Entry::Occupied(mut entry) => {
                let block = &mut entry.get_mut().block;
                let before_ms = block.expiry_ms();
                block.replace(record);
                Some(before_ms)
            }
            Entry::Vacant(entry) => {
                entry.insert(Slot { keyhash, block: Block::new(key, record) });
                index::note(table.index.get_mut(), |index| index.add(match_value, keyhash));
                None
            }
        }
    }

    fn put_ordered(&mut self, key: &KeyRef<'_>, record: &Record<'_>) -> Option<u64> {
        let KeyRef { partition, match_value, key, .. } = *key;
        let tree = self.ordered.entry(partition).or_default();
        if let Some(block) = tree.get_mut(&(match_value, key) as &dyn Placed) {
            let before_ms = block.expiry_ms();
            block.replace(record);
            return Some(before_ms);
        }
        tree.insert(Place::new(match_value, key), Block::new(&[], record));
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
        let Hashed { slots, index, .. } = table.get_mut();
        let (slot, _) = slots.find_entry(keyhash, |slot| slot.holds(keyhash, key)).ok()?.remove();
        let is_last = slots.find(keyhash, |slot| slot.keyhash == keyhash).is_none();
        index::note(index.get_mut(), |index| index.remove(match_value, keyhash, is_last));
        if slots.is_empty() {
            table.remove();
        }
        Some(slot.block)
    }

    /// Takes a partition out of sight; what it takes in memory stays for now.
    fn detach(&mut self, area: &Area) -> Detached {
        let Area { keyspace, partition, ordered, .. } = *area;
        let detached = if ordered {
            Detached::ordered(keyspace, self.ordered.remove(&partition).unwrap_or_default())
        } else {
            let of_partition = |table: &Hashed| table.partition == partition;
            let found = self.hashed.find_entry(partition_hash(partition), of_partition);
            let slots = found.map_or_else(|_| HashTable::new(), |table| table.remove().0.slots);
            Detached::hashed(keyspace, slots)
        };
        self.len -= detached.len();
        detached
    }

    fn unschedule(&mut self, key: &KeyRef<'_>, expiry_ms: u64) {
        if time_of(expiry_ms) != 0 {
            self.remove_due(&Due::new(key, expiry_ms));
        }
    }

    fn remove_due(&mut self, due: &Due) {
        let was_there = self.due.remove(due);
        assert!(was_there, "every record with an expiry is in the due index");
    }
}

impl Hashed {
    fn new(partition: PartitionId) -> Self {
        Self { partition, slots: HashTable::new(), index: RefCell::new(None) }
    }

    fn scan(
        &self,
        interval: &Interval<'_>,
        visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        let match_of = |key: &[u8]| interval.keyspace.match_value(key);
        let mut index = self.index.borrow_mut();
        let index = index.get_or_insert_with(|| {
            Index::of(self.slots.iter().map(|slot| (match_of(slot.block.key()), slot.keyhash)))
        });
        let with_hash = |keyhash: u64| {
            let slots = self.slots.iter_hash(keyhash).filter(move |it| it.keyhash == keyhash);
            slots.map(|slot| (match_of(slot.block.key()), &slot.block))
        };
        index.scan(interval, with_hash, visit);
    }
}

impl Slot {
    #[inline]
    fn holds(&self, keyhash: u64, key: &[u8]) -> bool {
        self.keyhash == keyhash && self.block.key() == key
    }
}

impl Due {
    fn new(key: &KeyRef<'_>, expiry_ms: u64) -> Self {
        let place = if key.ordered {
            DuePlace::Ordered(key.match_value)
        } else {
            DuePlace::Hashed(key.keyhash)
        };
        let (keyspace, partition) = (key.keyspace, key.partition);
        Self { expiry_ms: time_of(expiry_ms), keyspace, partition, place, key: key.key.into() }
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
            self.due.insert(Due::new(key, record.expiry_ms));
        }
    }

    fn remove(&mut self, key: &KeyRef<'_>) {
        let Some(block) = self.take(key) else { return };
        self.len -= 1;
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
        let mut visit_one = |(place, block): (&Place, &Block)| visit(place.key(), block.record());
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
        for due in self.due.iter().take_while(|due| due.expiry_ms <= until_ms) {
            let found = match due.place {
                DuePlace::Hashed(keyhash) => self.find_hashed(due.partition, keyhash, &due.key),
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
        if area.ordered {
            Cursor::ordered(area.first)
        } else {
            Cursor::hashed(self.slots(area.partition))
        }
    }

    fn walk_on(
        &self,
        area: &Area,
        cursor: &mut Cursor,
        visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        cursor.go_on(self.slots(area.partition), self.ordered.get(&area.partition), visit)
    }

    fn walked(&self, area: &Area, cursor: &Cursor) -> u16 {
        cursor.walked(self.ordered.get(&area.partition).map_or(0, BTreeMap::len))
    }

    /// The first piece takes all of the partition out of sight. Each takes as long as it takes to
    /// give the memory of its records back, and for each with an expiry to find its entry among
    /// those of all partitions.
    fn clear_on(&mut self, area: &Area, at_most: usize) -> ControlFlow<()> {
        let partition = area.partition;
        let known = self.detached.remove(&partition);
        let mut detached = known.unwrap_or_else(|| self.detach(area));
        for _ in 0..at_most {
            let Some(due) = detached.forget_one(partition) else { break };
            due.iter().for_each(|due| self.remove_due(due));
        }
        if detached.len() == 0 {
            return ControlFlow::Continue(());
        }
        self.detached.insert(partition, detached);
        ControlFlow::Break(())
    }

    fn note(&mut self, _partition: PartitionId, _name: &[u8], _note: Option<&[u8]>) {}

    fn notes(&self, _partition: PartitionId, _visit: impl FnMut(&[u8], &[u8])) {}

    fn sync(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn store_id(&self) -> StoreId {
        self.store_id
    }

    fn len(&self) -> usize {
        self.len
    }
}
