//! What a partition is asked for.

use crate::hot::per_second;
use std::time::Duration;

/// More than any partition is asked for: a switch that says so has counted wrong.
const RATE_MAX: u64 = u32::MAX as u64;

/// Requests for a partition per second, without those that copies of hot keys answered and those
/// that went to chains of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
}

impl Rate {
    pub(super) fn since(self, before: Self) -> Self {
        let Self { reads, writes } = before;
        Self { reads: self.reads.saturating_sub(reads), writes: self.writes.saturating_sub(writes) }
    }

    pub(super) fn all(self) -> u64 {
        self.reads.saturating_add(self.writes)
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { reads: self.reads + other.reads, writes: self.writes + other.writes }
    }

    /// So many thousandths of it.
    pub(super) fn permille(self, share: u64) -> Self {
        Self { reads: self.reads * share / 1_000, writes: self.writes * share / 1_000 }
    }

    pub(super) fn mean(samples: impl Iterator<Item = Self> + Clone) -> Self {
        let mean = |of: fn(Self) -> u64| {
            let count = samples.clone().count() as u64;
            samples.clone().map(of).sum::<u64>().checked_div(count).unwrap_or(0)
        };
        Self { reads: mean(|it| it.reads), writes: mean(|it| it.writes) }
    }

    pub(super) fn per_second(self, time: Duration) -> Self {
        let of = |events| per_second(events, time).min(RATE_MAX);
        Self { reads: of(self.reads), writes: of(self.writes) }
    }
}
