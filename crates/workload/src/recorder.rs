//! Latencies and outcomes, as they happen.

use crate::{EndingCounts, IntervalSummary, KindSummary, Latency, OpKind, Summary};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Done, with effect.
    Done,
    /// Done: there was no such key.
    NotFound,
    /// Done without effect: the key, or its value, was not as expected.
    Conflict,
    /// Refused; without effect.
    Refused,
    /// No answer in time; a write may have happened.
    Unknown,
}

/// Latencies of operations by kind, in microseconds: 1 µs to 60 s with 3 significant digits.
#[derive(Clone, Debug)]
pub struct Recorder {
    kinds: BTreeMap<OpKind, KindRecord>,
    interval: Interval,
}

/// What happened since the last interval was taken.
#[derive(Clone, Debug)]
pub struct Interval {
    latencies: Histogram<u64>,
    endings: EndingCounts,
}

#[derive(Clone, Debug)]
struct KindRecord {
    latencies: Histogram<u64>,
    endings: EndingCounts,
}

/// Longest latency told from longer ones; nothing waits for a minute.
const LATENCY_US_MAX: u64 = 60_000_000;

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).expect("sound bounds")
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self { kinds: BTreeMap::new(), interval: Interval::new() }
    }

    /// Notes the end of an operation. `latency` counts from when it was meant to start, and is
    /// noted whatever the ending.
    pub fn record(&mut self, kind: OpKind, ending: Ending, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1);
        let record = self.kinds.entry(kind).or_insert_with(KindRecord::new);
        record.latencies.saturating_record(micros);
        record.endings.add(ending);
        self.interval.latencies.saturating_record(micros);
        self.interval.endings.add(ending);
    }

    /// Adds everything that another one has noted, but for its interval.
    pub fn merge(&mut self, other: &Self) {
        for (kind, theirs) in &other.kinds {
            let ours = self.kinds.entry(*kind).or_insert_with(KindRecord::new);
            ours.latencies.add(&theirs.latencies).expect("equal bounds");
            ours.endings.merge(&theirs.endings);
        }
    }

    /// What was noted since the last call.
    pub fn take_interval(&mut self) -> Interval {
        std::mem::take(&mut self.interval)
    }

    /// All latencies noted, in order.
    #[must_use]
    pub fn all_latencies(&self) -> Latencies {
        let mut all = histogram();
        for record in self.kinds.values() {
            all.add(&record.latencies).expect("equal bounds");
        }
        Latencies(all)
    }

    /// Everything noted over a run that took so long.
    #[must_use]
    pub fn summary(&self, run: Duration) -> Summary {
        let mut all = KindRecord::new();
        for record in self.kinds.values() {
            all.latencies.add(&record.latencies).expect("equal bounds");
            all.endings.merge(&record.endings);
        }
        let kinds = self.kinds.iter().map(|(kind, record)| record.summary(Some(*kind), run));
        Summary {
            seconds: run.as_secs_f64(),
            all: all.summary(None, run),
            kinds: kinds.collect(),
            intervals: Vec::new(),
        }
    }
}

/// Latencies as a distribution.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// Which latency, in microseconds, so much of all is not above, from 0 to 1.
    #[must_use]
    pub fn at_share(&self, share: f64) -> u64 {
        self.0.value_at_quantile(share)
    }

    /// The mean, in microseconds.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        self.0.mean()
    }
}

impl KindRecord {
    fn new() -> Self {
        Self { latencies: histogram(), endings: EndingCounts::default() }
    }

    fn summary(&self, kind: Option<OpKind>, run: Duration) -> KindSummary {
        let ops = self.endings.total();
        KindSummary {
            kind,
            ops,
            ops_per_second: per_second(ops, run),
            endings: self.endings,
            latency: latency(&self.latencies),
        }
    }
}

impl Interval {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self { latencies: histogram(), endings: EndingCounts::default() }
    }

    /// Adds what happened elsewhere in the same interval.
    pub fn merge(&mut self, other: &Self) {
        self.latencies.add(&other.latencies).expect("equal bounds");
        self.endings.merge(&other.endings);
    }

    /// In figures: the interval took `length` and ended `at` after the start of the run.
    #[must_use]
    pub fn summary(&self, at: Duration, length: Duration) -> IntervalSummary {
        IntervalSummary {
            second: at.as_secs_f64(),
            ops_per_second: per_second(self.endings.total(), length),
            endings: self.endings,
            latency: latency(&self.latencies),
        }
    }
}

