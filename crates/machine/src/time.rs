//! Time as the machines know it.

use std::ops::{Add, Sub};
use std::time::Duration;

/// Nanoseconds since the Unix epoch, read from a clock that never goes backwards.
///
/// One number serves timers and expiry both. Unlike `std`'s instants it can be made from an
/// integer, so that tests and the simulator start where they like. 64 bits last until 2554.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    /// Milliseconds since the Unix epoch, rounded down: the unit of expiry.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The first instant of this Unix millisecond; the end of time if it lies beyond.
    #[must_use]
    pub const fn from_unix_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Milliseconds since the Unix epoch by the clock of the cluster, which is that of no machine: the
/// time by which values expire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMs(pub u64);

impl Add<Duration> for UnixMs {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        let ms = u64::try_from(later.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(ms))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates: a deadline past 2554 is as good as none.
    fn add(self, later: Duration) -> Self {
        let nanos = u64::try_from(later.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, earlier: Duration) -> Self {
        let nanos = u64::try_from(earlier.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}
