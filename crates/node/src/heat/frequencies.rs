//! Counting the most frequent keys of a stream in bounded memory: space-saving (Metwally et al.),
//! algorithm 1 of SwitchKV.
//!
//! A key that is not counted yet takes the place of the one counted least and inherits its count,
//! so that a count is never too small, and whoever makes up more than 1 in [`COUNTED_MAX`] of the
//! stream is certainly among the counted.

use super::named::{Name, Named};
use super::ranks::Ranks;
use cluster::{HotKey, KeyspaceId};
use machine::per_second;
use std::time::Duration;

/// The counted keys of one segment.
#[derive(Debug, Default)]
pub struct Frequencies {
    named: Named,
    /// By place. As many are in use as have a rank.
    counted: Vec<Counted>,
    ranks: Ranks,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// What of its count was inherited.
    inherited: u32,
    writes: u32,
    steps: u32,
    home_only: u32,
}

/// A key and how often it was certainly seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) key: &'a [u8],
    pub(crate) reads: u32,
    pub(crate) writes: u32,
    pub(crate) steps: u32,
    pub(crate) home_only: u32,
}

impl Found<'_> {
    /// The key with its rates, if so often is in so much time.
    pub(super) fn rated(&self, time: Duration) -> HotKey {
        let counts = [self.reads, self.writes, self.steps, self.home_only];
        let [reads, writes, steps, home_only] = counts.map(|count| per_second(count.into(), time));
        let (keyspace, key) = (self.keyspace, self.key.to_vec());
        HotKey { keyspace, key, reads, writes, steps, home_only, missed: 0 }
    }
}

/// What is asked of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A read.
    Read,
    /// A write that could go anywhere.
    Write,
    /// A write that only the key's home can take.
    HomeOnlyWrite,
    /// One that is a later step of a batch, of a hot key: the switch has not counted it.
    Step,
}

/// Keys that are counted.
const COUNTED_MAX: usize = 256;

impl Frequencies {
    /// Counts a request; returns how many of its key have certainly been seen. Allocates nothing
    /// once each place has been given to a key as long.
    pub fn see(&mut self, keyspace: KeyspaceId, keyhash: u64, key: &[u8], of: Use) -> u32 {
        let place = self.place(keyspace, keyhash, key);
        self.ranks.bump(place);
        let it = self.counted.get_mut(place).expect("it was found, or admitted");
        it.writes += u32::from(of != Use::Read);
        it.steps += u32::from(of == Use::Step);
        it.home_only += u32::from(matches!(of, Use::HomeOnlyWrite | Use::Step));
        self.ranks.count(place) - it.inherited
    }

    /// Adds what another has certainly seen.
    pub(super) fn add(&mut self, other: &Self) {
        for (name, it, seen) in other.ranked() {
            let place = self.place(name.keyspace, name.keyhash, &name.key);
            self.ranks.raise(place, seen);
            let sum = self.counted.get_mut(place).expect("it was found, or admitted");
            sum.writes += it.writes;
            sum.steps += it.steps;
            sum.home_only += it.home_only;
        }
    }

