//! Which key holds which popularity rank, and how that shifts during a run.
//!
//! The three patterns are those of SwitchKV (section 6.4), used by NetCache and Pegasus too.

use crate::text::{self, SettingError};
use machine::{Instant, Rng};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How the ranking changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShiftKind {
    /// The coldest keys become the hottest; the others move down.
    HotIn,
    /// The hottest keys become the coldest; the others move up.
    HotOut,
    /// Random keys among the `top` hottest swap ranks with random colder ones.
    Random {
        /// How many ranks count as hot; the papers take 10,000, their cache size.
        top: u64,
    },
}

/// A change of the ranking that is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift {
    /// Which change.
    pub kind: ShiftKind,
    /// How many keys change places each time.
    pub keys: u64,
    /// How often.
    pub every: Duration,
}

impl fmt::Display for Shift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, keys, every } = self;
        match kind {
            ShiftKind::HotIn => write!(f, "hot-in:{keys}")?,
            ShiftKind::HotOut => write!(f, "hot-out:{keys}")?,
            ShiftKind::Random { top } => write!(f, "random:{keys}:{top}")?,
        }
        write!(f, "/{}", every.as_secs_f64())
    }
}

impl FromStr for Shift {
    type Err = SettingError;

    /// `hot-in:KEYS/SECONDS`, `hot-out:KEYS/SECONDS` or `random:KEYS[:TOP]/SECONDS`.
    fn from_str(input: &str) -> Result<Self, SettingError> {
        let form = "expected hot-in:KEYS/SECONDS, hot-out:KEYS/SECONDS or \
                    random:KEYS[:TOP]/SECONDS";
        let bad = || SettingError::new(format!("shift {input:?}: {form}"));
        let (what, seconds) = input.split_once('/').ok_or_else(bad)?;
        let (name, keys) = what.split_once(':').ok_or_else(bad)?;
        let (keys, top) = match keys.split_once(':') {
            Some((keys, top)) if name == "random" => (keys, text::number(top, "shift's top")?),
            Some(_) => return Err(bad()),
            None => (keys, RANDOM_TOP),
        };
        let kind = match name {
            "hot-in" => ShiftKind::HotIn,
            "hot-out" => ShiftKind::HotOut,
            "random" => ShiftKind::Random { top },
            _ => return Err(bad()),
        };
        let seconds: f64 = text::number(seconds.trim_end_matches('s'), "shift's seconds")?;
        let every = Duration::try_from_secs_f64(seconds).map_err(|_| bad())?;
        let keys = text::number(keys, "shift's keys")?;
        if every < SHIFT_INTERVAL_MIN || keys == 0 || top == 0 {
            return Err(bad());
        }
        Ok(Self { kind, keys, every })
    }
}

/// Hot ranks of a random shift if nothing else is said: the cache size of the papers.
const RANDOM_TOP: u64 = 10_000;

/// Shortest time between two shifts: bounds the work of catching up after a stall.
const SHIFT_INTERVAL_MIN: Duration = Duration::from_millis(1);

/// A permutation of the keys by popularity: at first key `i` has rank `i`.
///
/// Generators with the same seed and start shift in the same way at the same times, so that all
/// threads of a run agree on what is hot.
#[derive(Clone, Debug)]
pub struct Ranking {
    keys: u64,
    /// Rank `r` is found in slot `(r + offset) mod keys`: hot-in and hot-out only turn the wheel.
    offset: u64,
    /// Slots whose key is not their own number. Bounded by `keys`.
    moved: BTreeMap<u64, u64>,
    shift: Option<(Shift, Instant)>,
    rng: Rng,
}

impl Ranking {
    /// The ranking of this many keys, shifted for the first time one interval after `start`.
    /// Keys beyond `keys` keep their own number as rank.
    #[must_use]
    pub fn new(keys: u64, shift: Option<Shift>, start: Instant, rng: Rng) -> Self {
        let shift = shift.map(|shift| (shift, start + shift.every));
        Self { keys, offset: 0, moved: BTreeMap::new(), shift, rng }
    }

    /// The key that holds a rank now.
    #[must_use]
    pub fn key_at(&self, rank: u64) -> u64 {
        if rank >= self.keys {
            return rank;
        }
        let slot = self.slot(rank);
        self.moved.get(&slot).copied().unwrap_or(slot)
    }

