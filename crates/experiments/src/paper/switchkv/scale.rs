//! Figure 14: how far one cache reaches as nodes are added.

use super::balance::{measure, settling};
use super::system::System;
use super::{SwitchKvSettings, THETA, losses_note, reads, throughput_panel};
use crate::paper::Skew;
use crate::paper::figure::{Cell, Column, Figure, Table};
use crate::paper::points::measure_all;
use crate::paper::rack::{Losses, Pace, Rack, RackSpec, Trial};
use std::time::Duration;

/// How long each trial is looked at unless said otherwise.
const WINDOW: Duration = Duration::from_millis(500);

/// How long a cache that has too much to do looks for what it can bear, while clients look for
/// their rate: from 10,000 keys to the 50 that suit 512 nodes best it takes 7 s.
const SHEDDING: Duration = Duration::from_secs(8);

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

impl Point {
    /// A rate in what one of its nodes serves.
    fn in_nodes(&self, rate: f64) -> f64 {
        rate / f64::from(self.spec.pace.node_rate())
    }
}

/// Makes the figure.
pub(super) fn figure(settings: &SwitchKvSettings, mut tell: impl FnMut(&str)) -> Figure {
    let window = settings.window.unwrap_or(WINDOW);
    let load = reads(Skew::Zipf(THETA));
    let mut panel = throughput_panel("throughput", "storage nodes, each of one unit", Vec::new());
    panel.y = "throughput, in what a node serves";
    let points: Vec<Point> = counts(settings.nodes)
        .flat_map(|nodes| SYSTEMS.map(|system| point(settings, nodes, system)))
        .collect();
    let mut trials: Vec<Trial> = Vec::new();
    measure_all(
        &points,
        |point| {
            let settling = settling(&point.spec);
            let sheds = point.system == System::SwitchKv;
            let settling = if sheds { settling.max(SHEDDING) } else { settling };
            measure(point.spec, &load, LOSSES, (settling, window)).trial
        },
        |point, trial| {
            let Point { nodes, system, .. } = point;
            let served = point.in_nodes(trial.throughput());
            tell(&format!("{nodes} nodes, {}: {served:.1} times a node", system.name()));
            panel.add(system.name(), f64::from(*nodes), served);
            trials.push(trial);
        },
    );
    let mut notes = settings.notes(window);
    notes.push(losses_note(LOSSES));
    notes.push(
        "throughput in what a node serves; the cache serves 100 times that in every rack. Best: \
         the most that any number of keys in the cache would give, as the hash places keys"
            .to_owned(),
    );
    // Points of one number of nodes follow each other.
    let racks: Vec<(&Point, &Trial)> = points.iter().zip(&trials).collect();
    let rows = racks.chunk_by(|(one, _), (other, _)| one.nodes == other.nodes).flat_map(rows);
    Figure {
        title: format!("Figure 14: throughput against nodes, zipf {THETA}"),
        notes,
        table: Table { columns: COLUMNS.to_vec(), rows: rows.collect() },
        panels: vec![panel],
    }
}

/// What all systems do with one number of nodes.
fn rows(of_one: &[(&Point, &Trial)]) -> Vec<Vec<Cell>> {
    let best = of_one.first().map_or(0.0, |(point, _)| point.in_nodes(best(&point.spec)));
    let aside = of_one.iter().find(|(point, _)| point.system == System::LookAside);
    let aside = aside.map(|(point, trial)| point.in_nodes(trial.throughput()));
    let row = |(point, trial): &(&Point, &Trial)| {
        let served = point.in_nodes(trial.throughput());
        vec![
            Cell::number(f64::from(point.nodes), 0),
            Cell::text(point.system.name()),
            Cell::number(served, 1),
            Cell::number(best, 1),
            Cell::number(served / best, 3),
            Cell::number(aside.map(|aside| served / aside), 2),
            Cell::number(trial.by_caches, 3),
            Cell::number(trial.cache_busy, 2),
            Cell::number(trial.cache_held as f64, 0),
        ]
    };
    of_one.iter().map(row).collect()
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

fn point(settings: &SwitchKvSettings, nodes: u16, system: System) -> Point {
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
