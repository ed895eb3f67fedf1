//! `keyway paper`: the experiments of the papers, in virtual time.

use crate::chart::table;
use crate::cli::Shared;
use crate::exit::{Failure, Verdict};
use crate::{out, parse};
use paper::pegasus::{FIGURES, Settings, figure};
use paper::{Arm, Cell, Figure};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Run an experiment of one of the papers behind Keyway, and plot it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway paper pegasus --figure 8
  keyway paper pegasus --figure 11 --nodes 128 --out plots")]
pub(crate) struct Args {
    #[command(subcommand)]
    paper: Paper,
}

#[derive(Debug, clap::Subcommand)]
enum Paper {
    Pegasus(Pegasus),
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
  keyway paper pegasus --figure 10 --replicas 3
  keyway paper pegasus --figure 14 --seconds 60 --out plots
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
    /// Look at one way to spread load alone, where several are compared: hashing, copies,
    /// anywhere or cache.
    #[arg(long, value_name = "ARM", value_parser = parse_arm)]
    arm: Option<Arm>,
    /// How long each trial is looked at, in virtual time. Without it, what suits the figure.
    #[arg(long, value_name = "TIME", value_parser = parse::some_time)]
    seconds: Option<Duration>,
    /// Seed of everything drawn, also of which keys share a node.
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

fn parse_arm(text: &str) -> Result<Arm, String> {
    let arm = Arm::ALL.into_iter().find(|arm| arm.option() == text);
    arm.ok_or_else(|| format!("there are {:?}", Arm::ALL.map(Arm::option)))
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let Paper::Pegasus(pegasus) = self.paper;
        pegasus.run(shared.json)
    }
}

impl Pegasus {
    fn run(self, json: bool) -> Result<Verdict, Failure> {
        let Self { nodes, keys, replicas, seed, .. } = self;
        if keys == 0 {
            return Err(Failure::usage("--keys: at least 1"));
        }
        let most = wire::CHAIN_MAX.min(nodes.into());
        if !(1..=most).contains(&usize::from(replicas)) {
            return Err(Failure::usage(format!("--replicas: 1 to {most}, each on its own node")));
        }
        // Before hours are spent on what cannot be kept.
        std::fs::create_dir_all(&self.out).map_err(|error| unwritable(&self.out, &error))?;
        let settings =
            Settings { nodes, keys, replicas, seed, arm: self.arm, window: self.seconds };
        let tell = |line: &str| eprintln!("{line}");
        let made = figure(self.figure, &settings, tell).expect("clap lets no other number through");
        let path = self.out.join(format!("pegasus-{}.svg", self.figure));
        std::fs::write(&path, made.svg()).map_err(|error| unwritable(&path, &error))?;
        if json {
            rows_as_json(&made).for_each(|row| out::line(&row.to_string()));
        } else {
            out::print(&as_text(&made));
            out::line(&format!("\nplot: {}", path.display()));
        }
        Ok(Verdict::Yes)
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot write {}: {error}; say --out DIR", path.display()))
}

fn as_text(figure: &Figure) -> String {
    let heads = figure.table.columns.iter().map(|column| column.head.to_owned()).collect();
    let mut rows: Vec<Vec<String>> = vec![heads];
    let text = |cell: &Cell| match cell {
        Cell::Text(text) => text.clone(),
        Cell::Number(number, digits) => format!("{number:.digits$}"),
        Cell::None => "-".to_owned(),
    };
    rows.extend(figure.table.rows.iter().map(|row| row.iter().map(text).collect()));
    format!("{}\n{}\n\n{}", figure.title, figure.notes.join("\n"), table(&rows))
}

/// What the table was made with, and an object for each of its rows.
fn rows_as_json(figure: &Figure) -> impl Iterator<Item = Value> {
    let value = |cell: &Cell| match cell {
        Cell::Text(text) => json!(text),
        // No more digits than are worth reading.
        Cell::Number(number, digits) => {
            let scale = 10_f64.powf(*digits as f64);
            json!((number * scale).round() / scale)
        }
        Cell::None => Value::Null,
    };
    let columns = figure.table.columns.iter().map(|column| column.key.to_owned());
    let object = move |row: &Vec<Cell>| {
        let fields: Map<String, Value> = columns.clone().zip(row.iter().map(value)).collect();
        Value::Object(fields)
    };
    let head = json!({ "title": figure.title, "notes": figure.notes });
    std::iter::once(head).chain(figure.table.rows.iter().map(object))
}
