//! Figure 14: the tail latency as the popularity of keys shifts.

use super::tail::UTILISATION;
use super::{CAP_NOTE, EVEN, PegasusSettings, THETA, measure_all};
use crate::paper::figure::{Cell, Column, Figure, Table};
use crate::paper::plot::Panel;
use crate::paper::rack::{Bounds, CloseLook, Rack, STARTS_FOR, Starts, Trial};
use crate::paper::search::{OBJECTIVE_TIMES, objective};
use crate::paper::{Arm, Load, Skew};
use std::time::Duration;
use workload::{Shift, ShiftKind};

/// How long it is looked at unless said otherwise: three shifts, and what becomes of each.
const WINDOW: Duration = Duration::from_secs(40);

/// How long the pieces are of which the tail is shown.
const PIECE: Duration = Duration::from_millis(100);

/// What shifts: this many keys, this often.
const SHIFT_KEYS: u64 = 100;
const SHIFT_EVERY: Duration = Duration::from_secs(10);

/// For how long after a shift it is looked at when the rack has recovered.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// Whoever misses the objective this late has not recovered.
const STEADY: Duration = Duration::from_millis(100);

/// Ranks from which a random shift takes keys.
const SHIFT_TOP: u64 = 10_000;

const COLUMNS: [Column; 11] = [
    Column { head: "shift", key: "shift" },
    Column { head: "keys", key: "keys" },
    Column { head: "asked/s", key: "rate" },
    Column { head: "answered", key: "answered" },
    Column { head: "median p99 us", key: "p99_us_median" },
    Column { head: "worst p99 us", key: "p99_us_worst" },
    Column { head: "over objective", key: "over_objective" },
    Column { head: "objective us", key: "objective_us" },
    Column { head: "recovered after ms", key: "recovered_ms" },
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
    fn all(settings: &PegasusSettings) -> impl Iterator<Item = Self> {
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

    fn load(self, settings: &PegasusSettings) -> Load {
        match self {
            Self::Shifting { kind, .. } => {
                let shift = Shift { kind, keys: SHIFT_KEYS, every: SHIFT_EVERY };
                Load { shift: Some(shift), ..settings.load(Skew::Zipf(THETA)) }
            }
            Self::Even => settings.load(Skew::Uniform),
        }
    }

    fn measure(self, settings: &PegasusSettings, window: Duration) -> Measured {
        let arm = match self {
            Self::Shifting { arm, .. } => arm,
            Self::Even => Arm::Hashing,
        };
        let mut rack = Rack::new(settings.rack(arm));
        let load = self.load(settings);
        let (bounds, objective_us) = (rack.bounds(&load), objective(&mut rack, &load));
        let rate = UTILISATION * bounds.cap;
        rack.get_used_to(&load, rate);
        let look = CloseLook { piece: PIECE, in_time_us: objective_us };
        let trial = rack.run(&load, rate, window, Some(look));
        Measured { bounds, objective_us, trial }
    }
}

/// Makes the figure.
pub(super) fn per_interval(settings: &PegasusSettings, mut tell: impl FnMut(&str)) -> Figure {
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
    notes.push(format!(
        "recovered after: how long after each shift all have started of whom less than 99 % are \
         answered within the objective, by {} ms; looked at for {} s, and '-' if there are any in \
         the last {} ms of that",
        STARTS_FOR.as_millis(),
        AFTERWARDS.as_secs(),
        STEADY.as_millis()
    ));
    notes.push(CAP_NOTE.to_owned());
    Figure {
        title: format!("Figure 14: tail latency while popularity shifts, {}", settings.mix()),
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
        Cell::text(recoveries(&trial.starts)),
        Cell::number(trial.by_switch, 3),
        Cell::number(bounds.gain_max(), 2),
    ]
}

/// After how many milliseconds the rack had recovered from each shift.
fn recoveries(starts: &[Starts]) -> String {
    let shifts = (1..).map(|shift| shift * starts_in(SHIFT_EVERY));
    let looked_at = starts_in(AFTERWARDS);
    let after = shifts.map_while(|from| starts.get(from..from + looked_at));
    let told: Vec<String> =
        after.map(|it| recovered_ms(it).map_or("-".to_owned(), |ms| ms.to_string())).collect();
    told.join(" ")
}

/// After how many milliseconds of these the objective was not missed any more, if ever.
fn recovered_ms(starts: &[Starts]) -> Option<u128> {
    let missed = starts.iter().rposition(|it| it.in_time * 100 < it.begun * 99);
    let bad = missed.map_or(0, |last| last + 1);
    let steady = bad == 0 || starts.len() - bad >= starts_in(STEADY);
    steady.then(|| bad as u128 * STARTS_FOR.as_millis())
}

/// How many counts there are of so much time.
fn starts_in(time: Duration) -> usize {
    usize::try_from(time.as_nanos() / STARTS_FOR.as_nanos()).expect("figures are short")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second's starts, of which those between these milliseconds are not in time.
    fn missed(between: std::ops::Range<usize>) -> Vec<Starts> {
        let of = |place: usize| Starts {
            begun: 100,
            in_time: 99 - u64::from(between.contains(&(10 * place))),
        };
        (0..100).map(of).collect()
    }

    #[test]
    fn a_rack_has_recovered_once_nobody_misses_the_objective_any_more() {
        assert_eq!(recovered_ms(&missed(0..0)), Some(0));
        assert_eq!(recovered_ms(&missed(0..60)), Some(60));
        assert_eq!(recovered_ms(&missed(20..60)), Some(60));
        assert_eq!(recovered_ms(&missed(890..900)), Some(900));
        assert_eq!(recovered_ms(&missed(890..910)), None);
    }

    #[test]
    fn each_shift_is_told_of_that_is_looked_at_for_long_enough() {
        let calm = |seconds: usize| vec![Starts { begun: 1, in_time: 1 }; 100 * seconds];
        let all = [calm(10), missed(0..70), calm(9), missed(950..960), calm(9)].concat();
        assert_eq!(recoveries(&all), "70 -");
        assert_eq!(recoveries(&calm(10)), "");
    }
}
