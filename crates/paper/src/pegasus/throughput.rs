//! Figures 8, 10, 11 and 13: throughput under an objective for the tail latency.

use super::{EVEN, Settings, THETA, THETAS};
use crate::figure::{Cell, Column, Figure, Table};
use crate::plot::Panel;
use crate::rack::{Rack, RackSpec};
use crate::search::{Best, highest};
use crate::{Arm, Load, Skew};
use sim::in_parallel;
use std::ops::ControlFlow;
use std::time::Duration;

/// One point of a plot, and one row of its table.
struct Point {
    /// Which curve it belongs to.
    curve: String,
    x: f64,
    /// What stands at `x`.
    at: String,
    spec: RackSpec,
    load: Load,
}

/// What the axis of a plot is about.
struct Axis {
    label: &'static str,
    column: Column,
    /// Whether the points stand beside each other under their names.
    named: bool,
}

/// How long each trial is looked at unless said otherwise.
const WINDOW: Duration = Duration::from_secs(1);

/// Figure 8: against skew, reads only.
pub(super) fn against_skew(settings: &Settings, tell: impl FnMut(&str)) -> Figure {
    let points = Arm::ALL.into_iter().flat_map(|arm| {
        skews().map(move |(x, skew)| Point {
            curve: arm.name().to_owned(),
            x,
            at: skew.to_string(),
            spec: settings.rack(arm),
            load: Load::reads(skew),
        })
    });
    let title = "Figure 8: throughput against skew, reads only";
    figure(settings, title, &SKEW_AXIS, points.collect(), tell)
}

/// Figure 10: against the share of reads.
pub(super) fn against_reads(settings: &Settings, tell: impl FnMut(&str)) -> Figure {
    let curve = |arm: Arm, skew: Skew, name: String| {
        READS.into_iter().map(move |reads_percent| Point {
            curve: name.clone(),
            x: reads_percent.into(),
            at: reads_percent.to_string(),
            spec: settings.rack(arm),
            load: Load { reads_percent, ..Load::reads(skew) },
        })
    };
    let arms = Arm::ALL.into_iter().map(|arm| curve(arm, Skew::Zipf(THETA), arm.name().to_owned()));
    let points = arms.flatten().chain(curve(Arm::Hashing, Skew::Uniform, EVEN.to_owned()));
    let title = format!("Figure 10: throughput against the share of reads, zipf {THETA}");
    let column = Column { head: "reads %", key: "reads_percent" };
    let axis = Axis { label: "reads (%)", column, named: false };
    figure(settings, &title, &axis, points.collect(), tell)
}

/// Figure 11: against the number of nodes, reads only.
pub(super) fn against_nodes(settings: &Settings, tell: impl FnMut(&str)) -> Figure {
    let least = u16::from(settings.replicas).max(2).next_power_of_two();
    let powers = std::iter::successors(Some(least), |nodes| nodes.checked_mul(2));
    let counts: Vec<u16> = powers.take_while(|nodes| *nodes < settings.nodes).collect();
    let counts = || counts.iter().copied().chain([settings.nodes]);
    let curve = |arm: Arm, skew: Skew, name: &str| -> Vec<Point> {
        let point = |nodes: u16| Point {
            curve: name.to_owned(),
            x: nodes.into(),
            at: nodes.to_string(),
            spec: RackSpec { nodes, ..settings.rack(arm) },
            load: Load::reads(skew),
        };
        counts().map(point).collect()
    };
    let arms = Arm::ALL.into_iter().flat_map(|arm| curve(arm, Skew::Zipf(THETA), arm.name()));
    let points = arms.chain(curve(Arm::Hashing, Skew::Uniform, EVEN));
    let title = format!("Figure 11: throughput against nodes, zipf {THETA}, reads only");
    let column = Column { head: "nodes", key: "nodes" };
    let axis = Axis { label: "storage nodes", column, named: false };
    figure(settings, &title, &axis, points.collect(), tell)
}

