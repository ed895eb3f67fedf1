//! How many keys a cache holds: fewer than it has room for if it cannot keep up with the reads of
//! those (SwitchKV section 4.3). Whoever holds the hottest keys alone relieves nodes of most for
//! what it serves.

use machine::Instant;
use std::time::Duration;

/// The number of keys that a cache holds at most, by what waits for it.
#[derive(Debug)]
pub(crate) struct Limit {
    /// What it has room for.
    room: usize,
    keys: usize,
    /// How often it was seen in the present interval how many wait, and how often those were many.
    seen: u32,
    seen_many: u32,
    /// How many waited last.
    last: u16,
    ends: Instant,
    /// One in so many keys goes next if there are too many.
    shed_part: usize,
}

impl Limit {
    pub(crate) fn new(now: Instant, room: usize) -> Self {
        let ends = now + INTERVAL;
        Self { room, keys: room, seen: 0, seen_many: 0, last: 0, ends, shed_part: SHED_PART_FIRST }
    }

    pub(crate) fn keys(&self) -> usize {
        self.keys
    }

    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// There is room for so many.
    pub(crate) fn set_room(&mut self, room: usize) {
        self.room = room;
        self.keys = self.keys.min(room);
    }

    /// So many datagrams wait. Those of one batch come with one less behind each of them, down to
    /// none: the first of them alone says how much has come meanwhile.
    pub(crate) fn see(&mut self, waiting: u16) {
        let is_of_batch = self.last.checked_sub(1) == Some(waiting);
        self.last = waiting;
        if !is_of_batch {
            self.seen += 1;
            self.seen_many += u32::from(waiting >= MANY_WAITING);
        }
    }

    /// When the present interval ends.
    pub(crate) fn due(&self) -> Instant {
        self.ends
    }

    /// The present interval is over, with so many keys held, and so many reads of keys that were
    /// held and that were not. If there were too many keys, some go, and more as long as that is
    /// so. If there could be more, there may be a few. Says whether the cache could not keep up.
    pub(crate) fn end_interval(
        &mut self,
        now: Instant,
        held: usize,
        (hits, misses): (u64, u64),
    ) -> bool {
        self.ends = now + INTERVAL;
        let percent = self.seen_many * 100 / self.seen.max(1);
        (self.seen, self.seen_many) = (0, 0);
        if percent >= FULL_PERCENT {
            // What has just been given up the switch still sends here.
            let has_given_up = misses * MISSES_PART > hits + misses;
            if !has_given_up {
                self.keys = held - held.div_ceil(self.shed_part);
                self.shed_part = (self.shed_part / 2).max(SHED_PART_LAST);
            }
            return true;
        }
        self.shed_part = SHED_PART_FIRST;
        if percent < FREE_PERCENT {
            self.keys = (self.keys + self.keys / GROWTH_PART + 1).min(self.room);
        }
        false
    }
}

/// How often it is looked at.
const INTERVAL: Duration = Duration::from_millis(100);

/// So many that wait are many. Where datagrams come one by one at random, as many wait every fourth
/// time if the cache is busy for 96 % of the time, and hardly ever below 90 %.
const MANY_WAITING: u16 = 16;

/// A cache is full if many wait this often or more, and has room for more if they do so less often.
const FULL_PERCENT: u32 = 25;
const FREE_PERCENT: u32 = 5;

/// More misses than one in so many reads come from keys that were given up.
const MISSES_PART: u64 = 10;

/// One in so many keys goes first, and one in so many at most.
const SHED_PART_FIRST: usize = 32;
const SHED_PART_LAST: usize = 4;

/// One in so many is added when nothing waits.
const GROWTH_PART: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of ten thousand keys a cache holds in the end that can serve reads of the hottest
    /// `bears`.
    fn held(bears: usize) -> usize {
        let mut now = Instant::from_unix_ms(0);
        let mut limit = Limit::new(now, 10_000);
        for _ in 0..400 {
            limit.see(if limit.keys() > bears { 100 } else { 0 });
            now = now + INTERVAL;
            assert_eq!(limit.due(), now);
            limit.end_interval(now, limit.keys(), (1, 0));
        }
        limit.keys()
    }

    #[test]
    fn it_comes_to_what_the_cache_can_bear_and_stays_there() {
        for bears in [50, 300, 2_000, 9_000] {
            let held = held(bears);
            assert!((bears * 9 / 10..=bears * 11 / 10).contains(&held), "{held} of {bears}");
        }
        assert_eq!(held(20_000), 10_000);
    }

    #[test]
    fn there_are_no_more_than_there_is_room_for_and_more_when_there_is_more() {
        let mut now = Instant::from_unix_ms(0);
        let mut limit = Limit::new(now, 10_000);
        for room in [300, 0, 5_000] {
            limit.set_room(room);
            assert!(limit.keys() <= room);
            for _ in 0..600 {
                now = now + INTERVAL;
                limit.end_interval(now, limit.keys(), (1, 0));
            }
            assert_eq!((limit.keys(), limit.room()), (room, room));
        }
    }

    #[test]
    fn a_burst_sheds_nothing() {
        let mut now = Instant::from_unix_ms(0);
        let mut limit = Limit::new(now, 1_000);
        for _ in 0..10 {
            [500, 1, 3, 0, 300, 0, 2, 4, 1, 0].into_iter().for_each(|waiting| limit.see(waiting));
            now = now + INTERVAL;
            limit.end_interval(now, 1_000, (1, 0));
        }
        assert_eq!(limit.keys(), 1_000);
    }

    #[test]
    fn full_batches_say_that_there_is_too_much_and_small_ones_that_there_is_not() {
        for (sizes, keys) in [([64_u16; 9], 968), ([64, 3, 3, 8, 3, 3, 2, 4, 3], 1_000)] {
            let now = Instant::from_unix_ms(0);
            let mut limit = Limit::new(now, 1_000);
            for size in sizes {
                (0..size).rev().for_each(|waiting| limit.see(waiting));
            }
            limit.end_interval(now + INTERVAL, 1_000, (1, 0));
            assert_eq!(limit.keys(), keys, "{sizes:?}");
        }
    }

    #[test]
    fn as_long_as_the_switch_sends_what_was_given_up_no_more_is() {
        let now = Instant::from_unix_ms(0);
        let mut limit = Limit::new(now, 1_000);
        for (reads, keys) in [((80, 20), 1_000), ((95, 5), 968)] {
            (0..10).for_each(|_| limit.see(100));
            limit.end_interval(now, 1_000, reads);
            assert_eq!(limit.keys(), keys, "{reads:?}");
        }
    }
}
