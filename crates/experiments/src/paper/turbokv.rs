//! The figures and tables of section 8 of TurboKV (Eldakiky, Du, Ramadan, 2020), with Keyway's
//! machines: who finds the node that a request is for.
//!
//! Every arm is the same cluster under the same load: range partitions with chains, nodes that
//! serve requests one after the other, and a switch between all of them. In-switch, the switch
//! looks at each request; client-driven, each client does, by a map that is never old, and the
//! switch only passes it on; server-driven, requests go to nodes at random, which pass on what is
//! for another. What they pass on is answered straight: the paper counts one step more on the way
//! to the right node and none on the way back, and of the two that is kinder to this arm.

mod filling;
mod latency;
mod migration;
mod papers;
mod throughput;

pub(crate) use latency::load_of;
pub(crate) use papers::{Kind, milliseconds};
pub(crate) use throughput::Part;

use crate::paper::rack::{Finder, Finding, Order, Pace, Rack, RackSpec, Store};
use crate::paper::search::OBJECTIVE_TIMES;
use crate::paper::{Figure, Load, Panel, Skew};
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// What the experiments have in common.
#[derive(Clone, Debug)]
pub struct TurboKvSettings {
    /// Storage nodes.
    pub nodes: u16,
    /// Keys.
    pub keys: u64,
    /// Sub-ranges of the keyspace, with as many keys each.
    pub partitions: u32,
    /// Nodes of each chain.
    pub replicas: u8,
    /// What it takes a node to pass a request on, in percent of what it takes it to serve one.
    pub forward_percent: u32,
    /// Keys of a scan at most.
    pub scan_keys: u64,
    /// How fast racks are.
    pub pace: Pace,
    /// Seed of everything drawn.
    pub seed: u64,
    /// Who coordinates, of those that are compared; all if empty.
    pub finders: Vec<Finder>,
    /// Exponents of Zipf's law; those of the paper if empty.
    pub thetas: Vec<f64>,
    /// How long each trial is looked at; what suits it if `None`.
    pub window: Option<Duration>,
}

/// Something that the paper shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhibit {
    /// One of [`FIGURES`].
    Figure(u32),
    /// One of [`TABLES`].
    Table(u32),
    /// Load over time while a hot range moves, which the paper speaks of in section 5.1.
    Migration,
    /// How full nodes are over time while keys are written, of which the paper says nothing.
    Filling,
}

/// The figures there are.
pub const FIGURES: [u32; 3] = [13, 14, 15];

/// The tables there are.
pub const TABLES: [u32; 2] = [1, 2];

/// Why there is no such figure or table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurboKvRefusal {
    /// It is none of [`FIGURES`] or [`TABLES`].
    Exhibit,
    /// More exponents were given than it has use for.
    Thetas(Exhibit),
    /// Arms were given, and it compares others.
    Finders(Exhibit),
}

/// What it takes a node to pass a request on, in percent of what it takes it to serve one, unless
/// said otherwise.
///
/// Keyway's user-space switch does what a coordinator does: it receives a datagram, finds a
/// partition, stamps the header and sends on, once for a request and once for its reply. Beside
/// nodes that serve GETs from memory (`cargo bench -p keyway --bench coordination`) it takes 0.24
/// to 0.8 us of processor time for each of the two, and they 0.7 to 1.8 us: 0.33 to 0.59 of a
/// service. The paper's own figures say as much as the upper end. Uniform reads take its
/// server-driven arm 14.1 ms longer than the in-switch one (table 1), of which one in 16 has
/// nothing to pass on: 15.0 ms for a step. A step down a chain, which also writes, takes
/// (123.5 - 72.5) / 2 = 25.5 ms: 0.59 of it.
pub const FORWARD_PERCENT: u32 = 60;

/// Longest scan: its pieces are asked for at once.
pub const SCAN_KEYS_MAX: u64 = 1_000;

/// Makes a figure or a table. `tell` hears of each point when it and all before it are done.
///
/// # Errors
///
/// Those of [`check`].
pub fn make(
    exhibit: Exhibit,
    settings: &TurboKvSettings,
    tell: impl FnMut(&str),
) -> Result<Figure, TurboKvRefusal> {
    check(exhibit, settings)?;
    Ok(match exhibit {
        Exhibit::Figure(14 | 15) => latency::figure(settings, exhibit.skew(), tell),
        Exhibit::Table(1 | 2) => latency::table(settings, exhibit.skew(), tell),
        Exhibit::Migration => migration::figure(settings, tell),
        Exhibit::Filling => filling::figure(settings, tell),
        Exhibit::Figure(_) | Exhibit::Table(_) => throughput::figure(settings, tell),
    })
}

