//! One run at one rate, and the search for the highest rate that is still served in time.

use crate::rack::Rack;
use serde_json::Value;

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    /// Of whose keys.
    pub(crate) keyspace: String,
    /// As `keyway bench` names it.
    pub(crate) distribution: String,
    /// Share of reads in percent; the rest are writes.
    pub(crate) reads: u32,
    /// How many keys.
    pub(crate) keys: u64,
    /// Seconds that are looked at, after those in which the rack gets used to it.
    pub(crate) seconds: u32,
}

/// How a run went.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    /// Requests per second that were answered.
    pub(crate) served: f64,
    /// Median of the 99th percentiles of its seconds, in microseconds.
    pub(crate) p99_us: u64,
    /// What each node took.
    pub(crate) loads: Vec<u64>,
}

/// Seconds before those that are looked at: hot keys are found and copied.
const WARM: usize = 2;

/// Halvings of the interval in which the highest rate is looked for.
const STEPS: u32 = 6;

impl Workload {
    /// Runs it at a rate, in an open loop.
    pub(crate) fn run(&self, rack: &Rack, rate: u64, seed: u64) -> Trial {
        let reads = f64::from(self.reads) / 100.0;
        let mix = match self.reads {
            100 => "get=1".to_owned(),
            0 => "put=1".to_owned(),
            _ => format!("get={reads},put={:.2}", 1.0 - reads),
        };
        let seconds = u32::try_from(WARM).expect("few") + self.seconds;
        let words = [
            "bench".to_owned(),
            format!("--keyspace={}", self.keyspace),
            format!("--mix={mix}"),
            format!("--distribution={}", self.distribution),
            format!("--keys={}", self.keys),
            format!("--rate={rate}"),
            format!("--duration={seconds}s"),
            format!("--seed={seed}"),
        ];
        let before = rack.requests();
        let told = rack.keyway(&words);
        let after = rack.requests();
        let intervals = told.pointer("/run/summary/intervals").and_then(Value::as_array);
        let intervals = intervals.unwrap_or_else(|| panic!("no intervals in {told:#}"));
        let looked_at: Vec<&Value> =
            intervals.iter().skip(WARM).take(self.seconds as usize).collect();
        let number = |it: &Value, path: &str| it.pointer(path).and_then(Value::as_f64);
        let served = looked_at.iter().filter_map(|it| number(it, "/ops_per_second")).sum::<f64>()
            / f64::from(self.seconds);
        let mut p99s: Vec<u64> =
            looked_at.iter().filter_map(|it| it.pointer("/latency/p99_us")?.as_u64()).collect();
        p99s.sort_unstable();
        let p99_us = p99s.get(p99s.len() / 2).copied().unwrap_or(u64::MAX);
        let loads = after.iter().zip(&before).map(|(after, before)| after - before).collect();
        Trial { served, p99_us, loads }
    }

    /// The highest rate, up to `cap`, at which the 99th percentile stays under `p99_us_max` and
    /// what is asked for is answered: by halving, to 1.6 % of the cap.
    pub(crate) fn highest(&self, rack: &Rack, cap: u64, p99_us_max: u64) -> Option<Trial> {
        let (mut low, mut high) = (0, cap);
        let mut best = None;
        for step in 0..STEPS {
            let rate = u64::midpoint(low, high);
            let trial = self.run(rack, rate.max(1), u64::from(step) + 1);
            let holds = trial.p99_us <= p99_us_max && trial.served >= 0.97 * rate as f64;
            eprintln!(
                "  {} {} % reads {}: {rate}/s -> {:.0}/s, p99 {} us{}",
                self.keyspace,
                self.reads,
                self.distribution,
                trial.served,
                trial.p99_us,
                if holds { "" } else { ": too much" },
            );
            if holds {
                low = rate;
                best = Some(trial);
            } else {
                high = rate;
            }
        }
        best
    }
}

impl Trial {
    /// The load of the busiest node over the mean.
    pub(crate) fn imbalance(&self) -> f64 {
        let most = self.loads.iter().max().copied().unwrap_or_default() as f64;
        let mean = self.loads.iter().sum::<u64>() as f64 / self.loads.len().max(1) as f64;
        most / mean.max(1.0)
    }
}
