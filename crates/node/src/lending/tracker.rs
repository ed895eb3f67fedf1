//! Which keys a cache is told of, and when.

use crate::heat::{Recent, Track, Use};
use cluster::{HotKey, KeyspaceId};
use machine::{Instant, LoadMetric, per_second};
use std::time::Duration;

/// How a node finds the keys that it tells its cache of (SwitchKV section 3.2). Only reads count
/// that a cache could have answered. What the controller is told of hot keys does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackerConfig {
    /// How the loads that are told are reckoned. The cache must reckon alike.
    pub metric: LoadMetric,
    /// What is told at the end of each segment; `None`: nothing.
    pub periodic: Option<PeriodicReports>,
    /// What is told at once; `None`: nothing.
    pub instant: Option<InstantReports>,
}

/// The keys with the highest load are told of regularly (section 3.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodicReports {
    /// How many (k of the paper), of each shard; more than 256 of them are never known.
    pub keys: usize,
}

/// Keys that are suddenly read much are told of at once (section 3.2.2), if the node has much to
/// do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstantReports {
    /// How many of the last reads of a shard are looked at.
    pub last: usize,
    /// A key that was read more often than this among them is told of.
    pub more_than: u32,
    /// But only if so many datagrams or more were found waiting behind the read: how long a queue
    /// is every node knows, and few how much they can serve.
    pub waiting_min: u16,
}

/// That of the paper, but for the number of keys: it has five of each of 128 nodes.
impl Default for TrackerConfig {
    fn default() -> Self {
        Self {
            metric: LoadMetric::default(),
            periodic: Some(PeriodicReports { keys: 64 }),
            instant: Some(InstantReports { last: 200, more_than: 8, waiting_min: 4 }),
        }
    }
}

/// The reads of a shard that its cache could have answered.
#[derive(Debug)]
pub(crate) struct Tracker {
    periodic: Option<Track>,
    instant: Option<(InstantReports, Recent)>,
}

impl Tracker {
    pub(crate) fn new(now: Instant, config: &TrackerConfig) -> Self {
        let TrackerConfig { metric, periodic, instant } = *config;
        Self {
            periodic: periodic.map(|it| Track::new(now, metric, it.keys)),
            instant: instant.map(|it| (it, Recent::new(now, it.last))),
        }
    }

    /// A client has read this key, with so many datagrams found waiting behind it. If the cache is
    /// to hear of it at once, returns the reads per second that the last ones make.
    pub(crate) fn see(
        &mut self,
        now: Instant,
        waiting: u16,
        (keyspace, keyhash, key): (KeyspaceId, u64, &[u8]),
    ) -> Option<u64> {
        if let Some(track) = &mut self.periodic {
            track.segment.see(keyspace, keyhash, key, Use::Read);
        }
        let (config, recent) = self.instant.as_mut()?;
        let seen = recent.see(now, keyspace, keyhash, key);
        let is_sudden = seen.count > config.more_than && waiting >= config.waiting_min;
        if !is_sudden || seen.noted.is_some_and(|told| now < told + TELL_AGAIN) {
            return None;
        }
        *seen.noted = Some(now);
        Some(per_second(seen.count.into(), seen.covers.max(COVERS_MIN)))
    }

    /// When the next regular report is due, if there are any.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.periodic.as_ref().map(Track::ends)
    }

    /// Ends the segment if it is time to; says whether it was.
    pub(crate) fn end_segment(&mut self, now: Instant) -> bool {
        let over = self.periodic.as_mut().filter(|track| now >= track.ends());
        over.map(|track| track.end_segment(now)).is_some()
    }

    /// The keys with the highest loads up to the last segment's end, the highest first.
    pub(crate) fn hot(&self) -> &[HotKey] {
        self.periodic.as_ref().map_or(&[], |track| &track.hot)
    }
}

/// A key of which the cache was told at once, and that is read here all the same, is told of again
/// after this: the report may have been lost, or the key given up. Whoever wants it has it sooner.
const TELL_AGAIN: Duration = Duration::from_millis(100);

