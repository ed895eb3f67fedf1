//! What the experiments with hot keys have in common: the rack, the ways to spread load, the notes.

use crate::figure;
use crate::paper::IDLE_SHARE;
use crate::site::{Site, SiteLoad, Stored, VALUE_BYTES, Window};
use cluster::HotPolicy;
use console::exit::Failure;
use console::note;
use console::parse;
use lab::cluster::Cluster;
use lab::name::Name;
use lab::plane::Plane;
use lab::rack::{NODES_MAX, Rack};
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;
use workload::Distribution;

/// The rack of an experiment.
#[derive(Debug, clap::Args)]
pub(super) struct Ground {
    #[command(flatten)]
    lab: Name,
    /// Where packets are switched.
    #[arg(long, value_enum, default_value_t = Plane::User)]
    plane: Plane,
    /// Storage nodes, of one shard each.
    #[arg(long, value_name = "N", default_value_t = 32)]
    #[arg(value_parser = clap::value_parser!(u16).range(2..=i64::from(NODES_MAX)))]
    nodes: u16,
    /// Requests that each node serves in a second.
    ///
    /// The generator and the switch need a core together for some 25,000 a second: all nodes
    /// together should serve no more than half of what the machine can.
    #[arg(long, value_name = "PER_SECOND", default_value = "400", value_parser = parse::rate)]
    node_rate: NonZero<u32>,
    /// So many of the nodes, the last ones, serve half of that.
    #[arg(long, value_name = "N", default_value_t = 0)]
    slow_nodes: u16,
    /// Caches in front of the nodes, as fast as the machine. Without one there is no arm `cached`.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=wire::CACHES_MAX as i64))]
    caches: u16,
    /// Keys of each keyspace, with values of 100 bytes.
    #[arg(long, value_name = "N", default_value = "100k", value_parser = parse::count)]
    keys: u64,
    /// A way to spread load that is looked at; all, if none is named.
    #[arg(long = "arm", value_enum, value_name = "ARM", value_delimiter = ',')]
    arms: Vec<HotMode>,
    /// Where the plot goes.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(super) out: PathBuf,
}

/// What becomes of hot keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(super) enum HotMode {
    /// They stay at home (`--hot off`).
    Hashing,
    /// Copies of them answer reads (`--hot reads`).
    Copies,
    /// What is written much goes anywhere, too (`--hot replicate`).
    Anywhere,
    /// Caches hold them (`--hot cache`).
    Cached,
}

impl HotMode {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hashing => "hashing",
            Self::Copies => "copies",
            Self::Anywhere => "anywhere",
            Self::Cached => "cached",
        }
    }

    pub(super) fn policy(self) -> HotPolicy {
        match self {
            Self::Hashing => HotPolicy::Off,
            Self::Copies => HotPolicy::Reads,
            Self::Anywhere => HotPolicy::Replicate,
            Self::Cached => HotPolicy::Cache,
        }
    }

    /// How long it takes until what is hot is where it should be, of a load that stays as it is.
    pub(super) fn warms_up_in(self) -> Duration {
        match self {
            Self::Hashing | Self::Copies | Self::Anywhere => Duration::from_secs(3),
            // Each second nodes report a part of the keys that a cache has room for.
            Self::Cached => Duration::from_secs(16),
        }
    }
}

impl Ground {
    /// The ways that are looked at.
    pub(super) fn arms(&self) -> Vec<HotMode> {
        let all = [HotMode::Hashing, HotMode::Copies, HotMode::Anywhere, HotMode::Cached];
        let usual = |arm: &HotMode| *arm != HotMode::Cached || self.caches > 0;
        let wanted =
            |arm: &HotMode| if self.arms.is_empty() { usual(arm) } else { self.arms.contains(arm) };
        all.into_iter().filter(wanted).collect()
    }

    /// Does this on the rack, if it can be had.
    pub(super) fn with<T>(
        &self,
        replicas: &[u8],
        job: impl FnOnce(&mut Site) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Self { nodes, node_rate, slow_nodes, caches, plane, keys, .. } = *self;
        if caches == 0 && self.arms.contains(&HotMode::Cached) {
            return Err(Failure::usage("--arm cached: say how many, with --caches"));
        }
        if slow_nodes > nodes {
            return Err(Failure::usage(format!("{slow_nodes} slow nodes of {nodes}")));
        }
        if keys == 0 {
            return Err(Failure::usage("--keys: at least 1"));
        }
        let most = wire::CHAIN_MAX.min(nodes.into());
        if !replicas.iter().all(|replicas| (1..=most).contains(&usize::from(*replicas))) {
            return Err(Failure::usage(format!("--replicas: 1 to {most}, each on its own node")));
        }
        figure::make_folder(&self.out)?;
        let rack = Rack { lab: self.lab.name.clone(), nodes, caches, clients: 1 };
        let node_rate = Some(node_rate);
        let cluster = Cluster { node_rate, slow_nodes, ..Cluster::in_memory(rack, plane) };
        Site::with(cluster, Stored { keys, value_bytes: VALUE_BYTES }, job)
    }

    /// What it was measured with.
    pub(super) fn notes(&self) -> Vec<String> {
        let Self { nodes, node_rate, slow_nodes, caches, plane, keys, .. } = self;
        let slow = match slow_nodes {
            0 => String::new(),
            slow => format!(", {slow} of them half as many"),
        };
        let plane = plane.name();
        vec![
            format!("{nodes} nodes that serve {node_rate} requests/s each{slow}; plane {plane}"),
            format!("{keys} keys, values of 100 B; open loop, Poisson, one client"),
            format!(
                "hashing: hot keys stay at home; copies: copies of them answer reads; anywhere: \
                 their writes go anywhere, too; cached: {caches} caches hold them"
            ),
        ]
    }
}

/// The 99th percentile of uniform keys when next to nobody asks, in microseconds.
pub(super) fn idle_p99_us(site: &Site, uniform: &SiteLoad, cap: f64) -> Result<u64, Failure> {
    let rate = cap * IDLE_SHARE;
    let time = Duration::from_secs_f64((IDLE_REQUESTS / rate).max(IDLE_SECONDS_MIN));
    let mut least = u64::MAX;
    for seed in 1..=IDLE_LOOKS {
        let window = Window { time, piece: time, seed };
        least = least.min(site.run(uniform, rate, window)?.summary.all.latency.p99_us);
    }
    note!("idle: p99 {:.2} ms", least as f64 / 1e3);
    Ok(least)
}

/// Looks at an idle rack, of which the best counts: what the machine does otherwise makes a tail
/// longer and never shorter.
const IDLE_LOOKS: u64 = 3;

/// Requests of one look: four are beyond the percentile.
const IDLE_REQUESTS: f64 = 400.0;
const IDLE_SECONDS_MIN: f64 = 2.0;

/// Skewed keys.
pub(super) fn zipf(theta: f64) -> Distribution {
    Distribution::Zipf { theta }
}
