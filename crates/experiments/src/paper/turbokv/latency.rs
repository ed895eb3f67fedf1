//! Figures 14 and 15, and tables 1 and 2: how long requests take, for all arms at one rate.

use super::papers::{Kind, milliseconds};
use super::{TurboKvSettings, over};
use crate::paper::figure::{Cell, Column, Figure, Table};
use crate::paper::plot::Panel;
use crate::paper::points::measure_all;
use crate::paper::rack::{Bounds, Finder, Trial};
use crate::paper::{Load, Skew};
use std::time::Duration;

/// What is asked for, as a share of what the server-driven arm serves before its busiest node is
/// full: as in figure 9 of Pegasus.
const UTILISATION: f64 = 0.8;

/// How long each trial is looked at unless said otherwise.
const WINDOW: Duration = Duration::from_secs(2);

/// Which shares of all requests a plot shows, in thousandths: all percents but the last, and what
/// the tail of a plot needs.
const SHOWN_PERMILLE: [u32; 2] = [995, 999];

/// What is measured: one arm under one load.
struct Point {
    by: Finder,
    kind: Kind,
}

struct Measured {
    bounds: Bounds,
    trial: Trial,
}

/// What is asked for.
pub(crate) fn load_of(kind: Kind, skew: Skew, settings: &TurboKvSettings) -> Load {
    match kind {
        Kind::Read => Load::only_reads(skew),
        Kind::Write => Load { reads_percent: 0, ..Load::only_reads(skew) },
        Kind::Scan => Load::only_scans(skew, settings.scan_keys),
    }
}

fn measure_points(
    settings: &TurboKvSettings,
    skew: Skew,
    window: Duration,
    mut tell: impl FnMut(&str),
) -> Vec<(Point, Measured)> {
    let of_kind = |kind| settings.finders().map(move |by| Point { by, kind });
    let points: Vec<Point> = Kind::ALL.into_iter().flat_map(of_kind).collect();
    let mut all = Vec::new();
    measure_all(
        &points,
        |Point { by, kind }| {
            let load = load_of(*kind, skew, settings);
            let mut rack = settings.rack(*by, &load);
            let rate = UTILISATION * rack.bounds_by(&load, Finder::Nodes).hashing;
            rack.come_to_rest();
            let bounds = rack.bounds(&load);
            Measured { bounds, trial: rack.run(&load, rate, window, None) }
        },
        |Point { by, kind }, measured| {
            let p99 = measured.trial.p99_us;
            tell(&format!("{}, {}: p99 {p99} us", kind.name(), by.name()));
            all.push((Point { by: *by, kind: *kind }, measured));
        },
    );
    all
}

fn panels(all: &[(Point, Measured)]) -> Vec<Panel> {
    let panel = |kind: Kind| {
        let mut panel = Panel {
            title: kind.name().to_owned(),
            x: "latency (us)",
            places: Vec::new(),
            y: "share of requests",
            logarithmic: false,
            curves: Vec::new(),
        };
        for (Point { by, .. }, measured) in all.iter().filter(|(point, _)| point.kind == kind) {
            for permille in (10..=990).step_by(10).chain(SHOWN_PERMILLE) {
                let share = f64::from(permille) / 1_000.0;
                let latency = measured.trial.latencies.at_share(share);
                panel.add(by.name(), latency as f64, share);
            }
        }
        panel
    };
    Kind::ALL.into_iter().map(panel).collect()
}

fn notes(settings: &TurboKvSettings, window: Duration) -> Vec<String> {
    let mut notes = settings.notes(window);
    notes.push(format!(
        "asked for: {UTILISATION} of what the server-driven arm serves before its busiest node is \
         full, the same rate for all arms (the paper does not say what its rate is)"
    ));
    notes
}

const PERCENTILES: [(&str, &str, f64); 7] = [
    ("p10 us", "p10_us", 0.1),
    ("p25 us", "p25_us", 0.25),
    ("p50 us", "p50_us", 0.5),
    ("p75 us", "p75_us", 0.75),
    ("p90 us", "p90_us", 0.9),
    ("p99 us", "p99_us", 0.99),
    ("p99.9 us", "p999_us", 0.999),
];

