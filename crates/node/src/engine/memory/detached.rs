//! Partitions that are being cleared: out of sight, and given back to the allocator bit by bit.

use super::order::Place;
use super::{Block, Due, DuePlace, Slot};
use cluster::{KeyspaceId, PartitionId};
use hashbrown::{HashTable, hash_table};
use std::collections::{BTreeMap, btree_map};
use wire::big::time_of;

/// What is left of a partition.
pub(super) struct Detached {
    keyspace: KeyspaceId,
    records: Records,
}

/// A table or a tree that gives its records up one by one, without ever looking at one twice.
enum Records {
    Hashed(hash_table::IntoIter<Slot>),
    Ordered(btree_map::IntoIter<Place, Block>),
}

impl Detached {
    pub(super) fn hashed(keyspace: KeyspaceId, slots: HashTable<Slot>) -> Self {
        Self { keyspace, records: Records::Hashed(slots.into_iter()) }
    }

    pub(super) fn ordered(keyspace: KeyspaceId, tree: BTreeMap<Place, Block>) -> Self {
        Self { keyspace, records: Records::Ordered(tree.into_iter()) }
    }

    pub(super) fn len(&self) -> usize {
        match &self.records {
            Records::Hashed(slots) => slots.len(),
            Records::Ordered(tree) => tree.len(),
        }
    }

    /// Gives up one record; what is left of it is its entry in the due index, if it has an expiry.
    pub(super) fn forget_one(&mut self, partition: PartitionId) -> Option<Option<Due>> {
        let (place, key, block) = match &mut self.records {
            Records::Hashed(slots) => {
                let Slot { keyhash, block } = slots.next()?;
                (DuePlace::Hashed(keyhash), None, block)
            }
            Records::Ordered(tree) => {
                let (at, block) = tree.next()?;
                let (at, key) = at.into_parts();
                (DuePlace::Ordered(at), Some(key), block)
            }
        };
        let (keyspace, expiry_ms) = (self.keyspace, time_of(block.expiry_ms()));
        Some((expiry_ms != 0).then(|| {
            let key = key.unwrap_or_else(|| block.key().into());
            Due { expiry_ms, keyspace, partition, place, key }
        }))
    }
}
