//! Figures 8 and 10 to 13: throughput under an objective for the tail latency.

use super::{EVEN, PegasusSettings, THETA, measure_all};
use crate::paper::figure::{Cell, Column, Figure, Table};
use crate::paper::plot::Panel;
use crate::paper::rack::{Rack, RackSpec};
use crate::paper::search::{Best, highest};
use crate::paper::{Arm, Load, Skew};
use cluster::Selection;
use std::time::Duration;

/// One point of a plot, and one row of its table.
struct Point {
    /// Which plot it belongs to.
    panel: &'static str,
    /// Which curve of that.
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

impl Point {
    /// What tables call its curve.
    fn name(&self) -> String {
        match self.panel {
            ONLY => self.curve.clone(),
            panel => format!("{}, {panel}", self.curve),
        }
    }
}

impl Axis {
    /// A plot without points.
    fn panel(&self, title: &str) -> Panel {
        Panel {
            title: title.to_owned(),
            x: self.label,
            places: Vec::new(),
            y: "requests per second",
            logarithmic: false,
            curves: Vec::new(),
        }
    }
}

/// How long each trial is looked at unless said otherwise.
const WINDOW: Duration = Duration::from_secs(1);

/// Figure 8: against skew.
pub(super) fn against_skew(settings: &PegasusSettings, tell: impl FnMut(&str)) -> Figure {
    let skews = settings.skews();
    let points = settings.arms().flat_map(|arm| {
        skews.iter().map(move |&(x, skew)| Point {
            panel: ONLY,
            curve: arm.name().to_owned(),
            x,
            at: skew.to_string(),
            spec: settings.rack(arm),
            load: settings.load(skew),
        })
    });
    let title = format!("Figure 8: throughput against skew, {}", settings.mix());
    figure(settings, &title, &SKEW_AXIS, points.collect(), tell)
}

/// Figure 10: against the share of reads.
pub(super) fn against_reads(settings: &PegasusSettings, tell: impl FnMut(&str)) -> Figure {
    let curve = |arm: Arm, skew: Skew, name: String| {
        READS.into_iter().map(move |reads_percent| Point {
            panel: ONLY,
            curve: name.clone(),
            x: reads_percent.into(),
            at: reads_percent.to_string(),
            spec: settings.rack(arm),
            load: Load { reads_percent, ..Load::only_reads(skew) },
        })
    };
    let arms = settings.arms().map(|arm| curve(arm, Skew::Zipf(THETA), arm.name().to_owned()));
    let points = arms.flatten().chain(curve(Arm::Hashing, Skew::Uniform, EVEN.to_owned()));
    let title = format!("Figure 10: throughput against the share of reads, zipf {THETA}");
    let column = Column { head: "reads %", key: "reads_percent" };
    let axis = Axis { label: "reads (%)", column, named: false };
    figure(settings, &title, &axis, points.collect(), tell)
}

/// Figure 11: against the number of nodes.
pub(super) fn against_nodes(settings: &PegasusSettings, tell: impl FnMut(&str)) -> Figure {
    let least = u16::from(settings.replicas).max(2).next_power_of_two();
    let powers = std::iter::successors(Some(least), |nodes| nodes.checked_mul(2));
    let counts: Vec<u16> = powers.take_while(|nodes| *nodes < settings.nodes).collect();
    let counts = || counts.iter().copied().chain([settings.nodes]);
    let curve = |arm: Arm, skew: Skew, name: &str| -> Vec<Point> {
        let point = |nodes: u16| Point {
            panel: ONLY,
            curve: name.to_owned(),
            x: nodes.into(),
            at: nodes.to_string(),
            spec: RackSpec { nodes, ..settings.rack(arm) },
            load: settings.load(skew),
        };
        counts().map(point).collect()
    };
    let arms = settings.arms().flat_map(|arm| curve(arm, Skew::Zipf(THETA), arm.name()));
    let points = arms.chain(curve(Arm::Hashing, Skew::Uniform, EVEN));
    let title = format!("Figure 11: throughput against nodes, zipf {THETA}, {}", settings.mix());
    let column = Column { head: "nodes", key: "nodes" };
    let axis = Axis { label: "storage nodes", column, named: false };
    figure(settings, &title, &axis, points.collect(), tell)
}

/// Figure 12: against the number of keys that have copies.
pub(super) fn against_hot_keys(settings: &PegasusSettings, tell: impl FnMut(&str)) -> Figure {
    let points = settings.thetas(&HOT_THETAS).into_iter().flat_map(|theta| {
        let places = std::iter::successors(Some(0.0), |place| Some(place + 1.0));
        places.zip(HOT_KEYS).map(move |(x, most)| Point {
            panel: ONLY,
            curve: format!("zipf {theta}"),
            x,
            at: most.to_string(),
            spec: RackSpec { hot_keys_max: Some(most), ..settings.rack(settings.spreading()) },
            load: settings.load(Skew::Zipf(theta)),
        })
    });
    let mix = settings.mix();
    let title = format!("Figure 12: throughput against the number of keys with copies, {mix}");
    let column = Column { head: "keys with copies", key: "hot_keys" };
    let axis = Axis { label: "keys with copies, at most", column, named: true };
    figure(settings, &title, &axis, points.collect(), tell)
}

/// Figure 13: which copy is read, where nodes are alike and where half of them have half the speed,
/// against skew.
pub(super) fn against_speeds(settings: &PegasusSettings, tell: impl FnMut(&str)) -> Figure {
    let spreads = SELECTIONS.map(|(selection, name)| (settings.spreading(), selection, name));
    let alone = (Arm::Hashing, Selection::default(), Arm::Hashing.name());
    let skews = &settings.skews();
    let points = SPEEDS.into_iter().flat_map(|(half_slow, panel)| {
        [alone].into_iter().chain(spreads).flat_map(move |(arm, selection, name)| {
            skews.iter().map(move |&(x, skew)| Point {
                panel,
                curve: name.to_owned(),
                x,
                at: skew.to_string(),
                spec: RackSpec { half_slow, selection, ..settings.rack(arm) },
                load: settings.load(skew),
            })
        })
    });
    let mix = settings.mix();
    let title = format!("Figure 13: throughput by the choice of the copy that is read, {mix}");
    figure(settings, &title, &SKEW_AXIS, points.collect(), tell)
}

/// The title of the only plot of most figures.
const ONLY: &str = "under the objective for p99";

/// How many keys have copies, and how skewed they are.
const HOT_KEYS: [u64; 9] = [0, 1, 2, 4, 8, 16, 32, 64, 128];
const HOT_THETAS: [f64; 3] = [0.9, 1.0, 1.2];

const SELECTIONS: [(Selection, &str); 3] = [
    (Selection::Random, "any copy"),
    (Selection::Reported, "least loaded as reported"),
    (Selection::Predicted, "least loaded as predicted"),
];

const SPEEDS: [(bool, &str); 2] =
    [(false, "equal nodes"), (true, "half of the nodes at half speed")];

/// Shares of reads, in percent.
const READS: [u32; 8] = [0, 20, 40, 60, 80, 90, 95, 100];

const SKEW_AXIS: Axis =
    Axis { label: "popularity of keys", column: Column { head: "keys", key: "keys" }, named: true };

fn figure(
    settings: &PegasusSettings,
    title: &str,
    axis: &Axis,
    points: Vec<Point>,
    mut tell: impl FnMut(&str),
) -> Figure {
    let window = settings.window.unwrap_or(WINDOW);
    let measure = |point: &Point| highest(&mut Rack::new(point.spec), &point.load, window);
    let mut panels: Vec<Panel> = Vec::new();
    let mut rows = Vec::new();
    let mut hashing = Hashing::default();
    measure_all(&points, measure, |point, best| {
        let served = best.trial.as_ref().map_or(0.0, |trial| trial.throughput());
        tell(&format!("{}, {}: {served:.0} requests/s", point.name(), point.at));
        if panels.last().is_none_or(|panel| panel.title != point.panel) {
            panels.push(axis.panel(point.panel));
        }
        let panel = panels.last_mut().expect("there is one by now");
        if axis.named && !panel.places.contains(&point.at) {
            panel.places.push(point.at.clone());
        }
        panel.add(&point.curve, point.x, served);
        hashing.note(point, &best);
        rows.push(row(point, &best, hashing.of(point)));
    });
    let mut columns = vec![axis.column];
    columns.extend(COLUMNS);
    Figure {
        title: title.to_owned(),
        notes: settings.objective_notes(window),
        table: Table { columns, rows },
        panels,
    }
}

/// The columns after that of the axis.
const COLUMNS: [Column; 11] = [
    Column { head: "spread", key: "spread" },
    Column { head: "throughput/s", key: "throughput" },
    Column { head: "cap/s", key: "cap" },
    Column { head: "of cap", key: "of_cap" },
    Column { head: "x hashing", key: "over_hashing" },
    Column { head: "gain max", key: "gain_max" },
    Column { head: "p99 us", key: "p99_us" },
    Column { head: "objective us", key: "objective_us" },
    Column { head: "by switch", key: "by_switch" },
    Column { head: "busiest", key: "busiest" },
    Column { head: "mean busy", key: "busy_mean" },
];

/// What hashing serves, where it is among the points: a rack, a load, and requests per second.
#[derive(Default)]
struct Hashing(Vec<(RackSpec, Load, f64)>);

impl Hashing {
    /// Remembers what was served, if that was by hashing.
    fn note(&mut self, point: &Point, best: &Best) {
        if let (Arm::Hashing, Some(trial)) = (point.spec.arm, &best.trial) {
            self.0.push((point.spec, point.load, trial.throughput()));
        }
    }

