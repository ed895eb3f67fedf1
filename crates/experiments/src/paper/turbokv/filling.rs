//! How full nodes are while new keys are written one after the other to a keyspace of one
//! partition, with and without placement. The paper leaves open what happens when a node is full;
//! section 5.1 speaks of load only.

use super::{KEY_BYTES, TurboKvSettings, VALUE_BYTES, panel_over_time, since};
use crate::paper::Load;
use crate::paper::figure::{Cell, Column, Figure, Table};
use crate::paper::points::measure_all;
use crate::paper::rack::{Rack, RackSpec, Store};
use node::MemoryLimit;
use std::time::Duration;

/// Which share of what all nodes may hold all keys take.
const STORED: f64 = 0.6;

/// How long it takes to write them, unless said otherwise.
const TIME: Duration = Duration::from_secs(300);

/// Rows of each case: the time is cut into as many phases, and so are the keys.
const PHASES: usize = 3;

/// How long the pieces are that are looked at.
const PIECE: Duration = Duration::from_secs(1);

/// What a node takes for a key in an ordered keyspace, about. How full it is, it says itself.
const RECORD_BYTES: f64 = (KEY_BYTES + VALUE_BYTES + 125) as f64;

/// One curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// One partition at first, and placement follows load and room.
    Placed,
    /// As many sub-ranges as are asked for, which stay where they are. They are cut by somebody who
    /// knows which keys will come: each gets as many.
    SubRanges,
    /// One partition, which stays where it is.
    Whole,
}

/// A piece of the time.
struct Moment {
    /// When it ended, in seconds.
    second: f64,
    /// How full the fullest node was then, and how full nodes were in the mean.
    fullest: f64,
    mean: f64,
    /// Writes that were meant to begin in it, those that were answered, and those that were refused
    /// because a node was full.
    begun: u64,
    done: u64,
    full: u64,
}

/// One of [`PHASES`].
struct Phase {
    moments: Vec<Moment>,
    /// Partitions at its end.
    partitions: usize,
    /// Splits, moves and copies meanwhile.
    changes: [u64; 3],
}

impl Layout {
    const ALL: [Self; 3] = [Self::Placed, Self::SubRanges, Self::Whole];

    fn name(self) -> &'static str {
        match self {
            Self::Placed => "placement follows load and room",
            Self::SubRanges => "sub-ranges stay where they are",
            Self::Whole => "one partition stays where it is",
        }
    }

    fn rack(self, settings: &TurboKvSettings) -> Rack {
        let spec = match self {
            Self::Placed => settings.in_order(1, Some(settings.load_floor())),
            Self::SubRanges => settings.in_order(settings.partitions, None),
            Self::Whole => settings.in_order(1, None),
        };
        let store = Store { memory_max: Some(settings.memory_max()), ..spec.store };
        Rack::new(RackSpec { store, stored: 0, ..spec })
    }

    fn phases(self, settings: &TurboKvSettings) -> Vec<Phase> {
        let load = Load::only_new_keys();
        let (rate, mut rack) = (settings.writes(), self.rack(settings));
        let count = settings.filling_time().as_nanos().div_ceil(PIECE.as_nanos());
        let count = usize::try_from(count).expect("virtual time is short");
        let mut seen = made(&rack);
        let mut phase = |of: usize| {
            let pieces = count * of / PHASES..count * (of + 1) / PHASES;
            let moments = pieces.map(|place| {
                let trial = rack.run(&load, rate, PIECE - rack.warm_up(), None);
                let nodes: Vec<f64> = rack.fullness().collect();
                Moment {
                    second: (place + 1) as f64 * PIECE.as_secs_f64(),
                    fullest: nodes.iter().copied().fold(0.0, f64::max),
                    mean: nodes.iter().sum::<f64>() / nodes.len() as f64,
                    begun: trial.begun,
                    done: trial.done,
                    full: trial.full,
                }
            });
            let moments = moments.collect();
            let partitions = rack.partition_count();
            Phase { moments, partitions, changes: since(&mut seen, made(&rack)) }
        };
        (0..PHASES).map(&mut phase).collect()
    }
}

/// Splits, moves because of load or room, and copies, whatever for.
fn made(rack: &Rack) -> [u64; 3] {
    let placement = rack.placement();
    [placement.splits, placement.moves, rack.copies()]
}

impl Phase {
    fn fullest(&self) -> f64 {
        self.moments.iter().map(|it| it.fullest).fold(0.0, f64::max)
    }

    fn mean(&self) -> Option<f64> {
        self.moments.last().map(|it| it.mean)
    }

    /// A share of what was asked for.
    fn share(&self, of: impl Fn(&Moment) -> u64) -> f64 {
        let begun: u64 = self.moments.iter().map(|it| it.begun).sum();
        self.moments.iter().map(of).sum::<u64>() as f64 / begun.max(1) as f64
    }
}

