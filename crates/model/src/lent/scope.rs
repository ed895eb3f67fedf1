//! Bounds: what is in the model and how often what may happen.

use super::bug::Bug;
use crate::check::{self, Bounds};

/// A write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// A key gets a value.
    Put(u8),
    /// A key gets a value that ends: at the time that the scope says.
    PutEnding(u8),
    /// It is removed, because that time has come.
    Expire(u8),
    /// A key is deleted.
    Delete(u8),
    /// Both keys get values at once.
    Batch,
    /// A key is registered: copies of it may answer reads from then on.
    Register(u8),
    /// It is registered no more.
    Unregister(u8),
}

/// How another tail comes to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// None does.
    None,
    /// The chain is closed, and opened with the same tail, or with the other when it has settled.
    Turn,
    /// The first tail does not answer: it is fenced, and may run on.
    Fence,
    /// It crashes, and starts anew.
    Restart,
}

/// The bounds of one run of the checker.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// Keys that matter.
    pub keys: u8,
    /// Caches.
    pub caches: u8,
    /// Whether they are incarnations of one, with one address.
    pub one_address: bool,
    /// The writes, in order.
    pub writes: &'static [Write],
    /// How long a lease is; without drift that many ticks.
    pub lease: u8,
    /// For how long a tail may lend.
    pub right: u8,
    /// Whether one clock may be twice as fast as another.
    pub drift: bool,
    /// Whether tails tell from which loan on a lease counts. Else caches drop what they hold when a
    /// lease is over.
    pub floors: bool,
    /// How many fetches each cache sends.
    pub fetches: u8,
    /// How many renewals.
    pub renews: u8,
    /// Loans that a tail gives.
    pub loans: u8,
    /// Whether another tail comes.
    pub change: Change,
    /// When values end that do, by the clock of the cluster.
    pub ends: u8,
}

/// The rules within these bounds, perhaps with one broken.
pub type Rules = check::Rules<Scope>;

const ONE: Scope = Scope {
    name: "one cache",
    keys: 1,
    caches: 1,
    one_address: false,
    writes: &[Write::Put(0), Write::Put(0)],
    lease: 2,
    right: 2,
    drift: true,
    floors: true,
    fetches: 2,
    renews: 2,
    loans: 3,
    change: Change::None,
    ends: 0,
};

const TWO: Scope =
    Scope { name: "two caches", caches: 2, lease: 1, drift: false, fetches: 1, renews: 1, ..ONE };

const INCARNATIONS: Scope = Scope {
    name: "two incarnations of a cache",
    one_address: true,
    writes: &[Write::Put(0)],
    ..TWO
};

const DELETION: Scope = Scope {
    name: "a deletion",
    writes: &[Write::Put(0), Write::Delete(0), Write::Put(0)],
    lease: 1,
    drift: false,
    ..ONE
};

const ENDING: Scope = Scope {
    name: "a value that ends",
    writes: &[Write::PutEnding(0), Write::Expire(0)],
    ends: 5,
    ..ONE
};

const KEYS: Scope = Scope {
    name: "two keys of a cache",
    keys: 2,
    writes: &[Write::Put(0)],
    lease: 1,
    drift: false,
    fetches: 3,
    renews: 1,
    ..ONE
};

const BATCH: Scope = Scope {
    name: "a batch",
    keys: 2,
    writes: &[Write::Put(0), Write::Batch, Write::Put(1)],
    renews: 0,
    ..TWO
};

const TURNS: Scope = Scope {
    name: "tails take turns",
    lease: 1,
    drift: false,
    renews: 1,
    loans: 2,
    change: Change::Turn,
    ..ONE
};

const COPIED: Scope = Scope {
    name: "a key that is lent, copied and lent again",
    writes: &[
        Write::Register(0),
        Write::Put(0),
        Write::Put(0),
        Write::Unregister(0),
        Write::Put(0),
    ],
    lease: 1,
    drift: false,
    renews: 1,
    ..ONE
};

const FENCED: Scope = Scope {
    name: "the tail is fenced",
    writes: &[Write::Put(0)],
    fetches: 2,
    renews: 1,
    loans: 2,
    change: Change::Fence,
    ..ONE
};

const RESTARTS: Scope = Scope { name: "the tail restarts", change: Change::Restart, ..FENCED };

impl Bounds for Scope {
    type Bug = Bug;

    const BUGS: &'static [Bug] = &Bug::ALL;