    /// What it serves of this load on the same nodes. Its points come before those of others.
    fn of(&self, point: &Point) -> Option<f64> {
        let selection = Selection::default();
        let spec = RackSpec { arm: Arm::Hashing, selection, hot_keys_max: None, ..point.spec };
        let same = self.0.iter().find(|(of, load, _)| *of == spec && *load == point.load);
        same.map(|(.., served)| *served)
    }
}

/// A row, beside which hashing serves so much.
fn row(
    point: &Point,
    Best { bounds, objective_us, trial }: &Best,
    hashing: Option<f64>,
) -> Vec<Cell> {
    let trial = trial.as_ref();
    let served = trial.map(|trial| trial.throughput());
    vec![
        Cell::text(&point.at),
        Cell::text(point.name()),
        Cell::number(served, 0),
        Cell::number(bounds.cap, 0),
        Cell::number(served.map(|served| served / bounds.cap), 3),
        Cell::number(served.zip(hashing).map(|(served, hashing)| served / hashing), 2),
        Cell::number(bounds.gain_max(), 2),
        Cell::number(trial.map(|trial| trial.p99_us as f64), 0),
        Cell::number(*objective_us as f64, 0),
        Cell::number(trial.map(|trial| trial.by_switch), 3),
        Cell::number(trial.map(|trial| trial.busiest), 2),
        Cell::number(trial.map(|trial| trial.busy_mean), 2),
    ]
}