/// Whether [`make`] can make this.
///
/// # Errors
///
/// If there is none of this number, or the settings say what makes no difference to it.
pub fn check(exhibit: Exhibit, settings: &TurboKvSettings) -> Result<(), TurboKvRefusal> {
    match exhibit {
        Exhibit::Figure(13) => Ok(()),
        Exhibit::Figure(14 | 15) | Exhibit::Table(1 | 2) if settings.thetas.is_empty() => Ok(()),
        Exhibit::Figure(14 | 15) | Exhibit::Table(1 | 2) => Err(TurboKvRefusal::Thetas(exhibit)),
        Exhibit::Migration if settings.thetas.len() > 1 => Err(TurboKvRefusal::Thetas(exhibit)),
        Exhibit::Filling if !settings.thetas.is_empty() => Err(TurboKvRefusal::Thetas(exhibit)),
        Exhibit::Migration | Exhibit::Filling if !settings.finders.is_empty() => {
            Err(TurboKvRefusal::Finders(exhibit))
        }
        Exhibit::Migration | Exhibit::Filling => Ok(()),
        Exhibit::Figure(_) | Exhibit::Table(_) => Err(TurboKvRefusal::Exhibit),
    }
}

/// What figure 14 and table 1 are about.
const UNIFORM: Skew = Skew::Uniform;

/// What figure 15 and table 2 are about.
const SKEWED: Skew = Skew::Zipf(THETA);

/// The exponent where there is only one.
const THETA: f64 = 1.2;

/// Exponents where they are compared.
const THETAS: [f64; 4] = [0.9, 0.95, 0.99, THETA];

/// For how long a rack gets used to those who ask: nodes that are asked past the switch need a
/// lease for that.
const SETTLING: Duration = Duration::from_millis(500);

/// What is asked for while it does: this share of what the server-driven arm can serve.
const SETTLING_SHARE: f64 = 0.3;

impl Exhibit {
    /// How popular keys are where that is not what is compared.
    pub(crate) fn skew(self) -> Skew {
        if matches!(self, Self::Figure(14) | Self::Table(1)) { UNIFORM } else { SKEWED }
    }

    /// How many keys suit it: YCSB's basic database has 1,000 records, as the paper's.
    #[must_use]
    pub fn usual_keys(self) -> u64 {
        match self {
            Self::Figure(_) | Self::Table(_) => 1_000,
            Self::Migration | Self::Filling => 100_000,
        }
    }
}

impl TurboKvSettings {
    /// Those that are compared.
    pub(crate) fn finders(&self) -> impl Iterator<Item = Finder> {
        let wanted = |by: &Finder| self.finders.is_empty() || self.finders.contains(by);
        Finder::ALL.into_iter().filter(wanted)
    }

    /// Requests per second under which a node is never too busy where placement follows load: a
    /// tenth of what it can serve.
    fn load_floor(&self) -> u64 {
        u64::from(self.pace.node_rate()) / 10
    }

    /// Keys that are alike, and those that are not.
    fn skews(&self) -> impl Iterator<Item = Skew> {
        let mut thetas = if self.thetas.is_empty() { THETAS.to_vec() } else { self.thetas.clone() };
        thetas.sort_by(f64::total_cmp);
        thetas.dedup();
        [UNIFORM].into_iter().chain(thetas.into_iter().map(Skew::Zipf))
    }

    /// A rack whose keys lie in the order of their names, popular or written first: so many
    /// partitions of them, which follow load that is over this floor, or stay where they are.
    fn in_order(&self, partitions: u32, load_floor: Option<u64>) -> RackSpec {
        let &Self { nodes, pace, keys, replicas, seed, .. } = self;
        RackSpec {
            pace,
            store: Store {
                order: Order::Ranked,
                partitions: Some(partitions),
                key_bytes: KEY_BYTES,
                value_bytes: VALUE_BYTES,
                load_floor,
                memory_max: None,
            },
            replicas,
            ..RackSpec::new(nodes, keys, seed)
        }
    }

