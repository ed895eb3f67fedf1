//! The highest rate that a rack serves in time.

use crate::paper::rack::{Bounds, Rack, Trial};
use crate::paper::{Load, Skew};
use std::time::Duration;

/// What a rack does at best.
#[derive(Clone, Debug)]
pub struct Best {
    /// What no rate can get beyond.
    pub bounds: Bounds,
    /// What the 99th percentile may be, in microseconds.
    pub objective_us: u64,
    /// The trial at the highest rate that meets the objective.
    pub trial: Option<Trial>,
}

/// How much longer than on an idle rack the 99th percentile may be.
pub const OBJECTIVE_TIMES: u64 = 5;

/// Halvings of the interval in which the rate is looked for: the answer is right to 1/128 of what
/// the arm can serve at best.
const STEPS: u32 = 7;

/// Share of the cap at which a rack counts as idle: one request in 200 has to wait for another, so
/// that the percentile is of those that wait for nobody.
pub const IDLE_SHARE: f64 = 0.005;

/// Requests of which the latency of an idle rack is taken: twenty are beyond the percentile.
const IDLE_REQUESTS: f64 = 2_000.0;

/// The 99th percentile that the rack's answers must keep to: a multiple of what it is for the same
/// mix of uniform keys when next to nobody asks. In microseconds.
pub fn objective(rack: &mut Rack, load: &Load) -> u64 {
    let even = Load { skew: Skew::Uniform, shift: None, ..*load };
    let rate = rack.bounds(&even).cap * IDLE_SHARE;
    let window = Duration::from_secs_f64(IDLE_REQUESTS / rate);
    rack.run(&even, rate, window, None).p99_us * OBJECTIVE_TIMES
}

/// Looks for the highest rate at which the 99th percentile meets the objective, by halving. Each
/// trial begins on a rack that has nothing left to do of the one before.
pub fn highest(rack: &mut Rack, load: &Load, window: Duration) -> Best {
    let bounds = rack.bounds(load);
    let objective_us = objective(rack, load);
    let (mut low, mut high) = (0.0, rack.limit(&bounds));
    let mut best = None;
    rack.get_used_to(load, f64::midpoint(low, high));
    for _ in 0..STEPS {
        let rate = f64::midpoint(low, high);
        rack.come_to_rest();
        let trial = rack.run(load, rate, window, None);
        if trial.p99_us <= objective_us {
            low = rate;
            best = Some(trial);
        } else {
            high = rate;
        }
    }
    Best { bounds, objective_us, trial: best }
}
