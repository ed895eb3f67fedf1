//! Counting the most frequent keys of a stream in bounded memory: space-saving (Metwally et al.),
//! algorithm 1 and figure 5 of SwitchKV.
//!
//! A key that is not counted yet takes the place of the one counted least and inherits its count,
//! so that a count is never too small, and whoever makes up more than 1 in [`COUNTED_MAX`] of the
//! stream is certainly among the counted. Of those counted least the one seen longest ago goes.
//!
//! ```text
//!  lowest         highest
//!    ↓               ↓
//!  ┌───┐   ┌───┐   ┌────┐
//!  │ 1 │◄─►│ 2 │◄─►│ 31 │   buckets: one for each count that some key has
//!  └─┬─┘   └─┬─┘   └─┬──┘
//!   a b      c      d e     their keys: the last is the one that was seen last
//! ```
//!
//! A request moves its key to the next bucket, which is the next higher in the list or a new one
//! before that: nothing is searched for.

use cluster::{HotKey, KeyspaceId};
use hashbrown::HashTable;
use machine::per_second;
use std::iter::successors;
use std::time::Duration;

/// The counted keys of one segment of a stream of requests.
#[derive(Debug)]
pub struct Frequencies {
    /// Places in `counted`, by keyhash.
    places: HashTable<usize>,
    /// Kept for their room when they are not in use: the first `used` of them are.
    counted: Vec<Counted>,
    used: usize,
    /// One more than there are keys at most: each has a key, but one that is just being made.
    buckets: Vec<Bucket>,
    /// Those at the ends of the list, and one that is in no list: `NONE` if there is none.
    lowest: usize,
    highest: usize,
    /// The others that are in no list follow it by `higher`.
    free: usize,
}

/// A key, and its place in the list of its bucket.
#[derive(Debug, Default)]
struct Counted {
    keyspace: KeyspaceId,
    keyhash: u64,
    key: Vec<u8>,
    /// What of the count was inherited.
    inherited: u32,
    writes: u32,
    steps: u32,
    home_only: u32,
    /// `NONE` if nothing is counted yet.
    bucket: usize,
    /// Keys of the same count that were seen last before this one and after it.
    older: usize,
    newer: usize,
}

/// The keys of one count.
#[derive(Debug)]
struct Bucket {
    count: u32,
    /// The buckets of the next counts that there are.
    lower: usize,
    higher: usize,
    /// Keys at the ends of its list, which is never empty.
    oldest: usize,
    newest: usize,
}

/// No bucket, or no key: there is nothing at this place.
const NONE: usize = usize::MAX;

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

impl Default for Frequencies {
    fn default() -> Self {
        Self {
            places: HashTable::new(),
            counted: Vec::new(),
            used: 0,
            buckets: Vec::new(),
            lowest: NONE,
            highest: NONE,
            free: NONE,
        }
    }
}

impl Frequencies {
    /// Counts a request; returns how many of its key have certainly been seen. Takes the same time
    /// however much is counted, and allocates nothing once each place has been given to a key as
    /// long.
    pub fn see(&mut self, keyspace: KeyspaceId, keyhash: u64, key: &[u8], of: Use) -> u32 {
        let place = self.place(keyspace, keyhash, key);
        let count = self.raise(place, 1);
        let it = self.counted.get_mut(place).expect("it was found, or admitted");
        it.writes += u32::from(of != Use::Read);
        it.steps += u32::from(of == Use::Step);
        it.home_only += u32::from(matches!(of, Use::HomeOnlyWrite | Use::Step));
        count - it.inherited
    }

    /// Adds what another has certainly seen, of equal keys the oldest first.
    pub(super) fn add(&mut self, other: &Self) {
        for bucket in other.highest_first() {
            let key = |at: usize| other.counted.get(at);
            for it in successors(key(bucket.oldest), |it| key(it.newer)) {
                let place = self.place(it.keyspace, it.keyhash, &it.key);
                self.raise(place, bucket.count - it.inherited);
                let sum = self.counted.get_mut(place).expect("it was found, or admitted");
                sum.writes += it.writes;
                sum.steps += it.steps;
                sum.home_only += it.home_only;
            }
        }
    }

