//! `keyway paper netmc`: the experiments of NetMC, in a lab.

use crate::figure;
use crate::netmc::arm::Splitter;
use crate::netmc::design::{Experiment, Terms};
use crate::netmc::experiment::{self, TIME_MAX};
use crate::netmc::redis::RedisProcess;
use crate::netmc::{figures, restart};
use anyhow::anyhow;
use console::exit::{Failure, Verdict};
use console::note;
use console::parse;
use console::shared::Shared;
use lab::plane::Plane;
use lab::rack;
use std::num::NonZero;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// Compare who takes multigets apart: the switch, the clients or a coordinator (NetMC, section V).
///
/// Builds a rack of five nodes, two clients and a coordinator in network namespaces, measures all
/// of them by turns under the same load with real packets, and takes the rack down. Takes root.
/// Prints a table, tells of each trial on standard error, and plots netmc-N.svg. A figure takes one
/// to two and a half minutes, all of them twenty. Other work on the machine shows in the results.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Figures:
  8   throughput against skew
  9   latency against throughput
  10  throughput and tail against the number of nodes
  11  as 8, with a Redis behind each node
  12  as 9, with a Redis behind each node
  13  throughput and tail against the share of writes
  14  throughput and tail against the size of keys
  15  throughput and tail against the size of values
  16  throughput and tail against the number of keys of a multiget
  17  throughput while the switch is restarted
  all the ten of them; their tables follow each other

Examples:
  keyway paper netmc --figure 8
  keyway paper netmc --figure all --out plots > plots/netmc.txt
  keyway paper netmc --figure 16 --seconds 3s --rounds 5 --out plots
  keyway paper netmc --figure 9 --arm switch,client --json
  keyway paper netmc --figure 10 --node-rate 5k           nodes are the limit, not this machine")]
pub(super) struct Netmc {
    /// Which figure, or all of them.
    #[arg(long, value_name = "N|all", value_parser = parse_figures)]
    figure: Wanted,
    /// Look at these alone.
    #[arg(long = "arm", value_enum, value_name = "ARM", value_delimiter = ',')]
    arms: Vec<Splitter>,
    /// How long each trial is looked at. Without it, 0.25 to 1 s, so that no figure takes
    /// long.
    #[arg(long, value_name = "TIME", value_parser = parse::some_time)]
    seconds: Option<Duration>,
    /// Trials of the same; medians of them count.
    #[arg(long, value_name = "N", default_value_t = experiment::ROUNDS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Requests in flight in a closed loop, of both clients together.
    #[arg(long, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u16).range(2..=1024))]
    in_flight: u16,
    /// Keys of each keyspace.
    #[arg(long, value_name = "N", default_value = "100k", value_parser = parse::count)]
    keys: u64,
    /// Requests that each node serves in a second at most, so that nodes are the limit and not the
    /// cores of this machine; a part of a multiget is one.
    #[arg(long, value_name = "PER_SECOND", value_parser = parse::rate)]
    node_rate: Option<NonZero<u32>>,
    /// Where packets are switched.
    #[arg(long, value_enum, default_value_t = Plane::Xdp)]
    plane: Plane,
    /// Name of the lab: small letters and digits.
    #[arg(long, value_name = "NAME", default_value = "netmc", value_parser = rack::name)]
    name: String,
    /// Where the plot goes.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

/// Keys of the largest multiget must differ.
const KEYS_MIN: u64 = 1_000;

/// The figures that are wanted, each once.
#[derive(Clone, Debug)]
struct Wanted(Vec<u32>);

/// The figures that there are.
const FIGURES: RangeInclusive<u32> = 8..=17;

fn parse_figures(text: &str) -> Result<Wanted, String> {
    if text == "all" {
        return Ok(Wanted(FIGURES.collect()));
    }
    let number = text.parse().ok().filter(|number| FIGURES.contains(number));
    let wanted = number.map(|number| Wanted(vec![number]));
    wanted.ok_or_else(|| format!("there are {FIGURES:?}, and all; see --help"))
}

impl Netmc {
    pub(super) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        if self.keys < KEYS_MIN {
            return Err(Failure::usage(format!("--keys: at least {KEYS_MIN}")));
        }
        figure::make_folder(&self.out)?;
        let Wanted(figures) = &self.figure;
        let mut experiments = figures.iter().filter_map(|figure| figures::experiment(*figure));
        if experiments.any(|experiment| experiment.redis) {
            RedisProcess::program()?;
        }
        // What one figure fails at may be no hindrance for those after it.
        let mut failed = Vec::new();
        for (index, figure) in (1..).zip(figures) {
            if figures.len() > 1 {
                note!("figure {figure} ({index} of {})", figures.len());
            }
            match self.show(*figure, shared) {
                Err(failure) if figures.len() > 1 => {
                    note!("figure {figure}: {}", failure.message());
                    failed.push(figure.to_string());
                }
                shown => shown?,
            }
        }
        if failed.is_empty() {
            Ok(Verdict::Yes)
        } else {
            Err(Failure::Other(anyhow!("not measured: figures {}", failed.join(", "))))
        }
    }

    fn show(&self, figure: u32, shared: &Shared) -> Result<(), Failure> {
        let experiment = figures::experiment(figure);
        let time = || experiment.as_ref().map_or(TIME_MAX, Experiment::time);
        let wanted = |arm: &Splitter| self.arms.is_empty() || self.arms.contains(arm);
        let terms = Terms {
            lab: self.name.clone(),
            plane: self.plane,
            node_rate: self.node_rate,
            arms: Splitter::ALL.into_iter().filter(wanted).collect(),
            keys: self.keys,
            in_flight: self.in_flight.into(),
            time: self.seconds.unwrap_or_else(time),
            rounds: self.rounds,
        };
        let (made, sections) = match &experiment {
            Some(experiment) => experiment.run(&terms)?,
            None => (restart::run(&terms)?, Vec::new()),
        };
        figure::show_with(&made, &sections, &self.out, &format!("netmc-{figure}"), shared.json)
    }
}
