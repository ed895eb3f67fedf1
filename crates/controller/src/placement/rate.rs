//! What a partition is asked for.

use crate::hot::per_second;
use cluster::RECORDS_PER_REQUEST;
use std::time::Duration;

/// More than any partition is asked for: a switch that says so has counted wrong.
const RATE_MAX: u64 = u32::MAX as u64;

/// The same in bytes.
const BYTES_MAX: u64 = RATE_MAX << 10;

/// Requests for a partition per second, without those that copies of hot keys answered and those
/// that went to chains of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// Records that those of the reads have examined that are scans.
    pub(crate) scanned: u64,
    /// Bytes of requests, and of answers to reads.
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

impl Rate {
    pub(super) fn since(self, before: Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    pub(super) fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// So many thousandths of it.
    pub(super) fn permille(self, share: u64) -> Self {
        self.map(|it| it * share / 1_000)
    }

    pub(super) fn mean(samples: impl Iterator<Item = Self>) -> Self {
        let (mut sum, mut count) = (Self::default(), 0);
        for sample in samples {
            (sum, count) = (sum.plus(sample), count + 1);
        }
        sum.map(|it| it.checked_div(count).unwrap_or(0))
    }

    pub(super) fn per_second(self, time: Duration) -> Self {
        let Self { reads, writes, scanned, bytes_in, bytes_out } =
            self.map(|events| per_second(events, time));
        Self {
            reads: reads.min(RATE_MAX),
            writes: writes.min(RATE_MAX),
            scanned: scanned.min(RATE_MAX),
            bytes_in: bytes_in.min(BYTES_MAX),
            bytes_out: bytes_out.min(BYTES_MAX),
        }
    }

    /// What its reads cost its tail, in requests.
    pub(super) fn reading(self) -> u64 {
        reading(self.reads, self.scanned)
    }

    /// What all of it costs its tail.
    pub(super) fn all(self) -> u64 {
        self.reading().saturating_add(self.writes)
    }

    /// What only nodes count, of what the switch counts as well.
    pub(super) fn uncounted_by_switches(self) -> Self {
        Self { reads: 0, writes: 0, ..self }
    }

    fn map(self, of: impl Fn(u64) -> u64) -> Self {
        self.with(Self::default(), |it, _| of(it))
    }

    fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            reads: of(self.reads, other.reads),
            writes: of(self.writes, other.writes),
            scanned: of(self.scanned, other.scanned),
            bytes_in: of(self.bytes_in, other.bytes_in),
            bytes_out: of(self.bytes_out, other.bytes_out),
        }
    }
}

/// What so many reads cost that examine so many records as scans, in requests.
pub(super) fn reading(reads: u64, scanned: u64) -> u64 {
    reads.saturating_add(scanned / RECORDS_PER_REQUEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_costs_as_much_as_some_requests() {
        let rate = Rate { reads: 10, writes: 3, scanned: 160, ..Rate::default() };
        assert_eq!((rate.reading(), rate.all()), (30, 33));
        let twice = rate.plus(rate);
        assert_eq!(Rate::mean([twice, Rate::default()].into_iter()), rate);
        assert_eq!(twice.since(rate), rate);
        assert_eq!(twice.permille(500), rate);
    }
}
