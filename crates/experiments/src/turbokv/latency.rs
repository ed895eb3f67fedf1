//! Figures 14 and 15, and tables 1 and 2, with real packets: how long requests take, for all ways
//! at one rate.

use super::stage::{Ask, Glance, RealWay, Stand, not_quiet, way_of};
use crate::paper::turbokv::{Exhibit, Kind, TurboKvSettings, load_of, milliseconds, over};
use crate::paper::{Cell, Column, Figure, Finder, Panel, Skew, Table};
use bench::Pace;
use console::exit::Failure;
use console::note;
use std::time::Duration;

/// How long each trial is looked at unless said otherwise.
const WINDOW: Duration = Duration::from_secs(2);

/// What is asked for, as a share of what the server-driven way reaches in a closed loop. Of a
/// machine that all hosts share more is a queue for its processors.
const SHARE: f64 = 0.5;

/// Makes a figure or a table: their rows are the same.
pub(super) fn figure(
    exhibit: Exhibit,
    skew: Skew,
    settings: &TurboKvSettings,
    stand: &Stand<'_>,
) -> Result<Figure, Failure> {
    let time = settings.window.unwrap_or(WINDOW);
    let mut all: Vec<(Kind, f64, Vec<RealWay>)> = Vec::new();
    for kind in Kind::ALL {
        let load = &load_of(kind, skew, settings);
        let closed = Pace::Closed(stand.terms.in_flight);
        note!("{}s: what each way reaches", kind.name());
        let reached = stand.rounds(kind.name(), Ask { load, pace: closed, time: REACH })?;
        let slowest =
            reached.iter().map(|way| way.rounds.median(|it| it.done)).fold(f64::MAX, f64::min);
        let rate = SHARE * slowest;
        note!("{}s: {rate:.0} a second", kind.name());
        let ways = stand.rounds(kind.name(), Ask { load, pace: Pace::Open(rate), time })?;
        all.push((kind, rate, ways));
    }
    let mut notes = stand.notes(settings, time);
    notes.push(format!(
        "open loop, Poisson, at {SHARE} of what the slowest way reaches in a closed loop with {} \
         in flight, the same rate for all; cut: by how many percent it is below that of the \
         server-driven way; paper: the same in TurboKV's table",
        stand.terms.in_flight
    ));
    let rows = all.iter().flat_map(|(kind, rate, ways)| {
        ways.iter().map(|way| row(*kind, *rate, skew, way, ways)).collect::<Vec<_>>()
    });
    let rows = rows.collect();
    notes.extend(not_quiet(&all.iter().flat_map(|(_, _, ways)| ways).collect::<Vec<_>>()));
    Ok(Figure {
        title: format!("{exhibit} with real packets: latency of reads, writes and scans, {skew}"),
        notes,
        table: Table { columns: COLUMNS.to_vec(), rows },
        panels: all.iter().map(|(kind, _, ways)| panel(*kind, ways)).collect(),
    })
}

/// How long it is looked what each way reaches.
const REACH: Duration = Duration::from_millis(500);

const COLUMNS: [Column; 14] = [
    Column { head: "request", key: "request" },
    Column { head: "coordination", key: "coordination" },
    Column { head: "asked/s", key: "rate" },
    Column { head: "answered", key: "answered" },
    Column { head: "mean us", key: "mean_us" },
    Column { head: "p50 us", key: "p50_us" },
    Column { head: "p90 us", key: "p90_us" },
    Column { head: "p99 us", key: "p99_us" },
    Column { head: "p99.9 us", key: "p999_us" },
    Column { head: "cut of mean %", key: "mean_cut_percent" },
    Column { head: "paper", key: "paper_mean_cut_percent" },
    Column { head: "cut of p99 %", key: "p99_cut_percent" },
    Column { head: "paper", key: "paper_p99_cut_percent" },
    Column { head: "cpu us", key: "cpu_us" },
];

fn row(kind: Kind, rate: f64, skew: Skew, way: &RealWay, ways: &[RealWay]) -> Vec<Cell> {
    let server = way_of(ways, Finder::Nodes).filter(|_| way.by != Finder::Nodes);
    let [mean, _, p99] = milliseconds(skew, way.by, kind);
    let [server_mean, _, server_p99] = milliseconds(skew, Finder::Nodes, kind);
    let paper = |mine, servers| server.map(|_| -over(mine, servers));
    let number = |of: &dyn Fn(&Glance) -> f64, digits| Cell::number(way.rounds.median(of), digits);
    let cut = |of: &dyn Fn(&Glance) -> f64| {
        Cell::number(server.map(|server| -over(way.rounds.over(&server.rounds, of), 1.0)), 0)
    };
    vec![
        Cell::text(kind.name()),
        Cell::text(way.by.name()),
        Cell::number(rate, 0),
        number(&|it| it.done / rate, 2),
        number(&|it| it.latency.mean_us, 0),
        number(&|it| it.latency.p50_us as f64, 0),
        number(&|it| it.latency.p90_us as f64, 0),
        number(&|it| it.latency.p99_us as f64, 0),
        number(&|it| it.latency.p999_us as f64, 0),
        cut(&|it| it.latency.mean_us),
        Cell::number(paper(mean, server_mean), 0),
        cut(&|it| it.latency.p99_us as f64),
        Cell::number(paper(p99, server_p99), 0),
        number(&|it| it.cost_us.sum(), 1),
    ]
}

fn panel(kind: Kind, ways: &[RealWay]) -> Panel {
    let mut panel = Panel {
        title: kind.name().to_owned(),
        x: "latency (us)",
        places: Vec::new(),
        y: "share of requests",
        logarithmic: false,
        curves: Vec::new(),
    };
    for way in ways {
        for (share, us) in [
            (0.5, way.rounds.median(|it| it.latency.p50_us as f64)),
            (0.9, way.rounds.median(|it| it.latency.p90_us as f64)),
            (0.99, way.rounds.median(|it| it.latency.p99_us as f64)),
            (0.999, way.rounds.median(|it| it.latency.p999_us as f64)),
        ] {
            panel.add(way.by.name(), us, share);
        }
    }
    panel
}
