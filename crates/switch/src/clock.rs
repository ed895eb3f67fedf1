//! The directory clock of a switch (section 9 of `spec/protocol.md`): what tells a request that was
//! first sent after a delegation had begun from one that may have been at home before.

use std::sync::atomic::{AtomicU64, Ordering};
use wire::CLOCK_DELEGATIONS_BITS;

/// How far a switch is, as it tells clients and heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReading {
    /// Revision of its order of hot keys times 2^[`CLOCK_DELEGATIONS_BITS`], plus how many
    /// delegations have begun since.
    pub present: u64,
    /// What that was at the order with which its directory began: what another switch has granted
    /// was first sent before.
    pub beginning: u64,
}

impl ClockReading {
    /// That in which an order comes.
    #[must_use]
    pub fn of_order(revision: u64) -> u64 {
        revision << CLOCK_DELEGATIONS_BITS
    }
}

/// The clock of a switch, for all its threads, and for every kind of switch. It never
/// falls, also when the directory is forgotten: every order that comes after is newer.
#[derive(Debug, Default)]
pub struct SharedClock {
    present: AtomicU64,
    beginning: AtomicU64,
}

impl SharedClock {
    /// The clock now. Must be read before a grant is looked for: then who sends a request
    /// home under the clock of an order sees every grant that was given before that order
    /// came.
    #[inline]
    #[must_use]
    pub fn now(&self) -> ClockReading {
        // In this order: whoever sees the clock of an order sees the beginning that it
        // made.
        let present = self.present.load(Ordering::Acquire);
        ClockReading { present, beginning: self.beginning.load(Ordering::Acquire) }
    }

    /// A directory that was empty begins with the order of this revision. Must come before
    /// [`order`](Self::order).
    pub fn begin(&self, revision: u64) {
        self.beginning.store(ClockReading::of_order(revision), Ordering::Release);
    }

    /// The order of this revision is what all threads see from here on.
    pub fn order(&self, revision: u64) {
        self.present.fetch_max(ClockReading::of_order(revision), Ordering::AcqRel);
    }

    /// A delegation begins: its clock, if there is one left before the next order.
    pub(crate) fn delegation(&self) -> Option<u64> {
        let next = |clock: u64| {
            let next = clock + 1;
            (next >> CLOCK_DELEGATIONS_BITS == clock >> CLOCK_DELEGATIONS_BITS).then_some(next)
        };
        let before = self.present.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok()?;
        Some(before + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_never_fall_and_an_order_has_no_more_than_it_has_numbers_for() {
        let clock = SharedClock::default();
        clock.begin(3);
        clock.order(3);
        assert_eq!(clock.now(), ClockReading { present: 3 << 16, beginning: 3 << 16 });
        assert_eq!(clock.delegation(), Some((3 << 16) + 1));
        clock.order(2);
        assert_eq!(clock.now().present, (3 << 16) + 1);
        for delegation in 2..1 << 16 {
            assert_eq!(clock.delegation(), Some((3 << 16) + delegation));
        }
        assert_eq!(clock.delegation(), None);
        assert_eq!(clock.now().present, (4 << 16) - 1);
        clock.order(4);
        assert_eq!((clock.delegation(), clock.now().beginning), (Some((4 << 16) + 1), 3 << 16));
    }
}
