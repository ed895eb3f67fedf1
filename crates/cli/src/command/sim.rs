//! `keyway sim`: the deterministic world.

use crate::cli::Shared;
use crate::exit::{Failure, Verdict};
use crate::out;
use sim::{Options, Outcome, Stats};
use std::time::Duration;

/// Run the whole cluster in a simulated world full of faults and check its promises.
///
/// One seed is one world: its clients, nodes, faults and the order of all events follow from it.
/// Ends with exit code 1 if a promise was broken.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway sim --seed 17
  keyway sim --seeds 1..2000
  keyway sim --seeds 1..100 --json")]
pub(crate) struct Args {
    /// Run one world, and say what it is like.
    #[arg(long, value_name = "N", required_unless_present = "seeds")]
    seed: Option<u64>,
    /// Run the worlds from A to B, the last one included.
    #[arg(long, value_name = "A..B", conflicts_with = "seed", value_parser = parse_seeds)]
    seeds: Option<(u64, u64)>,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let (first, last) = self.seeds.or(self.seed.map(|seed| (seed, seed))).unwrap_or((1, 1));
        let mut total = Stats::default();
        let mut broken = 0u64;
        for seed in first..=last {
            let options = Options::from_seed(seed);
            let outcome = sim::run(&options);
            broken += u64::from(!outcome.violations.is_empty());
            if shared.json {
                out::line(&as_json(&options, &outcome).to_string());
            } else if self.seed.is_some() || !outcome.violations.is_empty() {
                out::print(&describe(&options, &outcome));
            }
            total = total.plus(&outcome.stats);
        }
        if !shared.json && self.seed.is_none() {
            let worlds = last - first + 1;
            out::line(&format!("{worlds} worlds, {broken} with a broken promise; {}", of(&total)));
        }
        Ok(if broken == 0 { Verdict::Yes } else { Verdict::No })
    }
}

fn describe(options: &Options, outcome: &Outcome) -> String {
    let mut text = format!("{options}\n{}\n", of(&outcome.stats));
    text.push_str(&format!("fingerprint {:016x}\n", outcome.fingerprint));
    for violation in &outcome.violations {
        text.push_str(&format!("BROKEN: {violation}\n"));
    }
    if outcome.violations.is_empty() {
        text.push_str("every promise was kept\n");
    }
    text
}

fn of(stats: &Stats) -> String {
    format!(
        "{} requests done, {} unknown, {} operations checked, {} crashes, {} events, {:.1} \
         simulated seconds; {} histories too long to check",
        stats.done,
        stats.unknown,
        stats.operations,
        stats.crashes,
        stats.events,
        stats.elapsed.as_secs_f64(),
        stats.unchecked,
    )
}

fn as_json(options: &Options, outcome: &Outcome) -> serde_json::Value {
    let Stats { events, done, unknown, operations, unchecked, crashes, elapsed } = outcome.stats;
    serde_json::json!({
        "seed": options.seed,
        "options": options.to_string(),
        "violations": outcome.violations,
        "fingerprint": format!("{:016x}", outcome.fingerprint),
        "events": events,
        "done": done,
        "unknown": unknown,
        "operations": operations,
        "unchecked": unchecked,
        "crashes": crashes,
        "simulated_ms": Duration::as_millis(&elapsed) as u64,
    })
}

fn parse_seeds(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    match parts {
        Some((first, last)) if first <= last => Ok((first, last)),
        _ => Err("write two numbers such as 1..2000, the smaller one first".into()),
    }
}
