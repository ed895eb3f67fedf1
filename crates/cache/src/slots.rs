//! The keys that a cache holds or wants to hold.

use crate::volumes::Lender;
use cluster::{KeyspaceId, NodeId, PartitionId};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Found;
use machine::{Instant, Rng};
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

/// A key that is held or wanted.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) match_value: u128,
    pub(crate) keyhash: u64,
    pub(crate) key: Box<[u8]>,
    pub(crate) home: Home,
    pub(crate) state: State,
    /// Whether the switch was told, or will be.
    pub(crate) has_rule: bool,
    /// Reads in the present second.
    pub(crate) hits: u32,
    /// Reads per second that it is worth, in thousandths.
    load: u64,
}

/// What a cache has of a key.
#[derive(Debug)]
pub(crate) enum State {
    /// Nothing: it is to be asked for at that time.
    Wanted(Instant),
    /// Nothing: it was asked for there, by this number, at that time.
    Fetching { of: Home, nonce: u64, sent: Instant },
    /// A value, under this loan.
    Held { lender: Lender, loan: LoanNumber, version: Version, value: Box<[u8]> },
}

impl Slot {
    pub(crate) fn name(&self) -> Name<'_> {
        let Self { keyspace, match_value, keyhash, ref key, .. } = *self;
        Name { keyspace, match_value, keyhash, key }
    }

    fn bytes(&self) -> u64 {
        let value = if let State::Held { value, .. } = &self.state { value.len() } else { 0 };
        u64::try_from(self.key.len() + value).unwrap_or(u64::MAX)
    }

    /// Reads per second that it is worth.
    pub(crate) fn load(&self) -> u64 {
        self.load / 1_000
    }

    /// Whether it is held under this lender's loans, or was asked of it.
    fn is_of(&self, of: &Lender) -> bool {
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
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter()
    }

    /// How many hold a value, and the bytes of all.
    pub(crate) fn held(&self) -> (u64, u64) {
        let held = |slot: &&Slot| matches!(slot.state, State::Held { .. });
        (self.iter().filter(held).count() as u64, self.iter().map(Slot::bytes).sum())
    }

    pub(crate) fn get_mut(&mut self, name: &Name<'_>) -> Option<&mut Slot> {
        self.slots.find_mut(name.keyhash, |slot| slot.name() == *name)
    }

    /// Makes a slot for a key that is wanted, unless there is one.
    pub(crate) fn want(&mut self, now: Instant, name: &Name<'_>, home: Home, load: u64) {
        let entry = self.slots.entry(name.keyhash, |it| it.name() == *name, |it| it.keyhash);
        if let Found::Vacant(place) = entry {
            place.insert(Slot {
                keyspace: name.keyspace,
                match_value: name.match_value,
                keyhash: name.keyhash,
                key: name.key.into(),
                home,
                state: State::Wanted(now),
                has_rule: false,
                hits: 0,
                load: load.saturating_mul(1_000),
            });
        }
    }

    pub(crate) fn remove(&mut self, name: &Name<'_>) -> Option<Slot> {
        let found = self.slots.find_entry(name.keyhash, |slot| slot.name() == *name).ok()?;
        Some(found.remove().0)
    }

    /// Gives up what is held of a lender, or was asked of it; it is wanted again at that time.
    pub(crate) fn give_up(&mut self, of: &Lender, again: Instant) {
        for slot in self.slots.iter_mut().filter(|slot| slot.is_of(of)) {
            slot.state = State::Wanted(again);
        }
    }

    /// Keys that are to be asked for now: those that are wanted, and those that were asked for and
    /// not answered. They count as asked.
    pub(crate) fn ask_wanted(&mut self, now: Instant, nonce: &mut u64) -> Vec<(Ask, u64)> {
        let due = |slot: &&mut Slot| match slot.state {
            State::Wanted(at) => at <= now,
            State::Fetching { sent, .. } => sent + FETCH_AGAIN <= now,
            State::Held { .. } => false,
        };
        let asked = self.slots.iter_mut().filter(due).take(FETCHES_AT_ONCE);
        asked
            .map(|slot| {
                *nonce += 1;
                slot.state = State::Fetching { of: slot.home, nonce: *nonce, sent: now };
                (Ask::of(slot), *nonce)
            })
            .collect()
    }

    /// The same of what is held under loans that are void. Says how many bytes of values that were.
    pub(crate) fn give_up_where(
        &mut self,
        again: Instant,
        is_void: impl Fn(&Lender, LoanNumber) -> bool,
    ) -> u64 {
        let mut bytes = 0;
        for slot in self.slots.iter_mut() {
            if let State::Held { lender, loan, value, .. } = &slot.state
                && is_void(lender, *loan)
            {
                bytes += u64::try_from(value.len()).unwrap_or(u64::MAX);
                slot.state = State::Wanted(again);
            }
        }
        bytes
    }

    /// When a key is to be asked for next.
    pub(crate) fn next_fetch(&self) -> Option<Instant> {
        let at = |slot: &Slot| match slot.state {
            State::Wanted(at) => Some(at),
            State::Fetching { sent, .. } => Some(sent + FETCH_AGAIN),
            State::Held { .. } => None,
        };
        self.iter().filter_map(at).min()
    }

    /// A second is over: what each key is worth is half of what it was before and half of what was
    /// read in it (SwitchKV section 3.2.1).
    pub(crate) fn end_second(&mut self) {
        for slot in self.slots.iter_mut() {
            slot.load = slot.load / 2 + u64::from(slot.hits) * 500;
            slot.hits = 0;
        }
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

/// A key that is asked for, and whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) match_value: u128,
    pub(crate) keyhash: u64,
    pub(crate) key: Box<[u8]>,
    pub(crate) home: Home,
}

impl Ask {
    pub(crate) fn of(slot: &Slot) -> Self {
        let Slot { keyspace, match_value, keyhash, ref key, home, .. } = *slot;
        Self { keyspace, match_value, keyhash, key: key.clone(), home }
    }
}

impl Ask {
    pub(crate) fn name(&self) -> Name<'_> {
        let Self { keyspace, match_value, keyhash, ref key, .. } = *self;
        Name { keyspace, match_value, keyhash, key }
    }
}

/// How soon a question for a key is repeated.
const FETCH_AGAIN: Duration = Duration::from_millis(20);

/// Keys asked for in one turn.
const FETCHES_AT_ONCE: usize = 256;