    /// Makes all shifts that are due. Returns how many.
    pub fn advance(&mut self, now: Instant) -> u32 {
        let mut made = 0;
        while let Some((shift, due)) = self.shift
            && due <= now
        {
            self.make(shift);
            self.shift = Some((shift, due + shift.every));
            made += 1;
        }
        made
    }

    fn make(&mut self, shift: Shift) {
        let keys = shift.keys.min(self.keys);
        match shift.kind {
            ShiftKind::HotIn => self.offset = (self.offset + self.keys - keys) % self.keys,
            ShiftKind::HotOut => self.offset = (self.offset + keys) % self.keys,
            ShiftKind::Random { top } => {
                let top = top.min(self.keys);
                // If all keys are hot, they swap among themselves.
                let cold_first = if top < self.keys { top } else { 0 };
                for _ in 0..keys.min(top) {
                    let hot = self.rng.below(top);
                    let cold = cold_first + self.rng.below(self.keys - cold_first);
                    self.swap(hot, cold);
                }
            }
        }
    }

    fn swap(&mut self, a: u64, b: u64) {
        let (key_a, key_b) = (self.key_at(a), self.key_at(b));
        self.place(self.slot(a), key_b);
        self.place(self.slot(b), key_a);
    }

    fn place(&mut self, slot: u64, key: u64) {
        if slot == key {
            self.moved.remove(&slot);
        } else {
            self.moved.insert(slot, key);
        }
    }

    fn slot(&self, rank: u64) -> u64 {
        let slot = rank + self.offset;
        if slot >= self.keys { slot - self.keys } else { slot }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn ranking(keys: u64, shift: &str) -> Ranking {
        Ranking::new(keys, Some(shift.parse().unwrap()), Instant(0), Rng::new(1))
    }

    fn order(ranking: &Ranking) -> Vec<u64> {
        (0..ranking.keys).map(|rank| ranking.key_at(rank)).collect()
    }

    #[test]
    fn hot_in_brings_the_coldest_to_the_top_and_moves_the_rest_down() {
        let mut ranking = ranking(10, "hot-in:3/1");
        assert_eq!(ranking.advance(Instant(SECOND - 1)), 0);
        assert_eq!(order(&ranking), (0..10).collect::<Vec<_>>());
        assert_eq!(ranking.advance(Instant(SECOND)), 1);
        assert_eq!(order(&ranking), [7, 8, 9, 0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn hot_out_sends_the_hottest_to_the_bottom_and_moves_the_rest_up() {
        let mut ranking = ranking(10, "hot-out:3/1s");
        assert_eq!(ranking.advance(Instant(2 * SECOND)), 2);
        assert_eq!(order(&ranking), [6, 7, 8, 9, 0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn random_swaps_a_few_hot_keys_and_stays_a_permutation() {
        let mut ranking = ranking(100_000, "random:100:10000/1");
        ranking.advance(Instant(SECOND));
        let after = order(&ranking);
        let changed = (0..10_000).zip(&after).filter(|(rank, key)| rank != *key).count();
        assert!((95..=100).contains(&changed), "{changed} hot keys changed");
        ranking.advance(Instant(50 * SECOND));
        let mut sorted = order(&ranking);
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..100_000));
    }

    #[test]
    fn the_same_seed_shifts_alike_however_often_the_clock_is_read() {
        let (mut often, mut once) =
            (ranking(1_000, "random:10:100/0.1"), ranking(1_000, "random:10:100/0.1"));
        for now in (0..=SECOND).step_by(7_000_000) {
            often.advance(Instant(now));
        }
        often.advance(Instant(SECOND));
        once.advance(Instant(SECOND));
        assert_eq!(order(&often), order(&once));
    }

    #[test]
    fn keys_outside_the_ranking_keep_their_number() {
        let mut ranking = ranking(10, "hot-in:10/1");
        ranking.advance(Instant(SECOND));
        assert_eq!(ranking.key_at(10), 10);
    }

    #[test]
    fn text_reads_back_and_nonsense_is_refused() {
        for text in ["hot-in:200/10", "hot-out:5/0.5", "random:100:10000/10"] {
            assert_eq!(text.parse::<Shift>().unwrap().to_string(), text);
        }
        for text in ["", "hot-in", "hot-in:5", "hot-in:0/1", "hot-in:1:2/3", "up:1/1", "hot-in:1/0"]
        {
            assert!(text.parse::<Shift>().is_err(), "{text:?}");
        }
    }
}
