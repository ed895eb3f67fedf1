//! How a cache is, for those who ask.

use crate::cache::{Cache, Counters};
use crate::slots::Slot;
use cluster::{CACHE_TOLD_MAX, CacheReport, HotKey, KeyName, KeyspaceId, Resources};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use wire::Revision;

impl Cache {
    /// Reads that it has answered.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.counters.hits
    }

    /// Keys that it holds or has asked for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.len() == 0
    }

    /// How the cache is.
    #[must_use]
    pub fn report(&self) -> CacheReport {
        let Counters { hits, misses, forwarded, fetches, updates } = self.counters;
        let wanted = self.slots.iter().filter(|slot| slot.has_rule).count();
        let told = self.told();
        CacheReport {
            revision: self.tables.as_ref().map_or(Revision::NONE, |tables| tables.revision),
            cluster: self.tables.as_ref().map(|tables| tables.cluster),
            leaving: self.leaving,
            entries: self.slots.held(),
            bytes: self.slots.bytes(),
            room_entries: self.limit.room() as u64,
            hits,
            misses,
            forwarded,
            volumes: self.volumes.len() as u64,
            rules: wanted.saturating_sub(self.switches.pending()) as u64,
            rules_wanted: wanted as u64,
            fetches,
            updates,
            hot: self.hottest(&told),
            crowding: self.crowding(&told),
            // Whoever runs the cache says so.
            resources: Resources::default(),
        }
    }

    /// Keyspaces in which nodes may copy keys that caches cannot help.
    fn told(&self) -> BTreeSet<KeyspaceId> {
        let known = self.tables.iter().flat_map(|tables| &tables.keyspaces);
        known.filter(|it| it.hot.caches() && it.copies_hot_keys()).map(|it| it.id).collect()
    }

    /// The keys of these keyspaces that are read most here.
    fn hottest(&self, told: &BTreeSet<KeyspaceId>) -> Vec<HotKey> {
        if told.is_empty() {
            return Vec::new();
        }
        let slots = self.slots.iter().filter(|slot| told.contains(&slot.key.keyspace));
        let mut slots: Vec<&Slot> = slots.filter(|slot| slot.load() > 0).collect();
        let order = |slot: &&Slot| (Reverse(slot.load()), slot.key.keyhash);
        if slots.len() > CACHE_TOLD_MAX {
            slots.select_nth_unstable_by_key(CACHE_TOLD_MAX, order);
            slots.truncate(CACHE_TOLD_MAX);
        }
        slots.sort_unstable_by_key(order);
        let as_told = |slot: &Slot| {
            let (keyspace, key) = (slot.key.keyspace, slot.key.bytes.to_vec());
            HotKey { keyspace, key, reads: slot.load(), ..HotKey::default() }
        };
        slots.into_iter().map(as_told).collect()
    }

    /// The key that is too hot for this shard, if one is, where nodes may copy it instead.
    fn crowding(&self, told: &BTreeSet<KeyspaceId>) -> Vec<KeyName> {
        let key = self.crowding.key().filter(|it| told.contains(&it.keyspace));
        key.map(|it| KeyName { keyspace: it.keyspace, key: it.bytes.to_vec() })
            .into_iter()
            .collect()
    }
}
