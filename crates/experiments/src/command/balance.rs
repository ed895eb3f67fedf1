//! `keyway lab balance`: how much of a rack skewed keys leave.

use super::ground::{Ground, HotMode, idle_p99_us, zipf};
use crate::figure;
use crate::paper::{Cell, Column, Figure, OBJECTIVE_TIMES, Panel, Table};
use crate::search::{Aim, Found};
use crate::site::{Site, SiteLoad, reads_and_writes};
use crate::trial::SiteTrial;
use bench::Coordination;
use cluster::Keyspace;
use console::exit::{Failure, Verdict};
use console::note;
use console::parse;
use console::shared::Shared;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use workload::Distribution;

/// Measure which load a rack of slow nodes serves in time when keys are hot.
///
/// Builds a rack, looks for the highest rate at which the 99th percentile stays under five times
/// what it is without load, for uniform keys and for skewed ones, and takes the rack down. Prints a
/// table, tells of each trial on standard error, and plots lab-balance.svg. Each search takes half
/// a minute. Other work on the machine spoils it: give it priority (nice, chrt).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway lab balance --theta 1.2 --reads 100,50 --replicas 1
  keyway lab balance --plane xdp --arm hashing,copies --out plots
  keyway lab balance --caches 1 --arm hashing,cached --nodes 16 --node-rate 100
  keyway lab balance --slow-nodes 16 --reads 100 --replicas 1       half of the nodes at half speed
  keyway lab balance --nodes 16 --node-rate 800 --json")]
pub struct Args {
    #[command(flatten)]
    ground: Ground,
    /// Nodes of each chain.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,3")]
    replicas: Vec<u8>,
    /// Exponents of Zipf's law.
    #[arg(long, value_name = "EXPONENT", value_delimiter = ',', default_value = "0.9,0.99,1.2")]
    #[arg(value_parser = parse::exponent)]
    theta: Vec<f64>,
    /// Shares of reads, in percent; the rest are writes.
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_value = "100,95,50,0")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    reads: Vec<u8>,
    /// How long each trial is looked at, after two seconds to get used to it.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = parse::some_time)]
    seconds: Duration,
}

/// Where the search for uniform keys begins, as a share of the cap.
const UNIFORM_GUESS: f64 = 0.75;

/// Share of the cap at which it is looked for the node that will be full first.
const PROBE_SHARE: f64 = 0.08;

/// How full the busiest node is when the objective is missed, for a first guess.
const FULL: f64 = 0.75;

/// So many times the cap are tried with caches: what they answer no node serves.
const CACHED_MOST: f64 = 20.0;

/// At which share of what uniform keys reach tails are compared.
const TAIL_SHARE: f64 = 0.8;

const COLUMNS: [Column; 14] = [
    Column { head: "r", key: "replicas" },
    Column { head: "reads %", key: "reads_percent" },
    Column { head: "keys", key: "keys" },
    Column { head: "arm", key: "arm" },
    Column { head: "cap/s", key: "cap" },
    Column { head: "rate/s", key: "rate" },
    Column { head: "of cap", key: "of_cap" },
    Column { head: "of uniform", key: "of_uniform" },
    Column { head: "x hashing", key: "over_hashing" },
    Column { head: "p99 at 80 % ms", key: "p99_ms_at_80" },
    Column { head: "p99.9 ms", key: "p999_ms_at_80" },
    Column { head: "x uniform", key: "p99_at_80_over_uniform" },
    Column { head: "max/mean", key: "max_over_mean" },
    Column { head: "again %", key: "sent_again_percent" },
];

/// What all rows of one share of reads are compared with.
struct Yardstick {
    replicas: u8,
    reads: u8,
    aim: Aim,
    /// What uniform keys reach, in requests per second.
    rate: f64,
    /// The 99th percentile of uniform keys at [`TAIL_SHARE`] of that, in microseconds.
    tail_us: u64,
}

/// What is found, row by row.
struct Results {
    rows: Vec<Vec<Cell>>,
    panels: Vec<Panel>,
    by_program: bool,
}