/// Figure 14 or 15: the distribution.
pub(super) fn figure(settings: &TurboKvSettings, skew: Skew, tell: impl FnMut(&str)) -> Figure {
    let window = settings.window.unwrap_or(WINDOW);
    let all = measure_points(settings, skew, window, tell);
    let mut columns = first_columns();
    columns.extend(PERCENTILES.map(|(head, key, _)| Column { head, key }));
    columns.extend([
        Column { head: "cap/s", key: "cap" },
        Column { head: "busiest", key: "busiest" },
        Column { head: "mean busy", key: "busy_mean" },
    ]);
    let row = |(point, Measured { bounds, trial }): &(Point, Measured)| {
        let mut row = first_cells(point, trial);
        let at = |share| Cell::number(trial.latencies.at_share(share) as f64, 0);
        row.extend(PERCENTILES.map(|(_, _, share)| at(share)));
        row.extend([
            Cell::number(bounds.cap, 0),
            Cell::number(trial.busiest, 2),
            Cell::number(trial.busy_mean, 2),
        ]);
        row
    };
    let number = if skew == Skew::Uniform { 14 } else { 15 };
    Figure {
        title: format!("Figure {number}: latency of reads, writes and scans, {skew}"),
        notes: notes(settings, window),
        table: Table { columns, rows: all.iter().map(row).collect() },
        panels: panels(&all),
    }
}

/// Table 1 or 2: means and percentiles, and how they compare.
pub(super) fn table(settings: &TurboKvSettings, skew: Skew, tell: impl FnMut(&str)) -> Figure {
    let window = settings.window.unwrap_or(WINDOW);
    let all = measure_points(settings, skew, window, tell);
    let mut columns = first_columns();
    columns.extend(TABLE_COLUMNS);
    let mut notes = notes(settings, window);
    notes.push(
        "cut: by how many percent it is below that of the server-driven arm; over client: by how \
         many percent its mean is over that of the client-driven arm; paper: the same in \
         TurboKV's table"
            .to_owned(),
    );
    let rows = all.iter().map(|(point, measured)| {
        let mut row = first_cells(point, &measured.trial);
        row.extend(compared(point, measured, skew, &all));
        row
    });
    let number = if skew == Skew::Uniform { 1 } else { 2 };
    Figure {
        title: format!("Table {number}: latency of reads, writes and scans, {skew}"),
        notes,
        table: Table { columns, rows: rows.collect() },
        panels: panels(&all),
    }
}

const TABLE_COLUMNS: [Column; 9] = [
    Column { head: "mean us", key: "mean_us" },
    Column { head: "p50 us", key: "p50_us" },
    Column { head: "p99 us", key: "p99_us" },
    Column { head: "cut of mean %", key: "mean_cut_percent" },
    Column { head: "paper", key: "paper_mean_cut_percent" },
    Column { head: "cut of p99 %", key: "p99_cut_percent" },
    Column { head: "paper", key: "paper_p99_cut_percent" },
    Column { head: "over client %", key: "mean_over_client_percent" },
    Column { head: "paper", key: "paper_mean_over_client_percent" },
];

fn first_columns() -> Vec<Column> {
    vec![
        Column { head: "request", key: "request" },
        Column { head: "coordination", key: "coordination" },
        Column { head: "asked/s", key: "rate" },
        Column { head: "answered", key: "answered" },
    ]
}

fn first_cells(Point { by, kind }: &Point, trial: &Trial) -> Vec<Cell> {
    vec![
        Cell::text(kind.name()),
        Cell::text(by.name()),
        Cell::number(trial.begun as f64 / trial.window.as_secs_f64(), 0),
        Cell::number(trial.done as f64 / trial.begun as f64, 3),
    ]
}

fn compared(
    point: &Point,
    Measured { trial, .. }: &Measured,
    skew: Skew,
    all: &[(Point, Measured)],
) -> Vec<Cell> {
    let latencies = &trial.latencies;
    let (mean, p99) = (latencies.mean_us(), latencies.at_share(0.99) as f64);
    let of = |by: Finder| {
        let beside = all.iter().find(|(other, _)| other.kind == point.kind && other.by == by);
        beside.filter(|_| point.by != by).map(|(_, measured)| &measured.trial.latencies)
    };
    let paper = |by| milliseconds(skew, by, point.kind);
    let [their_mean, _, their_p99] = paper(point.by);
    let server = of(Finder::Nodes);
    let server_of = server.map(|_| paper(Finder::Nodes));
    let cut = |mine: f64, theirs: Option<f64>| theirs.map(|theirs| -over(mine, theirs));
    let client = of(Finder::Clients).filter(|_| point.by == Finder::Switch);
    let [client_mean, ..] = paper(Finder::Clients);
    vec![
        Cell::number(mean, 0),
        Cell::number(latencies.at_share(0.5) as f64, 0),
        Cell::number(p99, 0),
        Cell::number(cut(mean, server.map(|it| it.mean_us())), 1),
        Cell::number(cut(their_mean, server_of.map(|[mean, ..]| mean)), 1),
        Cell::number(cut(p99, server.map(|it| it.at_share(0.99) as f64)), 1),
        Cell::number(cut(their_p99, server_of.map(|[.., p99]| p99)), 1),
        Cell::number(client.map(|it| over(mean, it.mean_us())), 1),
        Cell::number(client.map(|_| over(their_mean, client_mean)), 1),
    ]
}
