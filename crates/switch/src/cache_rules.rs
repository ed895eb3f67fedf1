//! Which keys caches hold: exact-match rules, which the caches change themselves (SwitchKV section
//! 3.3).
//!
//! A rule is a hint. A cache that is sent a key which it does not hold sends it on to the tail, so
//! a rule may be late, lost, or of another key with the same fingerprint. That is why readers look
//! at rules without a lock, and why each cache changes its own without asking anybody.
//!
//! Each shard of a cache numbers its changes in a *stream*. The switch takes those that follow what
//! it has, and answers with the number of the first that it lacks; a shard that hears of a gap
//! begins another stream, with all of its rules. A cache that is not heard for a while has none.

#[cfg(test)]
mod tests;

use cluster::{CacheId, CacheShard, KeyspaceId};
use machine::Instant;
use std::array;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use wire::{
    CACHE_FILTER_WORDS, CACHE_RULE_BUCKET_LEN, CACHE_RULE_BUCKETS, CACHES_MAX, CacheRule,
    CacheRules, KEYSPACE_WORDS,
};

/// The rules of a switch, shared by its pipelines, and by its program in the kernel if it has one.
#[derive(Debug)]
pub struct RuleTable {
    /// Made with the first rule, if nobody else looks at it.
    memory: OnceLock<Box<dyn RuleMemory>>,
    /// Until when the rules of each cache count, in the words of [`Instant`].
    until: [AtomicU64; CACHES_MAX],
    told: Mutex<RuleStreams>,
    /// Who keeps them elsewhere as well.
    watch: Option<Box<dyn RuleWatch>>,
}

/// Somebody who keeps elsewhere as well what rules there are, as in the routes of a router. Told in
/// the order of the changes, of each before its cache is. Caches of such a cluster have one shard.
pub trait RuleWatch: Debug + Send + Sync {
    /// Reads of this key go to the cache from now on, or do not go there any more.
    fn changed(&self, cache: CacheId, rule: &CacheRule);

    /// The cache has no rules any more; others may follow.
    fn forgotten(&self, cache: CacheId);

    /// The cache was heard: its rules count until then.
    fn heard(&self, cache: CacheId, until: Instant);
}

/// What rules lie in. All of it is zero at first.
pub trait RuleMemory: Debug + Send + Sync {
    /// [`CACHE_RULE_BUCKETS`] buckets.
    fn buckets(&self) -> &[RuleBucket];

    /// A bit for each keyspace id, in [`KEYSPACE_WORDS`] words: whether keys of it may have rules.
    fn keyspaces(&self) -> &[AtomicU64];

    /// The filter, in [`CACHE_FILTER_WORDS`] words: two bits of one word for the upper part of each
    /// rule. It spares nearly all keys without a rule the look into the buckets.
    fn filter(&self) -> &[AtomicU64];

    /// This cache was heard: its rules count for [`RULES_LAST`] from now on.
    fn heard(&self, cache: CacheId);
}

/// Rules that lie in one line of the processor's cache; 0 where there is none.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct RuleBucket([AtomicU64; CACHE_RULE_BUCKET_LEN]);

impl RuleBucket {
    /// Where this rule is; 0: where there is none.
    fn slot_of(&self, rule: u64) -> Option<&AtomicU64> {
        self.0.iter().find(|slot| slot.load(Ordering::Relaxed) == rule)
    }

    /// How many more it can take.
    fn room(&self) -> usize {
        self.0.iter().filter(|slot| slot.load(Ordering::Relaxed) == 0).count()
    }
}

/// Memory that only pipelines look at.
#[derive(Debug)]
struct OwnMemory {
    buckets: Box<[RuleBucket]>,
    keyspaces: Box<[AtomicU64]>,
    filter: Box<[AtomicU64]>,
}

impl OwnMemory {
    fn new() -> Self {
        let buckets = (0..CACHE_RULE_BUCKETS).map(|_| RuleBucket::default()).collect();
        let words = |count| (0..count).map(|_| AtomicU64::new(0)).collect();
        Self { buckets, keyspaces: words(KEYSPACE_WORDS), filter: words(CACHE_FILTER_WORDS) }
    }
}

impl RuleMemory for OwnMemory {
    fn buckets(&self) -> &[RuleBucket] {
        &self.buckets
    }

    fn keyspaces(&self) -> &[AtomicU64] {
        &self.keyspaces
    }

    fn filter(&self) -> &[AtomicU64] {
        &self.filter
    }

    fn heard(&self, _: CacheId) {}
}

/// What caches have told.
#[derive(Debug, Default)]
struct RuleStreams {
    streams: BTreeMap<CacheShard, Stream>,
    /// How many rules share each bit of the filter; there are none before the first rule.
    sharing: Vec<u8>,
}