impl TurboKvSettings {
    fn filling_time(&self) -> Duration {
        self.window.unwrap_or(TIME)
    }

    /// How many keys are written in a second.
    fn writes(&self) -> f64 {
        self.keys as f64 / self.filling_time().as_secs_f64()
    }

    /// Bytes that each node may hold, so that all keys take [`STORED`] of it.
    fn memory_max(&self) -> u64 {
        let records = self.keys as f64 * f64::from(self.replicas) / f64::from(self.nodes);
        (records * RECORD_BYTES / STORED) as u64
    }
}

/// Makes the figure.
pub(super) fn figure(settings: &TurboKvSettings, mut tell: impl FnMut(&str)) -> Figure {
    let mut panels = [
        ("the fullest node", "share of what it may hold"),
        ("all nodes together", "share of what they may hold"),
        ("what was answered", "share of what was asked for"),
        ("what was refused as full", "share of what was asked for"),
    ]
    .map(|(title, y)| panel_over_time(title, y));
    let mut rows = Vec::new();
    measure_all(
        &Layout::ALL,
        |layout| layout.phases(settings),
        |layout, phases| {
            for (place, phase) in phases.iter().enumerate() {
                let (asked_for, fullest) = (asked_for(place), phase.fullest());
                let name = layout.name();
                tell(&format!("{name}, {asked_for:.1} asked for: fullest {fullest:.3}"));
                for moment in &phase.moments {
                    let share = |count: u64| count as f64 / moment.begun.max(1) as f64;
                    let (done, full) = (share(moment.done), share(moment.full));
                    let values = [moment.fullest, moment.mean, done, full];
                    for (panel, value) in panels.iter_mut().zip(values) {
                        panel.add(name, moment.second, value);
                    }
                }
                rows.push(row(*layout, place, phase));
            }
        },
    );
    Figure {
        title: "Nodes that fill up".to_owned(),
        notes: notes(settings),
        table: Table { columns: COLUMNS.to_vec(), rows },
        panels: panels.to_vec(),
    }
}

/// How much was asked for by the end of a phase, as a share of what all nodes may hold.
fn asked_for(phase: usize) -> f64 {
    STORED * (phase + 1) as f64 / PHASES as f64
}

fn notes(settings: &TurboKvSettings) -> Vec<String> {
    let TurboKvSettings { nodes, pace, keys, replicas, partitions, seed, .. } = settings;
    let (writes, rate) = (settings.writes(), pace.node_rate());
    let limit = MemoryLimit::of(settings.memory_max());
    vec![
        format!(
            "{nodes} nodes that may hold {:.1} MiB and serve {rate} requests/s each; chains of \
             {replicas}; {keys} keys of {KEY_BYTES} bytes, values of {VALUE_BYTES}; seed {seed}",
            limit.bytes as f64 / f64::from(1 << 20)
        ),
        format!(
            "new keys, one after the other in the order of names, {writes:.0} a second for {} s: \
             all of them take about {STORED} of what all nodes may hold. So all writes are of one \
             partition at a time, and {:.2} of what its chain serves",
            settings.filling_time().as_secs_f64(),
            writes / f64::from(rate)
        ),
        format!(
            "placement follows load, from {} requests/s of a node on, and room: one partition at \
             first; else one, or {partitions} that were cut so that each gets as many keys, which \
             only somebody can do who knows all of them",
            settings.load_floor()
        ),
        format!(
            "full: from {:.4} of what it may hold on a node refuses what takes more, and with it \
             all chains that it is in; moves: because of load or room; copies: all replicas that \
             nodes were given, also those that even out how many each has",
            1.0 - limit.reserve as f64 / limit.bytes as f64
        ),
    ]
}

const COLUMNS: [Column; 10] = [
    Column { head: "placement", key: "placement" },
    Column { head: "asked for", key: "asked_for" },
    Column { head: "nodes in the mean", key: "mean" },
    Column { head: "fullest node", key: "fullest" },
    Column { head: "answered", key: "answered" },
    Column { head: "refused as full", key: "refused_full" },
    Column { head: "partitions", key: "partitions" },
    Column { head: "splits", key: "splits" },
    Column { head: "moves", key: "moves" },
    Column { head: "copies", key: "copies" },
];

fn row(layout: Layout, place: usize, phase: &Phase) -> Vec<Cell> {
    let mut row = vec![
        Cell::text(layout.name()),
        Cell::number(asked_for(place), 1),
        Cell::number(phase.mean(), 3),
        Cell::number(phase.fullest(), 3),
        Cell::number(phase.share(|it| it.done), 3),
        Cell::number(phase.share(|it| it.full), 3),
        Cell::number(phase.partitions as f64, 0),
    ];
    row.extend(phase.changes.map(|count| Cell::number(count as f64, 0)));
    row
}
