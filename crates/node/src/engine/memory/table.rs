//! Tables of hash keyspaces.

use super::block::{Block, allocated};
use super::index::Index;
use super::order::{self, OrderedKey, Placed, Tree};
use super::slot::Slot;
use crate::engine::{Area, Interval, Record};
use cluster::{KeyspaceId, Match};
use hashbrown::HashTable;
use std::ops::ControlFlow;

/// A part of the match values of a hash keyspace: those with the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    keyspace: KeyspaceId,
    bits: u8,
}

/// How many bits: of a million records each table has 16,000, which grow in less than a
/// millisecond.
const BITS: u32 = 6;

/// Slices of a keyspace.
pub(super) const SLICES: usize = 1 << BITS;

impl Slice {
    #[inline]
    pub(super) fn of(keyspace: KeyspaceId, at: Match) -> Self {
        Self { keyspace, bits: first_bits(at) }
    }

    #[inline]
    pub(super) fn hash(self) -> u64 {
        machine::mix(u64::from(self.keyspace.0) << 8 | u64::from(self.bits))
    }

    /// Its first match value.
    pub(super) fn first(self) -> Match {
        Match(u128::from(self.bits) << (u128::BITS - BITS))
    }

    /// The first match value of the next one.
    pub(super) fn next_first(self) -> Option<Match> {
        let next = Self { bits: self.bits + 1, ..self };
        (usize::from(next.bits) < SLICES).then(|| next.first())
    }

    /// Those of a partition, from that of this match value on; none if there is none.
    pub(super) fn all_from(area: &Area, from: Option<Match>) -> impl Iterator<Item = Self> {
        let keyspace = area.keyspace;
        let bits = from.map(|from| first_bits(from)..=first_bits(area.last));
        bits.into_iter().flatten().map(move |bits| Self { keyspace, bits })
    }

    /// Those of an interval, in its order.
    pub(super) fn all_in(interval: &Interval<'_>) -> impl Iterator<Item = Self> {
        let (keyspace, reverse) = (interval.keyspace.id, interval.reverse);
        let (first, last) = (first_bits(interval.first), first_bits(interval.last));
        (first..=last).map(move |bits| {
            let bits = if reverse { first + (last - bits) } else { bits };
            Self { keyspace, bits }
        })
    }
}

#[inline]
fn first_bits(at: Match) -> u8 {
    u8::try_from(at.0 >> (u128::BITS - BITS)).expect("a few bits")
}

/// The records of a slice.
pub(super) struct Hashed {
    pub(super) slice: Slice,
    pub(super) slots: HashTable<Slot>,
    /// The order of the keys in the table.
    pub(super) index: Index,
    /// The keys that came when many of their match value, or of their keyhash, were in the table.
    pub(super) crowded: Tree,
}

impl Hashed {
    pub(super) fn new(slice: Slice) -> Self {
        let (slots, index, crowded) = (HashTable::new(), Index::default(), Tree::new());
        Self { slice, slots, index, crowded }
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
    ) -> ControlFlow<()> {
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
                    visit(place.key(), other.record())?;
                    ahead = next_crowded();
                }
                visit(block.key(), block.record())?;
            }
        }
        while let Some((place, block)) = ahead {
            visit(place.key(), block.record())?;
            ahead = next_crowded();
        }
        ControlFlow::Continue(())
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
