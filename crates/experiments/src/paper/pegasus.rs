//! The figures of section 8 of Pegasus (Li et al., OSDI 2020), with Keyway's machines.
//!
//! Each experiment is a list of independent points: a rack and a load. All cores work on them, and
//! what comes out depends on the settings alone.

mod shifts;
mod tail;
mod throughput;

use crate::paper::points::measure_all;
use crate::paper::rack::{Pace, RackSpec, Store};
use crate::paper::search::OBJECTIVE_TIMES;
use crate::paper::{Arm, Figure, Load, Skew};
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// What the experiments have in common.
#[derive(Clone, Debug)]
pub struct PegasusSettings {
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
    /// The ways to spread load that are looked at; what suits the figure if empty.
    pub arms: Vec<Arm>,
    /// Exponents of Zipf's law, where several are compared; what suits the figure if empty.
    pub thetas: Vec<f64>,
    /// How long each trial is looked at; what suits the figure if `None`.
    pub window: Option<Duration>,
}

/// The figures there are.
pub const FIGURES: [u32; 7] = [8, 9, 10, 11, 12, 13, 14];

/// Why there is no such figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PegasusRefusal {
    /// It is none of [`FIGURES`].
    Figure,
    /// Exponents were given, and it is at one of its own.
    Thetas(u32),
    /// It is about copies under one way to spread load, and others were given.
    Arms(u32),
}

/// Whether [`figure`] can make this one.
///
/// # Errors
///
/// If it is none of [`FIGURES`], or the settings say what makes no difference to it.
pub fn check(number: u32, settings: &PegasusSettings) -> Result<(), PegasusRefusal> {
    let (skewed_once, about_copies) = match number {
        8 | 9 => (false, false),
        10 | 11 | 14 => (true, false),
        12 | 13 => (false, true),
        _ => return Err(PegasusRefusal::Figure),
    };
    if skewed_once && !settings.thetas.is_empty() {
        return Err(PegasusRefusal::Thetas(number));
    }
    match settings.arms.as_slice() {
        [] | [Arm::Copies | Arm::Anywhere] => Ok(()),
        _ if about_copies => Err(PegasusRefusal::Arms(number)),
        _ => Ok(()),
    }
}

/// Makes a figure, one of [`FIGURES`]. `tell` hears of each point when it and all before it are
/// done.
///
/// # Errors
///
/// Those of [`check`].
pub fn figure(
    number: u32,
    settings: &PegasusSettings,
    tell: impl FnMut(&str),
) -> Result<Figure, PegasusRefusal> {
    check(number, settings)?;
    match number {
        8 => Ok(throughput::against_skew(settings, tell)),
        9 => Ok(tail::against_skew(settings, tell)),
        10 => Ok(throughput::against_reads(settings, tell)),
        11 => Ok(throughput::against_nodes(settings, tell)),
        12 => Ok(throughput::against_hot_keys(settings, tell)),
        13 => Ok(throughput::against_speeds(settings, tell)),
        14 => Ok(shifts::per_interval(settings, tell)),
        _ => Err(PegasusRefusal::Figure),
    }
}

impl PegasusSettings {
    /// The ways to spread load that are compared, hashing first.
    fn arms(&self) -> impl Iterator<Item = Arm> {
        let wanted = |arm: &Arm| self.arms.is_empty() || self.arms.contains(arm);
        Arm::ALL.into_iter().filter(wanted)
    }

    /// The way that is looked at where arms are not compared, but something else about hot keys.
    fn spreading(&self) -> Arm {
        self.arms.first().copied().unwrap_or(Arm::Copies)
    }

    /// The exponents of Zipf's law that are compared, the least first, each once.
    fn thetas(&self, usual: &[f64]) -> Vec<f64> {
        let thetas = if self.thetas.is_empty() { usual } else { &self.thetas };
        let mut thetas = thetas.to_vec();
        thetas.sort_by(f64::total_cmp);
        thetas.dedup();
        thetas
    }

    /// What stands on a skew axis, with the places on it: uniform keys, then the skewed ones.
    fn skews(&self) -> Vec<(f64, Skew)> {
        let places = std::iter::successors(Some(0.0), |place| Some(place + 1.0));
        let skewed = self.thetas(&THETAS).into_iter().map(Skew::Zipf);
        places.zip([Skew::Uniform].into_iter().chain(skewed)).collect()
    }

    /// The load of figures that are not about what is asked.
    fn load(&self, skew: Skew) -> Load {
        Load { reads_percent: self.reads_percent, ..Load::only_reads(skew) }
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
        let &Self { nodes, keys, replicas, pace, seed, .. } = self;
        RackSpec { pace, replicas, arm, ..RackSpec::new(nodes, keys, seed) }
    }

    /// The first lines of all notes.
    fn notes(&self, window: Duration) -> Vec<String> {
        let Self { nodes, keys, replicas, pace, seed, .. } = self;
        let rate = pace.node_rate();
        let Store { key_bytes, value_bytes, .. } = Store::PEGASUS;
        vec![
            format!(
                "{nodes} nodes that serve {rate} requests/s each, chains of {replicas}; \
                 {keys} keys of {key_bytes} bytes, values of {value_bytes}; seed {seed}"
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
             idle rack (the objective); x hashing: over that of hashing in the same table"
        ));
        notes.push(CAP_NOTE.to_owned());
        notes
    }
}

impl fmt::Display for PegasusRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Figure => write!(f, "there are {FIGURES:?}"),
            Self::Thetas(figure) => write!(
                f,
                "figure {figure} is at zipf {THETA} alone; others are in figures 8, 9, 12 and 13"
            ),
            Self::Arms(figure) => write!(
                f,
                "figure {figure} is about copies: choose either {} or {}, or none for the former",
                Arm::Copies.option(),
                Arm::Anywhere.option()
            ),
        }
    }
}

impl Error for PegasusRefusal {}

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
