//! What there is.

use crate::state::Bits;
use arrayvec::ArrayVec;
use std::collections::BTreeSet;

/// Keys in the model.
pub(super) const KEYS: usize = 2;
/// Caches in the model, every incarnation of one counted.
pub(super) const CACHES: usize = 2;
/// Tails, one after the other.
pub(super) const TAILS: usize = 2;

/// Something of each key, cache or tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Table<T, const N: usize>(pub [T; N]);

impl<T: Copy + Default, const N: usize> Default for Table<T, N> {
    fn default() -> Self {
        Self([T::default(); N])
    }
}

impl<T: Copy, const N: usize> Table<T, N> {
    /// What there is of this one.
    ///
    /// # Panics
    ///
    /// If the model has no such one.
    #[must_use]
    pub fn of(&self, number: u8) -> T {
        *self.0.get(usize::from(number)).expect("one of the model")
    }

    pub(super) fn set(&mut self, number: u8, value: T) {
        *self.0.get_mut(usize::from(number)).expect("one of the model") = value;
    }

    pub(super) fn each(&mut self, with: impl FnMut(&mut T)) {
        self.0.iter_mut().for_each(with);
    }
}

/// What a tail knows of a key that it has lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Loan {
    /// The cache.
    pub holder: u8,
    /// Counted by the tail, from 1.
    pub number: u8,
    /// The version that the cache is known to have, if it has any.
    pub has: u8,
}

/// What a tail does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nothing yet.
    Waiting,
    /// It serves.
    Open,
    /// It ends its loans, and commits what it has.
    Closed,
    /// It has done so.
    Settled,
    /// It serves for all that it knows. Neither reads nor writes reach it, only caches do.
    Fenced,
    /// It does not run.
    Dead,
}

/// A tail: a node in one incarnation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tail {
    /// What it does.
    pub phase: Phase,
    /// The last version that it has committed.
    pub committed: u8,
    /// The last that every member has on disk.
    pub ready: u8,
    /// Of each key the last version in an update that was sent, if that is not committed; else 0.
    pub told: Table<u8, KEYS>,
    /// What is lent.
    pub loans: Table<Option<Loan>, KEYS>,
    /// The number of the next loan.
    pub next: u8,
    /// Of each cache the lowest number of a loan that is still good.
    pub floor: Table<u8, CACHES>,
    /// For how long, by its own clock, each cache may still answer.
    pub until: Table<u8, CACHES>,
    /// For how long it may lend.
    pub right: u8,
    /// For how long the next write has been ready and waited for a cache.
    pub waited: u8,
}

/// What a cache holds of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Who has lent it.
    pub tail: u8,
    /// The number of the loan.
    pub number: u8,
    /// The version.
    pub version: u8,
}

/// A request of a cache that is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// Whom it asks.
    pub tail: u8,
    /// How much is left of a whole lease, counted from when it was sent.
    pub left: u8,
}

/// A cache in one incarnation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cache {
    /// What it holds.
    pub held: Table<Option<Entry>, KEYS>,
    /// The fetch of each key that it waits for.
    pub fetch: Table<Option<Ask>, KEYS>,
    /// The renewal that it waits for.
    pub renew: Option<Ask>,
    /// The tails that it has ever asked for each key.
    pub asked: Table<Bits, KEYS>,
    /// For how long, by its own clock, it may answer what each tail has lent it.
    pub lease: Table<u8, TAILS>,
    /// What time it may be at the latest.
    pub time: u8,
    /// How many fetches it may still send.
    pub fetches: u8,
    /// How many renewals.
    pub renews: u8,
}

/// One key between a tail and a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Of {
    /// The tail.
    pub tail: u8,
    /// The cache.
    pub cache: u8,
    /// The key.
    pub key: u8,
    /// The number of its loan.
    pub number: u8,
}

/// What makes a lease longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    /// By how much, counted from the request that it answers.
    pub left: u8,
    /// The lowest number of a loan that is still good.
    pub floor: u8,
    /// What time it is.
    pub time: u8,
}

/// A message. The nonce of a loan or a grant is that of the last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// A key is lent, in this version.
    Loan(Of, u8, Lease),
    /// What a tail has lent to a cache may be answered for longer.
    Grant(u8, u8, Lease),
    /// A key that is lent has a new version.
    Update(Of, u8),
    /// A key that is lent is wanted back.
    Recall(Of),
    /// What a cache holds of a loan: a version, or nothing.
    Answer(Of, Option<u8>),
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// The tails: the first, and the one that comes after it.
    pub tails: ArrayVec<Tail, TAILS>,
    /// The caches.
    pub caches: ArrayVec<Cache, CACHES>,
    /// What was sent.
    pub network: BTreeSet<Message>,
    /// The last version that the head has given.
    pub ordered: u8,
    /// How long, by the controller's clock, the first tail may still lend.
    pub right: u8,
    /// Of each key the newest version that any client has seen.
    pub seen: Table<u8, KEYS>,
    /// Of each key the floor of the coherence directory, once that is proven: its reads may be
    /// answered by any copy that is not below.
    pub floor: Table<Option<u8>, KEYS>,
    /// What time it is by the clock of the cluster, as far as that matters.
    pub time: u8,
    /// A read showed something older.
    pub is_stale: bool,
    /// A read showed a value after its end.
    pub is_over: bool,
}

impl World {
    /// A tail of the model.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn tail(&self, number: u8) -> &Tail {
        self.tails.get(usize::from(number)).expect("a tail of the model")
    }

    /// A cache of the model.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn cache(&self, number: u8) -> &Cache {
        self.caches.get(usize::from(number)).expect("a cache of the model")
    }

    /// A client has seen a version of a key.
    pub(super) fn raise(&mut self, key: u8, version: u8) {
        self.seen.set(key, self.seen.of(key).max(version));
    }

    /// A reply that shows a version of a key passes the switch: a write's, or a tail's.
    pub(super) fn pass(&mut self, key: u8, version: u8) {
        self.floor.set(key, self.floor.of(key).map(|floor| floor.max(version)));
        self.raise(key, version);
    }

    pub(super) fn tail_mut(&mut self, number: u8) -> &mut Tail {
        self.tails.get_mut(usize::from(number)).expect("a tail of the model")
    }

    pub(super) fn cache_mut(&mut self, number: u8) -> &mut Cache {
        self.caches.get_mut(usize::from(number)).expect("a cache of the model")
    }
}

impl Loan {
    pub(super) fn of(self, tail: u8, key: u8) -> Of {
        Of { tail, cache: self.holder, key, number: self.number }
    }
}

impl Tail {
    pub(super) fn new(phase: Phase, committed: u8, right: u8) -> Self {
        Self {
            phase,
            committed,
            ready: committed,
            told: Table::default(),
            loans: Table::default(),
            next: 1,
            floor: Table::default(),
            until: Table::default(),
            right,
            waited: 0,
        }
    }

    /// Whether it does what a tail does, for all that it knows.
    pub(super) fn runs(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Closed | Phase::Fenced)
    }

    /// The versions that are ready and not committed.
    pub(super) fn under_way(&self) -> std::ops::RangeInclusive<u8> {
        self.committed + 1..=self.ready
    }
}