impl Args {
    /// Carries the command out.
    pub fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let results = self.ground.with(&self.replicas, |site| {
            let mut results = Results { rows: Vec::new(), panels: Vec::new(), by_program: false };
            for replicas in &self.replicas {
                self.chains(site, *replicas, &mut results)?;
            }
            Ok(results)
        })?;
        let mut notes = self.ground.notes();
        notes.push(format!(
            "rate: the highest, to 3 %, at which p99 (median of 6 pieces of {} s) is within \
             {OBJECTIVE_TIMES} times that of an idle rack; cap: node rates / visits of a request, \
             beyond which only caches get",
            self.seconds.as_secs_f64()
        ));
        notes.push(format!(
            "p99 at 80 %, and p99.9: at {TAIL_SHARE} of what uniform keys reach, by those who \
             reach that; max/mean: of what nodes served, as shares of their rates, at the highest \
             rate"
        ));
        if results.by_program {
            let late = "*: this program was too slow to ask for more: a lower bound";
            notes.push(late.to_owned());
        }
        let Results { rows, panels, .. } = results;
        let table = Table { columns: COLUMNS.to_vec(), rows };
        let title = "Load that a rack serves in time when keys are hot".to_owned();
        let made = Figure { title, notes, table, panels };
        figure::show(&made, &self.ground.out, "lab-balance", shared.json)?;
        Ok(Verdict::Yes)
    }

    /// All rows of one length of chains.
    fn chains(&self, site: &Site, replicas: u8, results: &mut Results) -> Result<(), Failure> {
        let mut keyspaces = BTreeMap::new();
        let keyspace = |arm: HotMode| {
            site.keyspace(&format!("{}-{replicas}", arm.name()), arm.policy(), replicas)
        };
        for arm in self.ground.arms() {
            keyspaces.insert(arm, keyspace(arm)?);
        }
        let even = match keyspaces.get(&HotMode::Hashing) {
            Some(keyspace) => Arc::clone(keyspace),
            None => keyspace(HotMode::Hashing)?,
        };
        results.panels.push(self.panel(replicas));
        for (place, reads) in self.reads.iter().enumerate() {
            let uniform = load(&even, Distribution::Uniform, *reads);
            let yardstick = self.uniform(site, (replicas, *reads), &uniform, results)?;
            for (index, theta) in self.theta.iter().enumerate() {
                let place = index * self.reads.len() + place;
                self.skewed(site, &yardstick, (*theta, place), &keyspaces, results)?;
            }
        }
        Ok(())
    }

    /// Uniform keys, which no balancer can better.
    fn uniform(
        &self,
        site: &Site,
        (replicas, reads): (u8, u8),
        uniform: &SiteLoad,
        results: &mut Results,
    ) -> Result<Yardstick, Failure> {
        note!("{replicas} replicas, {reads} % reads, uniform keys");
        let cap = site.rate() / uniform.visits(replicas);
        let p99_us_max = OBJECTIVE_TIMES * idle_p99_us(site, uniform, cap)?;
        let aim = Aim { cap, most: cap, p99_us_max, time: self.seconds };
        let found = site.highest(uniform, &aim, cap * UNIFORM_GUESS)?;
        let rate = found.best.as_ref().map_or(0.0, |trial| trial.answered);
        let tail = site.tell_trial(uniform, (rate * TAIL_SHARE).max(1.0), &aim)?;
        let yardstick = Yardstick { replicas, reads, aim, rate, tail_us: tail.p99_us };
        results.add(&yardstick, None, ("uniform", &found), Some(&tail), None);
        for place in 0..self.theta.len() {
            let at = place * self.reads.len() + self.place(reads);
            results.plot("uniform keys", at, rate / cap);
        }
        Ok(yardstick)
    }

    /// Skewed keys, in all ways.
    fn skewed(
        &self,
        site: &Site,
        yardstick: &Yardstick,
        (theta, place): (f64, usize),
        keyspaces: &BTreeMap<HotMode, Arc<Keyspace>>,
        results: &mut Results,
    ) -> Result<(), Failure> {
        let Yardstick { replicas, reads, aim, rate, .. } = yardstick;
        let mut hashing = None;
        for (arm, keyspace) in keyspaces {
            note!("{replicas} replicas, {reads} % reads, zipf {theta}, {}", arm.name());
            let load = load(keyspace, zipf(theta), *reads);
            let guess = match (arm, hashing) {
                (HotMode::Anywhere, _) => *rate,
                // Its writes stay where those of hashing are.
                // What caches answer no node serves.
                (HotMode::Cached, _) => *rate,
                (HotMode::Copies, Some(hashing)) => {
                    rate.min(100.0 / f64::from(100 - reads) * hashing)
                }
                (HotMode::Hashing, _) | (HotMode::Copies, None) => {
                    let probe = site.tell_trial(&load, aim.cap * PROBE_SHARE, aim)?;
                    probe.rate * FULL / probe.busiest().1.max(PROBE_SHARE)
                }
            };
            let aim = match arm {
                HotMode::Cached => &Aim { most: aim.cap * CACHED_MOST, ..*aim },
                HotMode::Hashing | HotMode::Copies | HotMode::Anywhere => aim,
            };
            if *arm == HotMode::Cached {
                site.warm_up(&load, guess / 2.0, arm.warms_up_in())?;
            }
            let found = site.highest(&load, aim, guess)?;
            let reached = found.best.as_ref().map(|trial| trial.answered);
            if *arm == HotMode::Hashing {
                hashing = reached;
            }
            let tail_rate = rate * TAIL_SHARE;
            let tail = if reached.is_some_and(|reached| reached >= tail_rate) {
                Some(site.tell_trial(&load, tail_rate, aim)?)
            } else {
                None
            };
            results.add(yardstick, Some(theta), (arm.name(), &found), tail.as_ref(), hashing);
            results.plot(arm.name(), place, reached.unwrap_or(0.0) / aim.cap);
        }
        Ok(())
    }

    fn panel(&self, replicas: u8) -> Panel {
        let places = self
            .theta
            .iter()
            .flat_map(|theta| self.reads.iter().map(move |reads| format!("{theta}, {reads} %")));
        Panel {
            title: format!("chains of {replicas}"),
            x: "exponent, reads",
            places: places.collect(),
            y: "share of the cap",
            logarithmic: false,
            curves: Vec::new(),
        }
    }

    /// Which of the shares of reads this is.
    fn place(&self, reads: u8) -> usize {
        self.reads.iter().position(|it| *it == reads).unwrap_or(0)
    }
}

