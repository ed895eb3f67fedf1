//! A partition of a hash keyspace.

use super::block::{Block, allocated};
use super::index::Index;
use super::order::{self, OrderedKey, Placed};
use super::slot::Slot;
use crate::engine::{Interval, Record};
use cluster::{Match, PartitionId};
use hashbrown::HashTable;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A partition of a hash keyspace.
pub(super) struct Hashed {
    pub(super) partition: PartitionId,
    pub(super) slots: HashTable<Slot>,
    /// The order of the keys in the table.
    pub(super) index: Index,
    /// The keys that came when many of their match value, or of their keyhash, were in the table.
    pub(super) crowded: BTreeMap<OrderedKey, Block>,
}

impl Hashed {
    pub(super) fn new(partition: PartitionId) -> Self {
        let (slots, index, crowded) = (HashTable::new(), Index::default(), BTreeMap::new());
        Self { partition, slots, index, crowded }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() + self.crowded.len()
    }

    #[inline]
    pub(super) fn find(&self, at: Match, keyhash: u64, key: &[u8]) -> Option<&Block> {
        match self.slots.find(keyhash, |slot| slot.holds(keyhash, key)) {
            Some(slot) => Some(&slot.block),
            None if self.crowded.is_empty() => None,
            None => self.crowded.get(&(at, key) as &dyn Placed),
        }
    }

    #[inline]
    pub(super) fn find_mut(&mut self, at: Match, keyhash: u64, key: &[u8]) -> Option<&mut Block> {
        match self.slots.find_mut(keyhash, |slot| slot.holds(keyhash, key)) {
            Some(slot) => Some(&mut slot.block),
            None if self.crowded.is_empty() => None,
            None => self.crowded.get_mut(&(at, key) as &dyn Placed),
        }
    }

    /// Stores the record of a key that is not there, and says what it takes.
    pub(super) fn insert(
        &mut self,
        at: Match,
        keyhash: u64,
        key: &[u8],
        record: &Record<'_>,
    ) -> usize {
        let alike = self.slots.iter_hash(keyhash).filter(|slot| slot.keyhash == keyhash);
        if alike.count() >= ALIKE_MAX || self.index.is_crowded(at) {
            let block = Block::new(&[], record);
            let bytes = bytes_of(key.len(), &block);
            self.crowded.insert(OrderedKey::new(at, key), block);
            return bytes;
        }
        let slot = Slot { keyhash, block: Block::new(key, record) };
        let bytes = bytes_of(key.len(), &slot.block);
        self.slots.insert_unique(keyhash, slot, |slot| slot.keyhash);
        self.index.add(at, keyhash);
        bytes
    }

    pub(super) fn take(&mut self, at: Match, keyhash: u64, key: &[u8]) -> Option<Block> {
        let Ok(found) = self.slots.find_entry(keyhash, |slot| slot.holds(keyhash, key)) else {
            return self.crowded.remove(&(at, key) as &dyn Placed);
        };
        let (slot, _) = found.remove();
        let is_last = self.slots.find(keyhash, |slot| slot.keyhash == keyhash).is_none();
        self.index.remove(at, keyhash, is_last);
        Some(slot.block)
    }

    /// Visits what is in the table and what is in the tree in one order.
    pub(super) fn scan(
        &self,
        interval: &Interval<'_>,
        mut visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        let mut crowded = order::range(&self.crowded, interval);
        let mut next_crowded = || {
            let range = crowded.as_mut()?;
            if interval.reverse { range.next_back() } else { range.next() }
        };
        let mut groups = self.index.groups(&self.slots, interval);
        let (mut group, mut ahead) = (Vec::new(), next_crowded());
        while groups.next_into(&mut group) {
            for (at, block) in &group {
                let here = (*at, block.key());
                while let Some((place, other)) = ahead
                    && (place.place() < here) != interval.reverse
                {
                    if visit(place.key(), other.record()).is_break() {
                        return;
                    }
                    ahead = next_crowded();
                }
                if visit(block.key(), block.record()).is_break() {
                    return;
                }
            }
        }
        while let Some((place, block)) = ahead {
            if visit(place.key(), block.record()).is_break() {
                return;
            }
            ahead = next_crowded();
        }
    }
}

/// Keys of one keyhash in a table, which a lookup compares one by one. Those of an honest keyspace
/// are hardly ever two.
pub(super) const ALIKE_MAX: usize = 4;

/// What a record takes, but for its entry in the due index. Blocks in trees have no key.
pub(super) fn bytes_of(key_len: usize, block: &Block) -> usize {
    let in_tree = block.key().is_empty();
    let place = if in_tree { ordered_bytes(key_len) } else { HASHED_BYTES };
    place + block.allocated_bytes()
}

/// A slot of a table that is between half and seven eighths full, and a place in the index.
const HASHED_BYTES: usize = 70;

/// A place in a tree whose nodes are two thirds full, and the key.
pub(super) fn ordered_bytes(key_len: usize) -> usize {
    3 * size_of::<(OrderedKey, Block)>() / 2 + allocated(key_len)
}
