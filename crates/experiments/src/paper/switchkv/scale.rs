//! Figure 14: how far one cache reaches as nodes are added.

use super::balance::{Measured, measure, settling};
use super::system::System;
use super::{Settings, THETA, losses_note, reads, throughput_panel};
use crate::paper::Skew;
use crate::paper::figure::{Cell, Column, Figure, Table};
use crate::paper::points::measure_all;
use crate::paper::rack::{Losses, Pace, Rack, RackSpec};
use std::time::Duration;

/// How long each trial is looked at unless said otherwise.
const WINDOW: Duration = Duration::from_millis(500);

/// How long a cache that has too much to do looks for what it can bear.
const SHEDDING: Duration = Duration::from_secs(3);

const SYSTEMS: [System; 3] = [System::SwitchKv, System::LookThrough, System::LookAside];

/// Nodes of the smallest rack.
const NODES_LEAST: u16 = 8;

/// One percent is lost.
const LOSSES: Losses = Losses { least: 0.0075, most: 0.0125 };

/// A rack of this many nodes is simulated as fast as users of other figures expect; those of more
/// are slowed down.
const NODES_USUAL: u16 = 128;

struct Point {
    nodes: u16,
    system: System,
    spec: RackSpec,
}

/// Makes the figure.
pub(super) fn figure(settings: &Settings, mut tell: impl FnMut(&str)) -> Figure {
    let window = settings.window.unwrap_or(WINDOW);
    let load = reads(Skew::Zipf(THETA));
    let mut panel = throughput_panel("throughput", "storage nodes, each of one unit", Vec::new());
    panel.y = "throughput, in what a node serves";
    let points: Vec<Point> = counts(settings.nodes)
        .flat_map(|nodes| SYSTEMS.map(|system| point(settings, nodes, system)))
        .collect();
    let mut rows: Vec<(u16, System, f64, f64, f64, f64, usize)> = Vec::new();
    measure_all(
        &points,
        |point| {
            // The same for all systems: what any number of keys in the cache would give.
            let best = best(&point.spec);
            let settling = settling(&point.spec);
            let sheds = point.system == System::SwitchKv;
            let settling = if sheds { settling.max(SHEDDING) } else { settling };
            (best, measure(point.spec, &load, LOSSES, (settling, window)))
        },
        |Point { nodes, system, spec }, (best, Measured { trial, .. })| {
            let unit = f64::from(spec.pace.node_rate());
            let served = trial.throughput() / unit;
            tell(&format!("{nodes} nodes, {}: {served:.1} times a node", system.name()));
            panel.add(system.name(), f64::from(*nodes), served);
            let (best, held) = (best / unit, trial.cache_held);
            rows.push((*nodes, *system, served, best, trial.by_caches, trial.cache_busy, held));
        },
    );
    let mut notes = settings.notes(window);
    notes.push(losses_note(LOSSES));
    notes.push(
        "throughput in what a node serves; the cache serves 100 times that in every rack. Best: \
         the most that any number of keys in the cache would give, as the hash places keys"
            .to_owned(),
    );
    let aside = |nodes: u16| {
        let found = rows.iter().find(|row| row.0 == nodes && row.1 == System::LookAside);
        found.map(|row| row.2)
    };
    let cells = rows.iter().map(|&(nodes, system, served, best, hits, busy, held)| {
        vec![
            Cell::number(f64::from(nodes), 0),
            Cell::text(system.name()),
            Cell::number(served, 1),
            Cell::number(best, 1),
            Cell::number(served / best, 3),
            Cell::number(aside(nodes).map(|aside| served / aside), 2),
            Cell::number(hits, 3),
            Cell::number(busy, 2),
            Cell::number(held as f64, 0),
        ]
    });
    Figure {
        title: format!("Figure 14: throughput against nodes, zipf {THETA}"),
        notes,
        table: Table { columns: COLUMNS.to_vec(), rows: cells.collect() },
        panels: vec![panel],
    }
}

const COLUMNS: [Column; 9] = [
    Column { head: "nodes", key: "nodes" },
    Column { head: "system", key: "system" },
    Column { head: "throughput", key: "throughput" },
    Column { head: "best", key: "best" },
    Column { head: "of best", key: "of_best" },
    Column { head: "x look-aside", key: "times_look_aside" },
    Column { head: "hits", key: "hits" },
    Column { head: "cache busy", key: "cache_busy" },
    Column { head: "keys held", key: "held" },
];

/// Powers of two from the least on, and the most.
fn counts(most: u16) -> impl Iterator<Item = u16> {
    let powers = std::iter::successors(Some(NODES_LEAST), |nodes| nodes.checked_mul(2));
    powers.take_while(move |nodes| *nodes < most).chain([most])
}

fn point(settings: &Settings, nodes: u16, system: System) -> Point {
    let times = u32::from(nodes.div_ceil(NODES_USUAL));
    let pace = Pace::slowed(settings.pace.times() * times).unwrap_or(settings.pace);
    let spec = settings.rack(system);
    Point { nodes, system, spec: RackSpec { nodes, pace, ..spec } }
}

/// Requests per second that no number of keys in the cache would exceed.
fn best(spec: &RackSpec) -> f64 {
    // Where keys lie depends on the number of nodes and the seed alone.
    Rack::new(RackSpec { stored: 1, ..*spec }).lent_at_best(&reads(Skew::Zipf(THETA)))
}
