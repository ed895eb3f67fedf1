//! `keyway paper switchkv`.

use super::{NODES_MAX, World};
use crate::figure;
use crate::paper::switchkv::{self, FIGURES, SwitchKvRefusal, SwitchKvSettings};
use console::exit::{Failure, Verdict};
use console::note;
use console::parse;
use std::time::Duration;

/// Put a small fast cache before many slow nodes (SwitchKV, NSDI 2016, section 4).
///
/// Switch, nodes, cache, clients and controller are the real ones, each on one queue of events in
/// virtual time; nodes serve requests one after the other at a fixed rate, and the cache a hundred
/// times as fast. The same options give the same table on every machine. It is printed, and a plot
/// is written to switchkv-N.svg.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Figures:
  9   what each node serves without a cache
  10  throughput with and without a cache, against skew
  11  throughput against the number of keys in the cache
  12  throughput against the share of writes, also of Keyway's copies whose writes go anywhere
  13  latency of hits, misses and both, for look-aside, look-through and a switch that knows
  14  throughput against the number of nodes, up to --nodes
  15  throughput as cold keys become the hottest every 10 s, by how the cache learns of keys
  16  throughput as the hottest keys go cold every second, by how nodes report
  17  throughput as random keys of the cache go cold every second, likewise
  18  what it helps to remove rules late
  19  throughput against how many keys move in a second

A second of 128 nodes takes ten to twenty seconds to simulate, and figures 15 to 19 look at many:
try them with fewer nodes first.

Examples:
  keyway paper switchkv --figure 10
  keyway paper switchkv --figure 10 --nodes 16 --theta 0.99,1.2
  keyway paper switchkv --figure 13 --nodes 16 --out plots
  keyway paper switchkv --figure 14 --nodes 1024
  keyway paper switchkv --figure 15 --nodes 32 --seconds 18
  keyway paper switchkv --figure 16 --nodes 32 --rules 12000
  keyway paper switchkv --figure 11 --json")]
pub(super) struct SwitchKv {
    /// Which figure.
    #[arg(long, value_name = "N", value_parser = parse_figure)]
    figure: u32,
    /// Storage nodes, each with one core; where the figure is about their number, the most.
    #[arg(long, value_name = "N", default_value_t = 128)]
    #[arg(value_parser = clap::value_parser!(u16).range(NODES_LEAST..=NODES_MAX))]
    nodes: u16,
    /// How many keys clients ask for.
    #[arg(long, value_name = "N", default_value = "10000m", value_parser = parse::count)]
    keys: u64,
    /// Keys that the cache holds at most.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=ITEMS_MAX))]
    items: u32,
    /// Changes of rules that the switch takes in a second, in figures 16 to 19. Without it, 400, as
    /// the paper's switch does.
    #[arg(long = "rules", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rules_per_s: Option<u32>,
    /// Exponents of Zipf's law in figures 9 and 10. Without it, those of the paper.
    #[arg(long = "theta", value_name = "EXPONENT", value_delimiter = ',')]
    #[arg(value_parser = parse::exponent)]
    thetas: Vec<f64>,
    /// How long each trial is looked at, in virtual time. Without it, what suits the figure.
    #[arg(long, value_name = "TIME", value_parser = parse::some_time)]
    seconds: Option<Duration>,
    #[command(flatten)]
    world: World,
}

/// The smallest rack of figure 14.
const NODES_LEAST: i64 = 8;

/// Rules that a switch has room for.
const ITEMS_MAX: i64 = 65_536;

fn parse_figure(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| FIGURES.contains(number));
    number.ok_or_else(|| format!("there are {FIGURES:?}; see --help"))
}

impl SwitchKv {
    /// Carries the command out.
    pub(super) fn run(self, json: bool) -> Result<Verdict, Failure> {
        let Self { figure: number, nodes, keys, items, rules_per_s, .. } = self;
        if u64::from(items) > keys {
            return Err(Failure::usage("--items: no more than --keys"));
        }
        let settings = SwitchKvSettings {
            nodes,
            keys,
            items,
            rules_per_s,
            pace: self.world.slowed,
            seed: self.world.seed,
            thetas: self.thetas,
            window: self.seconds,
        };
        switchkv::check(number, &settings).map_err(refused)?;
        figure::make_folder(&self.world.out)?;
        let tell = |line: &str| note!("{line}");
        let made = switchkv::figure(number, &settings, tell).map_err(refused)?;
        figure::show(&made, &self.world.out, &format!("switchkv-{number}"), json)?;
        Ok(Verdict::Yes)
    }
}

/// Says which option is to blame.
fn refused(refusal: SwitchKvRefusal) -> Failure {
    let option = match refusal {
        SwitchKvRefusal::Figure => "--figure",
        SwitchKvRefusal::Thetas(_) => "--theta",
        SwitchKvRefusal::Rules(_) => "--rules",
    };
    Failure::usage(format!("{option}: {refusal}"))
}
