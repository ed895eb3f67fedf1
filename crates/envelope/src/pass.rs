//! Passes: what makes a process a client. It has a number that nobody else ever has, and keys.

use crate::counts::{Counts, SharedCounts};
use crate::keys::{ClientKeys, Key, Period};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use wire::EnvelopeRefusal;

/// The number of a pass: a class of rights and a number that is given once. It is the upper part of
/// the ids of all clients that have the pass, so every packet says whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PassNumber(pub u64);

impl PassNumber {
    /// Classes of rights are below this.
    pub const CLASSES: u16 = 1 << 12;
    /// Numbers within a class are below this, and above 0: client id 0 is of nodes.
    pub const NUMBERS: u64 = 1 << Self::NUMBER_BITS;

    const NUMBER_BITS: u32 = 36;
    const SEAT_BITS: u32 = wire::CLIENT_SEAT_BITS as u32;

    /// The number of a pass of this class; `None` if one of the two is out of range.
    #[must_use]
    pub fn new(class: u16, number: u64) -> Option<Self> {
        let fits = class < Self::CLASSES && (1..Self::NUMBERS).contains(&number);
        fits.then(|| Self(u64::from(class) << Self::NUMBER_BITS | number))
    }

    /// That of the client with this id.
    #[must_use]
    pub const fn of_client(client: u64) -> Self {
        Self(client >> Self::SEAT_BITS)
    }

    /// The class of rights.
    #[must_use]
    pub fn class(self) -> u16 {
        u16::try_from(self.0 >> Self::NUMBER_BITS & u64::from(Self::CLASSES - 1))
            .unwrap_or(Self::CLASSES)
    }

    /// The id of one of the clients that have this pass.
    #[must_use]
    pub const fn client(self, seat: u16) -> u64 {
        self.0 << Self::SEAT_BITS | seat as u64
    }
}

/// A pass, as the controllers give it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// Its number.
    pub number: PassNumber,
    /// Shows, when it is renewed, that it was given to who asks.
    pub ticket: Key,
    /// The period in which it was given.
    pub current: Period,
    /// The keys of three periods: the one before, this one, the next.
    pub periods: Vec<ClientKeys>,
    /// Milliseconds after which it has to be renewed, to have the keys of the next period in time.
    pub renew_in_ms: u64,
}

impl Pass {
    /// The keys that an envelope names by this byte.
    pub(crate) fn named(&self, byte: u8) -> Option<&ClientKeys> {
        self.periods.iter().find(|it| it.period.byte() == byte)
    }

    /// When it has to be renewed.
    #[must_use]
    pub fn renew_in(&self) -> Duration {
        Duration::from_millis(self.renew_in_ms)
    }
}

/// The pass of a process, for all its clients.
#[derive(Clone, Debug)]
pub struct Passes(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pass: Mutex<Pass>,
    /// How often it was renewed.
    renewals: AtomicU64,
    /// Seats that were taken.
    seats: AtomicU32,
    refused: SharedCounts,
    /// Whether a client is answered by nobody, and who waits for that.
    is_unheard: Mutex<bool>,
    unheard: Condvar,
}

impl Passes {
    /// Those of a process that was given this pass.
    #[must_use]
    pub fn new(pass: Pass) -> Self {
        let (renewals, seats) = (AtomicU64::new(0), AtomicU32::new(0));
        let refused = SharedCounts::default();
        let (is_unheard, unheard) = (Mutex::new(false), Condvar::new());
        let pass = Mutex::new(pass);
        Self(Arc::new(Shared { pass, renewals, seats, refused, is_unheard, unheard }))
    }

    /// What came to its clients and was refused so far.
    #[must_use]
    pub fn refused(&self) -> Counts {
        self.0.refused.get()
    }

    pub(crate) fn note_refused(&self, why: EnvelopeRefusal) {
        self.0.refused.note(why);
    }

    /// The pass as it is now.
    #[must_use]
    pub fn pass(&self) -> Pass {
        self.0.pass.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the pass with newer keys. False, and nothing changes, if it is another pass.
    #[must_use]
    pub fn renew(&self, newer: Pass) -> bool {
        let mut pass = self.0.pass.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = newer.number == pass.number;
        if is_same {
            *pass = newer;
            self.0.renewals.fetch_add(1, Ordering::Release);
        }
        is_same
    }

    /// Waits for so long, or until one of the clients has been answered by nobody for some time:
    /// its keys may be over, where its machine was suspended.
    pub fn wait_unheard(&self, patience: Duration) {
        let mut is_unheard = self.0.is_unheard.lock().unwrap_or_else(PoisonError::into_inner);
        *is_unheard = false;
        let waited = self.0.unheard.wait_timeout_while(is_unheard, patience, |it| !*it);
        drop(waited);
    }

    pub(crate) fn note_unheard(&self) {
        *self.0.is_unheard.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.unheard.notify_all();
    }

    /// A place for one more client; `None` if the pass has had as many as it can.
    #[must_use]
    pub fn seat(&self) -> Option<Seat> {
        let next = self.0.seats.try_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            u16::try_from(taken).is_ok().then_some(taken + 1)
        });
        let seat = u16::try_from(next.ok()?).ok()?;
        let client = self.pass().number.client(seat);
        Some(Seat { passes: self.clone(), client })
    }

    pub(crate) fn renewals(&self) -> u64 {
        self.0.renewals.load(Ordering::Acquire)
    }
}

/// What one client has of its process's pass.
#[derive(Clone, Debug)]
pub struct Seat {
    passes: Passes,
    client: u64,
}

impl Seat {
    /// The client's id. No other client ever has it.
    #[must_use]
    pub fn client(&self) -> u64 {
        self.client
    }

    /// The pass.
    #[must_use]
    pub fn passes(&self) -> &Passes {
        &self.passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_id_says_which_pass_and_which_class() {
        let number = PassNumber::new(0xabc, 0x9_8765_4321).unwrap();
        assert_eq!(number.client(7), 0xabc9_8765_4321_0007);
        assert_eq!(PassNumber::of_client(number.client(u16::MAX)), number);
        assert_eq!((number.class(), PassNumber(u64::MAX).class()), (0xabc, 0xfff));
        for (class, one) in [(0, 0), (0, PassNumber::NUMBERS), (PassNumber::CLASSES, 1)] {
            assert_eq!(PassNumber::new(class, one), None);
        }
    }

    #[test]
    fn seats_are_taken_once_and_end() {
        let (number, current) = (PassNumber::new(0, 1).unwrap(), Period(3));
        let ticket = Key([0; 16]);
        let pass = Pass { number, ticket, current, periods: vec![], renew_in_ms: 1 };
        let passes = Passes::new(pass.clone());
        let mut ids: Vec<u64> = (0..=u16::MAX).map(|_| passes.seat().unwrap().client()).collect();
        assert!(passes.seat().is_none());
        ids.dedup();
        assert_eq!(ids.len(), 1 << 16);
        let other = Pass { number: PassNumber(9), ..pass.clone() };
        assert!(!passes.renew(other) && passes.pass() == pass);
        let newer = Pass { current: Period(4), ..pass };
        assert!(passes.renew(newer.clone()) && passes.pass() == newer);
    }
}
