//! `keyway paper`: the experiments of the papers, in virtual time or in a lab.

mod netmc;
mod switchkv;
mod turbokv;

use crate::figure;
use crate::paper::pegasus::{self, FIGURES, PegasusRefusal, PegasusSettings};
use crate::paper::{Arm, Pace};
use console::exit::{Failure, Verdict};
use console::note;
use console::parse;
use console::shared::Shared;
use std::path::PathBuf;
use std::time::Duration;

/// Run an experiment of one of the papers behind Keyway, and plot it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway paper pegasus --figure 8
  keyway paper pegasus --figure 11 --nodes 128 --out plots
  keyway paper netmc --figure 8
  keyway paper switchkv --figure 10
  keyway paper turbokv --figure 13")]
pub struct Args {
    #[command(subcommand)]
    paper: Paper,
}

#[derive(Debug, clap::Subcommand)]
enum Paper {
    Pegasus(Pegasus),
    Netmc(netmc::Netmc),
    Switchkv(switchkv::SwitchKv),
    Turbokv(turbokv::TurboKv),
}

/// Balance the load of hot keys over a rack of slow nodes (Pegasus, OSDI 2020, section 8).
///
/// Switch, nodes, clients and controller are the real ones, each on one queue of events in virtual
/// time; nodes serve requests one after the other at a fixed rate. The same options give the same
/// table on every machine. It is printed, and a plot is written to pegasus-N.svg.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Figures:
  8   throughput under an objective for p99, against skew
  9   p99 and requests answered at 80 % of the cap, against skew
  10  throughput against the share of reads
  11  throughput against the number of nodes
  12  throughput against the number of keys that have copies
  13  throughput by the choice of the copy that is read, also with half of the nodes at half speed
  14  p99 of each 100 ms while popularity shifts every 10 s

Examples:
  keyway paper pegasus --figure 8
  keyway paper pegasus --figure 8 --nodes 128 --seconds 0.5 --arm copies
  keyway paper pegasus --figure 8 --arm hashing,anywhere --theta 0.9,0.99,1.2 --reads 95
  keyway paper pegasus --figure 10 --replicas 3
  keyway paper pegasus --figure 13 --nodes 512 --slowed 100 --keys 100k --arm anywhere
  keyway paper pegasus --figure 14 --seconds 60 --out plots
  keyway paper pegasus --figure 14 --reads 95 --arm anywhere
  keyway paper pegasus --figure 14 --slowed 1 --seconds 11 --keys 100k --arm copies
  keyway paper pegasus --figure 9 --seed 2 --json")]
struct Pegasus {
    /// Which figure.
    #[arg(long, value_name = "N", value_parser = parse_figure)]
    figure: u32,
    /// Storage nodes, each with one core; where the figure is about their number, the most.
    #[arg(long, value_name = "N", default_value_t = 32)]
    #[arg(value_parser = clap::value_parser!(u16).range(2..=NODES_MAX))]
    nodes: u16,
    /// How many keys.
    #[arg(long, value_name = "N", default_value = "1m", value_parser = parse::count)]
    keys: u64,
    /// Nodes that hold each key. The paper's hold each key once.
    #[arg(long, value_name = "N", default_value_t = 1)]
    replicas: u8,
    /// Share of reads, in percent; the rest are writes. Figure 10 is about it, and takes none.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=100))]
    reads: Option<u32>,
    /// A way to spread load that is looked at: hashing, copies, anywhere or cache. All, if none is
    /// named; figures 12 and 13 are about copies alone, or about anywhere.
    #[arg(long = "arm", value_name = "ARM", value_delimiter = ',', value_parser = parse_arm)]
    arms: Vec<Arm>,
    /// Exponents of Zipf's law, in figures that compare some. Without it, what suits the figure.
    #[arg(long = "theta", value_name = "EXPONENT", value_delimiter = ',')]
    #[arg(value_parser = parse::exponent)]
    thetas: Vec<f64>,
    /// How long each trial is looked at, in virtual time. Without it, what suits the figure.
    #[arg(long, value_name = "TIME", value_parser = parse::some_time)]
    seconds: Option<Duration>,
    #[command(flatten)]
    world: World,
}

/// A rack in virtual time, and where its plot goes.
#[derive(Debug, clap::Args)]
struct World {
    /// How many times slower than a real rack this one is. With 1 nodes serve 100,000 requests a
    /// second, a cable takes 10 us, and clients ask again after 5 ms; with 10, which takes a tenth
    /// as long to simulate, 10,000, 100 us and 50 ms. The controller, reports and rules of caches
    /// are as fast as ever.
    #[arg(long, value_name = "TIMES", default_value = "10", value_parser = parse_pace)]
    slowed: Pace,
    /// Seed of everything drawn, also of which keys share a node, or where popular keys lie.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Where the plot goes.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

/// [`wire::NODES_MAX`], as clap wants it.
const NODES_MAX: i64 = wire::NODES_MAX as i64;

fn parse_figure(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| FIGURES.contains(number));
    number.ok_or_else(|| format!("there are {FIGURES:?}; see --help"))
}

fn parse_pace(text: &str) -> Result<Pace, String> {
    let pace = text.parse().ok().and_then(Pace::slowed);
    pace.ok_or_else(|| format!("1 to {}", Pace::SLOWED_MAX))
}

fn parse_arm(text: &str) -> Result<Arm, String> {
    let arm = Arm::ALL.into_iter().find(|arm| arm.option() == text);
    arm.ok_or_else(|| format!("there are {:?}", Arm::ALL.map(Arm::option)))
}

impl Args {
    /// Carries the command out.
    pub fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        match self.paper {
            Paper::Pegasus(pegasus) => pegasus.run(shared.json),
            Paper::Netmc(netmc) => netmc.run(shared),
            Paper::Switchkv(switchkv) => switchkv.run(shared.json),
            Paper::Turbokv(turbokv) => turbokv.run(shared),
        }
    }
}

impl Pegasus {
    fn run(self, json: bool) -> Result<Verdict, Failure> {
        let Self { nodes, keys, replicas, .. } = self;
        if keys == 0 {
            return Err(Failure::usage("--keys: at least 1"));
        }
        let most = wire::CHAIN_MAX.min(nodes.into());
        if !(1..=most).contains(&usize::from(replicas)) {
            return Err(Failure::usage(format!("--replicas: 1 to {most}, each on its own node")));
        }
        if self.figure == 10 && self.reads.is_some() {
            return Err(Failure::usage("--reads: figure 10 shows all shares of reads"));
        }
        let settings = PegasusSettings {
            nodes,
            keys,
            replicas,
            pace: self.world.slowed,
            seed: self.world.seed,
            reads_percent: self.reads.unwrap_or(100),
            arms: self.arms,
            thetas: self.thetas,
            window: self.seconds,
        };
        pegasus::check(self.figure, &settings).map_err(refused)?;
        figure::make_folder(&self.world.out)?;
        let tell = |line: &str| note!("{line}");
        let made = pegasus::figure(self.figure, &settings, tell).map_err(refused)?;
        figure::show(&made, &self.world.out, &format!("pegasus-{}", self.figure), json)?;
        Ok(Verdict::Yes)
    }
}

/// Says which option is to blame.
fn refused(refusal: PegasusRefusal) -> Failure {
    let option = match refusal {
        PegasusRefusal::Figure => "--figure",
        PegasusRefusal::Thetas(_) => "--theta",
        PegasusRefusal::Arms(_) => "--arm",
    };
    Failure::usage(format!("{option}: {refusal}"))
}
