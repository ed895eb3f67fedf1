//! The directory clock of a switch (section 9 of `spec/protocol.md`): what tells a request that was
//! first sent after a delegation had begun from one that may have been at home before.

use cluster::HotOrder;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::{DirectoryClock, Revision};

/// How far a switch is, as it tells clients and heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReading {
    /// Its directory clock now.
    pub present: DirectoryClock,
    /// What that was at the order with which its directory began: what another switch has granted
    /// was first sent before.
    pub beginning: DirectoryClock,
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
        let present = DirectoryClock::new(self.present.load(Ordering::Acquire));
        let beginning = DirectoryClock::new(self.beginning.load(Ordering::Acquire));
        ClockReading { present, beginning }
    }

    /// A directory that was empty begins with this order, or before it: where the order says that
    /// nobody has had a delegation since, and this switch has had no order since. Must come before
    /// [`order`](Self::order).
    pub fn begin(&self, order: &HotOrder) {
        let (own, earlier) = (
            DirectoryClock::of_order(order.revision),
            DirectoryClock::of_order(order.at_home_since),
        );
        let is_known = earlier.get() > self.present.load(Ordering::Acquire);
        let beginning = if is_known { earlier.min(own) } else { own };
        self.beginning.store(beginning.get(), Ordering::Release);
    }

    /// The order of this revision is what all threads see from here on.
    pub fn order(&self, revision: Revision) {
        self.present.fetch_max(DirectoryClock::of_order(revision).get(), Ordering::AcqRel);
    }

    /// A delegation begins: its clock, if there is one left before the next order.
    pub(crate) fn delegation(&self) -> Option<DirectoryClock> {
        let next = |clock| DirectoryClock::new(clock).next().map(DirectoryClock::get);
        let before = self.present.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok()?;
        DirectoryClock::new(before).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(revision: u64, at_home_since: u64) -> HotOrder {
        let (revision, at_home_since) = (Revision::new(revision), Revision::new(at_home_since));
        HotOrder { revision, at_home_since, ..HotOrder::default() }
    }

    #[test]
    fn a_directory_begins_where_the_one_before_had_no_delegation_any_more() {
        let begins = |clock: &SharedClock, order: &HotOrder| {
            clock.begin(order);
            clock.order(order.revision);
            clock.now().beginning
        };
        let (clock, at) = (SharedClock::default(), DirectoryClock::of_order);
        assert_eq!(begins(&clock, &order(9, 5)), at(Revision::new(5)));
        // It has had orders since, and may have granted by them what it has forgotten.
        assert_eq!(begins(&clock, &order(11, 5)), at(Revision::new(11)));
        assert_eq!(begins(&clock, &order(12, 11)), at(Revision::new(12)));
        assert_eq!(begins(&clock, &order(20, 15)), at(Revision::new(15)));
        assert_eq!(begins(&clock, &order(21, 99)), at(Revision::new(21)), "that is not before it");
    }

    #[test]
    fn moments_never_fall_and_an_order_has_no_more_than_it_has_numbers_for() {
        let clock = SharedClock::default();
        let at = DirectoryClock::new;
        clock.begin(&order(3, 0));
        clock.order(Revision::new(3));
        assert_eq!(clock.now(), ClockReading { present: at(3 << 16), beginning: at(3 << 16) });
        assert_eq!(clock.delegation(), Some(at((3 << 16) + 1)));
        clock.order(Revision::new(2));
        assert_eq!(clock.now().present, at((3 << 16) + 1));
        for delegation in 2..1 << 16 {
            assert_eq!(clock.delegation(), Some(at((3 << 16) + delegation)));
        }
        assert_eq!(clock.delegation(), None);
        assert_eq!(clock.now().present, at((4 << 16) - 1));
        clock.order(Revision::new(4));
        let fourth = Some(at((4 << 16) + 1));
        assert_eq!((clock.delegation(), clock.now().beginning), (fourth, at(3 << 16)));
    }
}
