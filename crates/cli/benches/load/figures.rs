//! From rounds to figures: medians with intervals, percentiles, and who was the bottleneck.

use super::round::Round;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::Duration;

/// Rounds of one arm.
#[derive(Debug, Default)]
pub(crate) struct Rounds(Vec<Round>);

/// A median and how far it may be off.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    /// The true median lies between `low` and `high` with a probability of at least 95 %, if the
    /// rounds are independent; for fewer than six rounds, all that can be said is least and most.
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |place: usize| *values.get(place).expect("there are rounds");
        let last = values.len() - 1;
        let skip = outside(values.len());
        let median = f64::midpoint(at(last / 2), at(values.len() / 2));
        Self { median, low: at(skip), high: at(last - skip) }
    }
}

/// How many of `count` sorted values may be cut off at each end so that the median of what they
/// were drawn from is still inside with at least 95 %: it is above each with probability 1/2.
fn outside(count: usize) -> usize {
    let mut term = 0.5f64.powi(i32::try_from(count).expect("few rounds"));
    let mut below = term;
    let mut skip = 0;
    while below <= 0.025 && skip < count / 2 {
        term *= (count - skip) as f64 / (skip + 1) as f64;
        below += term;
        if below > 0.025 {
            break;
        }
        skip += 1;
    }
    skip
}

impl Extend<Round> for Rounds {
    fn extend<T: IntoIterator<Item = Round>>(&mut self, rounds: T) {
        self.0.extend(rounds);
    }
}

impl Rounds {
    /// Whether nothing was measured.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Requests per second.
    pub(crate) fn rate(&self) -> Spread {
        Spread::of(self.0.iter().map(Round::rate).collect())
    }

    /// How many times the rate of `other`, round by round.
    pub(crate) fn ratio_to(&self, other: &Self) -> Spread {
        let pairs = self.0.iter().zip(&other.0);
        Spread::of(pairs.map(|(mine, theirs)| mine.rate() / theirs.rate()).collect())
    }

    /// A percentile of the latencies of all rounds, in microseconds.
    pub(crate) fn latency_us(&self, percentile: f64) -> f64 {
        let mut all = Histogram::<u64>::new(3).expect("sound bounds");
        self.0.iter().for_each(|round| all.add(&round.latencies_ns).expect("it grows"));
        all.value_at_percentile(percentile) as f64 / 1e3
    }

    /// Microseconds of the client's CPU time per request, in the median round.
    pub(crate) fn client_us(&self) -> f64 {
        self.per_request(|round| round.client_cpu)
    }

    /// Microseconds of CPU time per request of server threads whose name begins so.
    pub(crate) fn server_us(&self, prefix: &str) -> f64 {
        self.per_request(|round| round.server_cpu(prefix))
    }

    fn per_request(&self, cpu: impl Fn(&Round) -> Duration) -> f64 {
        let micros = |round: &Round| cpu(round).as_secs_f64() * 1e6 / round.answered as f64;
        Spread::of(self.0.iter().map(micros).collect()).median
    }

    /// Requests sent again because no answer came, and answers to nothing that waited.
    pub(crate) fn losses(&self) -> (u64, u64) {
        let resent = self.0.iter().map(|round| round.resent).sum();
        (resent, self.0.iter().map(|round| round.strays).sum())
    }

    /// Which side's core had no time left, in the median round.
    pub(crate) fn saturated(&self) -> &'static str {
        let full = |cpu: fn(&Round) -> Duration| {
            let share = |round: &Round| cpu(round).as_secs_f64() / round.elapsed.as_secs_f64();
            Spread::of(self.0.iter().map(share).collect()).median >= SATURATED
        };
        match (full(|round| round.client_cpu), full(|round| round.server_cpu(""))) {
            (true, true) => "both",
            (true, false) => "client",
            (false, true) => "server",
            (false, false) => "neither",
        }
    }
}

/// Share of a core from which on it counts as full; the rest is measuring error and interrupts.
const SATURATED: f64 = 0.93;
