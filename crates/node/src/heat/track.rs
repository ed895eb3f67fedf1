//! The hottest keys by segments of one length.

use super::frequencies::Frequencies;
use cluster::{HotKey, KeyspaceId};
use machine::Instant;
use std::time::Duration;

/// The present segment, and what is known of those before it.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) segment: Frequencies,
    began: Instant,
    /// Up to the last segment's end, the hottest first.
    pub(super) hot: Vec<HotKey>,
}

impl Track {
    pub(super) fn new(now: Instant) -> Self {
        Self { segment: Frequencies::default(), began: now, hot: Vec::new() }
    }

    /// How long the present segment has lasted.
    pub(super) fn lasts(&self, now: Instant) -> Duration {
        now.since(self.began)
    }

    /// Ends the present segment: `L = f / 2 + L' / 2` for each key of its list, as the paper's
    /// equation 1 with its weight at one half.
    pub(super) fn end_segment(&mut self, now: Instant) {
        let lasted = self.lasts(now);
        self.began = now;
        let before = std::mem::take(&mut self.hot);
        let old = |keyspace: KeyspaceId, key: &[u8]| {
            let known = before.iter().find(|it| it.keyspace == keyspace && it.key == key);
            known.map_or([0; 4], |it| [it.reads, it.writes, it.steps, it.home_only])
        };
        for found in self.segment.told(HOT_MAX) {
            let [reads, writes, steps, home_only] = old(found.keyspace, found.key);
            let new = found.rated(lasted);
            self.hot.push(HotKey {
                reads: new.reads.midpoint(reads),
                writes: new.writes.midpoint(writes),
                steps: new.steps.midpoint(steps),
                home_only: new.home_only.midpoint(home_only),
                ..new
            });
        }
        self.hot.sort_by(HotKey::hottest_first);
        self.segment.clear();
    }
}

/// Hot keys that a shard reports, and a node of several shards.
pub const HOT_MAX: usize = 16;
