//! Figure 13: throughput, against skew and against the share of writes.

use super::papers::{OVER_SERVER_READS, OVER_SERVER_SKEWED_WRITES, OVER_SERVER_UNIFORM_WRITES};
use super::{SKEWED, TurboKvSettings, UNIFORM, over};
use crate::paper::figure::{Cell, Column, Figure, Table};
use crate::paper::plot::Panel;
use crate::paper::points::measure_all;
use crate::paper::rack::Finder;
use crate::paper::search::{Best, highest};
use crate::paper::{Load, Skew};
use std::time::Duration;

/// How long each trial is looked at unless said otherwise.
const WINDOW: Duration = Duration::from_millis(500);

/// Shares of writes, in percent.
const WRITES: [u32; 6] = [0, 20, 40, 60, 80, 100];

/// Which part of the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Reads,
    UniformWrites,
    SkewedWrites,
    Scans,
}

impl Part {
    pub(crate) const ALL: [Self; 4] =
        [Self::Reads, Self::UniformWrites, Self::SkewedWrites, Self::Scans];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Reads => "reads only",
            Self::UniformWrites => "writes of uniform keys",
            Self::SkewedWrites => "writes of zipf 1.2 keys",
            Self::Scans => "scans only",
        }
    }

    /// What stands on its axis, and the load there.
    pub(crate) fn loads(self, settings: &TurboKvSettings) -> Vec<(String, Load)> {
        let writes = |skew: Skew| {
            let load = |writes| Load { reads_percent: 100 - writes, ..Load::only_reads(skew) };
            WRITES.map(|writes| (format!("{writes} %"), load(writes))).to_vec()
        };
        let skews = settings.skews();
        match self {
            Self::Reads => skews.map(|it| (it.to_string(), Load::only_reads(it))).collect(),
            Self::UniformWrites => writes(UNIFORM),
            Self::SkewedWrites => writes(SKEWED),
            Self::Scans => {
                let load = |skew| Load::only_scans(skew, settings.scan_keys);
                skews.map(|it| (it.to_string(), load(it))).collect()
            }
        }
    }

    pub(crate) fn panel(self, places: Vec<String>, y: &'static str) -> Panel {
        Panel {
            title: self.name().to_owned(),
            x: match self {
                Self::Reads | Self::Scans => "popularity of keys",
                Self::UniformWrites | Self::SkewedWrites => "share of writes",
            },
            places,
            y,
            logarithmic: false,
            curves: Vec::new(),
        }
    }

    /// By how many percent the paper's in-switch throughput is over the server-driven one at least,
    /// if it says that.
    pub(crate) fn papers_gain(self) -> Option<f64> {
        match self {
            Self::Reads => Some(OVER_SERVER_READS),
            Self::UniformWrites => Some(OVER_SERVER_UNIFORM_WRITES),
            Self::SkewedWrites => Some(OVER_SERVER_SKEWED_WRITES),
            Self::Scans => None,
        }
    }
}

struct Point {
    part: Part,
    x: f64,
    at: String,
    by: Finder,
    load: Load,
}

/// Makes the figure.
pub(super) fn figure(settings: &TurboKvSettings, mut tell: impl FnMut(&str)) -> Figure {
    let window = settings.window.unwrap_or(WINDOW);
    let mut points = Vec::new();
    let mut panels = Vec::new();
    for part in Part::ALL {
        let loads = part.loads(settings);
        let places = loads.iter().map(|(at, _)| at.clone()).collect();
        panels.push(part.panel(places, "requests per second"));
        for by in settings.finders() {
            let xs = std::iter::successors(Some(0.0), |x| Some(x + 1.0));
            points.extend(xs.zip(&loads).map(|(x, (at, load))| {
                let (at, load) = (at.clone(), *load);
                Point { part, x, at, by, load }
            }));
        }
    }
    let mut bests: Vec<Best> = Vec::new();
    measure_all(
        &points,
        |point| highest(&mut settings.rack(point.by, &point.load), &point.load, window),
        |point, best| {
            let served = served(&best).unwrap_or(0.0);
            let Point { part, at, by, .. } = point;
            tell(&format!("{}, {at}, {}: {served:.0} requests/s", part.name(), by.name()));
            if let Some(panel) = panels.iter_mut().find(|panel| panel.title == part.name()) {
                panel.add(by.name(), point.x, served);
            }
            bests.push(best);
        },
    );
    let all: Vec<(&Point, &Best)> = points.iter().zip(&bests).collect();
    let mut notes = settings.notes(window);
    notes.push(settings.objective_note());
    notes.extend(Part::ALL.into_iter().filter_map(|part| summed_up(part, &all)));
    Figure {
        title: "Figure 13: throughput of reads, writes and scans".to_owned(),
        notes,
        table: Table {
            columns: COLUMNS.to_vec(),
            rows: all.iter().map(|it| row(*it, &all)).collect(),
        },
        panels,
    }
}

