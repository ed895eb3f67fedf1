//! Figure 9: the tail latency, and how many requests are answered, against skew.

use super::{CAP_NOTE, PegasusSettings, measure_all};
use crate::paper::figure::{Cell, Column, Figure, Table};
use crate::paper::plot::Panel;
use crate::paper::rack::{Bounds, Rack, Trial};
use crate::paper::{Arm, Load};
use std::time::Duration;

/// How busy the nodes are if every one takes its share.
pub(super) const UTILISATION: f64 = 0.8;

/// How long each trial is looked at unless said otherwise.
const WINDOW: Duration = Duration::from_secs(2);

const COLUMNS: [Column; 9] = [
    Column { head: "keys", key: "keys" },
    Column { head: "spread", key: "spread" },
    Column { head: "asked/s", key: "rate" },
    Column { head: "answered", key: "answered" },
    Column { head: "p99 us", key: "p99_us" },
    Column { head: "gain max", key: "gain_max" },
    Column { head: "by switch", key: "by_switch" },
    Column { head: "busiest", key: "busiest" },
    Column { head: "mean busy", key: "busy_mean" },
];

/// Makes the figure.
pub(super) fn against_skew(settings: &PegasusSettings, mut tell: impl FnMut(&str)) -> Figure {
    let window = settings.window.unwrap_or(WINDOW);
    let skews = settings.skews();
    let at_skews = |arm: Arm| skews.iter().map(move |(x, skew)| (arm, *x, *skew));
    let points: Vec<_> = settings.arms().flat_map(at_skews).collect();
    let panel = |title: &str, y, logarithmic| Panel {
        title: title.to_owned(),
        x: "popularity of keys",
        places: skews.iter().map(|(_, skew)| skew.to_string()).collect(),
        y,
        logarithmic,
        curves: Vec::new(),
    };
    let mut latency = panel("tail latency", "p99 (us)", true);
    let mut answered = panel("requests answered", "share answered", false);
    let mut rows = Vec::new();
    measure_all(
        &points,
        |(arm, _, skew)| {
            measure(&mut Rack::new(settings.rack(*arm)), &settings.load(*skew), window)
        },
        |(arm, x, skew), (bounds, trial)| {
            let share = trial.done as f64 / trial.begun as f64;
            tell(&format!("{}, {skew}: {:.1} % answered", arm.name(), share * 100.0));
            latency.add(arm.name(), *x, trial.p99_us as f64);
            answered.add(arm.name(), *x, share);
            rows.push(vec![
                Cell::text(skew),
                Cell::text(arm.name()),
                Cell::number(trial.begun as f64 / window.as_secs_f64(), 0),
                Cell::number(share, 3),
                Cell::number(trial.p99_us as f64, 0),
                Cell::number(bounds.gain_max(), 2),
                Cell::number(trial.by_switch, 3),
                Cell::number(trial.busiest, 2),
                Cell::number(trial.busy_mean, 2),
            ]);
        },
    );
    let mut notes = settings.notes(window);
    notes.push(format!("asked for: {UTILISATION} of the cap"));
    notes.push(CAP_NOTE.to_owned());
    Figure {
        title: format!(
            "Figure 9: tail latency and completion at 80 % of the cap, {}",
            settings.mix()
        ),
        notes,
        table: Table { columns: COLUMNS.to_vec(), rows },
        panels: vec![latency, answered],
    }
}

fn measure(rack: &mut Rack, load: &Load, window: Duration) -> (Bounds, Trial) {
    let bounds = rack.bounds(load);
    let rate = UTILISATION * bounds.cap;
    rack.get_used_to(load, rate);
    let trial = rack.run(load, rate, window, None);
    (bounds, trial)
}
