//! `keyway paper turbokv`.

use super::{NODES_MAX, World};
use crate::figure;
use crate::paper::Finder;
use crate::paper::turbokv::{
    self, Exhibit, FIGURES, SCAN_KEYS_MAX, TABLES, TurboKvRefusal, TurboKvSettings,
};
use crate::turbokv::{self as real, RealTerms};
use console::exit::{Failure, Verdict};
use console::note;
use console::parse;
use console::shared::Shared;
use lab::plane::Plane;
use lab::rack;
use std::time::Duration;

/// Compare who finds the node that a request is for (TurboKV, section 8).
///
/// The switch on the way (in-switch), each client by a map that is never old (client-driven), or
/// any node, which passes on what is for another (server-driven): the same cluster under the same
/// load, each on one queue of events in virtual time. The same options give the same table on
/// every machine. It is printed, and a plot is written to turbokv-figure-N.svg or
/// turbokv-table-N.svg. With --real it is measured with real packets instead, in a lab on this
/// machine, which takes root and some minutes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Figures:
  13  throughput of reads and of scans against skew, and against the share of writes
  14  how latencies of reads, writes and scans are distributed, uniform keys
  15  the same, zipf 1.2
  migration  what nodes do while a hot range moves, with and without placement that follows load
  filling    how full nodes are while new keys are written, with and without placement

Tables:
  1   means and percentiles of figure 14, beside those of the paper
  2   those of figure 15

Examples:
  keyway paper turbokv --figure 13
  keyway paper turbokv --figure 13 --theta 0.99 --seconds 0.2
  keyway paper turbokv --figure 14 --out plots
  keyway paper turbokv --figure migration --keys 1m --replicas 1
  keyway paper turbokv --figure filling --seconds 120
  keyway paper turbokv --table 2 --forward 0.3
  keyway paper turbokv --table 1 --keys 100k --scan-keys 8
  keyway paper turbokv --figure 15 --coordination switch,client --json
  keyway paper turbokv --figure 13 --real
  keyway paper turbokv --table 2 --real --plane user --rounds 5")]
pub(super) struct TurboKv {
    /// Which figure.
    #[arg(long, value_name = "N", value_parser = parse_figure)]
    #[arg(required_unless_present = "table", conflicts_with = "table")]
    figure: Option<Exhibit>,
    /// Which table.
    #[arg(long, value_name = "N", value_parser = parse_table)]
    table: Option<Exhibit>,
    /// Storage nodes, each with one core.
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u16).range(2..=NODES_MAX))]
    nodes: u16,
    /// Sub-ranges, each with as many keys.
    #[arg(long, value_name = "N", default_value_t = 128)]
    partitions: u32,
    /// How many keys. Without it, 1,000, as YCSB's basic database has records; 100,000 for the
    /// figures of migration and filling. How much nodes may hold in the latter follows from it.
    #[arg(long, value_name = "N", value_parser = parse::count)]
    keys: Option<u64>,
    /// Nodes of each chain.
    #[arg(long, value_name = "N", default_value_t = 3)]
    replicas: u8,
    /// Keys of a scan at most; all lengths from 1 on are as frequent. YCSB's workload E has 100.
    #[arg(long, value_name = "N", default_value_t = 100)]
    scan_keys: u64,
    /// What it takes a node to pass a request on, as a share of what it takes it to serve one. 0.6
    /// follows from the paper's table 1, and is the most of what Keyway's own switch in user space
    /// takes beside its nodes (0.33 to 0.59).
    #[arg(long, value_name = "SHARE", default_value = DEFAULT_FORWARD)]
    #[arg(value_parser = parse_forward)]
    forward: u32,
    /// Who coordinates, of those that are compared: switch, client or server. All, if none is
    /// named.
    #[arg(long, value_name = "WHO", value_delimiter = ',', value_parser = parse_finder)]
    coordination: Vec<Finder>,
    /// Exponents of Zipf's law in figure 13, or the one of the figure of migration. Without it,
    /// those of the paper, or 0.99.
    #[arg(long = "theta", value_name = "EXPONENT", value_delimiter = ',')]
    #[arg(value_parser = parse::exponent)]
    thetas: Vec<f64>,
    /// How long each trial is looked at, a hot range stays where it is, or nodes fill up, in
    /// virtual time. Without it, what suits the figure.
    #[arg(long, value_name = "TIME", value_parser = parse::some_time)]
    seconds: Option<Duration>,
    #[command(flatten)]
    real: Real,
    #[command(flatten)]
    world: World,
}

/// With real packets in place of virtual time.
#[derive(Debug, clap::Args)]
struct Real {
    /// Measure with real packets, in a lab: nodes in network namespaces of their own, and a
    /// coordinator beside each, which all share this machine. Tells who spends processor time.
    #[arg(long, conflicts_with_all = ["forward", "slowed", "seed"])]
    real: bool,
    /// Where packets are switched, with --real.
    #[arg(long, value_enum, default_value_t = Plane::Xdp, requires = "real")]
    plane: Plane,
    /// Trials of the same, with --real; medians of them count.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "real")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// Requests in flight in a closed loop, with --real.
    #[arg(long, value_name = "N", default_value_t = 64, requires = "real")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    in_flight: u16,
    /// Name of the lab, with --real: small letters and digits.
    #[arg(long, value_name = "NAME", default_value = "turbokv", requires = "real")]
    #[arg(value_parser = rack::name)]
    name: String,
}