impl RuleStreams {
    /// How many rules share a bit, this one not counted any more.
    fn leaves(&mut self, bit: usize) -> u8 {
        let sharing = self.sharing.get_mut(bit).expect("each bit has a count");
        // Where there were too many to be counted the bit stays.
        if *sharing < u8::MAX {
            *sharing -= 1;
        }
        *sharing
    }

    /// Counts a rule that has this bit.
    fn comes(&mut self, bit: usize) {
        self.sharing.resize(CACHE_FILTER_WORDS * 64, 0);
        let sharing = self.sharing.get_mut(bit).expect("each bit has a count");
        *sharing = sharing.saturating_add(1);
    }
}

/// How far the changes of one shard of a cache have come.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    number: u64,
    /// The first change that is still to come.
    next: u64,
    /// Rules that are in the table.
    rules: u64,
}

/// Where a key's rule may lie, and what it looks like but for the cache.
#[derive(Clone, Copy)]
struct Probe {
    buckets: [usize; 2],
    fingerprint: u64,
}

impl Probe {
    fn of(keyspace: KeyspaceId, keyhash: u64) -> Self {
        // Keyhashes are uniform; those of keyspaces with one seed differ in their rotated ids.
        let hash = (keyhash ^ u64::from(keyspace.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = hash ^ hash >> 32;
        let fingerprint = hash & !CACHE_BITS;
        let first = (hash & (CACHE_RULE_BUCKETS as u64 - 1)) as usize;
        let apart = (fingerprint >> 40) as usize & (CACHE_RULE_BUCKETS - 1);
        // Never the same one: it differs in an odd number of places.
        Self { buckets: [first, first ^ (apart | 1)], fingerprint }
    }
}

/// One bit among these words.
#[derive(Clone, Copy)]
struct Bit<'a> {
    word: &'a AtomicU64,
    mask: u64,
}

impl<'a> Bit<'a> {
    fn of(words: &'a [AtomicU64], bit: usize) -> Self {
        let word = words.get(bit / 64).expect("there is a word for each bit");
        Self { word, mask: 1 << (bit % 64) }
    }

    fn is_set(self) -> bool {
        self.word.load(Ordering::Relaxed) & self.mask != 0
    }

    fn set(self) {
        self.word.fetch_or(self.mask, Ordering::Relaxed);
    }

    fn clear(self) {
        self.word.fetch_and(!self.mask, Ordering::Relaxed);
    }
}

/// Which bits of the filter a rule, or its fingerprint, has: its upper part says the word, and then
/// each of the two, which may be the same.
fn filter_bits(rule: u64) -> [usize; 2] {
    const WORD: usize = u64::BITS as usize;
    let marks = (rule / ((1 << 52) / CACHE_FILTER_WORDS as u64)) as usize;
    let word = marks / (WORD * WORD) * WORD;
    [word + marks / WORD % WORD, word + marks % WORD]
}

impl Default for RuleTable {
    fn default() -> Self {
        let until = array::from_fn(|_| AtomicU64::new(0));
        Self { memory: OnceLock::new(), until, told: Mutex::default(), watch: None }
    }
}

impl RuleTable {
    /// No rules yet, and memory for them that somebody else looks at as well.
    #[must_use]
    pub fn lying_in(memory: Box<dyn RuleMemory>) -> Self {
        Self { memory: OnceLock::from(memory), ..Self::default() }
    }

    /// No rules yet, and somebody who is told of all changes.
    #[must_use]
    pub fn watched_by(watch: Box<dyn RuleWatch>) -> Self {
        Self { watch: Some(watch), ..Self::default() }
    }

    /// Which shard of which cache is said to hold this key.
    #[inline]
    #[must_use]
    pub fn find(&self, now: Instant, keyspace: KeyspaceId, keyhash: u64) -> Option<CacheShard> {
        let memory = self.memory.get()?;
        if !Bit::of(memory.keyspaces(), keyspace.0.into()).is_set() {
            return None;
        }
        let (probe, buckets) = (Probe::of(keyspace, keyhash), memory.buckets());
        let bits = filter_bits(probe.fingerprint);
        if !bits.into_iter().all(|bit| Bit::of(memory.filter(), bit).is_set()) {
            return None;
        }
        let slots = probe.buckets.iter().filter_map(|at| buckets.get(*at)).flat_map(|it| &it.0);
        let rules = slots.map(|slot| slot.load(Ordering::Relaxed));
        let mut mine = rules.filter(|rule| rule & !CACHE_BITS == probe.fingerprint);
        let of = mine.find_map(shard_of)?;
        let until = self.until.get(usize::from(of.cache.0))?.load(Ordering::Relaxed);
        (now.0 < until).then_some(of)
    }

