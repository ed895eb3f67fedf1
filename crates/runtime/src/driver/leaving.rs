//! A switch or node of this process that is asked to end: it says so in its reports, and the
//! controller says when nobody waits for it any more.

use crate::clock::Clock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a member that is asked to end waits for others to take over, at most: several times
/// what that takes, and less than what a service manager waits before it kills.
pub const LEAVE_MAX: Duration = Duration::from_secs(10);

/// How long it waits if no controller gives it any order: as long as another one takes to lead.
const UNASKED_MAX: Duration = Duration::from_secs(2);

/// How the wait of a member that is asked to end came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// All that others can take over they have.
    HandedOver,
    /// It took too long.
    Overdue,
    /// No controller asked.
    Unasked,
}

/// Whether a member leaves, for all handles to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaving(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    begun: AtomicBool,
    heard: Mutex<Heard>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Heard {
    may_end: bool,
    /// How many orders have come.
    orders: u64,
}

impl Leaving {
    /// From now on its reports say so.
    pub(crate) fn begin(&self) {
        self.0.begun.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.0.begun.load(Ordering::Relaxed)
    }

    /// An order was carried out, which says this.
    pub(super) fn note(&self, may_end: bool) {
        if !self.is_begun() {
            return;
        }
        let mut heard = self.heard();
        heard.may_end |= may_end;
        heard.orders += 1;
        self.0.changed.notify_all();
    }

    /// Waits until it may end, or for as long as it waits at most.
    pub(crate) fn wait(&self) -> Departure {
        let mut clock = Clock::new();
        let overdue = clock.now() + LEAVE_MAX;
        let (mut unasked, mut orders) = (clock.now() + UNASKED_MAX, 0);
        let mut heard = self.heard();
        loop {
            if heard.may_end {
                return Departure::HandedOver;
            }
            let now = clock.now();
            if std::mem::replace(&mut orders, heard.orders) != heard.orders {
                unasked = now + UNASKED_MAX;
            }
            match (overdue <= now, unasked <= now) {
                (true, _) => return Departure::Overdue,
                (false, true) => return Departure::Unasked,
                (false, false) => {}
            }
            let wait = unasked.min(overdue).since(now);
            let waited = self.0.changed.wait_timeout(heard, wait);
            heard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether an order has said that it may end.
    #[cfg(test)]
    pub(super) fn may_end(&self) -> bool {
        self.heard().may_end
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_until_it_may_end() {
        let leaving = Leaving::default();
        leaving.note(true);
        assert!(!leaving.is_begun());
        leaving.begin();
        let other = leaving.clone();
        let waits = std::thread::spawn(move || other.wait());
        leaving.note(false);
        leaving.note(true);
        assert_eq!(waits.join().unwrap(), Departure::HandedOver);
    }

    #[test]
    fn without_a_controller_it_does_not_wait_for_long() {
        let leaving = Leaving::default();
        leaving.begin();
        assert_eq!(leaving.wait(), Departure::Unasked);
    }
}
