//! The keys that a cache holds or wants to hold.

use crate::volumes::Lender;
use cluster::{KeyspaceId, NodeId, PartitionId};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Found;
use machine::{Instant, LoadMetric, Rng, per_second};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::{LoanNumber, Version};

/// A key, as the switch and nodes know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name<'a> {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) match_value: u128,
    pub(crate) keyhash: u64,
    pub(crate) key: &'a [u8],
}

/// Whom to borrow a key from: who was its tail when that was said last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) node: NodeId,
    pub(crate) partition: PartitionId,
    pub(crate) epoch: u32,
}

/// A name that is kept.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) match_value: u128,
    pub(crate) keyhash: u64,
    pub(crate) bytes: Box<[u8]>,
}

impl Key {
    fn of(name: &Name<'_>) -> Self {
        let Name { keyspace, match_value, keyhash, key } = *name;
        Self { keyspace, match_value, keyhash, bytes: key.into() }
    }

    pub(crate) fn name(&self) -> Name<'_> {
        let Self { keyspace, match_value, keyhash, ref bytes } = *self;
        Name { keyspace, match_value, keyhash, key: bytes }
    }
}

/// A key that is held or wanted.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) key: Key,
    pub(crate) home: Home,
    /// [`Slots::set`] replaces it.
    pub(crate) state: State,
    /// Whether the switch was told, or will be.
    pub(crate) has_rule: bool,
    /// Reads in the present segment.
    pub(crate) hits: u32,
    /// Reads per second that it is worth, in thousandths.
    load: u64,
}

/// What a cache has of a key.
#[derive(Debug)]
pub(crate) enum State {
    /// Nothing: it is to be asked for at that time.
    Wanted(Instant),
    /// Nothing: it was asked for there, by this number, at that time, and is asked for again so
    /// long after it.
    Fetching { of: Home, nonce: u64, sent: Instant, again_after: Duration },
    /// A value, under this loan.
    Held { lender: Lender, loan: LoanNumber, version: Version, value: Value },
}

/// A value, and when it ends.
#[derive(Debug)]
pub(crate) struct Value {
    /// Unix milliseconds by the clock of the cluster; 0: it never ends.
    pub(crate) expiry_ms: u64,
    pub(crate) bytes: Box<[u8]>,
}

impl Value {
    /// Whether its end may have come, at this time at the latest; if that is not known it may.
    pub(crate) fn is_over(&self, latest: Option<u64>) -> bool {
        self.expiry_ms != 0 && latest.is_none_or(|time| self.expiry_ms <= time)
    }
}

impl Slot {
    /// Bytes of its key and value.
    fn len(&self) -> u64 {
        let value = if let State::Held { value, .. } = &self.state { value.bytes.len() } else { 0 };
        (self.key.bytes.len() + value) as u64
    }

    /// When it is to be asked for.
    fn fetch_at(&self) -> Option<Instant> {
        match self.state {
            State::Wanted(at) => Some(at),
            State::Fetching { sent, again_after, .. } => Some(sent + again_after),
            State::Held { .. } => None,
        }
    }

    /// Reads per second that it is worth.
    pub(crate) fn load(&self) -> u64 {
        self.load / 1_000
    }