    /// Takes the changes of a shard of a cache from this number on in a stream. Says the number of
    /// the first that is still to come; `None` if the stream is over.
    pub(crate) fn change(
        &self,
        now: Instant,
        by: CacheShard,
        (stream, from): (u64, u64),
        changes: &CacheRules<'_>,
    ) -> Option<u64> {
        let until = self.until.get(usize::from(by.cache.0))?;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let of = told.streams.entry(by).or_default();
        if stream < of.number && now.0 < until.load(Ordering::Relaxed) {
            return None;
        }
        if stream != of.number {
            *of = Stream { number: stream, ..Stream::default() };
            self.forget(&mut told, by);
            if told.streams.values().all(|stream| stream.rules == 0) {
                self.forget_keyspaces();
            }
            if let Some(watch) = &self.watch {
                watch.forgotten(by.cache);
            }
        }
        until.store((now + RULES_LAST).0, Ordering::Relaxed);
        if let Some(watch) = &self.watch {
            watch.heard(by.cache, now + RULES_LAST);
        }
        if let Some(memory) = self.memory.get() {
            memory.heard(by.cache);
        }
        let mut of = told.streams.get(&by).copied()?;
        for (number, change) in (from..).zip(changes.iter()) {
            if number == of.next {
                of.next += 1;
                let more = self.apply(&mut told, by, &change);
                of.rules = of.rules.saturating_add_signed(more);
                if let Some(watch) = self.watch.as_ref().filter(|_| more != 0) {
                    watch.changed(by.cache, &change);
                }
            }
        }
        told.streams.insert(by, of);
        Some(of.next)
    }

    /// How many rules there are, of all caches, also of those that are not heard any more.
    #[must_use]
    pub fn count(&self) -> u64 {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.streams.values().map(|stream| stream.rules).sum()
    }

    /// Makes a change; says how many rules the shard has more.
    fn apply(&self, told: &mut RuleStreams, by: CacheShard, change: &CacheRule) -> i64 {
        let memory = self.memory.get_or_init(|| Box::new(OwnMemory::new()));
        let keyspace = KeyspaceId(change.keyspace);
        let probe = Probe::of(keyspace, change.keyhash);
        let mine = probe.fingerprint | bits_of(by);
        let buckets = || probe.buckets.iter().filter_map(|at| memory.buckets().get(*at));
        let held = buckets().find_map(|bucket| bucket.slot_of(mine));
        match (held, change.adds) {
            (Some(slot), false) => {
                take_out(memory.as_ref(), told, slot);
                -1
            }
            // In the emptier one: then both are hardly ever full.
            (None, true) => {
                let emptier = buckets().max_by_key(|bucket| bucket.room());
                emptier.and_then(|bucket| bucket.slot_of(0)).map_or(0, |slot| {
                    Bit::of(memory.keyspaces(), keyspace.0.into()).set();
                    for bit in filter_bits(mine) {
                        told.comes(bit);
                        Bit::of(memory.filter(), bit).set();
                    }
                    slot.store(mine, Ordering::Relaxed);
                    1
                })
            }
            _ => 0,
        }
    }

    /// Takes all rules of a shard out.
    fn forget(&self, told: &mut RuleStreams, by: CacheShard) {
        let Some(memory) = self.memory.get() else { return };
        let slots = memory.buckets().iter().flat_map(|bucket| &bucket.0);
        for slot in slots.filter(|slot| shard_of(slot.load(Ordering::Relaxed)) == Some(by)) {
            take_out(memory.as_ref(), told, slot);
        }
    }

    /// There are no rules: none of their keyspaces has any more to look for.
    fn forget_keyspaces(&self) {
        let words = self.memory.get().into_iter().flat_map(|memory| memory.keyspaces());
        words.for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

/// Takes a rule out, and those of its bits that no other rule has.
fn take_out(memory: &dyn RuleMemory, told: &mut RuleStreams, slot: &AtomicU64) {
    for bit in filter_bits(slot.swap(0, Ordering::Relaxed)) {
        if told.leaves(bit) == 0 {
            Bit::of(memory.filter(), bit).clear();
        }
    }
}

/// What of a rule says whose it is.
fn bits_of(by: CacheShard) -> u64 {
    let CacheShard { cache, shard } = by;
    u64::from(shard) * CACHES_MAX as u64 + u64::from(cache.0) + 1
}

fn shard_of(rule: u64) -> Option<CacheShard> {
    let number = u16::try_from(rule & CACHE_BITS).expect("as many bits").checked_sub(1)?;
    let caches = CACHES_MAX as u16;
    Some(CacheShard { cache: CacheId(number % caches), shard: number / caches })
}

/// What of a rule says whose it is: one more than the number of its shard, counted over all caches
/// in turn.
const CACHE_BITS: u64 = 0xffff;

/// How long rules count after their cache was heard: what it is sent after it has crashed is lost.
pub const RULES_LAST: Duration = Duration::from_millis(400);
