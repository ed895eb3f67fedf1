//! Some of the keys of a partition, to know where a cut would halve its bytes.
//!
//! Every key whose hash is below a bar is kept, so that each is as likely to be; when there are too
//! many, the bar sinks. What comes and goes costs one comparison, and nothing is gone through.

use cluster::{Match, PartitionSample};
use std::collections::BTreeMap;

/// Some of the keys that have a value.
#[derive(Debug)]
pub(crate) struct StoredSample {
    /// By their hashes: where they lie, and bytes of key and value.
    kept: BTreeMap<u64, (Match, u64)>,
    /// Keys with a hash up to this are kept.
    bar: u64,
}

impl Default for StoredSample {
    fn default() -> Self {
        Self { kept: BTreeMap::new(), bar: u64::MAX }
    }
}

impl StoredSample {
    /// A key has so many bytes now; `None`: it has no value.
    pub(crate) fn note(&mut self, keyhash: u64, at: Match, bytes: Option<u64>) {
        if keyhash > self.bar {
            return;
        }
        let Some(bytes) = bytes else {
            self.kept.remove(&keyhash);
            return;
        };
        self.kept.insert(keyhash, (at, bytes));
        if self.kept.len() > KEPT_MAX
            && let Some((highest, _)) = self.kept.pop_last()
        {
            self.bar = highest.saturating_sub(1);
        }
    }

    /// Match values in order, with about as many bytes between each and the next.
    pub(crate) fn points(&self) -> Vec<Match> {
        let mut places: Vec<(Match, u64)> = self.kept.values().copied().collect();
        places.sort_unstable();
        let all: u64 = places.iter().map(|(_, bytes)| bytes).sum();
        let count = places.len().min(PartitionSample::POINTS_MAX) as u64;
        let mut points = Vec::with_capacity(PartitionSample::POINTS_MAX);
        let mut passed: u128 = 0;
        for (at, bytes) in places {
            passed += u128::from(bytes);
            // A place counts as often as it covers the middle of a share.
            while (2 * points.len() as u128 + 1) * u128::from(all) < passed * 2 * u128::from(count)
            {
                points.push(at);
            }
        }
        points
    }
}

/// Keys at most. As precise as the sample of what is asked for.
const KEPT_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use machine::mix;

    #[test]
    fn points_cut_the_bytes_into_equal_shares() {
        let mut sample = StoredSample::default();
        // The last quarter of the keys has three times the bytes of a key before it: half of all.
        for key in 0..100_000_u64 {
            let bytes = if key < 75_000 { 100 } else { 300 };
            sample.note(mix(key), Match(key.into()), Some(bytes));
        }
        let points = sample.points();
        assert_eq!(points.len(), 64);
        assert!(points.is_sorted());
        let upper = points.iter().filter(|it| it.0 >= 75_000).count();
        assert!((24..=40).contains(&upper), "{upper}");
    }

    #[test]
    fn what_is_deleted_goes_and_what_stays_is_told() {
        let mut sample = StoredSample::default();
        for key in 0..10_000_u64 {
            sample.note(mix(key), Match(key.into()), Some(10));
        }
        for key in 0..5_000_u64 {
            sample.note(mix(key), Match(key.into()), None);
        }
        let points = sample.points();
        assert!(points.len() > 30 && points.iter().all(|it| it.0 >= 5_000), "{points:?}");
    }

    #[test]
    fn one_large_value_is_as_many_points_as_it_has_shares() {
        let mut sample = StoredSample::default();
        for key in 0..3_u64 {
            sample.note(mix(key), Match(key.into()), Some(if key == 1 { 1_000 } else { 1 }));
        }
        assert_eq!(sample.points(), [Match(1), Match(1), Match(1)]);
        assert!(StoredSample::default().points().is_empty());
    }
}
