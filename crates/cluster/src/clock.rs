//! The clock of the cluster, by which values expire: every member keeps how far it is ahead of its
//! own, and is told so by the controller.

use crate::Incarnation;
use machine::{Instant, UnixMs};
use serde::{Deserialize, Serialize};

/// How far one clock is ahead of another, in nanoseconds; behind it if that is negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClockAhead(pub i64);

impl ClockAhead {
    /// How far the clock that shows `there` is ahead of the one that shows `here`, up to 292 years.
    #[must_use]
    pub fn of(there: Instant, here: Instant) -> Self {
        let ahead = i128::from(there.0) - i128::from(here.0);
        let most = if there > here { i64::MAX } else { i64::MIN };
        Self(i64::try_from(ahead).unwrap_or(most))
    }

    /// What the clock that is ahead shows when the other one shows `now`.
    #[must_use]
    pub const fn instant(self, now: Instant) -> Instant {
        Instant(now.0.saturating_add_signed(self.0))
    }

    /// The same in milliseconds.
    #[must_use]
    pub const fn time(self, now: Instant) -> UnixMs {
        UnixMs(self.instant(now).unix_ms())
    }
}

/// What time it is, said to one incarnation of a node: the next one may find its clock set, and an
/// order that comes late would tell it a wrong time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOrder {
    /// To whom that is said.
    pub incarnation: Incarnation,
    /// How far the cluster's clock is ahead of its own.
    pub ahead: ClockAhead,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ahead_shows_more_and_nothing_overflows() {
        let (early, late) = (Instant::from_unix_ms(1_000), Instant::from_unix_ms(4_000));
        assert_eq!(ClockAhead::of(late, early).time(early), UnixMs(4_000));
        assert_eq!(ClockAhead::of(early, late).time(late), UnixMs(1_000));
        assert_eq!(ClockAhead::of(Instant(u64::MAX), Instant(0)), ClockAhead(i64::MAX));
        assert_eq!(ClockAhead::of(Instant(0), Instant(u64::MAX)), ClockAhead(i64::MIN));
        assert_eq!(ClockAhead(i64::MIN).time(early), UnixMs(0));
    }
}
