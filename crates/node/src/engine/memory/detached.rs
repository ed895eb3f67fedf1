//! Partitions that are being cleared: out of sight, and given back to the allocator bit by bit.

use super::block::Block;
use super::due::Due;
use super::order::OrderedKey;
use super::slot::Slot;
use super::table::{Hashed, bytes_of};
use cluster::{KeyspaceId, PartitionId};
use hashbrown::hash_table;
use std::collections::{BTreeMap, btree_map, btree_set};
use wire::big::time_of;

/// What is left of a partition. Each of these gives its records up one by one, without ever looking
/// at one twice.
pub(super) struct Detached {
    keyspace: KeyspaceId,
    slots: Option<hash_table::IntoIter<Slot>>,
    /// Goes along with the slots.
    places: Option<btree_set::IntoIter<(u64, u64)>>,
    tree: btree_map::IntoIter<OrderedKey, Block>,
}

impl Detached {
    pub(super) fn hashed(keyspace: KeyspaceId, table: Hashed) -> Self {
        let (slots, places) = (table.slots.into_iter(), table.index.into_places());
        let tree = table.crowded.into_iter();
        Self { keyspace, slots: Some(slots), places: Some(places), tree }
    }

    pub(super) fn ordered(keyspace: KeyspaceId, tree: BTreeMap<OrderedKey, Block>) -> Self {
        Self { keyspace, slots: None, places: None, tree: tree.into_iter() }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.as_ref().map_or(0, ExactSizeIterator::len) + self.tree.len()
    }

    /// Gives up one record, with its key: how many bytes that gives back, and what is left of it,
    /// its entry in the due index, if it has an expiry.
    pub(super) fn forget_one(
        &mut self,
        partition: PartitionId,
        forgotten: &mut impl FnMut(&[u8]),
    ) -> Option<(usize, Option<Due>)> {
        let slot = self.slots.as_mut().and_then(Iterator::next);
        let (key, block): (Option<Box<[u8]>>, Block) = if let Some(slot) = slot {
            self.places.as_mut().and_then(Iterator::next);
            (None, slot.block)
        } else {
            let (place, block) = self.tree.next()?;
            (Some(place.into_key()), block)
        };
        forgotten(key.as_deref().unwrap_or_else(|| block.key()));
        let bytes = bytes_of(key.as_ref().map_or(0, |key| key.len()), &block);
        let (keyspace, expiry_ms) = (self.keyspace, time_of(block.expiry_ms()));
        let due = (expiry_ms != 0).then(|| {
            let key = key.unwrap_or_else(|| block.key().into());
            Due { expiry_ms, keyspace, partition, key }
        });
        Some((bytes, due))
    }
}
