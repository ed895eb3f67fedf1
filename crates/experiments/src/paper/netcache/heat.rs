//! Which keys that are not cached are read most: a Count-Min sketch of their reads, and the keys
//! that it finds hot.

use super::Name;
use machine::mix;
use std::collections::BTreeMap;

/// Reads of keys that are not cached, since the last [`clear`](Heat::clear).
#[derive(Debug)]
pub(super) struct Heat {
    /// [`ROWS`] rows of [`COLUMNS`] counters.
    sketch: Vec<u16>,
    hot: BTreeMap<Name, Candidate>,
}

/// A key that is worth a place in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) match_value: u128,
    pub(super) key: Vec<u8>,
    /// Reads, or a little more.
    pub(super) reads: u16,
}

/// From so many reads on a key is worth a place: more than chance gives a key that is asked for as
/// often as all others, in a rack of a million keys that is fully busy.
pub(super) const HOT_READS: u16 = 8;

const ROWS: u32 = 3;

/// Counters of a row: a few reads each, even of 512 nodes' reads that all miss. NetCache's rows
/// are of 65,536, and count a sample; so it is not for the sketch that this cache misses a key.
const COLUMNS: usize = 1 << 20;

/// Keys remembered until they are cached; what comes when there are so many is found again.
const CANDIDATES_MAX: usize = 10_000;

impl Heat {
    pub(super) fn new() -> Self {
        Self { sketch: vec![0; ROWS as usize * COLUMNS], hot: BTreeMap::new() }
    }

    /// A key was read.
    pub(super) fn count(&mut self, name: Name, match_value: u128, key: &[u8]) {
        let reads = self.add(name);
        if reads < HOT_READS {
            return;
        }
        if let Some(known) = self.hot.get_mut(&name) {
            known.reads = reads;
        } else if self.hot.len() < CANDIDATES_MAX {
            self.hot.insert(name, Candidate { match_value, key: key.to_vec(), reads });
        }
    }

    /// Counts a read in every row; the smallest of the counters is the least wrong.
    fn add(&mut self, (keyspace, keyhash): Name) -> u16 {
        let mut bits = mix(keyhash ^ u64::from(keyspace).rotate_left(32));
        let mut least = u16::MAX;
        for row in self.sketch.chunks_exact_mut(COLUMNS) {
            let column = bits as usize % COLUMNS;
            bits >>= COLUMNS.ilog2();
            let counter = row.get_mut(column).expect("below the number of columns");
            *counter = counter.saturating_add(1);
            least = least.min(*counter);
        }
        least
    }

    /// Takes the hottest keys, this many at most, the hottest first.
    pub(super) fn take(&mut self, most: usize) -> Vec<(Name, Candidate)> {
        let mut order: Vec<_> = self.hot.iter().map(|(name, it)| (it.reads, *name)).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        order.truncate(most);
        let taken = order.into_iter().map(|(_, name)| self.hot.remove_entry(&name));
        taken.map(|entry| entry.expect("it was listed just now")).collect()
    }

    /// Begins to count anew.
    pub(super) fn clear(&mut self) {
        self.sketch.fill(0);
        self.hot.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(heat: &mut Heat, key: u64, times: u16) {
        for _ in 0..times {
            heat.count((1, mix(key)), key.into(), &key.to_be_bytes());
        }
    }

    #[test]
    fn keys_that_are_read_often_are_taken_once_and_the_hottest_first() {
        let mut heat = Heat::new();
        read(&mut heat, 1, HOT_READS - 1);
        read(&mut heat, 2, HOT_READS);
        read(&mut heat, 3, HOT_READS + 5);
        let keys = |taken: Vec<(Name, Candidate)>| -> Vec<u128> {
            taken.iter().map(|(_, it)| it.match_value).collect()
        };
        assert_eq!(keys(heat.take(1)), [3]);
        assert_eq!(keys(heat.take(9)), [2]);
        assert_eq!(keys(heat.take(9)), []);
        read(&mut heat, 2, 1);
        assert_eq!(keys(heat.take(9)), [2], "who did not take it in hears of it again");
        heat.clear();
        read(&mut heat, 2, HOT_READS - 1);
        assert_eq!(keys(heat.take(9)), []);
    }

    #[test]
    fn chance_makes_few_of_many_equal_keys_hot() {
        let mut heat = Heat::new();
        let mut rng = machine::Rng::new(1);
        for _ in 0..300_000 {
            read(&mut heat, rng.below(1_000_000), 1);
        }
        assert!(heat.take(usize::MAX).len() < 10, "Poisson of 0.3: one in 10^9");
    }
}
