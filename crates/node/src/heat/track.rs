//! The hottest keys by segments of one length.

use super::frequencies::Frequencies;
use cluster::{HotKey, KeyspaceId};
use machine::{Instant, LoadMetric};
use std::time::Duration;

/// The present segment, and what is known of those before it.
#[derive(Debug)]
pub(crate) struct Track {
    metric: LoadMetric,
    /// Keys that are told of at most, but for those with writes that nobody else counts.
    most: usize,
    pub(crate) segment: Frequencies,
    began: Instant,
    /// Up to the last segment's end, the hottest first.
    pub(crate) hot: Vec<HotKey>,
}

impl Track {
    pub(crate) fn new(now: Instant, metric: LoadMetric, most: usize) -> Self {
        Self { metric, most, segment: Frequencies::default(), began: now, hot: Vec::new() }
    }

    /// How long the present segment has lasted.
    pub(super) fn lasts(&self, now: Instant) -> Duration {
        now.since(self.began)
    }

    /// When the present segment is to end.
    pub(crate) fn ends(&self) -> Instant {
        self.began + self.metric.segment
    }

    /// Ends the present segment: the load of each key of its list is blended with what it was
    /// before, and of other keys nothing is kept.
    pub(crate) fn end_segment(&mut self, now: Instant) {
        let lasted = self.lasts(now);
        self.began = now;
        let before = std::mem::take(&mut self.hot);
        let old = |keyspace: KeyspaceId, key: &[u8]| {
            let known = before.iter().find(|it| it.keyspace == keyspace && it.key == key);
            known.map_or([0; 4], |it| [it.reads, it.writes, it.steps, it.home_only])
        };
        for found in self.segment.told(self.most) {
            let [reads, writes, steps, home_only] = old(found.keyspace, found.key);
            let new = found.rated(lasted);
            self.hot.push(HotKey {
                reads: self.metric.blend(reads, new.reads),
                writes: self.metric.blend(writes, new.writes),
                steps: self.metric.blend(steps, new.steps),
                home_only: self.metric.blend(home_only, new.home_only),
                ..new
            });
        }
        self.hot.sort_by(HotKey::hottest_first);
        self.segment.clear();
    }
}

/// Hot keys that a shard reports, and a node of several shards.
pub const HOT_MAX: usize = 16;
