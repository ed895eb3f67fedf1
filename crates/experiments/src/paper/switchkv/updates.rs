//! Figures 15 to 19: what a cache does as the popularity of keys shifts.

use super::balance::settling;
use super::system::System;
use super::{SwitchKvSettings, THETA, losses_note, reads, throughput_panel};
use crate::paper::figure::{Cell, Column, Figure, Table};
use crate::paper::plot::Panel;
use crate::paper::points::measure_all;
use crate::paper::rack::{Caches, CloseLook, Losses, Rack, RackSpec, Trial};
use crate::paper::{Load, Skew};
use std::time::Duration;
use workload::{Shift, ShiftKind};

/// How long a system is looked at unless said otherwise: two shifts every ten seconds and what
/// becomes of them, or enough to have changed a third of what a cache holds.
const WINDOW: Duration = Duration::from_secs(28);
const WINDOW_EVERY_SECOND: Duration = Duration::from_secs(20);

/// How long the pieces are of which throughput is shown.
const PIECE: Duration = Duration::from_millis(20);

/// What moves in figures 15 to 17, and how often.
const SHIFT_KEYS: u64 = 200;
const SHIFT_SELDOM: Duration = Duration::from_secs(10);
const SHIFT_OFTEN: Duration = Duration::from_secs(1);

/// What moves at a time in figure 18.
const SHIFT_KEYS_MANY: u64 = 600;

/// Keys a second that move in figure 19.
const RATES: [u64; 6] = [20, 50, 100, 200, 400, 1_000];

/// Changes of rules that a switch takes in a second: the paper's own, and one that it cites.
const RULES_SLOW: u32 = 400;
const RULES_FAST: u32 = 12_000;

/// A system that serves this share of what it did has recovered.
const RECOVERED: f64 = 0.9;

/// One system under one shift.
struct Case {
    panel: String,
    curve: String,
    spec: RackSpec,
    shift: Shift,
}

struct Measured {
    /// What it serves while nothing moves, in requests per second.
    steady: f64,
    trial: Trial,
}

impl Case {
    fn new(settings: &SwitchKvSettings, system: System, rules_per_s: u32, shift: Shift) -> Self {
        let spec = settings.rack(system);
        let caches = Caches { rules_per_s, ..spec.caches };
        Self {
            panel: format!("{rules_per_s} rules a second"),
            curve: system.name().to_owned(),
            spec: RackSpec { caches, ..spec },
            shift,
        }
    }

    fn measure(&self, window: Duration) -> Measured {
        // The cache is filled at once: what is looked at is what comes then.
        let filling = Caches { rules_per_s: RULES_FAST, ..self.spec.caches };
        let mut rack = Rack::new(RackSpec { caches: filling, ..self.spec });
        let still = reads(Skew::Zipf(THETA));
        let first = rack.limit(&rack.bounds(&still));
        rack.get_used_to(&still, first);
        rack.set_rule_pace(self.spec.caches);
        let settling = settling(&self.spec);
        let losing = (Losses::SWITCHKV, first);
        let steady = rack.run_losing(&still, losing, (settling, STEADY), None).throughput();
        let load = Load { shift: Some(self.shift), ..still };
        let look = CloseLook { piece: PIECE, in_time_us: 0 };
        let losing = (Losses::SWITCHKV, steady);
        let trial = rack.run_losing(&load, losing, (settling, window), Some(look));
        Measured { steady, trial }
    }

    /// Instants at which something moves, in seconds after the window has begun.
    fn shifts(&self, window: Duration) -> impl Iterator<Item = f64> {
        let every = self.shift.every.as_secs_f64();
        let shifts = std::iter::successors(Some(every), move |at| Some(at + every));
        let end = window.as_secs_f64();
        // What comes after the last is looked at for a while.
        shifts.take_while(move |at| at + AFTERWARDS <= end)
    }
}

/// How long it is looked at what a system serves while nothing moves.
const STEADY: Duration = Duration::from_secs(1);

/// Seconds after a shift within which a system is looked for to recover.
const AFTERWARDS: f64 = 5.0;

/// A shift's marks: the least share of what was served before, and after how many milliseconds it
/// was nine tenths again.
struct Recovery {
    least: f64,
    after_ms: Option<f64>,
}

/// What came of the shift at this second.
fn recovery(measured: &Measured, at: f64) -> Recovery {
    let piece = PIECE.as_secs_f64();
    let shares: Vec<(f64, f64)> = measured
        .trial
        .pieces
        .iter()
        .map(|it| (it.second - at, it.endings.done as f64 / piece / measured.steady))
        .filter(|(after, _)| *after > 0.0 && *after <= AFTERWARDS)
        .collect();
    let least = shares.iter().map(|(_, share)| *share).fold(f64::MAX, f64::min);
    // From then on the mean of a tenth of a second is that.
    let few = (0.1 / piece) as usize;
    let mean = |few: &[(f64, f64)]| {
        few.iter().map(|(_, share)| share).sum::<f64>() / few.len().max(1) as f64
    };
    let low = shares.windows(few).rposition(|few| mean(few) < RECOVERED);
    let after_ms = match low {
        None => Some(0.0),
        Some(low) => shares.get(low + few).map(|(after, _)| (after - piece) * 1_000.0),
    };
    Recovery { least, after_ms }
}

