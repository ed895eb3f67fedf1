//! Figure 13: how long reads take, by who finds what the cache holds.

use super::system::System;
use super::{SwitchKvSettings, THETA, reads};
use crate::paper::figure::{Cell, Column, Figure, Table};
use crate::paper::plot::Panel;
use crate::paper::points::measure_all;
use crate::paper::rack::{Rack, RackSpec, Trial};
use crate::paper::{Load, Skew};
use std::time::Duration;

/// How long each trial is looked at unless said otherwise.
const WINDOW: Duration = Duration::from_millis(200);

/// What is asked for, as shares of what the system can bear.
const SHARES: [f64; 7] = [0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95];

const SYSTEMS: [System; 4] =
    [System::NoCache, System::SwitchKv, System::LookThrough, System::LookAside];

/// Which reads (figures 13a, b and c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Of what the cache holds.
    Hits,
    /// Of all keys alike, and the cache holds nothing.
    Misses,
    /// As popularity says.
    Both,
}

impl Part {
    const ALL: [Self; 3] = [Self::Hits, Self::Misses, Self::Both];

    fn name(self) -> &'static str {
        match self {
            Self::Hits => "hits alone",
            Self::Misses => "misses alone",
            Self::Both => "hits and misses",
        }
    }

    fn load(self, settings: &SwitchKvSettings) -> Load {
        match self {
            Self::Hits => Load { among: Some(settings.items.into()), ..reads(Skew::Zipf(THETA)) },
            Self::Misses => reads(Skew::Uniform),
            Self::Both => reads(Skew::Zipf(THETA)),
        }
    }

    fn spec(self, settings: &SwitchKvSettings, system: System) -> RackSpec {
        let items = if self == Self::Misses { 0 } else { settings.items };
        settings.rack_with(system, items)
    }

    /// Requests per second that a system can bear.
    fn most(self, settings: &SwitchKvSettings, system: System, rack: &Rack) -> f64 {
        let node = f64::from(settings.pace.node_rate());
        let cache = node * f64::from(super::CACHE_TIMES);
        let bounds = rack.bounds(&self.load(settings));
        match (self, system) {
            (_, System::LookAside | System::LookThrough) => {
                if self == Self::Hits {
                    cache
                } else {
                    bounds.lent.min(cache)
                }
            }
            (Self::Hits, System::SwitchKv) => cache,
            _ => rack.limit(&bounds),
        }
    }
}

struct Point {
    part: Part,
    system: System,
}

/// Makes the figure.
pub(super) fn figure(settings: &SwitchKvSettings, mut tell: impl FnMut(&str)) -> Figure {
    let window = settings.window.unwrap_or(WINDOW);
    let points: Vec<Point> = Part::ALL
        .into_iter()
        .flat_map(|part| SYSTEMS.map(|system| Point { part, system }))
        // Without a cache there are no hits.
        .filter(|it| it.part != Part::Hits || it.system != System::NoCache)
        .collect();
    let mut panels: Vec<Panel> = Part::ALL.map(panel).into();
    let mut rows = Vec::new();
    measure_all(
        &points,
        |point| curve(point, settings, window),
        |Point { part, system }, curve| {
            tell(&format!("{}, {}: {} rates", part.name(), system.name(), curve.len()));
            for (share, trial) in curve {
                let served = trial.throughput();
                if let Some(panel) = panels.iter_mut().find(|panel| panel.title == part.name()) {
                    panel.add(system.name(), served, trial.latencies.at_share(0.5) as f64);
                }
                rows.push(row(*part, *system, share, &trial));
            }
        },
    );
    let mut notes = settings.notes(window);
    notes.push(
        "asked for: a share of what the busiest node or the cache bears; look-aside: the client \
         asks the node when the cache has nothing, whose time on the cables is counted"
            .to_owned(),
    );
    Figure {
        title: format!("Figure 13: latency of reads, zipf {THETA}"),
        notes,
        table: Table { columns: COLUMNS.to_vec(), rows },
        panels,
    }
}

fn panel(part: Part) -> Panel {
    Panel {
        title: part.name().to_owned(),
        x: "requests per second",
        places: Vec::new(),
        y: "median (us)",
        logarithmic: false,
        curves: Vec::new(),
    }
}

/// All rates of one system, one after the other on one rack.
fn curve(point: &Point, settings: &SwitchKvSettings, window: Duration) -> Vec<(f64, Trial)> {
    let Point { part, system } = *point;
    let load = part.load(settings);
    let mut rack = Rack::new(part.spec(settings, system));
    let most = part.most(settings, system, &rack);
    rack.get_used_to(&load, most / 2.0);
    let trials = SHARES.map(|share| {
        rack.come_to_rest();
        (share, rack.run(&load, share * most, window, None))
    });
    trials.into()
}

const COLUMNS: [Column; 9] = [
    Column { head: "reads", key: "part" },
    Column { head: "system", key: "system" },
    Column { head: "of what it bears", key: "share" },
    Column { head: "throughput/s", key: "throughput" },
    Column { head: "mean us", key: "mean_us" },
    Column { head: "median us", key: "p50_us" },
    Column { head: "p99 us", key: "p99_us" },
    Column { head: "hits", key: "hits" },
    Column { head: "cache busy", key: "cache_busy" },
];

fn row(part: Part, system: System, share: f64, trial: &Trial) -> Vec<Cell> {
    vec![
        Cell::text(part.name()),
        Cell::text(system.name()),
        Cell::number(share, 2),
        Cell::number(trial.throughput(), 0),
        Cell::number(trial.latencies.mean_us(), 0),
        Cell::number(trial.latencies.at_share(0.5) as f64, 0),
        Cell::number(trial.latencies.at_share(0.99) as f64, 0),
        Cell::number(trial.by_caches, 3),
        Cell::number(trial.cache_busy, 2),
    ]
}