impl Real {
    /// What it takes, if that is what is wanted.
    fn terms(self) -> Result<Option<RealTerms>, Failure> {
        let Self { real, plane, rounds, in_flight, name } = self;
        if plane.has_content() {
            let name = plane.name();
            return Err(Failure::usage(format!(
                "--plane: {name} cannot keep keys in order: user or xdp"
            )));
        }
        let terms = RealTerms { lab: name, plane, in_flight: in_flight.into(), rounds };
        Ok(real.then_some(terms))
    }
}

/// [`turbokv::FORWARD_PERCENT`], as it is typed.
const DEFAULT_FORWARD: &str = "0.6";

/// More than this a request costs nobody to pass on.
const FORWARD_PERCENT_MAX: f64 = 1_000.0;

fn parse_figure(text: &str) -> Result<Exhibit, String> {
    match text {
        MIGRATION => return Ok(Exhibit::Migration),
        FILLING => return Ok(Exhibit::Filling),
        _ => {}
    }
    let number = text.parse().ok().filter(|number| FIGURES.contains(number));
    let number = number
        .ok_or_else(|| format!("there are {FIGURES:?}, {MIGRATION} and {FILLING}; see --help"));
    number.map(Exhibit::Figure)
}

/// What users call the figures of [`Exhibit::Migration`] and [`Exhibit::Filling`].
const MIGRATION: &str = "migration";
const FILLING: &str = "filling";

fn parse_table(text: &str) -> Result<Exhibit, String> {
    let number = text.parse().ok().filter(|number| TABLES.contains(number));
    number.ok_or_else(|| format!("there are {TABLES:?}; see --help")).map(Exhibit::Table)
}

fn parse_finder(text: &str) -> Result<Finder, String> {
    let finder = Finder::ALL.into_iter().find(|finder| finder.option() == text);
    finder.ok_or_else(|| format!("there are {:?}", Finder::ALL.map(Finder::option)))
}

/// Percent of a share, to which it is rounded.
fn parse_forward(text: &str) -> Result<u32, String> {
    let share: Option<f64> = text.parse().ok();
    let percent = share.map(|share| share * 100.0);
    let percent = percent.filter(|percent| (0.0..=FORWARD_PERCENT_MAX).contains(percent));
    let percent = percent.ok_or_else(|| "0 to 10 services of a request, like 0.6".to_owned())?;
    Ok(percent.round() as u32)
}

impl TurboKv {
    /// Carries the command out.
    pub(super) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let Self { nodes, partitions, replicas, scan_keys, .. } = self;
        let exhibit = self.figure.or(self.table).expect("clap asks for one of them");
        let keys = self.keys.unwrap_or(exhibit.usual_keys());
        if !(1..=PARTITIONS_MAX).contains(&partitions) || u64::from(partitions) > keys {
            return Err(Failure::usage(format!(
                "--partitions: 1 to {PARTITIONS_MAX}, and no more than --keys, for each has one"
            )));
        }
        let most = wire::CHAIN_MAX.min(nodes.into());
        if !(1..=most).contains(&usize::from(replicas)) {
            return Err(Failure::usage(format!("--replicas: 1 to {most}, each on its own node")));
        }
        let most = keys.min(SCAN_KEYS_MAX);
        if !(1..=most).contains(&scan_keys) {
            return Err(Failure::usage(format!("--scan-keys: 1 to {most}")));
        }
        let settings = TurboKvSettings {
            nodes,
            keys,
            partitions,
            replicas,
            forward_percent: self.forward,
            scan_keys,
            pace: self.world.slowed,
            seed: self.world.seed,
            finders: self.coordination,
            thetas: self.thetas,
            window: self.seconds,
        };
        turbokv::check(exhibit, &settings).map_err(refused)?;
        figure::make_folder(&self.world.out)?;
        let mut name = match exhibit {
            Exhibit::Figure(number) => format!("turbokv-figure-{number}"),
            Exhibit::Table(number) => format!("turbokv-table-{number}"),
            Exhibit::Migration => format!("turbokv-figure-{MIGRATION}"),
            Exhibit::Filling => format!("turbokv-figure-{FILLING}"),
        };
        let made = if let Some(terms) = self.real.terms()? {
            name.push_str("-real");
            real::make(exhibit, &settings, &terms)?
        } else {
            turbokv::make(exhibit, &settings, |line| note!("{line}")).map_err(refused)?
        };
        figure::show(&made, &self.world.out, &name, shared.json)?;
        Ok(Verdict::Yes)
    }
}

/// More than a rack of virtual time is of use with.
const PARTITIONS_MAX: u32 = 4_096;

/// Says which option is to blame.
fn refused(refusal: TurboKvRefusal) -> Failure {
    let option = match refusal {
        TurboKvRefusal::Exhibit => "--figure",
        TurboKvRefusal::Thetas(_) => "--theta",
        TurboKvRefusal::Finders(_) => "--coordination",
    };
    Failure::usage(format!("{option}: {refusal}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_takes_to_pass_a_request_on_is_a_share() {
        assert_eq!(parse_forward(DEFAULT_FORWARD), Ok(turbokv::FORWARD_PERCENT));
        assert_eq!(parse_forward("0"), Ok(0));
        assert_eq!(parse_forward("1.25"), Ok(125));
        for text in ["", "-0.1", "11", "nan", "60%"] {
            assert!(parse_forward(text).is_err(), "{text}");
        }
    }
}