    /// A rack with them, which has got used to a load.
    fn rack(&self, by: Finder, load: &Load) -> Rack {
        let &Self { nodes, pace, keys, replicas, seed, .. } = self;
        let mut rack = Rack::new(RackSpec {
            pace,
            store: Store {
                order: Order::Shuffled,
                partitions: Some(self.partitions),
                key_bytes: KEY_BYTES,
                value_bytes: VALUE_BYTES,
                load_floor: None,
                memory_max: None,
            },
            replicas,
            finding: Finding { by, forward_permille: 10 * self.forward_percent, cables_past: 2 },
            ..RackSpec::new(nodes, keys, seed)
        });
        let rate = SETTLING_SHARE * rack.bounds_by(load, Finder::Nodes).hashing;
        rack.run(load, rate, SETTLING, None);
        rack
    }

    /// The first lines of all notes.
    fn notes(&self, window: Duration) -> Vec<String> {
        let Self { nodes, keys, partitions, replicas, pace, seed, .. } = self;
        let rate = pace.node_rate();
        let forward = f64::from(self.forward_percent) / 100.0;
        let past = 1.0 - 1.0 / f64::from(*nodes);
        vec![
            format!(
                "{nodes} nodes that serve {rate} requests/s each; {partitions} sub-ranges, chains \
                 of {replicas}; {keys} keys of {KEY_BYTES} bytes, values of {VALUE_BYTES}; popular \
                 keys lie anywhere; scans of 1 to {} keys; seed {seed}",
                self.scan_keys
            ),
            format!(
                "open loop, Poisson; a cable takes {} us, and there are two between any two of \
                 clients and nodes; looked at for {} s of virtual time each",
                pace.hop().as_micros(),
                window.as_secs_f64()
            ),
            format!(
                "server-driven: a node takes {forward} of a service to pass a request on, which \
                 {past:.3} of all need; so no rate of reads is beyond {:.3} of what the others can \
                 serve, and in-switch is at most {:+.1} % over it",
                1.0 / (1.0 + forward * past),
                100.0 * forward * past
            ),
            "client-driven: the ideal case, by a map that is never old, at no cost to anybody; a \
             switch takes no time, whether it looks at requests or not, and nodes know their \
             successors in all arms: so nothing sets in-switch apart from it here but chance"
                .to_owned(),
        ]
    }

    fn objective_note(&self) -> String {
        format!(
            "throughput: the highest at which p99 is at most {OBJECTIVE_TIMES} times that of an \
             idle rack of the same arm (the objective); limit: what the arm serves before its \
             busiest node is full; cap: the same if all nodes were as busy"
        )
    }
}

/// Bytes of each key.
const KEY_BYTES: usize = 16;
/// Bytes of each value.
pub(crate) const VALUE_BYTES: usize = 128;

/// By how much counts have grown, which are kept for the next time.
fn since<const COUNTS: usize>(before: &mut [u64; COUNTS], now: [u64; COUNTS]) -> [u64; COUNTS] {
    let before = std::mem::replace(before, now);
    let mut grown = now;
    grown.iter_mut().zip(before).for_each(|(grown, before)| *grown -= before);
    grown
}

/// A diagram of something over virtual time, with nothing in it yet.
fn panel_over_time(title: &str, y: &'static str) -> Panel {
    Panel {
        title: title.to_owned(),
        x: "time (s)",
        places: Vec::new(),
        y,
        logarithmic: false,
        curves: Vec::new(),
    }
}

/// By how much one is over another, in percent.
pub(crate) fn over(one: f64, other: f64) -> f64 {
    (one / other - 1.0) * 100.0
}

impl fmt::Display for Exhibit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Figure(number) => write!(f, "figure {number}"),
            Self::Table(number) => write!(f, "table {number}"),
            Self::Migration => f.write_str("figure migration"),
            Self::Filling => f.write_str("figure filling"),
        }
    }
}

impl fmt::Display for TurboKvRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exhibit => {
                write!(
                    f,
                    "there are figures {FIGURES:?}, migration, filling, and tables {TABLES:?}"
                )
            }
            Self::Thetas(Exhibit::Filling) => {
                f.write_str("figure filling writes each key once; none is popular")
            }
            Self::Thetas(exhibit) => write!(
                f,
                "{exhibit} is about one popularity of keys; exponents are compared in figure 13"
            ),
            Self::Finders(exhibit) => {
                write!(f, "{exhibit} is about placement, whoever finds the nodes")
            }
        }
    }
}

impl Error for TurboKvRefusal {}