impl Default for Interval {
    fn default() -> Self {
        Self::new()
    }
}

fn per_second(ops: u64, run: Duration) -> f64 {
    if run.is_zero() { 0.0 } else { ops as f64 / run.as_secs_f64() }
}

fn latency(histogram: &Histogram<u64>) -> Latency {
    Latency {
        mean_us: histogram.mean(),
        p50_us: histogram.value_at_quantile(0.5),
        p90_us: histogram.value_at_quantile(0.9),
        p99_us: histogram.value_at_quantile(0.99),
        p999_us: histogram.value_at_quantile(0.999),
        max_us: histogram.max(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: u64, exact: u64) -> bool {
        value.abs_diff(exact) * 1_000 <= exact
    }

    #[test]
    fn percentiles_are_right_to_three_digits() {
        let mut recorder = Recorder::new();
        for micros in 1..=100_000 {
            recorder.record(OpKind::Get, Ending::Done, Duration::from_micros(micros));
        }
        let Latency { mean_us, p50_us, p90_us, p99_us, p999_us, max_us } =
            recorder.summary(Duration::from_secs(10)).all.latency;
        assert!((mean_us - 50_000.5).abs() < 50.0, "{mean_us}");
        assert!(near(p50_us, 50_000) && near(p90_us, 90_000), "{p50_us} {p90_us}");
        assert!(near(p99_us, 99_000) && near(p999_us, 99_900), "{p99_us} {p999_us}");
        assert!(near(max_us, 100_000), "{max_us}");
    }

    #[test]
    fn extremes_are_kept_within_the_bounds() {
        let mut recorder = Recorder::new();
        recorder.record(OpKind::Put, Ending::Done, Duration::ZERO);
        recorder.record(OpKind::Put, Ending::Unknown, Duration::MAX);
        let all = recorder.summary(Duration::from_secs(1)).all;
        assert_eq!(all.ops, 2);
        assert_eq!(all.latency.p50_us, 1);
        let latencies = recorder.all_latencies();
        assert_eq!(latencies.at_share(0.5), 1);
        assert!(near(latencies.at_share(1.0), LATENCY_US_MAX));
        assert!(near(all.latency.max_us, LATENCY_US_MAX));
    }

    #[test]
    fn merging_is_the_same_as_recording_in_one_place() {
        let (mut one, mut two, mut both) = (Recorder::new(), Recorder::new(), Recorder::new());
        for n in 0..10_000_u64 {
            let (part, kind) =
                if n % 3 == 0 { (&mut one, OpKind::Get) } else { (&mut two, OpKind::Cas) };
            let ending = if n % 5 == 0 { Ending::Conflict } else { Ending::Done };
            let latency = Duration::from_micros(n * 17 % 4_001);
            part.record(kind, ending, latency);
            both.record(kind, ending, latency);
        }
        let run = Duration::from_secs(4);
        let mut merged = Recorder::new();
        merged.merge(&one);
        merged.merge(&two);
        assert_eq!(merged.summary(run), both.summary(run));
        let summary = both.summary(run);
        assert_eq!(summary.all.endings.conflict, 2_000);
        assert!((summary.all.ops_per_second - 2_500.0).abs() < 1e-9);
        assert_eq!(summary.kinds.iter().map(|k| k.ops).collect::<Vec<_>>(), [3_334, 6_666]);

        let mut interval = one.take_interval();
        interval.merge(&two.take_interval());
        let second = interval.summary(run, Duration::from_secs(1));
        assert_eq!(second.endings, summary.all.endings);
        assert_eq!(second.latency, summary.all.latency);
        assert_eq!(one.take_interval().summary(run, run).endings.total(), 0);
    }

    #[test]
    fn a_summary_survives_json() {
        let mut recorder = Recorder::new();
        recorder.record(OpKind::Rmw, Ending::NotFound, Duration::from_micros(250));
        let mut summary = recorder.summary(Duration::from_secs(2));
        let interval = recorder.take_interval();
        summary.intervals.push(interval.summary(Duration::from_secs(1), Duration::from_secs(1)));
        let text = serde_json::to_string(&summary).unwrap();
        assert!(text.contains(r#""kind":"rmw""#), "{text}");
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
    }
}
