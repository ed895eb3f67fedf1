//! The figures of section 8 of Pegasus (Li et al., OSDI 2020), with Keyway's machines.
//!
//! Each experiment is a list of independent points: a rack and a load. All cores work on them, and
//! what comes out depends on the settings alone.

mod shifts;
mod tail;
mod throughput;

use crate::rack::{KEY_BYTES, Pace, RackSpec, VALUE_BYTES};
use crate::search::OBJECTIVE_TIMES;
use crate::{Arm, Figure, Load, Skew};
use cluster::Selection;
use sim::in_parallel;
use std::ops::ControlFlow;
use std::time::Duration;

/// What the experiments have in common.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Storage nodes; where it varies, the most.
    pub nodes: u16,
    /// Keys.
    pub keys: u64,
    /// Nodes of each chain.
    pub replicas: u8,
    /// How fast racks are.
    pub pace: Pace,
    /// Seed of everything drawn.
    pub seed: u64,
    /// Share of reads, in percent, where the figure is not about it; the rest are writes.
    pub reads_percent: u32,
    /// The only way to spread load that is looked at, where several are compared; all if `None`.
    pub arm: Option<Arm>,
    /// How long each trial is looked at; what suits the figure if `None`.
    pub window: Option<Duration>,
}

/// The figures there are.
pub const FIGURES: [u32; 7] = [8, 9, 10, 11, 12, 13, 14];

/// Makes a figure, one of [`FIGURES`]; `None` for any other. `tell` hears of each point when it
/// and all before it are done.
pub fn figure(number: u32, settings: &Settings, tell: impl FnMut(&str)) -> Option<Figure> {
    match number {
        8 => Some(throughput::against_skew(settings, tell)),
        9 => Some(tail::against_skew(settings, tell)),
        10 => Some(throughput::against_reads(settings, tell)),
        11 => Some(throughput::against_nodes(settings, tell)),
        12 => Some(throughput::against_hot_keys(settings, tell)),
        13 => Some(throughput::against_speeds(settings, tell)),
        14 => Some(shifts::per_interval(settings, tell)),
        _ => None,
    }
}

/// Measures every point, on all cores, and hands it on with what was measured, in their order.
fn measure_all<P: Sync, M: Send>(
    points: &[P],
    measure: impl Fn(&P) -> M + Sync,
    mut each: impl FnMut(&P, M),
) {
    let ended: ControlFlow<()> = in_parallel(points, measure, |point, measured| {
        each(point, measured);
        ControlFlow::Continue(())
    });
    assert!(ended.is_continue(), "nothing breaks off");
}

impl Settings {
    /// The ways to spread load that are compared.
    fn arms(&self) -> impl Iterator<Item = Arm> + use<> {
        let only = self.arm;
        Arm::ALL.into_iter().filter(move |arm| only.is_none_or(|only| only == *arm))
    }

    /// The way that is looked at where arms are not compared, but something else about hot keys.
    fn spreading(&self) -> Arm {
        match self.arm {
            Some(Arm::Anywhere) => Arm::Anywhere,
            Some(Arm::Hashing | Arm::Copies | Arm::Cache) | None => Arm::Copies,
        }
    }

    /// The load of figures that are not about what is asked.
    fn load(&self, skew: Skew) -> Load {
        Load { reads_percent: self.reads_percent, ..Load::reads(skew) }
    }

    /// The same in words.
    fn mix(&self) -> String {
        match self.reads_percent {
            100 => "reads only".to_owned(),
            reads => format!("{reads} % reads"),
        }
    }

    /// A rack with them.
    fn rack(&self, arm: Arm) -> RackSpec {
        let Self { nodes, keys, replicas, pace, seed, .. } = *self;
        let selection = Selection::default();
        RackSpec {
            nodes,
            pace,
            half_slow: false,
            keys,
            replicas,
            arm,
            selection,
            hot_keys_max: None,
            seed,
        }
    }

    /// The first lines of all notes.
    fn notes(&self, window: Duration) -> Vec<String> {
        let Self { nodes, keys, replicas, pace, seed, .. } = self;
        let rate = pace.node_rate();
        vec![
            format!(
                "{nodes} nodes that serve {rate} requests/s each, chains of {replicas}; \
                 {keys} keys of {KEY_BYTES} bytes, values of {VALUE_BYTES}; seed {seed}"
            ),
            format!(
                "open loop, Poisson; a hop takes {} us; looked at for {} s of virtual time each; \
                 no answer within {} ms counts as that latency",
                pace.hop().as_micros(),
                window.as_secs_f64(),
                pace.deadline().as_millis()
            ),
        ]
    }

    fn objective_notes(&self, window: Duration) -> Vec<String> {
        let mut notes = self.notes(window);
        notes.push(format!(
            "throughput: the highest at which p99 is at most {OBJECTIVE_TIMES} times that of an \
             idle rack (the objective)"
        ));
        notes.push(CAP_NOTE.to_owned());
        notes
    }
}

/// How the columns about bounds are to be read.
const CAP_NOTE: &str = "cap: what all nodes serve together over the nodes that a request visits; \
                        gain max: the cap over what hashing can serve before its busiest node is \
                        full, which no balancer can exceed";

/// The curve that all others are compared with: no key is hotter than another.
const EVEN: &str = "uniform keys";

/// Exponents of Zipf's law on the skew axes.
const THETAS: [f64; 4] = [0.9, 1.0, 1.1, 1.2];

/// The exponent where there is only one.
const THETA: f64 = 1.2;
