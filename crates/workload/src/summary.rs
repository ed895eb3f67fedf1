//! A run in figures, for people and for scripts.

use crate::{Ending, OpKind};
use serde::{Deserialize, Serialize};

/// Everything that a run measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How long it took.
    pub seconds: f64,
    /// All kinds of operation together.
    pub all: KindSummary,
    /// Each kind that occurred.
    pub kinds: Vec<KindSummary>,
    /// The run as it went, if that was kept.
    pub intervals: Vec<IntervalSummary>,
}

/// One kind of operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindSummary {
    /// Which; `None` for all together.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kind: Option<OpKind>,
    /// How many ended.
    pub ops: u64,
    /// How many ended per second of the run.
    pub ops_per_second: f64,
    /// How they ended.
    pub endings: EndingCounts,
    /// How long they took.
    pub latency: Latency,
}

/// A part of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalSummary {
    /// When it ended, in seconds after the start of the run.
    pub second: f64,
    /// How many operations ended per second.
    pub ops_per_second: f64,
    /// How they ended.
    pub endings: EndingCounts,
    /// How long they took.
    pub latency: Latency,
}

/// Counts by [`Ending`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndingCounts {
    /// See [`Ending::Done`].
    pub done: u64,
    /// See [`Ending::NotFound`].
    pub not_found: u64,
    /// See [`Ending::Conflict`].
    pub conflict: u64,
    /// See [`Ending::Refused`].
    pub refused: u64,
    /// See [`Ending::Unknown`].
    pub unknown: u64,
}

impl EndingCounts {
    /// Counts one.
    pub fn add(&mut self, ending: Ending) {
        let count = match ending {
            Ending::Done => &mut self.done,
            Ending::NotFound => &mut self.not_found,
            Ending::Conflict => &mut self.conflict,
            Ending::Refused => &mut self.refused,
            Ending::Unknown => &mut self.unknown,
        };
        *count += 1;
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        self.done += other.done;
        self.not_found += other.not_found;
        self.conflict += other.conflict;
        self.refused += other.refused;
        self.unknown += other.unknown;
    }

    /// All together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.done + self.not_found + self.conflict + self.refused + self.unknown
    }
}

/// Percentiles in microseconds; all 0 if nothing was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: u64,
    /// 90th percentile.
    pub p90_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// 99.9th percentile.
    pub p999_us: u64,
    /// The longest.
    pub max_us: u64,
}
