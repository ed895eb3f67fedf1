//! How a cache is, for those who ask.

use crate::cache::{Cache, Counters};
use cluster::{CacheReport, Resources};
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
        CacheReport {
            revision: self.tables.as_ref().map_or(Revision::NONE, |tables| tables.revision),
            cluster: self.tables.as_ref().map(|tables| tables.cluster),
            leaving: self.leaving,
            entries: self.slots.held(),
            bytes: self.slots.bytes(),
            room_entries: self.config.entries_max as u64,
            hits,
            misses,
            forwarded,
            volumes: self.volumes.len() as u64,
            rules: wanted.saturating_sub(self.rules.pending()) as u64,
            rules_wanted: wanted as u64,
            fetches,
            updates,
            // Whoever runs the cache says so.
            resources: Resources::default(),
        }
    }
}