/// Figure 15: the coldest keys become the hottest.
pub(super) fn hot_in(settings: &SwitchKvSettings, tell: impl FnMut(&str)) -> Figure {
    let shift = Shift { kind: ShiftKind::HotIn, keys: SHIFT_KEYS, every: SHIFT_SELDOM };
    let systems = [System::SwitchKv, System::Periodic, System::Traditional];
    let cases = [RULES_SLOW, RULES_FAST]
        .into_iter()
        .flat_map(|rules| systems.map(|system| Case::new(settings, system, rules, shift)));
    let title = "Figure 15: throughput as 200 cold keys become the hottest every 10 s";
    over_time(settings, title, cases.collect(), WINDOW, tell)
}

/// Figure 16: the hottest keys become the coldest.
pub(super) fn hot_out(settings: &SwitchKvSettings, tell: impl FnMut(&str)) -> Figure {
    let shift = Shift { kind: ShiftKind::HotOut, keys: SHIFT_KEYS, every: SHIFT_OFTEN };
    let title = "Figure 16: throughput as the 200 hottest keys go cold every second";
    each_report(settings, title, shift, tell)
}

/// Figure 17: keys anywhere among those that a cache holds go cold.
pub(super) fn random(settings: &SwitchKvSettings, tell: impl FnMut(&str)) -> Figure {
    let top = settings.items.into();
    let shift = Shift { kind: ShiftKind::Random { top }, keys: SHIFT_KEYS, every: SHIFT_OFTEN };
    let title = "Figure 17: throughput as 200 of the keys that are held go cold every second";
    each_report(settings, title, shift, tell)
}

fn each_report(
    settings: &SwitchKvSettings,
    title: &str,
    shift: Shift,
    tell: impl FnMut(&str),
) -> Figure {
    let rules = settings.rules_per_s.unwrap_or(RULES_SLOW);
    let systems = [System::SwitchKv, System::Periodic, System::Instant];
    let cases = systems.map(|system| Case::new(settings, system, rules, shift));
    over_time(settings, title, cases.into(), WINDOW_EVERY_SECOND, tell)
}

/// Figure 18: more keys than the switch can follow at once, with and without a buffer for rules
/// that are of no use.
pub(super) fn rule_buffer(settings: &SwitchKvSettings, tell: impl FnMut(&str)) -> Figure {
    let shift = Shift { kind: ShiftKind::HotIn, keys: SHIFT_KEYS_MANY, every: SHIFT_SELDOM };
    let rules = settings.rules_per_s.unwrap_or(RULES_SLOW);
    let case = |(curve, remove_within): (&str, Duration)| {
        let case = Case::new(settings, System::SwitchKv, rules, shift);
        let caches = Caches { remove_within, ..case.spec.caches };
        Case { curve: curve.to_owned(), spec: RackSpec { caches, ..case.spec }, ..case }
    };
    let cases = [
        ("removals within 2 s", Caches::SWITCHKV.remove_within),
        ("removals at once", Duration::ZERO),
    ];
    let title = "Figure 18: throughput as 600 cold keys become the hottest every 10 s";
    over_time(settings, title, cases.map(case).into(), WINDOW, tell)
}

/// The share of what was served while nothing moved, over time.
fn over_time(
    settings: &SwitchKvSettings,
    title: &str,
    cases: Vec<Case>,
    usual: Duration,
    mut tell: impl FnMut(&str),
) -> Figure {
    let window = settings.window.unwrap_or(usual);
    let mut panels: Vec<Panel> = Vec::new();
    let mut rows = Vec::new();
    measure_all(
        &cases,
        |case| case.measure(window),
        |case, measured| {
            let steady = measured.steady;
            tell(&format!("{}, {}: {steady:.0}/s at first", case.panel, case.curve));
            if panels.iter().all(|panel| panel.title != case.panel) {
                panels.push(throughput_panel(&case.panel, "seconds", Vec::new()));
            }
            let panel = panels.iter_mut().find(|panel| panel.title == case.panel);
            let panel = panel.expect("it was made");
            for few in measured.trial.pieces.chunks(SHOWN_TOGETHER) {
                let done: u64 = few.iter().map(|it| it.endings.done).sum();
                let seconds = PIECE.as_secs_f64() * few.len() as f64;
                let at = few.last().map_or(0.0, |it| it.second);
                panel.add(&case.curve, at, done as f64 / seconds);
            }
            rows.push(row(case, &measured, window));
        },
    );
    let every = cases.first().map_or(SHIFT_OFTEN, |case| case.shift.every);
    figure(settings, title, (window, every), rows, panels)
}

