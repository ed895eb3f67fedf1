//! Figures 10, 11 and 12: throughput against skew, against the size of the cache, and against the
//! share of writes.

use super::system::System;
use super::{SwitchKvSettings, THETA, losses_note, reads, throughput_panel};
use crate::paper::figure::{Cell, Column, Figure, Table};
use crate::paper::plot::Panel;
use crate::paper::points::measure_all;
use crate::paper::rack::{Bounds, Losses, Rack, RackSpec, Trial};
use crate::paper::{Load, Skew};
use std::time::Duration;

/// How long each trial is looked at unless said otherwise.
const WINDOW: Duration = Duration::from_millis(500);

/// How long clients look for their rate before, at the usual pace.
const SETTLING: Duration = Duration::from_millis(300);

/// Keys that a cache holds in figure 11.
const ITEMS: [u32; 7] = [10, 30, 100, 300, 1_000, 3_000, 10_000];

/// The smaller of the two caches of figure 10.
const ITEMS_FEW: u32 = 1_000;

/// Shares of writes in figure 12, in percent.
const WRITES: [u32; 7] = [0, 10, 20, 40, 60, 80, 100];

/// One rack under one load.
struct Point {
    panel: &'static str,
    curve: String,
    x: f64,
    at: String,
    system: System,
    spec: RackSpec,
    load: Load,
}

/// What came of it.
pub(super) struct Measured {
    pub(super) bounds: Bounds,
    pub(super) trial: Trial,
}

/// The x axis.
struct Axis {
    label: &'static str,
    column: Column,
    places: Vec<String>,
}

/// How long clients of a rack look for their rate.
pub(super) fn settling(spec: &RackSpec) -> Duration {
    SETTLING * spec.pace.times_usual()
}

/// What a rack serves while so much is lost.
pub(super) fn measure(
    spec: RackSpec,
    load: &Load,
    losses: Losses,
    (settling, window): (Duration, Duration),
) -> Measured {
    let mut rack = Rack::new(spec);
    let bounds = rack.bounds(load);
    let first = rack.limit(&bounds);
    rack.get_used_to(load, first);
    let trial = rack.run_losing(load, (losses, first), (settling, window), None);
    Measured { bounds, trial }
}

/// Figure 10.
pub(super) fn against_skew(settings: &SwitchKvSettings, tell: impl FnMut(&str)) -> Figure {
    let sizes = [ITEMS_FEW.min(settings.items), settings.items];
    let mut curves = vec![(System::NoCache, settings.items, System::NoCache.name().to_owned())];
    curves.extend(sizes.map(|items| (System::SwitchKv, items, format!("{items} keys cached"))));
    curves.dedup();
    let skews = settings.skews();
    let point = |(system, items, curve): &(System, u32, String), (x, skew): (f64, Skew)| Point {
        panel: ONLY,
        curve: curve.clone(),
        x,
        at: skew.to_string(),
        system: *system,
        spec: settings.rack_with(*system, *items),
        load: reads(skew),
    };
    let points = curves.iter().flat_map(|curve| skews.iter().map(move |at| point(curve, *at)));
    let axis = Axis {
        label: "popularity of keys",
        column: Column { head: "keys", key: "keys" },
        places: skews.iter().map(|(_, skew)| skew.to_string()).collect(),
    };
    let title = "Figure 10: throughput with and without a small cache";
    figure(settings, title, axis, points.collect(), tell)
}

/// Figure 11.
pub(super) fn against_items(settings: &SwitchKvSettings, tell: impl FnMut(&str)) -> Figure {
    let sizes: Vec<u32> = ITEMS.into_iter().filter(|items| *items <= settings.items).collect();
    let systems = [(System::NoCache, 0)].into_iter();
    let systems = systems.chain(sizes.into_iter().map(|items| (System::SwitchKv, items)));
    let systems: Vec<(System, u32)> = systems.collect();
    let xs = std::iter::successors(Some(0.0), |x| Some(x + 1.0));
    let points = xs.zip(&systems).map(|(x, (system, items))| Point {
        panel: ONLY,
        curve: format!("zipf {THETA}"),
        x,
        at: items.to_string(),
        system: *system,
        spec: settings.rack_with(*system, *items),
        load: reads(Skew::Zipf(THETA)),
    });
    let axis = Axis {
        label: "keys cached",
        column: Column { head: "keys cached", key: "items" },
        places: systems.iter().map(|(_, items)| items.to_string()).collect(),
    };
    let points = points.collect();
    figure(settings, "Figure 11: throughput against the size of the cache", axis, points, tell)
}