const COLUMNS: [Column; 13] = [
    Column { head: "requests", key: "requests" },
    Column { head: "at", key: "at" },
    Column { head: "coordination", key: "coordination" },
    Column { head: "throughput/s", key: "throughput" },
    Column { head: "limit/s", key: "limit" },
    Column { head: "cap/s", key: "cap" },
    Column { head: "of limit", key: "of_limit" },
    Column { head: "over server %", key: "over_server_percent" },
    Column { head: "over client %", key: "over_client_percent" },
    Column { head: "p99 us", key: "p99_us" },
    Column { head: "objective us", key: "objective_us" },
    Column { head: "busiest", key: "busiest" },
    Column { head: "mean busy", key: "busy_mean" },
];

fn served(best: &Best) -> Option<f64> {
    best.trial.as_ref().map(|trial| trial.throughput())
}

/// By how many percent a point's throughput is over that of another arm under the same load.
fn over_arm((point, best): (&Point, &Best), by: Finder, all: &[(&Point, &Best)]) -> Option<f64> {
    let same = |(other, _): &&(&Point, &Best)| {
        (other.part, other.by) == (point.part, by) && other.at == point.at
    };
    let (_, other) = all.iter().find(same).filter(|_| point.by != by)?;
    Some(over(served(best)?, served(other)?))
}

fn row(one: (&Point, &Best), all: &[(&Point, &Best)]) -> Vec<Cell> {
    let (point, best) = one;
    let Best { bounds, objective_us, trial } = best;
    let trial = trial.as_ref();
    let served = served(best);
    vec![
        Cell::text(point.part.name()),
        Cell::text(&point.at),
        Cell::text(point.by.name()),
        Cell::number(served, 0),
        Cell::number(bounds.hashing, 0),
        Cell::number(bounds.cap, 0),
        Cell::number(served.map(|served| served / bounds.hashing), 3),
        Cell::number(over_arm(one, Finder::Nodes, all), 1),
        Cell::number(over_arm(one, Finder::Clients, all), 1),
        Cell::number(trial.map(|trial| trial.p99_us as f64), 0),
        Cell::number(*objective_us as f64, 0),
        Cell::number(trial.map(|trial| trial.busiest), 2),
        Cell::number(trial.map(|trial| trial.busy_mean), 2),
    ]
}

/// How in-switch compares in one part, beside what the paper says; `None` without all arms.
fn summed_up(part: Part, all: &[(&Point, &Best)]) -> Option<String> {
    let mine = |one: &&(&Point, &Best)| one.0.part == part && one.0.by == Finder::Switch;
    let of = |by| -> Option<Vec<f64>> {
        all.iter().filter(mine).map(|one| over_arm(*one, by, all)).collect()
    };
    let ends = |percents: Vec<f64>| {
        let least = percents.iter().copied().fold(f64::MAX, f64::min);
        let most = percents.iter().copied().fold(f64::MIN, f64::max);
        format!("{least:+.1} to {most:+.1} %")
    };
    let (server, client) = (of(Finder::Nodes)?, of(Finder::Clients)?);
    let gain = part.papers_gain().map(|percent| format!("; the paper: at least {percent:+} %"));
    let ideal = if part == Part::Reads { ", and -5 to 0 %" } else { "" };
    let paper = gain.map_or_else(String::new, |gain| gain + ideal);
    Some(format!(
        "{}: in-switch is {} over server-driven, and {} over client-driven{paper}",
        part.name(),
        ends(server),
        ends(client)
    ))
}