    /// The most frequent keys of which anything is certain, the most frequent first.
    pub(crate) fn top(&self, most: usize) -> impl Iterator<Item = Found<'_>> {
        self.ranked().take(most).filter(|(count, it)| *count > it.inherited).map(|(count, it)| {
            let seen = count - it.inherited;
            let &Counted { keyspace, ref key, writes, steps, home_only, .. } = it;
            Found { keyspace, key, reads: seen - writes, writes, steps, home_only }
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
        self.places.clear();
        self.buckets.clear();
        (self.used, self.lowest, self.highest, self.free) = (0, NONE, NONE, NONE);
    }

    /// All keys with their counts, the highest first; of equal ones the newest.
    fn ranked(&self) -> impl Iterator<Item = (u32, &Counted)> {
        self.highest_first().flat_map(|bucket| {
            let key = |at: usize| self.counted.get(at);
            successors(key(bucket.newest), move |it| key(it.older)).map(|it| (bucket.count, it))
        })
    }

    fn highest_first(&self) -> impl Iterator<Item = &Bucket> {
        let bucket = |at: usize| self.buckets.get(at);
        successors(bucket(self.highest), move |it| bucket(it.lower))
    }

    /// The place of a key, which it is given if it has none.
    fn place(&mut self, keyspace: KeyspaceId, keyhash: u64, key: &[u8]) -> usize {
        let counted = &self.counted;
        let same = |place: &usize| {
            let known = counted.get(*place);
            known
                .is_some_and(|it| it.keyhash == keyhash && it.keyspace == keyspace && it.key == key)
        };
        let known = self.places.find(keyhash, same).copied();
        known.unwrap_or_else(|| self.admit(keyspace, keyhash, key))
    }

    /// Gives a key a place: a free one, in no bucket yet; or that of the key with the lowest count
    /// which was seen longest ago, with its count.
    fn admit(&mut self, keyspace: KeyspaceId, keyhash: u64, key: &[u8]) -> usize {
        let (place, inherited) = if self.used < COUNTED_MAX {
            let place = self.used;
            self.used += 1;
            if self.counted.len() == place {
                self.counted.push(Counted::default());
            }
            let it = self.counted.get_mut(place).expect("it was made, now or earlier");
            it.bucket = NONE;
            (place, 0)
        } else {
            let least = self.buckets.get(self.lowest).expect("counted keys are in buckets");
            let last = self.counted.get(least.oldest).expect("buckets have keys");
            let found = self.places.find_entry(last.keyhash, |it| *it == least.oldest);
            found.expect("what is counted can be found").remove();
            (least.oldest, least.count)
        };
        let it = self.counted.get_mut(place).expect("it was found, or made");
        it.key.clear();
        it.key.extend_from_slice(key);
        (it.keyspace, it.keyhash, it.inherited) = (keyspace, keyhash, inherited);
        (it.writes, it.steps, it.home_only) = (0, 0, 0);
        let counted = &self.counted;
        let rehash = |place: &usize| counted.get(*place).map_or(0, |it| it.keyhash);
        self.places.insert_unique(keyhash, place, rehash);
        place
    }

    /// Raises a count by so many, which are some, and returns it. By one that takes the same time
    /// however many keys and counts there are.
    fn raise(&mut self, place: usize, by: u32) -> u32 {
        let from = self.counted.get(place).map_or(NONE, |it| it.bucket);
        let count = self.buckets.get(from).map_or(0, |it| it.count) + by;
        let mut below = from;
        let mut next = self.above(below);
        while let Some(it) = self.buckets.get(next).filter(|it| it.count < count) {
            (below, next) = (next, it.higher);
        }
        let known = self.buckets.get(next).is_some_and(|it| it.count == count);
        if !known
            && below == from
            && let Some(it) = self.buckets.get_mut(from).filter(|it| it.oldest == it.newest)
        {
            it.count = count;
            return count;
        }
        let to = if known { next } else { self.open(count, below) };
        self.take_out(place);
        self.put_in(place, to);
        count
    }

    /// The bucket above this one; above none is the lowest.
    fn above(&self, bucket: usize) -> usize {
        self.buckets.get(bucket).map_or(self.lowest, |it| it.higher)
    }

    /// Makes a bucket above this one, for a key that is put there next.
    fn open(&mut self, count: u32, lower: usize) -> usize {
        let higher = self.above(lower);
        let made = Bucket { count, lower, higher, oldest: NONE, newest: NONE };
        let at = self.free;
        let at = if let Some(free) = self.buckets.get_mut(at) {
            self.free = std::mem::replace(free, made).higher;
            at
        } else {
            self.buckets.push(made);
            self.buckets.len() - 1
        };
        self.join_buckets(lower, at);
        self.join_buckets(at, higher);
        at
    }

    /// Takes a key out of its bucket, if it is in one. That goes if it was the only one.
    fn take_out(&mut self, place: usize) {
        let in_one = self.counted.get(place).filter(|it| it.bucket != NONE);
        let Some(&Counted { bucket, older, newer, .. }) = in_one else { return };
        self.join_keys(bucket, older, newer);
        if let Some(&Bucket { oldest: NONE, lower, higher, .. }) = self.buckets.get(bucket) {
            self.join_buckets(lower, higher);
            let free = std::mem::replace(&mut self.free, bucket);
            if let Some(it) = self.buckets.get_mut(bucket) {
                it.higher = free;
            }
        }
    }

    /// Puts a key that is in no bucket into this one, as the newest.
    fn put_in(&mut self, place: usize, bucket: usize) {
        let newest = self.buckets.get(bucket).map_or(NONE, |it| it.newest);
        if let Some(it) = self.counted.get_mut(place) {
            it.bucket = bucket;
        }
        self.join_keys(bucket, newest, place);
        self.join_keys(bucket, place, NONE);
    }

    /// These two keys follow each other in a bucket; `NONE` is its end.
    fn join_keys(&mut self, bucket: usize, older: usize, newer: usize) {
        if let Some(it) = self.counted.get_mut(older) {
            it.newer = newer;
        } else if let Some(of) = self.buckets.get_mut(bucket) {
            of.oldest = newer;
        }
        if let Some(it) = self.counted.get_mut(newer) {
            it.older = older;
        } else if let Some(of) = self.buckets.get_mut(bucket) {
            of.newest = older;
        }
    }

    /// These two buckets follow each other; `NONE` is the end of the list.
    fn join_buckets(&mut self, lower: usize, higher: usize) {
        *self.buckets.get_mut(lower).map_or(&mut self.lowest, |it| &mut it.higher) = higher;
        *self.buckets.get_mut(higher).map_or(&mut self.highest, |it| &mut it.lower) = lower;
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

    /// Buckets in order, each count once, each key in the list of its bucket, and nothing lost.
    fn check_structure(it: &Frequencies) {
        let (mut below, mut at, mut counts, mut keys) = (NONE, it.lowest, Vec::new(), 0);
        while at != NONE {
            let bucket = &it.buckets[at];
            assert_eq!(bucket.lower, below, "both ways are the same");
            assert_ne!(bucket.oldest, NONE, "no bucket is empty");
            let (mut older, mut key) = (NONE, bucket.oldest);
            while key != NONE {
                let counted = &it.counted[key];
                assert_eq!((counted.bucket, counted.older), (at, older));
                assert!(key < it.used && counted.inherited <= bucket.count);
                let found = it.places.find(counted.keyhash, |place| *place == key);
                assert!(found.is_some(), "it is found by its hash");
                (older, key, keys) = (key, counted.newer, keys + 1);
            }
            assert_eq!(bucket.newest, older);
            counts.push(bucket.count);
            (below, at) = (at, bucket.higher);
        }
        assert_eq!(it.highest, below);
        assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
        assert_eq!((keys, it.places.len()), (it.used, it.used));
        let free = successors(Some(it.free), |at| it.buckets.get(*at).map(|it| it.higher));
        let free = free.filter(|at| *at != NONE).count();
        assert_eq!(free + counts.len(), it.buckets.len(), "no bucket is lost");
        assert!(it.buckets.len() <= COUNTED_MAX + 1);
    }

    #[test]
    fn of_equal_keys_the_newest_comes_first_and_the_oldest_gives_way() {
        let mut frequencies = Frequencies::default();
        let most = u16::try_from(COUNTED_MAX).unwrap();
        (0..most).for_each(|key| see(&mut frequencies, key, false));
        // 0 is seen twice, so that 1 is the oldest of the others.
        see(&mut frequencies, 0, false);
        see(&mut frequencies, most, false);
        let is_counted = |key: u16| frequencies.ranked().any(|(_, it)| it.key == key.to_be_bytes());
        assert_eq!([0, 1, 2, most].map(is_counted), [true, false, true, true]);
        let first: Vec<(u32, &[u8])> =
            frequencies.ranked().take(3).map(|(count, it)| (count, &it.key[..])).collect();
        let [last, zero, other] = [most, 0, most - 1].map(u16::to_be_bytes);
        assert_eq!(first, [(2, &last[..]), (2, &zero[..]), (1, &other[..])]);
    }

    proptest! {
        #[test]
        fn the_structure_is_whole_after_each_request(
            // From all alike to few that are asked for often.
            stream in proptest::collection::vec((0u16..600, 0u16..600), 0..2_000),
            skew in 1u16..600,
        ) {
            let mut frequencies = Frequencies::default();
            let mut order: Vec<u16> = Vec::new();
            for (key, other) in stream {
                let key = if other < skew { key % 8 } else { key };
                see(&mut frequencies, key, false);
                order.retain(|it| *it != key);
                order.push(key);
                check_structure(&frequencies);
            }
            let seen_last = |key: &[u8]| {
                let key = u16::from_be_bytes(key.try_into().unwrap());
                order.iter().position(|it| *it == key)
            };
            let ranked: Vec<_> =
                frequencies.ranked().map(|(count, it)| (count, seen_last(&it.key))).collect();
            prop_assert!(ranked.is_sorted_by(|a, b| a > b), "the newest of equal ones first");
        }

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
            check_structure(&sum);
            let least = sum.ranked().map(|(count, _)| count).last().unwrap_or(0);
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