fn load(keyspace: &Arc<Keyspace>, distribution: Distribution, reads: u8) -> SiteLoad {
    SiteLoad {
        keyspace: Arc::clone(keyspace),
        distribution,
        mix: reads_and_writes(reads),
        shift: None,
        by: Coordination::Switch,
    }
}

impl Results {
    fn add(
        &mut self,
        yardstick: &Yardstick,
        theta: Option<f64>,
        (arm, found): (&str, &Found),
        tail: Option<&SiteTrial>,
        hashing: Option<f64>,
    ) {
        let Yardstick { replicas, reads, aim, rate, tail_us } = yardstick;
        let best = found.best.as_ref();
        let reached = best.map(|trial| trial.answered);
        let over = |other: f64| reached.filter(|_| other > 0.0).map(|it| it / other);
        let in_ms = |us: u64| us as f64 / 1e3;
        let over_uniform = |trial: &SiteTrial| trial.p99_us as f64 / *tail_us as f64;
        let mark = if found.by_program { "*" } else { "" };
        self.by_program |= found.by_program;
        let row = vec![
            Cell::number(f64::from(*replicas), 0),
            Cell::number(f64::from(*reads), 0),
            Cell::text(theta.map_or_else(|| "uniform".to_owned(), |it| format!("zipf {it}"))),
            Cell::text(format!("{}{mark}", theta.map_or("hashing", |_| arm))),
            Cell::number(aim.cap, 0),
            Cell::number(reached, 0),
            Cell::number(over(aim.cap), 3),
            Cell::number(over(*rate), 3),
            Cell::number(hashing.and_then(over), 2),
            Cell::number(tail.map(|trial| in_ms(trial.p99_us)), 1),
            Cell::number(tail.map(|trial| in_ms(trial.p999_us)), 1),
            Cell::number(tail.map(over_uniform), 2),
            Cell::number(best.map(SiteTrial::imbalance), 2),
            Cell::number(best.map(|trial| trial.again * 100.0), 2),
        ];
        self.rows.push(row);
    }

    fn plot(&mut self, curve: &str, place: usize, share: f64) {
        let panel = self.panels.last_mut().expect("chains begin with one");
        panel.add(curve, place as f64, share);
    }
}