    /// Whether it is held under this lender's loans, or was asked of it.
    pub(crate) fn is_of(&self, of: &Lender) -> bool {
        match &self.state {
            State::Held { lender, .. } => lender == of,
            State::Fetching { of: Home { node, partition, epoch }, .. } => {
                (*node, *partition, *epoch) == (of.node, of.partition, of.epoch)
            }
            State::Wanted(_) => false,
        }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: HashTable<Slot>,
    /// Of the keys and values in all of them.
    bytes: u64,
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot> + Clone {
        self.slots.iter()
    }

    /// Bytes of their keys and values.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many hold a value.
    pub(crate) fn held(&self) -> u64 {
        self.iter().filter(|slot| matches!(slot.state, State::Held { .. })).count() as u64
    }

    pub(crate) fn get_mut(&mut self, name: &Name<'_>) -> Option<&mut Slot> {
        self.slots.find_mut(name.keyhash, |slot| slot.key.name() == *name)
    }

    /// Says what the cache has of a key from now on, if there is a slot for it.
    pub(crate) fn set(&mut self, name: &Name<'_>, state: State) {
        let is_it = |slot: &Slot| slot.key.name() == *name;
        if let Some(slot) = self.slots.find_mut(name.keyhash, is_it) {
            self.bytes -= slot.len();
            slot.state = state;
            self.bytes += slot.len();
        }
    }

    /// Makes a slot for a key that is wanted, unless there is one.
    pub(crate) fn want(&mut self, now: Instant, name: &Name<'_>, home: Home, load: u64) {
        let is_it = |slot: &Slot| slot.key.name() == *name;
        let entry = self.slots.entry(name.keyhash, is_it, |slot| slot.key.keyhash);
        if let Found::Vacant(place) = entry {
            let slot = Slot {
                key: Key::of(name),
                home,
                state: State::Wanted(now),
                has_rule: false,
                hits: 0,
                load: load.saturating_mul(1_000),
            };
            self.bytes += slot.len();
            place.insert(slot);
        }
    }

    pub(crate) fn remove(&mut self, name: &Name<'_>) -> Option<Slot> {
        let found = self.slots.find_entry(name.keyhash, |slot| slot.key.name() == *name).ok()?;
        let (slot, _) = found.remove();
        self.bytes -= slot.len();
        Some(slot)
    }

    /// Gives up what is held or was asked for in some slots; it is wanted again at that time. Says
    /// whether there were any.
    pub(crate) fn give_up(&mut self, again: Instant, is_lost: impl Fn(&Slot) -> bool) -> bool {
        let mut any = false;
        for slot in self.slots.iter_mut().filter(|slot| is_lost(slot)) {
            self.bytes -= slot.len();
            slot.state = State::Wanted(again);
            self.bytes += slot.len();
            any = true;
        }
        any
    }

    /// Keys that are to be asked for now: those that are wanted, and those that were asked for and
    /// not answered; few at a time of each node, for it may be busy, and few of all together, for
    /// the answers come here all at once. They count as asked.
    pub(crate) fn ask_wanted(&mut self, now: Instant, nonce: &mut u64) -> Vec<(Key, Home, u64)> {
        let mut asked_of: BTreeMap<NodeId, usize> = BTreeMap::new();
        let mut room = FETCHES_AT_ONCE;
        for slot in self.iter() {
            if let State::Fetching { of, sent, again_after, .. } = slot.state
                && now < sent + again_after
            {
                *asked_of.entry(of.node).or_default() += 1;
                room = room.saturating_sub(usize::from(now < sent + FETCH_AGAIN));
            }
        }
        let mut asked = Vec::new();
        let is_due = |slot: &&mut Slot| slot.fetch_at().is_some_and(|at| at <= now);
        for slot in self.slots.iter_mut().filter(is_due) {
            let before = asked_of.entry(slot.home.node).or_default();
            if asked.len() == room || *before == FETCHES_OF_NODE {
                continue;
            }
            *before += 1;
            *nonce += 1;
            let again_after = match slot.state {
                State::Fetching { again_after, .. } => (again_after * 2).min(FETCH_AGAIN_MAX),
                State::Wanted(_) | State::Held { .. } => FETCH_AGAIN,
            };
            slot.state = State::Fetching { of: slot.home, nonce: *nonce, sent: now, again_after };
            asked.push((slot.key.clone(), slot.home, *nonce));
        }
        asked
    }

    /// When a key is to be asked for next, after some were just now.
    pub(crate) fn next_fetch(&self, now: Instant) -> Option<Instant> {
        let next = self.iter().filter_map(Slot::fetch_at).min();
        next.map(|at| at.max(now + FETCH_PAUSE))
    }

    /// A segment that has lasted so long is over: what each key is worth is reckoned anew.
    pub(crate) fn end_segment(&mut self, metric: &LoadMetric, lasted: Duration) {
        for slot in self.slots.iter_mut() {
            let rate = per_second(u64::from(slot.hits) * 1_000, lasted);
            (slot.load, slot.hits) = (metric.blend(slot.load, rate), 0);
        }
    }

    /// So many of the keys that are read least. O(keys).
    pub(crate) fn least_loaded(&self, count: usize) -> Vec<Key> {
        if count == 0 {
            return Vec::new();
        }
        let mut slots: Vec<&Slot> = self.iter().collect();
        if count < slots.len() {
            slots.select_nth_unstable_by_key(count, |slot| (slot.load, slot.key.keyhash));
        }
        slots.into_iter().take(count).map(|slot| slot.key.clone()).collect()
    }

    /// Looks at some slots, chosen by chance.
    pub(crate) fn sample<'a>(&'a self, rng: &mut Rng, most: usize) -> Vec<&'a Slot> {
        let buckets = u64::try_from(self.slots.num_buckets()).unwrap_or(u64::MAX);
        let mut sample = Vec::with_capacity(most);
        if buckets == 0 {
            return sample;
        }
        for _ in 0..4 * most {
            let bucket = usize::try_from(rng.below(buckets)).unwrap_or(0);
            sample.extend(self.slots.get_bucket(bucket));
            if sample.len() >= most {
                break;
            }
        }
        sample
    }
}

/// How soon a question for a key is repeated the first time.
const FETCH_AGAIN: Duration = Duration::from_millis(20);

/// How late it is at most. It is twice as late each time, for a node that is too busy to answer
/// must not get busier for it.
const FETCH_AGAIN_MAX: Duration = Duration::from_secs(1);

/// Keys that may be answered for at the same time: half of the small datagrams that the socket of a
/// cache has room for.
const FETCHES_AT_ONCE: usize = 128;

/// Keys asked for of one node that it has not answered yet. Its socket has room for many more.
const FETCHES_OF_NODE: usize = 32;

/// Between two turns.
const FETCH_PAUSE: Duration = Duration::from_millis(1);
