//! `keyway lab shift`: the tail while popularity moves.

use super::ground::{Ground, HotMode, idle_p99_us, zipf};
use crate::figure;
use crate::median::measured_median;
use crate::paper::{Cell, Column, Figure, Panel, Table};
use crate::site::{Site, SiteLoad, Window, reads_and_writes};
use bench::Coordination;
use console::exit::{Failure, Verdict};
use console::note;
use console::parse;
use console::shared::Shared;
use std::sync::Arc;
use std::time::Duration;
use workload::{Distribution, IntervalSummary, Shift, ShiftKind};

/// Measure the tail of a rack of slow nodes while the popularity of keys shifts.
///
/// Builds a rack, asks it for a fixed share of what it can serve while keys change their ranks, and
/// takes it down. Prints after how long the 99th percentile of 100 ms is back within 1.5 times what
/// it was before each change, and plots it over time to lab-shift.svg.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway lab shift
  keyway lab shift --caches 1 --arm cached --nodes 16 --node-rate 200
  keyway lab shift --arm copies --load 0.8 --seconds 60 --out plots
  keyway lab shift --plane xdp --reads 95 --keys-shifted 200 --json")]
pub struct Args {
    #[command(flatten)]
    ground: Ground,
    /// Nodes of each chain.
    #[arg(long, value_name = "N", default_value_t = 1)]
    replicas: u8,
    /// Exponent of Zipf's law.
    #[arg(long, value_name = "EXPONENT", value_parser = parse::exponent, default_value_t = 1.2)]
    theta: f64,
    /// Share of reads, in percent; the rest are writes.
    #[arg(long, value_name = "PERCENT", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    reads: u8,
    /// What is asked for, as a share of what the nodes can serve.
    #[arg(long, value_name = "SHARE", default_value_t = 0.6)]
    load: f64,
    /// How many keys change their ranks each time.
    #[arg(long, value_name = "N", default_value_t = 100)]
    keys_shifted: u64,
    /// How often they do.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse::some_time)]
    every: Duration,
    /// How long each way is looked at.
    #[arg(long, value_name = "TIME", default_value = "40s", value_parser = parse::some_time)]
    seconds: Duration,
}

/// How long the pieces are of which the tail is shown.
const PIECE: Duration = Duration::from_millis(100);

/// How long the rack gets used to the whole load before it is looked at.
const WARM: Duration = Duration::from_secs(3);

/// A tail is back when it is within so many times what it was before.
const BACK_TIMES: f64 = 1.5;

/// So many pieces in a row have to be: in a single one that may be chance.
const BACK_PIECES: usize = 3;

/// What it was before is the median of so many pieces.
const BEFORE_PIECES: usize = 20;

/// Ranks from which a random change takes keys.
const SHIFT_TOP: u64 = 10_000;

const KINDS: [(&str, ShiftKind); 2] =
    [("hot-in", ShiftKind::HotIn), ("random", ShiftKind::Random { top: SHIFT_TOP })];

const COLUMNS: [Column; 10] = [
    Column { head: "shift", key: "shift" },
    Column { head: "keys", key: "keys" },
    Column { head: "asked/s", key: "rate" },
    Column { head: "answered", key: "answered" },
    Column { head: "median p99 ms", key: "p99_ms_median" },
    Column { head: "worst p99 ms", key: "p99_ms_worst" },
    Column { head: "idle p99 ms", key: "p99_ms_idle" },
    Column { head: "back after ms", key: "back_after_ms" },
    Column { head: "slowest ms", key: "back_after_ms_worst" },
    Column { head: "late p99 ms", key: "late_p99_ms" },
];