    fn name(&self) -> &'static str {
        self.name
    }

    fn everyday() -> Vec<Self> {
        vec![
            ONE,
            Self { name: "one cache without floors", floors: false, ..ONE },
            TWO,
            INCARNATIONS,
            DELETION,
            ENDING,
            Self { name: "a value that ends in two caches", ends: 2, writes: ENDING.writes, ..TWO },
            KEYS,
            Self { name: "two keys of a cache without floors", floors: false, ..KEYS },
            BATCH,
            TURNS,
            COPIED,
            Self {
                name: "a key that is copied while tails take turns",
                writes: &[Write::Put(0), Write::Register(0), Write::Put(0)],
                ..TURNS
            },
            FENCED,
            Self {
                name: "two caches of a fenced tail",
                caches: 2,
                fetches: 1,
                renews: 0,
                ..FENCED
            },
            RESTARTS,
        ]
    }

    fn long() -> Vec<Self> {
        vec![
            Self { name: "long leases", lease: 4, right: 4, ..ONE },
            Self {
                name: "two caches whose clocks drift",
                drift: true,
                lease: 2,
                fetches: 2,
                ..TWO
            },
            Self { name: "two caches that fetch twice", fetches: 2, loans: 4, ..TWO },
            Self { name: "a batch and many loans", fetches: 2, writes: &[Write::Batch], ..BATCH },
            Self { name: "many loans and turns", loans: 3, ..TURNS },
            Self {
                name: "two caches of tails that take turns",
                caches: 2,
                fetches: 1,
                writes: &[Write::Put(0)],
                ..TURNS
            },
            Self {
                name: "two caches of a key that is copied between",
                caches: 2,
                fetches: 1,
                ..COPIED
            },
            Self { name: "a long lease of a key that is copied", lease: 2, drift: true, ..COPIED },
            Self { name: "a long lease of a fenced tail", lease: 4, right: 4, ..FENCED },
            Self { name: "two writes of a fenced tail", writes: ONE.writes, ..FENCED },
            Self { name: "two caches of a tail that restarts", caches: 2, fetches: 1, ..RESTARTS },
        ]
    }

    fn of(bug: Bug) -> Self {
        match bug {
            Bug::NoWait | Bug::ShowsOld | Bug::ShowsBetween | Bug::CommitsUpstream => ONE,
            Bug::OutlivesRight | Bug::BeyondRight => FENCED,
            Bug::RestartServes => RESTARTS,
            Bug::SettlesLent | Bug::LendsSettled | Bug::CountsAnew => TURNS,
            Bug::KeepsFetch | Bug::LateLoan | Bug::AnyNonce | Bug::KeepsLower => ONE,
            Bug::SameNumber | Bug::OldUpdate | Bug::OldAnswer | Bug::LateEvict => ONE,
            Bug::NoFloor | Bug::FromReceipt | Bug::NoBound => ONE,
            Bug::RenewsOwed | Bug::LendsUnderWay | Bug::AnswersAfterLease => ONE,
            Bug::IgnoresEnd | Bug::TimeFromReceipt | Bug::TimeWithoutBound => ENDING,
            Bug::LoanWithoutFloor => KEYS,
            Bug::TwoHolders | Bug::LendsHeldBack => TWO,
            Bug::AnyIncarnation | Bug::AnyReceiver => INCARNATIONS,
            Bug::BatchUpdates | Bug::TellsPastBatch => BATCH,
            Bug::RegistersLent | Bug::RegistersTold | Bug::LendsRegistered => COPIED,
        }
    }
}

impl Scope {
    /// By how much clocks may differ.
    pub(super) fn bound(&self) -> u8 {
        if self.drift { 2 } else { 1 }
    }

    /// For how long a write may be held back.
    pub(super) fn longest(&self) -> u8 {
        self.lease * self.bound()
    }

    /// The write that has a version; none has 0.
    pub(super) fn write(&self, version: u8) -> Option<Write> {
        self.writes.get(usize::from(version.checked_sub(1)?)).copied()
    }

    /// The version of a key when so much is committed.
    pub(super) fn version(&self, key: u8, committed: u8) -> u8 {
        let sets = |it: &u8| self.write(*it).is_some_and(|write| write.sets(key));
        (1..=committed).rev().find(sets).unwrap_or(0)
    }

    /// Whether a key is registered when so much is committed.
    pub(super) fn is_registered(&self, key: u8, committed: u8) -> bool {
        let last = (1..=committed).rev().find_map(|it| match self.write(it) {
            Some(Write::Register(of)) if of == key => Some(true),
            Some(Write::Unregister(of)) if of == key => Some(false),
            _ => None,
        });
        last.unwrap_or(false)
    }
}

impl Write {
    /// Whether it is one of this key.
    #[must_use]
    pub fn touches(self, key: u8) -> bool {
        match self {
            Self::Register(of) | Self::Unregister(of) => of == key,
            _ => self.sets(key),
        }
    }

    /// Whether it changes what this key is.
    pub(super) fn sets(self, key: u8) -> bool {
        match self {
            Self::Put(of) | Self::PutEnding(of) | Self::Expire(of) | Self::Delete(of) => of == key,
            Self::Batch => true,
            Self::Register(_) | Self::Unregister(_) => false,
        }
    }
}

impl Change {
    /// Whether the next tail serves without the consent of the first.
    #[must_use]
    pub fn takes_over(self) -> bool {
        matches!(self, Self::Fence | Self::Restart)
    }
}
