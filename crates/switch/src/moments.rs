//! The moments of a switch (section 9 of `spec/protocol.md`): what tells a request that was first
//! sent after a trip had begun from one that may have been at home before.

use std::sync::atomic::{AtomicU64, Ordering};
use wire::MOMENT_TRIPS_BITS;

/// How far a switch is, as it tells clients and heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Revision of its order of hot keys times 2^[`MOMENT_TRIPS_BITS`], plus how many trips have
    /// begun since.
    pub present: u64,
    /// What that was at the order with which its directory began: what another switch has stamped
    /// was first sent before.
    pub beginning: u64,
}

impl Moment {
    /// That in which an order comes.
    #[must_use]
    pub fn of_order(revision: u64) -> u64 {
        revision << MOMENT_TRIPS_BITS
    }
}

/// The moment of a switch, for all its threads, and for every kind of switch. It never falls, also
/// when the directory is forgotten: every order that comes after is newer.
#[derive(Debug, Default)]
pub struct Moments {
    present: AtomicU64,
    beginning: AtomicU64,
}

impl Moments {
    /// The moment now. Must be read before a stamp is looked for: then who sends a request home
    /// under the moment of an order sees every stamp that was given before that order came.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Moment {
        // In this order: whoever sees the moment of an order sees the beginning that it made.
        let present = self.present.load(Ordering::Acquire);
        Moment { present, beginning: self.beginning.load(Ordering::Acquire) }
    }

    /// A directory that was empty begins with the order of this revision. Must come before
    /// [`order`](Self::order).
    pub fn begin(&self, revision: u64) {
        self.beginning.store(Moment::of_order(revision), Ordering::Release);
    }

    /// The order of this revision is what all threads see from here on.
    pub fn order(&self, revision: u64) {
        self.present.fetch_max(Moment::of_order(revision), Ordering::AcqRel);
    }

    /// A trip begins: its moment, if there is one left before the next order.
    pub(crate) fn trip(&self) -> Option<u64> {
        let next = |moment: u64| {
            let next = moment + 1;
            (next >> MOMENT_TRIPS_BITS == moment >> MOMENT_TRIPS_BITS).then_some(next)
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
        let moments = Moments::default();
        moments.begin(3);
        moments.order(3);
        assert_eq!(moments.now(), Moment { present: 3 << 16, beginning: 3 << 16 });
        assert_eq!(moments.trip(), Some((3 << 16) + 1));
        moments.order(2);
        assert_eq!(moments.now().present, (3 << 16) + 1);
        for trip in 2..1 << 16 {
            assert_eq!(moments.trip(), Some((3 << 16) + trip));
        }
        assert_eq!(moments.trip(), None);
        assert_eq!(moments.now().present, (4 << 16) - 1);
        moments.order(4);
        assert_eq!((moments.trip(), moments.now().beginning), (Some((4 << 16) + 1), 3 << 16));
    }
}