/// Reads that come within less are taken to have taken so long: they were found together, and say
/// nothing of a rate.
const COVERS_MIN: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const SPACE: KeyspaceId = KeyspaceId(1);

    fn see(tracker: &mut Tracker, now: Instant, waiting: u16, key: u8) -> Option<u64> {
        tracker.see(now, waiting, (SPACE, key.into(), &[key]))
    }

    #[test]
    fn a_key_is_told_at_once_if_it_is_read_much_lately_and_the_node_is_loaded() {
        let mut now = Instant::from_unix_ms(1_000);
        let mut tracker = Tracker::new(now, &TrackerConfig::default());
        let mut read = |waiting: u16, key: u8| {
            now = now + MS;
            see(&mut tracker, now, waiting, key)
        };
        for other in 0..192 {
            assert_eq!(read(9, other), None, "each was read once");
        }
        for _ in 0..8 {
            assert_eq!(read(9, 250), None, "eight of two hundred");
        }
        assert_eq!(read(3, 250), None, "nothing much waits");
        assert_eq!(read(4, 250), Some(50), "ten of two hundred in a fifth of a second");
        for _ in 0..99 {
            assert_eq!(read(4, 250), None, "it was told already");
        }
        assert_eq!(read(4, 250), Some(550), "and is read here all the same");
    }

    #[test]
    fn visits_that_have_left_the_log_count_no_more() {
        let mut now = Instant::from_unix_ms(1_000);
        let mut tracker = Tracker::new(now, &TrackerConfig::default());
        for round in 0..50 {
            for other in 0..24 {
                now = now + MS;
                // One in 25: eight of two hundred.
                assert_eq!(see(&mut tracker, now, 9, 100 + other), None, "{round}");
            }
            assert_eq!(see(&mut tracker, now, 9, 7), None, "{round}");
        }
    }

    #[test]
    fn reads_that_come_at_once_are_no_endless_rate() {
        let start = Instant::from_unix_ms(1_000);
        let instant = InstantReports { last: 10, more_than: 5, waiting_min: 0 };
        let config = TrackerConfig { instant: Some(instant), ..TrackerConfig::default() };
        let mut tracker = Tracker::new(start, &config);
        let later = start + MS * 10;
        let told = |tracker: &mut Tracker, key| {
            (0..6).map(|_| see(tracker, later, 0, key)).collect::<Vec<_>>()
        };
        let only_last = |rate| [None, None, None, None, None, Some(rate)];
        assert_eq!(told(&mut tracker, 1), only_last(600), "nobody had read for 10 ms");
        let _many: Vec<_> = (0..10).map(|_| see(&mut tracker, later, 0, 2)).collect();
        assert_eq!(told(&mut tracker, 3), only_last(6_000), "as if it had taken 1 ms");
    }

    #[test]
    fn loads_are_blended_as_the_metric_says_and_so_many_are_told() {
        let mut now = Instant::from_unix_ms(1_000);
        let metric = LoadMetric { segment: MS * 200, newest_permille: 250 };
        let periodic = Some(PeriodicReports { keys: 2 });
        let mut tracker = Tracker::new(now, &TrackerConfig { metric, periodic, instant: None });
        let mut told = Vec::new();
        for _ in 0..2 {
            assert_eq!(tracker.due(), Some(now + metric.segment));
            for key in [1, 2, 3] {
                assert!((0..40 * key).all(|_| see(&mut tracker, now, 9, key).is_none()));
            }
            assert!(!tracker.end_segment(now + MS * 199));
            now = now + metric.segment;
            assert!(tracker.end_segment(now));
            let hot = tracker.hot().iter();
            told.push(hot.map(|it| (it.key[0], it.reads)).collect::<Vec<_>>());
        }
        // 600 and 400 a second: a quarter, and a quarter with three quarters of that.
        assert_eq!(told, [[(3, 150), (2, 100)], [(3, 262), (2, 175)]]);
    }

    #[test]
    fn either_kind_of_report_can_be_left_out() {
        let start = Instant::from_unix_ms(1_000);
        let all = TrackerConfig::default();
        let mut only_instant = Tracker::new(start, &TrackerConfig { periodic: None, ..all });
        let mut only_periodic = Tracker::new(start, &TrackerConfig { instant: None, ..all });
        let (mut at_once, mut later) = (0, 0);
        for _ in 0..100 {
            at_once += u32::from(see(&mut only_instant, start, 9, 1).is_some());
            later += u32::from(see(&mut only_periodic, start, 9, 1).is_some());
        }
        assert_eq!((at_once, later), (1, 0));
        let end = start + all.metric.segment;
        assert_eq!((only_instant.due(), only_instant.end_segment(end)), (None, false));
        assert_eq!((only_periodic.due(), only_periodic.end_segment(end)), (Some(end), true));
        assert_eq!([only_instant, only_periodic].map(|it| it.hot().len()), [0, 1]);
    }
}