    /// The most frequent keys of which anything is certain, the most frequent first.
    pub(crate) fn top(&self, most: usize) -> impl Iterator<Item = Found<'_>> {
        self.ranked().take(most).filter(|(.., seen)| *seen > 0).map(|(name, it, seen)| {
            let &Name { keyspace, ref key, .. } = name;
            let Counted { writes, steps, home_only, .. } = *it;
            Found { keyspace, key, reads: seen - writes, writes, steps, home_only }
        })
    }

    /// All counted keys by their counts, the highest first, and how often each was certainly seen.
    fn ranked(&self) -> impl Iterator<Item = (&Name, &Counted, u32)> {
        self.ranks.iter().filter_map(|place| {
            let (name, it) = (self.named.name(place)?, self.counted.get(place)?);
            Some((name, it, self.ranks.count(place) - it.inherited))
        })
    }

    /// What of it is told: so many of the most frequent keys, and beyond those as many with writes
    /// that nobody else counts.
    pub(super) fn told(&self, most: usize) -> impl Iterator<Item = Found<'_>> {
        let beyond = self.top(COUNTED_MAX).skip(most).filter(|it| it.steps > 0);
        self.top(most).chain(beyond.take(most))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.named.clear();
        self.ranks.clear();
    }

    /// The place of a key, which it is given if it has none.
    fn place(&mut self, keyspace: KeyspaceId, keyhash: u64, key: &[u8]) -> usize {
        let known = self.named.find(keyspace, keyhash, key);
        known.unwrap_or_else(|| {
            let (place, inherited) = self.free();
            self.named.give(place, keyspace, keyhash, key);
            if self.counted.len() == place {
                self.counted.push(Counted::default());
            }
            if let Some(it) = self.counted.get_mut(place) {
                *it = Counted { inherited, ..Counted::default() };
            }
            place
        })
    }

    /// A place that nobody has, with the count that it inherits: a new one, or that of the key with
    /// the lowest count.
    fn free(&mut self) -> (usize, u32) {
        if self.ranks.len() < COUNTED_MAX {
            return (self.ranks.push(), 0);
        }
        let place = self.ranks.last().expect("all places are in use");
        self.named.take(place);
        (place, self.ranks.count(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn see(frequencies: &mut Frequencies, key: u16, write: bool) {
        // Few hashes, so that keys of one hash meet.
        let of = if write { Use::Write } else { Use::Read };
        frequencies.see(KeyspaceId(1), u64::from(key % 64), &key.to_be_bytes(), of);
    }

    proptest! {
        #[test]
        fn counts_are_certain_and_nobody_frequent_is_missed(
            stream in proptest::collection::vec((0u16..2_000, any::<bool>()), 0..5_000),
            hot in 0u16..2_000, every in 2usize..100,
        ) {
            let mut frequencies = Frequencies::default();
            let mut exact: BTreeMap<u16, (u32, u32)> = BTreeMap::new();
            let mixed = stream.iter().enumerate().map(|(index, (key, write))| {
                (if index % every == 0 { hot } else { *key }, *write)
            });
            for (key, write) in mixed {
                see(&mut frequencies, key, write);
                let (reads, writes) = exact.entry(key).or_default();
                *if write { writes } else { reads } += 1;
            }
            let found: BTreeMap<u16, (u32, u32)> = frequencies.top(COUNTED_MAX).map(|it| {
                let key = u16::from_be_bytes(it.key.try_into().unwrap());
                (key, (it.reads, it.writes))
            }).collect();
            for (key, (reads, writes)) in &found {
                let (most_reads, most_writes) = exact[key];
                prop_assert!(*reads <= most_reads && *writes <= most_writes);
            }
            let bound = u32::try_from(stream.len() / COUNTED_MAX).unwrap();
            for (key, (reads, writes)) in &exact {
                prop_assert!(reads + writes <= bound || found.contains_key(key), "{key} is missed");
            }
            if exact.len() <= COUNTED_MAX {
                prop_assert_eq!(&found, &exact, "with room for all every count is exact");
            }
            frequencies.clear();
            prop_assert_eq!(frequencies.top(1).count(), 0);
        }

        #[test]
        fn what_is_added_is_as_if_it_had_been_seen(
            streams in proptest::collection::vec(
                proptest::collection::vec((0u16..400, any::<bool>()), 0..500), 1..5,
            ),
        ) {
            let mut sum = Frequencies::default();
            let mut exact: BTreeMap<u16, (u32, u32)> = BTreeMap::new();
            for stream in &streams {
                let mut part = Frequencies::default();
                for (key, write) in stream {
                    see(&mut part, *key, *write);
                }
                for found in part.top(COUNTED_MAX) {
                    let key = u16::from_be_bytes(found.key.try_into().unwrap());
                    let (reads, writes) = exact.entry(key).or_default();
                    (*reads, *writes) = (*reads + found.reads, *writes + found.writes);
                }
                sum.add(&part);
            }
            let counts: Vec<u32> = sum.ranks.iter().map(|it| sum.ranks.count(it)).collect();
            prop_assert!(counts.is_sorted_by(|a, b| a >= b), "the most frequent first");
            let least = counts.last().copied().unwrap_or(0);
            let found: BTreeMap<u16, (u32, u32)> = sum.top(COUNTED_MAX).map(|it| {
                let key = u16::from_be_bytes(it.key.try_into().unwrap());
                (key, (it.reads, it.writes))
            }).collect();
            for (key, (reads, writes)) in &exact {
                match found.get(key) {
                    Some((r, w)) => prop_assert!(r <= reads && w <= writes),
                    None => prop_assert!(reads + writes <= least, "{key} is missed"),
                }
            }
            if exact.len() <= COUNTED_MAX {
                prop_assert_eq!(&found, &exact, "with room for all every count is exact");
            }
        }
    }
}
