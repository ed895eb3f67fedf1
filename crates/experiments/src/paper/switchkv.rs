//! The figures of section 4 of SwitchKV (Li et al., NSDI 2016), with Keyway's machines.
//!
//! Each experiment is a list of independent points: a rack and a load. All cores work on them, and
//! what comes out depends on the settings alone. As in the paper clients change their rate so that
//! 0.5 to 1 % of all requests are lost, where the figure is about throughput.

mod balance;
mod latency;
mod nodes;
mod scale;
mod system;
mod updates;

use crate::paper::plot::Panel;
use crate::paper::rack::{Finding, Losses, Pace, RackSpec, Store};
use crate::paper::{Figure, Load, Skew};
use std::error::Error;
use std::fmt;
use std::time::Duration;
use system::System;

/// What the experiments have in common.
#[derive(Clone, Debug)]
pub struct SwitchKvSettings {
    /// Storage nodes; where their number varies, the most.
    pub nodes: u16,
    /// Keys that clients ask for. The most popular of them are stored.
    pub keys: u64,
    /// Keys that the cache holds at most.
    pub items: u32,
    /// Changes of its rules that the switch takes in a second; what suits the figure if `None`.
    pub rules_per_s: Option<u32>,
    /// How fast racks are.
    pub pace: Pace,
    /// Seed of everything drawn.
    pub seed: u64,
    /// Exponents of Zipf's law, where several are compared; those of the paper if empty.
    pub thetas: Vec<f64>,
    /// How long each trial is looked at; what suits the figure if `None`.
    pub window: Option<Duration>,
}

/// The figures there are.
pub const FIGURES: [u32; 11] = [9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19];

/// Why there is no such figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchKvRefusal {
    /// It is none of [`FIGURES`].
    Figure,
    /// Exponents were given, and it is at one of its own.
    Thetas(u32),
    /// A number of rules was given, and it compares some, or rules do not change in it.
    Rules(u32),
}

/// Whether [`figure`] can make this one.
///
/// # Errors
///
/// If it is none of [`FIGURES`], or the settings say what makes no difference to it.
pub fn check(number: u32, settings: &SwitchKvSettings) -> Result<(), SwitchKvRefusal> {
    if !FIGURES.contains(&number) {
        return Err(SwitchKvRefusal::Figure);
    }
    if !settings.thetas.is_empty() && !matches!(number, 9 | 10) {
        return Err(SwitchKvRefusal::Thetas(number));
    }
    if settings.rules_per_s.is_some() && !matches!(number, 16..=19) {
        return Err(SwitchKvRefusal::Rules(number));
    }
    Ok(())
}

/// Makes a figure, one of [`FIGURES`]. `tell` hears of each point when it and all before it are
/// done.
///
/// # Errors
///
/// As [`check`].
pub fn figure(
    number: u32,
    settings: &SwitchKvSettings,
    tell: impl FnMut(&str),
) -> Result<Figure, SwitchKvRefusal> {
    check(number, settings)?;
    Ok(match number {
        9 => nodes::figure(settings, tell),
        10 => balance::against_skew(settings, tell),
        11 => balance::against_items(settings, tell),
        12 => balance::against_writes(settings, tell),
        13 => latency::figure(settings, tell),
        14 => scale::figure(settings, tell),
        15 => updates::hot_in(settings, tell),
        16 => updates::hot_out(settings, tell),
        17 => updates::random(settings, tell),
        18 => updates::rule_buffer(settings, tell),
        19 => updates::against_rate(settings, tell),
        _ => return Err(SwitchKvRefusal::Figure),
    })
}

impl SwitchKvSettings {
    /// The popularities on the skew axes.
    fn skews(&self) -> Vec<(f64, Skew)> {
        let thetas = if self.thetas.is_empty() { &THETAS[..] } else { &self.thetas[..] };
        let skews = [Skew::Uniform].into_iter().chain(thetas.iter().copied().map(Skew::Zipf));
        std::iter::successors(Some(0.0), |x| Some(x + 1.0)).zip(skews).collect()
    }

    /// A rack of one of the systems.
    fn rack(&self, system: System) -> RackSpec {
        self.rack_with(system, self.items)
    }

    /// The same with so many keys in its cache at most.
    fn rack_with(&self, system: System, items: u32) -> RackSpec {
        let spec = RackSpec {
            pace: self.pace,
            stored: self.keys.min(STORED),
            store: Store { key_bytes: KEY_BYTES, ..Store::PEGASUS },
            finding: Finding { cables_past: 2, ..Finding::PEGASUS },
            once: true,
            ..RackSpec::new(self.nodes, self.keys, self.seed)
        };
        system.of(spec, items)
    }

    /// The first lines of all notes.
    fn notes(&self, window: Duration) -> Vec<String> {
        let Self { nodes, keys, items, pace, seed, .. } = self;
        let stored = (*keys).min(STORED);
        vec![
            format!(
                "{nodes} nodes of {} requests/s each, one cache of {} requests/s that holds \
                 {items} keys at most; seed {seed}",
                pace.node_rate(),
                pace.node_rate() * CACHE_TIMES
            ),
            format!(
                "{keys} keys of {KEY_BYTES} bytes with values of {} bytes; the {stored} most \
                 popular ones are stored, the others are asked for and not found",
                Store::PEGASUS.value_bytes
            ),
            format!(
                "open loop, Poisson, asked once; a cable takes {} us; looked at for {} s of \
                 virtual time each",
                pace.hop().as_micros(),
                window.as_secs_f64()
            ),
        ]
    }
}

/// How throughput is found.
fn losses_note(Losses { least, most }: Losses) -> String {
    format!(
        "throughput: what is answered while clients hold the share of lost requests between {} and \
         {} %, changing their rate every 10 ms",
        least * 100.0,
        most * 100.0
    )
}

/// A plot of throughput.
fn throughput_panel(title: &str, x: &'static str, places: Vec<String>) -> Panel {
    let (title, curves) = (title.to_owned(), Vec::new());
    Panel { title, x, places, y: "requests per second", logarithmic: false, curves }
}

/// Reads alone, as in all figures but 12.
fn reads(skew: Skew) -> Load {
    Load::only_reads(skew)
}

/// Exponents of Zipf's law on the skew axes.
const THETAS: [f64; 3] = [0.9, 0.95, 0.99];

/// The exponent where there is only one.
const THETA: f64 = 0.99;

/// Bytes of a key (section 4.1).
const KEY_BYTES: usize = 16;

/// How many of the most popular keys are stored. Nothing that is less popular is ever worth a place
/// in a cache.
const STORED: u64 = 200_000;

/// What the cache serves, in requests of a node (section 4.3).
const CACHE_TIMES: u32 = 100;

impl fmt::Display for SwitchKvRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Figure => write!(f, "there are {FIGURES:?}"),
            Self::Thetas(figure) => write!(
                f,
                "figure {figure} is at zipf {THETA} alone; others are in figures 9 and 10"
            ),
            Self::Rules(figure) => write!(
                f,
                "figure {figure} takes none; figures 16 to 19 are about one number of changes"
            ),
        }
    }
}

impl Error for SwitchKvRefusal {}
