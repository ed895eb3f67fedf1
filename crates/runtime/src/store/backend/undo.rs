//! What changes that a backend refuses make of the index, so that reads are shown what was there
//! before them until the backend takes them.

use cluster::{KeyspaceId, Match, PartitionId};
use node::engine::memory::MemoryEngine;
use node::engine::{Engine, KeyRef, Record};
use std::collections::BTreeMap;
use wire::Version;

/// The other state of the records that were changed since the last sync.
#[derive(Debug, Default)]
pub(super) struct Undo(BTreeMap<UndoKey, Other>);

/// A key of a partition.
type UndoKey = (KeyspaceId, PartitionId, Box<[u8]>);

#[derive(Debug)]
struct Other {
    ordered: bool,
    match_value: Match,
    keyhash: u64,
    /// `None` if there is none.
    record: Option<Meta>,
}

/// A record without its value.
#[derive(Clone, Copy, Debug)]
struct Meta {
    version: Version,
    expiry_ms: u64,
    tombstone: bool,
}

impl Meta {
    fn of(index: &MemoryEngine, key: &KeyRef<'_>) -> Option<Self> {
        index.read(key, |record| {
            let Record { version, expiry_ms, tombstone, .. } = record?;
            Some(Self { version, expiry_ms, tombstone })
        })
    }
}

impl Undo {
    /// A record is about to be changed.
    pub(super) fn remember(&mut self, index: &MemoryEngine, key: &KeyRef<'_>) {
        let place = (key.keyspace, key.partition, key.key.into());
        self.0.entry(place).or_insert_with(|| {
            let KeyRef { ordered, match_value, keyhash, .. } = *key;
            Other { ordered, match_value, keyhash, record: Meta::of(index, key) }
        });
    }

    /// Exchanges what is in the index for what is here.
    pub(super) fn swap(&mut self, index: &mut MemoryEngine) {
        for ((keyspace, partition, key), other) in &mut self.0 {
            let (keyspace, partition) = (*keyspace, *partition);
            let Other { ordered, match_value, keyhash, .. } = *other;
            let key = KeyRef { keyspace, partition, ordered, match_value, keyhash, key };
            let present = Meta::of(index, &key);
            match std::mem::replace(&mut other.record, present) {
                Some(Meta { version, expiry_ms, tombstone }) => {
                    index.write(&key, &Record { version, expiry_ms, tombstone, value: &[] });
                }
                None => index.remove(&key),
            }
        }
    }
}