impl Args {
    /// Carries the command out.
    pub fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        if !(self.load > 0.0 && self.load <= 1.0) {
            return Err(Failure::usage("--load: more than 0, at most 1"));
        }
        let (rows, panels) = self.ground.with(&[self.replicas], |site| self.measure(site))?;
        let mut notes = self.ground.notes();
        let (every, load) = (self.every.as_secs_f64(), self.load);
        notes.push(format!(
            "asked for: {load} of what the nodes can serve, {} % reads; every {every} s {} keys \
             change their ranks, the coldest becoming the hottest (hot-in), or any of the \
             {SHIFT_TOP} hottest their places with any others (random)",
            self.reads, self.keys_shifted
        ));
        notes.push(format!(
            "back after: when p99 of {} ms is within {BACK_TIMES} times the median of the 2 s \
             before, {BACK_PIECES} times in a row; late: how late this program was to ask",
            PIECE.as_millis()
        ));
        let title = "Tail latency of a rack while popularity shifts".to_owned();
        let made =
            Figure { title, notes, table: Table { columns: COLUMNS.to_vec(), rows }, panels };
        figure::show(&made, &self.ground.out, "lab-shift", shared.json)?;
        Ok(Verdict::Yes)
    }

    fn measure(&self, site: &Site) -> Result<(Vec<Vec<Cell>>, Vec<Panel>), Failure> {
        let (mut rows, mut panels) = (Vec::new(), KINDS.map(|(name, _)| panel(name)));
        let even = site.keyspace("uniform", HotMode::Hashing.policy(), self.replicas)?;
        let uniform = SiteLoad {
            keyspace: even,
            distribution: Distribution::Uniform,
            mix: reads_and_writes(self.reads),
            shift: None,
            by: Coordination::Switch,
        };
        let cap = site.rate() / uniform.visits(self.replicas);
        let idle_us = idle_p99_us(site, &uniform, cap)?;
        let rate = cap * self.load;
        for arm in self.ground.arms() {
            let keyspace = site.keyspace(arm.name(), arm.policy(), self.replicas)?;
            for ((name, kind), panel) in KINDS.into_iter().zip(&mut panels) {
                let shift = Shift { kind, keys: self.keys_shifted, every: self.every };
                let load = SiteLoad {
                    keyspace: Arc::clone(&keyspace),
                    distribution: zipf(self.theta),
                    shift: Some(shift),
                    ..uniform.clone()
                };
                let keys = format!("zipf {}, {}", self.theta, arm.name());
                let still = SiteLoad { shift: None, ..load.clone() };
                site.warm_up(&still, rate / 2.0, arm.warms_up_in())?;
                rows.push(self.case(site, &load, rate, (name, &keys, idle_us), &mut [panel])?);
            }
        }
        let mut both: Vec<&mut Panel> = panels.iter_mut().collect();
        rows.push(self.case(site, &uniform, rate, ("none", "uniform", idle_us), &mut both)?);
        Ok((rows, panels.into()))
    }

    fn case(
        &self,
        site: &Site,
        load: &SiteLoad,
        rate: f64,
        (shift, keys, idle_us): (&str, &str, u64),
        panels: &mut [&mut Panel],
    ) -> Result<Vec<Cell>, Failure> {
        let still = SiteLoad { shift: None, ..load.clone() };
        site.warm_up(&still, rate, WARM)?;
        let measured =
            site.run(load, rate, Window { time: self.seconds, piece: PIECE, seed: 3 })?;
        let pieces = (self.seconds.as_nanos() / PIECE.as_nanos()) as usize;
        let pieces: Vec<&IntervalSummary> =
            measured.summary.intervals.iter().take(pieces).collect();
        for panel in panels {
            for piece in &pieces {
                panel.add(keys, piece.second, piece.latency.p99_us as f64 / 1e3);
            }
        }
        let tails: Vec<u64> = pieces.iter().map(|piece| piece.latency.p99_us).collect();
        let done: u64 = pieces.iter().map(|piece| piece.endings.done).sum();
        let (mut sorted, worst) = (tails.clone(), tails.iter().max().copied());
        let back = load.shift.map_or_else(Vec::new, |shift| returns(&tails, shift.every));
        let text: Vec<String> = back.iter().map(|it| ms(*it)).collect();
        let slowest =
            back.iter().copied().try_fold(0.0_f64, |most, it| Some(most.max(millis(it?))));
        let in_ms = |us: Option<u64>| us.map(|us| us as f64 / 1e3);
        note!("{shift}, {keys}: back after {} ms", text.join(", "));
        Ok(vec![
            Cell::text(shift),
            Cell::text(keys),
            Cell::number(rate, 0),
            Cell::number(done as f64 / (rate * self.seconds.as_secs_f64()), 3),
            Cell::number(in_ms(measured_median(&mut sorted)), 1),
            Cell::number(in_ms(worst), 1),
            Cell::number(idle_us as f64 / 1e3, 1),
            Cell::text(text.join(", ")),
            Cell::number(slowest.filter(|_| !back.is_empty()), 0),
            Cell::number(measured.late_p99_us as f64 / 1e3, 1),
        ])
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn ms(time: Option<Duration>) -> String {
    time.map_or_else(|| "never".to_owned(), |time| format!("{:.0}", millis(time)))
}

/// After how long the tail is back, for each change: `None` if not before the next one.
fn returns(tails_us: &[u64], every: Duration) -> Vec<Option<Duration>> {
    let step = (every.as_nanos() / PIECE.as_nanos()).max(1) as usize;
    let changes = (step..tails_us.len()).step_by(step);
    let back = |change: usize| {
        let before = tails_us.get(change.saturating_sub(BEFORE_PIECES)..change)?;
        let most = measured_median(&mut before.to_vec())? as f64 * BACK_TIMES;
        let after = tails_us.get(change..(change + step).min(tails_us.len()))?;
        let calm = |pieces: &[u64]| pieces.iter().all(|tail_us| *tail_us as f64 <= most);
        let pieces = after.windows(BACK_PIECES).position(calm)?;
        Some(PIECE * u32::try_from(pieces).ok()?)
    };
    changes.map(back).collect()
}

fn panel(shift: &str) -> Panel {
    Panel {
        title: shift.to_owned(),
        x: "time (s)",
        places: Vec::new(),
        y: "p99 of 100 ms (ms)",
        logarithmic: true,
        curves: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a tail that is 10 but for these pieces.
    fn back(disturbed: &[usize]) -> Vec<Option<u128>> {
        let tail = |piece: usize| if disturbed.contains(&piece) { 16 } else { 10 };
        let tails: Vec<u64> = (0..30).map(tail).collect();
        let back = returns(&tails, Duration::from_secs(1));
        back.into_iter().map(|it| it.map(|time| time.as_millis())).collect()
    }

    #[test]
    fn a_tail_that_nothing_disturbs_is_back_at_once() {
        assert_eq!(back(&[]), [Some(0), Some(0)]);
        // What was before a change is none of its business.
        assert_eq!(back(&[3, 8, 9]), [Some(0), Some(0)]);
    }

    #[test]
    fn it_is_back_when_it_stays_back() {
        assert_eq!(back(&[10, 11]), [Some(200), Some(0)]);
        assert_eq!(back(&[10, 12, 21]), [Some(300), Some(200)]);
    }

    #[test]
    fn it_is_not_back_if_it_never_is() {
        assert_eq!(back(&[12, 15, 18, 20]), [None, Some(100)]);
    }
}
