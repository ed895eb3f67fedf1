//! When requests are sent.

use super::figures::Rounds;
use machine::Rng;
use std::fmt;
use std::time::{Duration, Instant};

/// How a load is meant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// So many requests are in flight; one that is answered makes the next start.
    Closed(usize),
    /// So many are sent a second, at random, whatever is answered; latencies count from when each
    /// was due.
    Open(f64),
}

/// Of an open loop, in flight: more than a store that keeps up ever has, and fewer than make an
/// undisturbed socket drop any. Later ones are sent late, which is in their latencies.
const OPEN_IN_FLIGHT_MAX: usize = 512;

/// Equal load: so much of what the slowest reaches.
const EQUAL_SHARE: f64 = 0.5;

/// A load under which the tails of all are compared: a share of what the slowest of them reached in
/// these rounds, which count keys, by requests of so many keys.
pub(crate) fn equal(rounds: &[Rounds], keys: usize) -> Pace {
    let rates = rounds.iter().filter(|it| !it.is_empty()).map(|it| it.rate().median);
    Pace::Open(rates.fold(f64::MAX, f64::min) * EQUAL_SHARE / keys as f64)
}

impl Pace {
    pub(crate) fn in_flight_max(self) -> usize {
        match self {
            Self::Closed(count) => count,
            Self::Open(_) => OPEN_IN_FLIGHT_MAX,
        }
    }

    /// Requests in flight, if they are what is fixed.
    pub(crate) fn in_flight(self) -> Option<usize> {
        match self {
            Self::Closed(count) => Some(count),
            Self::Open(_) => None,
        }
    }

    /// Requests per second, if they are what is fixed.
    pub(crate) fn rate(self) -> Option<f64> {
        match self {
            Self::Closed(_) => None,
            Self::Open(rate) => Some(rate),
        }
    }

    /// Of requests between two times.
    pub(crate) fn schedule(self, begin: Instant, end: Instant) -> Schedule {
        Schedule { pace: self, due: begin, end }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(count) => write!(f, "{count} in flight"),
            Self::Open(rate) => write!(f, "at {:.1} k/s each", rate / 1e3),
        }
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// Ask for this key, as was due then.
    Ask { index: usize, due: Instant },
    /// Nothing before then.
    Later(Instant),
    /// Nothing any more.
    Over,
}

/// A load over time.
#[derive(Debug)]
pub(crate) struct Schedule {
    pace: Pace,
    /// When the next request is, in an open loop.
    due: Instant,
    end: Instant,
}

impl Schedule {
    /// What to do now; `key` draws a key.
    pub(crate) fn next(
        &mut self,
        rng: &mut Rng,
        now: Instant,
        key: impl Fn(&mut Rng) -> usize,
    ) -> Next {
        let (due, over) = match self.pace {
            Pace::Closed(_) => (now, now >= self.end),
            Pace::Open(_) => (self.due, self.due >= self.end),
        };
        if over {
            return Next::Over;
        }
        if due > now {
            return Next::Later(due);
        }
        if let Pace::Open(rate) = self.pace {
            // Gaps of a Poisson process.
            self.due += Duration::from_secs_f64(-(1.0 - rng.unit()).ln() / rate);
        }
        Next::Ask { index: key(rng), due }
    }
}
