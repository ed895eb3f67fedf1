//! The order of the keys of a hash table, for scans: who never scans does not pay for it.

use super::Block;
use crate::engine::{Interval, Record};
use cluster::Match;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Where the keys of a partition stand by match value.
#[derive(Debug)]
pub(super) struct Index {
    /// The upper half of each match value, and the keyhash that the key is found by. One may be
    /// left that names no key.
    places: BTreeSet<(u64, u64)>,
    /// Keys that came or went since the last scan.
    changes: usize,
}

impl Index {
    pub(super) fn of(keys: impl Iterator<Item = (Match, u64)>) -> Self {
        Self { places: keys.map(|(at, keyhash)| (high(at), keyhash)).collect(), changes: 0 }
    }

    pub(super) fn add(&mut self, at: Match, keyhash: u64) {
        self.places.insert((high(at), keyhash));
    }

    /// `is_last` says that no other key has that keyhash.
    pub(super) fn remove(&mut self, at: Match, keyhash: u64, is_last: bool) {
        if is_last {
            self.places.remove(&(high(at), keyhash));
        }
    }

    /// Visits the records of an interval in its order; `with_hash` gives those of a keyhash.
    pub(super) fn scan<'a, I: Iterator<Item = (Match, &'a Block)>>(
        &mut self,
        interval: &Interval<'_>,
        with_hash: impl Fn(u64) -> I,
        mut visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        self.changes = 0;
        if interval.first > interval.last {
            return;
        }
        let ends = (high(interval.first), 0)..=(high(interval.last), u64::MAX);
        let mut range = self.places.range(ends);
        let mut next = || if interval.reverse { range.next_back() } else { range.next() };
        // Those of one upper half, of which there is hardly ever more than one.
        let mut group: Vec<(Match, &Block)> = Vec::new();
        let mut place = next();
        while let Some((half, keyhash)) = place {
            let here = |(at, _): &(Match, &Block)| high(*at) == *half;
            group.extend(with_hash(*keyhash).filter(here));
            place = next();
            if place.is_some_and(|(other, _)| other == half) {
                continue;
            }
            group.sort_unstable_by(|(at, a), (other, b)| (at, a.key()).cmp(&(other, b.key())));
            if interval.reverse {
                group.reverse();
            }
            for (at, block) in group.drain(..) {
                if interval.holds(at, block.key()) && visit(block.key(), block.record()).is_break()
                {
                    return;
                }
            }
        }
    }
}

/// Tells the index of a key that came or went; one that nobody has asked for as long goes.
pub(super) fn note(index: &mut Option<Index>, change: impl FnOnce(&mut Index)) {
    let Some(kept) = index else { return };
    change(kept);
    kept.changes += 1;
    if kept.changes > kept.places.len().max(CHANGES_MIN) {
        *index = None;
    }
}

fn high(at: Match) -> u64 {
    u64::try_from(at.0 >> 64).expect("half of it")
}

/// Changes that an index lasts however small it is.
const CHANGES_MIN: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{HotPolicy, Keyspace, KeyspaceId, KeyspaceKind, PartitionId};
    use std::ops::Bound;

    #[test]
    fn keys_that_look_alike_in_the_index_are_all_visited_in_order() {
        let record = Record { version: 1, expiry_ms: 0, tombstone: false, value: b"" };
        let at = |half: u128, low: u128| Match(half << 64 | low);
        // Two that differ in the lower half only, with keyhashes in the other order; two that
        // differ in nothing but the key; one that has the keyhash of another.
        let keys: [(Match, u64, &[u8]); 6] = [
            (at(1, 7), 1, b"c"),
            (at(1, 5), 2, b"b"),
            (at(2, 0), 3, b"e"),
            (at(2, 0), 3, b"d"),
            (at(3, 0), 3, b"f"),
            (at(0, 9), 9, b"a"),
        ];
        let blocks: Vec<(Match, u64, Block)> =
            keys.map(|(at, keyhash, key)| (at, keyhash, Block::new(key, &record))).into();
        let mut index = Index::of(keys.iter().map(|(at, keyhash, _)| (*at, *keyhash)));
        index.add(at(4, 0), 8);
        let with_hash = |keyhash: u64| {
            let found = blocks.iter().filter(move |(_, it, _)| *it == keyhash);
            found.map(|(at, _, block)| (*at, block))
        };
        let (id, name, kind) = (KeyspaceId(1), "k".into(), KeyspaceKind::Hash);
        let hot = HotPolicy::default();
        let keyspace = Keyspace { id, name, kind, seed: 0, replicas: 1, hot };
        let mut visited = |first, last, start, reverse| {
            let (keyspace, partition, end) = (&keyspace, PartitionId(1), Bound::Unbounded);
            let interval = Interval { keyspace, partition, first, last, start, end, reverse };
            let mut seen = Vec::new();
            index.scan(&interval, with_hash, |key, _| {
                seen.extend_from_slice(key);
                ControlFlow::Continue(())
            });
            seen
        };
        let all = Bound::Unbounded;
        assert_eq!(visited(Match::MIN, Match::MAX, all, false), b"abcdef");
        assert_eq!(visited(Match::MIN, Match::MAX, all, true), b"fedcba");
        assert_eq!(visited(at(1, 6), at(2, 0), all, false), b"cde");
        assert_eq!(visited(at(2, 0), Match::MAX, Bound::Excluded(b"d"), false), b"ef");
        assert_eq!(visited(at(2, 0), at(1, 0), all, false), b"", "the ends cross");
    }
}