/// Figure 13: nodes that are alike, and half of them at half speed, against skew.
pub(super) fn against_speeds(settings: &Settings, tell: impl FnMut(&str)) -> Figure {
    let curves = Arm::ALL.into_iter().flat_map(|arm| [(arm, false), (arm, true)]);
    let points = curves.flat_map(|(arm, half_slow)| {
        let nodes = if half_slow { "half of the nodes at half speed" } else { "equal nodes" };
        skews().map(move |(x, skew)| Point {
            curve: format!("{}, {nodes}", arm.name()),
            x,
            at: skew.to_string(),
            spec: RackSpec { half_slow, ..settings.rack(arm) },
            load: Load::reads(skew),
        })
    });
    let title = "Figure 13: throughput where nodes differ in speed, reads only";
    figure(settings, title, &SKEW_AXIS, points.collect(), tell)
}

/// Shares of reads, in percent.
const READS: [u32; 6] = [0, 20, 40, 60, 80, 100];

const SKEW_AXIS: Axis =
    Axis { label: "popularity of keys", column: Column { head: "keys", key: "keys" }, named: true };

/// The skews of an axis, and their places on it.
pub(super) fn skews() -> impl Iterator<Item = (f64, Skew)> + Clone {
    let places = std::iter::successors(Some(0.0), |place| Some(place + 1.0));
    places.zip([Skew::Uniform].into_iter().chain(THETAS.map(Skew::Zipf)))
}

fn figure(
    settings: &Settings,
    title: &str,
    axis: &Axis,
    points: Vec<Point>,
    mut tell: impl FnMut(&str),
) -> Figure {
    let window = settings.window.unwrap_or(WINDOW);
    let measure = |point: &Point| highest(&mut Rack::new(point.spec), &point.load, window);
    let mut panel = Panel {
        title: "under the objective for p99".to_owned(),
        x: axis.label,
        places: Vec::new(),
        y: "requests per second",
        logarithmic: false,
        curves: Vec::new(),
    };
    let mut rows = Vec::new();
    let ended: ControlFlow<()> = in_parallel(&points, measure, |point, best| {
        let served = best.trial.as_ref().map_or(0.0, |trial| trial.throughput());
        tell(&format!("{}, {}: {served:.0} requests/s", point.curve, point.at));
        if axis.named && !panel.places.contains(&point.at) {
            panel.places.push(point.at.clone());
        }
        panel.add(&point.curve, point.x, served);
        rows.push(row(point, &best));
        ControlFlow::Continue(())
    });
    assert!(ended.is_continue(), "nothing breaks off");
    let mut columns = vec![axis.column];
    columns.extend(COLUMNS);
    Figure {
        title: title.to_owned(),
        notes: settings.objective_notes(window),
        table: Table { columns, rows },
        panels: vec![panel],
    }
}

/// The columns after that of the axis.
const COLUMNS: [Column; 9] = [
    Column { head: "spread", key: "spread" },
    Column { head: "throughput/s", key: "throughput" },
    Column { head: "cap/s", key: "cap" },
    Column { head: "of cap", key: "of_cap" },
    Column { head: "gain max", key: "gain_max" },
    Column { head: "p99 us", key: "p99_us" },
    Column { head: "objective us", key: "objective_us" },
    Column { head: "busiest", key: "busiest" },
    Column { head: "mean busy", key: "busy_mean" },
];

fn row(point: &Point, Best { bounds, objective_us, trial }: &Best) -> Vec<Cell> {
    let trial = trial.as_ref();
    let served = trial.map(|trial| trial.throughput());
    vec![
        Cell::text(&point.at),
        Cell::text(&point.curve),
        Cell::number(served, 0),
        Cell::number(bounds.cap, 0),
        Cell::number(served.map(|served| served / bounds.cap), 3),
        Cell::number(bounds.gain_max(), 2),
        Cell::number(trial.map(|trial| trial.p99_us as f64), 0),
        Cell::number(*objective_us as f64, 0),
        Cell::number(trial.map(|trial| trial.busiest), 2),
        Cell::number(trial.map(|trial| trial.busy_mean), 2),
    ]
}
