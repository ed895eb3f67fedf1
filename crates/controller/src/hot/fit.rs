//! When a key is given as many copies as would pay by now.

use machine::Instant;
use std::time::Duration;

/// A key has more or fewer copies than would pay for so long before it is given as many, unless it
/// is off by much: each change is an order to all nodes, and copies. Rates of one second differ by
/// enough to change some key at every look, if a controller followed them at once.
const REFIT_AFTER: Duration = Duration::from_secs(2);

/// Off by so many times, copies are changed at once.
const MUCH: u64 = 4;

/// What can wait is decided in steps of so long, for all keys at once: one order tells it all.
const STEP: Duration = Duration::from_millis(500);

/// Whether something that began then, if it did, has lasted for so long by the last step.
pub(crate) fn has_lasted(since: Option<Instant>, long: Duration, now: Instant) -> bool {
    let step = u64::try_from(STEP.as_millis()).expect("half a second");
    let last = Instant::from_unix_ms(now.unix_ms() / step * step);
    since.is_some_and(|at| at + long <= last)
}

/// Whether what a key has still fits it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fit {
    /// Since when something else would pay.
    misfit_since: Option<Instant>,
    /// Whether what it has was chosen by rates that were all known.
    chosen: bool,
}

impl Fit {
    /// Whether it is time to give a key that `has` so many what it `wants`. The first time that all
    /// rates are `known` that is not a change, but the choice. Until then it is given more whenever
    /// it wants more: what is seen of a burst is less than it is.
    pub(crate) fn is_over(&mut self, now: Instant, has: u64, wants: u64, known: bool) -> bool {
        let chosen = std::mem::replace(&mut self.chosen, known);
        let (less, more) = (has.min(wants), has.max(wants));
        self.misfit_since = self.misfit_since.or(Some(now)).filter(|_| less < more);
        let late = has_lasted(self.misfit_since, REFIT_AFTER, now);
        let choice = !chosen && (known || has < wants);
        less < more && (late || choice || less.saturating_mul(MUCH) <= more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key with four copies for which rates are known.
    fn chosen() -> Fit {
        let mut fit = Fit::default();
        assert!(!fit.is_over(at(0), 4, 4, true));
        fit
    }

    fn at(ms: u64) -> Instant {
        Instant::from_unix_ms(1_000_000 + ms)
    }

    #[test]
    fn a_little_off_is_changed_when_it_has_been_for_two_seconds() {
        let mut fit = chosen();
        assert!(!fit.is_over(at(0), 4, 6, true));
        assert!(!fit.is_over(at(1_999), 4, 2, true), "the other way round is no better");
        assert!(fit.is_over(at(2_000), 4, 6, true));
        let mut fit = chosen();
        assert!(!fit.is_over(at(0), 4, 6, true));
        assert!(!fit.is_over(at(1_900), 4, 4, true), "it fits again");
        assert!(!fit.is_over(at(2_000), 4, 6, true));
        assert!(!fit.is_over(at(3_999), 4, 6, true));
        assert!(fit.is_over(at(4_000), 4, 6, true));
    }

    #[test]
    fn what_can_wait_waits_for_others() {
        let long = Duration::from_secs(2);
        for (since, now, over) in [
            (at(0), at(2_000), true),
            (at(1), at(2_001), false),
            (at(1), at(2_499), false),
            (at(1), at(2_500), true),
            (at(499), at(2_500), true),
        ] {
            assert_eq!(has_lasted(Some(since), long, now), over, "{since:?} {now:?}");
        }
        assert!(!has_lasted(None, long, at(9_000)));
    }

    #[test]
    fn much_off_is_changed_at_once() {
        assert!(chosen().is_over(at(0), 4, 16, true));
        assert!(chosen().is_over(at(0), 4, 1, true));
        assert!(chosen().is_over(at(0), 4, 0, true));
        assert!(!chosen().is_over(at(0), 4, 15, true));
    }

    #[test]
    fn it_is_chosen_when_rates_are_first_known() {
        let mut fit = Fit::default();
        assert!(fit.is_over(at(0), 4, 6, false), "nothing was chosen by anything yet");
        assert!(!fit.is_over(at(1), 6, 5, false), "a burst may be more than is known of it");
        assert!(fit.is_over(at(1), 6, 5, true));
        assert!(!fit.is_over(at(2), 5, 6, true));
    }
}