/// Pieces that make one point of a plot.
const SHOWN_TOGETHER: usize = 5;

/// Figure 19: how much may move in a second.
pub(super) fn against_rate(settings: &SwitchKvSettings, mut tell: impl FnMut(&str)) -> Figure {
    let window = settings.window.unwrap_or(WINDOW_EVERY_SECOND);
    let rules = settings.rules_per_s.unwrap_or(RULES_SLOW);
    let kinds = [
        ("hot-in", ShiftKind::HotIn),
        ("hot-out", ShiftKind::HotOut),
        ("random", ShiftKind::Random { top: settings.items.into() }),
    ];
    let cases: Vec<Case> = kinds
        .into_iter()
        .flat_map(|(name, kind)| {
            RATES.map(|keys| {
                let shift = Shift { kind, keys, every: SHIFT_OFTEN };
                let case = Case::new(settings, System::SwitchKv, rules, shift);
                Case { curve: name.to_owned(), ..case }
            })
        })
        .collect();
    let mut panel = throughput_panel("throughput", "keys that move in a second", Vec::new());
    let mut rows = Vec::new();
    measure_all(
        &cases,
        |case| case.measure(window),
        |case, measured| {
            let served = measured.trial.throughput();
            tell(&format!("{}, {} keys a second: {served:.0}/s", case.curve, case.shift.keys));
            panel.add(&case.curve, case.shift.keys as f64, served);
            rows.push(row(case, &measured, window));
        },
    );
    let title = "Figure 19: throughput against how many keys move in a second";
    figure(settings, title, (window, SHIFT_OFTEN), rows, vec![panel])
}

fn figure(
    settings: &SwitchKvSettings,
    title: &str,
    (window, every): (Duration, Duration),
    rows: Vec<Vec<Cell>>,
    panels: Vec<Panel>,
) -> Figure {
    let mut notes = settings.notes(window);
    notes.push(losses_note(Losses::SWITCHKV));
    notes.push(
        "steady: what is served before anything moves; least: the worst 20 ms after a shift; \
         recovered: after how long a tenth of a second is at 0.9 of steady again, for good, in the \
         worst of all shifts"
            .to_owned(),
    );
    notes.extend(untold(window, every));
    let table = Table { columns: COLUMNS.to_vec(), rows };
    Figure { title: format!("{title}, zipf {THETA}"), notes, table, panels }
}

/// Why it is not told what becomes of shifts, if it is not.
fn untold(window: Duration, every: Duration) -> Option<String> {
    let needed = every.as_secs_f64() + AFTERWARDS;
    if every.as_secs_f64() < AFTERWARDS {
        return Some("recovered is not told: the next shift comes before that".to_owned());
    }
    (window.as_secs_f64() < needed).then(|| {
        format!(
            "least and recovered are not told: what becomes of a shift is looked at for \
             {AFTERWARDS} s, so --seconds has to be {needed} or more"
        )
    })
}

const COLUMNS: [Column; 8] = [
    Column { head: "rules/s", key: "rules" },
    Column { head: "system", key: "system" },
    Column { head: "keys moved", key: "keys" },
    Column { head: "steady/s", key: "steady" },
    Column { head: "throughput/s", key: "throughput" },
    Column { head: "of steady", key: "of_steady" },
    Column { head: "least of steady", key: "least" },
    Column { head: "recovered after ms", key: "recovered_ms" },
];

fn row(case: &Case, measured: &Measured, window: Duration) -> Vec<Cell> {
    let shifts: Vec<Recovery> = case.shifts(window).map(|at| recovery(measured, at)).collect();
    let least = shifts.iter().map(|it| it.least).fold(f64::MAX, f64::min);
    // Shifts that follow each other leave no time to tell.
    let tells = case.shift.every.as_secs_f64() >= AFTERWARDS && !shifts.is_empty();
    let latest = shifts.iter().map(|it| it.after_ms).collect::<Option<Vec<f64>>>();
    let latest = latest.map(|all| all.into_iter().fold(0.0, f64::max));
    let served = measured.trial.throughput();
    vec![
        Cell::number(f64::from(case.spec.caches.rules_per_s), 0),
        Cell::text(&case.curve),
        Cell::number(case.shift.keys as f64, 0),
        Cell::number(measured.steady, 0),
        Cell::number(served, 0),
        Cell::number(served / measured.steady, 3),
        Cell::number((least < f64::MAX).then_some(least), 2),
        Cell::number(latest.filter(|_| tells), 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_told_says_why() {
        let why = |window, every| untold(Duration::from_secs(window), Duration::from_secs(every));
        assert_eq!(why(28, 10), None);
        assert_eq!(why(15, 10), None);
        assert!(why(14, 10).unwrap().contains("--seconds has to be 15 or more"));
        assert!(why(28, 1).unwrap().contains("the next shift comes"));
    }
}
