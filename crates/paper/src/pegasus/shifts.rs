//! Figure 14: the tail latency as the popularity of keys shifts.

use super::tail::UTILISATION;
use super::{CAP_NOTE, EVEN, Settings, THETA, measure_all};
use crate::figure::{Cell, Column, Figure, Table};
use crate::plot::Panel;
use crate::rack::{Bounds, Rack, Trial};
use crate::search::{OBJECTIVE_TIMES, objective};
use crate::{Arm, Load, Skew};
use std::time::Duration;
use workload::{Shift, ShiftKind};

/// How long it is looked at unless said otherwise: three shifts, and what becomes of each.
const WINDOW: Duration = Duration::from_secs(40);

/// How long the pieces are of which the tail is shown.
const PIECE: Duration = Duration::from_millis(100);

/// What shifts: this many keys, this often.
const SHIFT_KEYS: u64 = 100;
const SHIFT_EVERY: Duration = Duration::from_secs(10);

/// Ranks from which a random shift takes keys.
const SHIFT_TOP: u64 = 10_000;

const COLUMNS: [Column; 10] = [
    Column { head: "shift", key: "shift" },
    Column { head: "keys", key: "keys" },
    Column { head: "asked/s", key: "rate" },
    Column { head: "answered", key: "answered" },
    Column { head: "median p99 us", key: "p99_us_median" },
    Column { head: "worst p99 us", key: "p99_us_worst" },
    Column { head: "over objective", key: "over_objective" },
    Column { head: "objective us", key: "objective_us" },
    Column { head: "by switch", key: "by_switch" },
    Column { head: "gain max", key: "gain_max" },
];

/// One curve: how popularity shifts, and how load is spread.
#[derive(Clone, Copy)]
enum Case {
    Shifting {
        shift: &'static str,
        kind: ShiftKind,
        arm: Arm,
    },
    /// Uniform keys, which have no popularity to shift: what all others are compared with.
    Even,
}

const KINDS: [(&str, ShiftKind); 2] =
    [("hot-in", ShiftKind::HotIn), ("random", ShiftKind::Random { top: SHIFT_TOP })];

struct Measured {
    bounds: Bounds,
    objective_us: u64,
    trial: Trial,
}

impl Case {
    /// All curves, panel by panel.
    fn all(settings: &Settings) -> impl Iterator<Item = Self> {
        let of_kind =
            |(shift, kind)| settings.arms().map(move |arm| Self::Shifting { shift, kind, arm });
        KINDS.into_iter().flat_map(of_kind).chain([Self::Even])
    }

    fn name(self) -> String {
        match self {
            Self::Shifting { arm, .. } => format!("zipf {THETA}, {}", arm.name()),
            Self::Even => EVEN.to_owned(),
        }
    }

    /// In which panels it is shown.
    fn shift(self) -> Option<&'static str> {
        match self {
            Self::Shifting { shift, .. } => Some(shift),
            Self::Even => None,
        }
    }

    fn load(self) -> Load {
        match self {
            Self::Shifting { kind, .. } => {
                let shift = Shift { kind, keys: SHIFT_KEYS, every: SHIFT_EVERY };
                Load { shift: Some(shift), ..Load::reads(Skew::Zipf(THETA)) }
            }
            Self::Even => Load::reads(Skew::Uniform),
        }
    }

    fn measure(self, settings: &Settings, window: Duration) -> Measured {
        let arm = match self {
            Self::Shifting { arm, .. } => arm,
            Self::Even => Arm::Hashing,
        };
        let mut rack = Rack::new(settings.rack(arm));
        let load = self.load();
        let (bounds, objective_us) = (rack.bounds(&load), objective(&mut rack, &load));
        let rate = UTILISATION * bounds.cap;
        rack.get_used_to(&load, rate);
        let trial = rack.run(&load, rate, window, Some(PIECE));
        Measured { bounds, objective_us, trial }
    }
}

/// Makes the figure.
pub(super) fn per_interval(settings: &Settings, mut tell: impl FnMut(&str)) -> Figure {
    let window = settings.window.unwrap_or(WINDOW);
    let cases: Vec<Case> = Case::all(settings).collect();
    let mut panels: Vec<Panel> = KINDS.into_iter().map(|(shift, _)| panel(shift)).collect();
    let mut rows = Vec::new();
    measure_all(
        &cases,
        |case| case.measure(settings, window),
        |case, measured| {
            let (name, shift) = (case.name(), case.shift());
            let when = shift.unwrap_or("no shift");
            tell(&format!("{when}, {name}: {} requests", measured.trial.begun));
            let shown = |panel: &&mut Panel| shift.is_none_or(|shift| panel.title == shift);
            for panel in panels.iter_mut().filter(shown) {
                for piece in &measured.trial.pieces {
                    panel.add(&name, piece.second, piece.latency.p99_us as f64);
                }
            }
            rows.push(row(*case, &measured));
        },
    );
    let mut notes = settings.notes(window);
    notes.push(format!(
        "asked for: {UTILISATION} of the cap; every {} s {SHIFT_KEYS} keys change their ranks, \
         the coldest becoming the hottest (hot-in), or any of the {SHIFT_TOP} hottest their \
         places with any others (random)",
        SHIFT_EVERY.as_secs()
    ));
    notes.push(format!(
        "over objective: share of the pieces of {} ms whose p99 is over {OBJECTIVE_TIMES} times \
         that of an idle rack",
        PIECE.as_millis()
    ));
    notes.push(CAP_NOTE.to_owned());
    Figure {
        title: "Figure 14: tail latency while popularity shifts".to_owned(),
        notes,
        table: Table { columns: COLUMNS.to_vec(), rows },
        panels,
    }
}

fn panel(shift: &str) -> Panel {
    Panel {
        title: shift.to_owned(),
        x: "time (s)",
        places: Vec::new(),
        y: "p99 of 100 ms (us)",
        logarithmic: true,
        curves: Vec::new(),
    }
}

fn row(case: Case, Measured { bounds, objective_us, trial }: &Measured) -> Vec<Cell> {
    let mut tails: Vec<u64> = trial.pieces.iter().map(|piece| piece.latency.p99_us).collect();
    tails.sort_unstable();
    let over = tails.iter().filter(|p99_us| *p99_us > objective_us).count();
    let number = |p99_us: Option<&u64>| Cell::number(p99_us.map(|it| *it as f64), 0);
    vec![
        Cell::text(case.shift().unwrap_or("none")),
        Cell::text(case.name()),
        Cell::number(trial.begun as f64 / trial.window.as_secs_f64(), 0),
        Cell::number(trial.done as f64 / trial.begun as f64, 3),
        number(tails.get(tails.len() / 2)),
        number(tails.last()),
        Cell::number(over as f64 / tails.len().max(1) as f64, 3),
        Cell::number(*objective_us as f64, 0),
        Cell::number(trial.by_switch, 3),
        Cell::number(bounds.gain_max(), 2),
    ]
}