/// Figure 12, and what Keyway does for writes beside it.
pub(super) fn against_writes(settings: &SwitchKvSettings, tell: impl FnMut(&str)) -> Figure {
    let kinds = [("writes of all keys alike", true), ("writes as popular as reads", false)];
    let systems = [System::NoCache, System::SwitchKv, System::Delegated];
    let points = kinds.into_iter().flat_map(|(panel, even_writes)| {
        systems.into_iter().flat_map(move |system| {
            WRITES.into_iter().map(move |writes| Point {
                panel,
                curve: system.name().to_owned(),
                x: writes.into(),
                at: writes.to_string(),
                system,
                spec: settings.rack(system),
                load: Load { reads_percent: 100 - writes, even_writes, ..reads(Skew::Zipf(THETA)) },
            })
        })
    });
    let axis = Axis {
        label: "share of writes (%)",
        column: Column { head: "writes %", key: "writes_percent" },
        places: Vec::new(),
    };
    let title = format!("Figure 12: throughput against the share of writes, zipf {THETA}");
    figure(settings, &title, axis, points.collect(), tell)
}

/// The title of the only plot of most figures.
const ONLY: &str = "throughput";

fn figure(
    settings: &SwitchKvSettings,
    title: &str,
    axis: Axis,
    points: Vec<Point>,
    mut tell: impl FnMut(&str),
) -> Figure {
    let window = settings.window.unwrap_or(WINDOW);
    let losses = Losses::SWITCHKV;
    let mut panels = Vec::new();
    for point in &points {
        if panels.iter().all(|panel: &Panel| panel.title != point.panel) {
            panels.push(throughput_panel(point.panel, axis.label, axis.places.clone()));
        }
    }
    let mut all: Vec<Measured> = Vec::new();
    measure_all(
        &points,
        |point| measure(point.spec, &point.load, losses, (settling(&point.spec), window)),
        |point, measured| {
            let served = measured.trial.throughput();
            tell(&format!("{}, {}, {}: {served:.0}/s", point.panel, point.at, point.curve));
            if let Some(panel) = panels.iter_mut().find(|panel| panel.title == point.panel) {
                panel.add(&point.curve, point.x, served);
            }
            all.push(measured);
        },
    );
    let measured: Vec<(&Point, &Measured)> = points.iter().zip(&all).collect();
    let mut notes = settings.notes(window);
    notes.push(losses_note(losses));
    notes.extend(CAP_NOTES.map(str::to_owned));
    Figure {
        title: title.to_owned(),
        notes,
        table: Table {
            columns: columns(axis.column),
            rows: measured.iter().map(|one| row(*one, &measured)).collect(),
        },
        panels,
    }
}

/// How the columns about bounds are to be read.
const CAP_NOTES: [&str; 3] = [
    "cap: what the cache serves over its share of requests, or what all nodes serve over theirs, \
     whatever is less; limit: the same with the node that is left with most, as keys are placed",
    "a little more than either is served, for what a full node loses does not count",
    "expected: the share of requests that are for the keys that the cache has room for",
];

fn columns(at: Column) -> Vec<Column> {
    let rest = [
        ("writes", "panel"),
        ("system", "system"),
        ("throughput/s", "throughput"),
        ("cap/s", "cap"),
        ("limit/s", "limit"),
        ("of cap", "of_cap"),
        ("x no cache", "times_no_cache"),
        ("hits", "hits"),
        ("expected", "hits_expected"),
        ("lost %", "lost_percent"),
        ("cache busy", "cache_busy"),
        ("mean busy", "busy_mean"),
    ];
    let rest = rest.map(|(head, key)| Column { head, key });
    [at].into_iter().chain(rest).collect()
}

fn row((point, measured): (&Point, &Measured), all: &[(&Point, &Measured)]) -> Vec<Cell> {
    let Measured { bounds, trial } = measured;
    let served = trial.throughput();
    let cap = point.system.cap(&point.spec, bounds, point.load.reads());
    // In figure 11 there is one rack without a cache for all sizes of it.
    let same = |(other, _): &&(&Point, &Measured)| {
        other.system == System::NoCache && other.panel == point.panel && other.load == point.load
    };
    let without = all.iter().find(same).map(|(_, other)| served / other.trial.throughput());
    let cached = |number: f64| point.spec.arm.has_cache_nodes().then_some(number);
    vec![
        Cell::text(&point.at),
        Cell::text(point.panel),
        Cell::text(&point.curve),
        Cell::number(served, 0),
        Cell::number(cap, 0),
        Cell::number(point.spec.arm.limit(bounds), 0),
        Cell::number(served / cap, 3),
        Cell::number(without, 2),
        Cell::number(cached(trial.by_caches), 3),
        Cell::number(cached(bounds.hits), 3),
        Cell::number(100.0 * (1.0 - trial.done as f64 / trial.begun.max(1) as f64), 2),
        Cell::number(cached(trial.cache_busy), 2),
        Cell::number(trial.busy_mean, 2),
    ]
}
