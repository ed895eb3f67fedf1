//! What section 5.1 of the paper claims and shows no figure of: the load of nodes while a hot range
//! moves through a keyspace of one partition, with and without migration.

use super::{KEY_BYTES, TurboKvSettings, VALUE_BYTES, panel_over_time, since};
use crate::paper::figure::{Cell, Column, Figure, Table};
use crate::paper::points::measure_all;
use crate::paper::rack::Rack;
use crate::paper::{Load, Skew};
use std::time::Duration;
use workload::zeta;

/// How popular keys are, unless said otherwise: in the order of their names, so that most of the
/// load lies in a range.
const THETA: f64 = 0.99;

/// How often the range moves, unless said otherwise.
const EVERY: Duration = Duration::from_secs(60);

/// How often it does, after the rack has got used to where it was first.
const MOVES: u64 = 3;

/// So many times as long the rack has for that.
const GROWING_TIMES: u32 = 2;

/// What is asked for, as a share of what can be served at most.
const UTILISATION: f64 = 0.8;

/// Load is shared out when the nodes could serve this share of what can be served at most.
const SHARED: f64 = 0.9;

/// How long the pieces are that are looked at.
const PIECE: Duration = Duration::from_secs(1);

/// One curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// One partition at first, and placement follows load.
    Migrating,
    /// As many sub-ranges as are asked for, which stay where they are.
    Fixed,
}

/// A piece of the time.
struct Piece {
    /// When it began, in seconds since the range was first where it is.
    second: f64,
    /// What can be served then before a node is full, as a share of what can be served at most.
    possible: f64,
    /// What the busiest node does, in multiples of the mean.
    busiest: f64,
    /// Share of the requests that were answered.
    answered: f64,
}

/// The time that a range stays where it is.
struct Stay {
    pieces: Vec<Piece>,
    /// Partitions at its end.
    partitions: usize,
    /// Turns, moves, splits and merges meanwhile.
    changes: [u64; 4],
}

impl Case {
    const ALL: [Self; 2] = [Self::Migrating, Self::Fixed];

    fn name(self) -> &'static str {
        match self {
            Self::Migrating => "placement follows load",
            Self::Fixed => "partitions stay where they are",
        }
    }

    fn rack(self, settings: &TurboKvSettings) -> Rack {
        Rack::new(match self {
            Self::Migrating => settings.in_order(1, Some(settings.load_floor())),
            Self::Fixed => settings.in_order(settings.partitions, None),
        })
    }

    /// The range where it is first, and where it goes.
    fn stays(self, settings: &TurboKvSettings) -> Vec<Stay> {
        let load = Load::only_reads(Skew::Zipf(settings.theta()));
        let mut rack = self.rack(settings);
        let most = most(settings, rack.bounds(&load).cap);
        let every = settings.window.unwrap_or(EVERY);
        let mut seen = changes(&rack);
        let mut stay = |at: u64, time: Duration| {
            rack.move_popularity(settings.keys / (MOVES + 1) * at);
            let count = time.as_nanos().div_ceil(PIECE.as_nanos());
            let pieces = (0..count).map(|place| {
                let possible = rack.bounds(&load).hashing / most;
                let trial = rack.run(&load, UTILISATION * most, PIECE - rack.warm_up(), None);
                Piece {
                    second: place as f64 * PIECE.as_secs_f64(),
                    possible,
                    busiest: trial.busiest / trial.busy_mean,
                    answered: trial.done as f64 / trial.begun.max(1) as f64,
                }
            });
            let pieces = pieces.collect();
            let partitions = rack.partition_count();
            Stay { pieces, partitions, changes: since(&mut seen, changes(&rack)) }
        };
        let first = stay(0, every * GROWING_TIMES);
        [first].into_iter().chain((1..=MOVES).map(|at| stay(at, every))).collect()
    }
}

impl Stay {
    /// How long it took until load was shared out for good, if it was.
    fn shared_after(&self) -> Option<f64> {
        let late = self.pieces.iter().rposition(|it| it.possible < SHARED);
        let first = late.map_or(0, |last| last + 1);
        self.pieces.get(first).map(|it| it.second)
    }

    fn least(&self, of: impl Fn(&Piece) -> f64) -> f64 {
        self.pieces.iter().map(of).fold(f64::MAX, f64::min)
    }
}

/// What can be served at most: the node of the most popular key answers all reads of it.
fn most(settings: &TurboKvSettings, cap: f64) -> f64 {
    let most_popular = 1.0 / zeta(settings.keys, settings.theta());
    cap * (1.0 / (f64::from(settings.nodes) * most_popular)).min(1.0)
}

fn changes(rack: &Rack) -> [u64; 4] {
    let placement = rack.placement();
    [placement.turns, placement.moves, placement.splits, placement.merges]
}

impl TurboKvSettings {
    fn theta(&self) -> f64 {
        self.thetas.first().copied().unwrap_or(THETA)
    }
}

/// Makes the figure.
pub(super) fn figure(settings: &TurboKvSettings, mut tell: impl FnMut(&str)) -> Figure {
    let mut panels = [
        ("load of the busiest node", "multiples of the mean"),
        ("what the nodes can serve", "share of what is possible"),
        ("what was answered", "share of what was asked for"),
    ]
    .map(|(title, y)| panel_over_time(title, y));
    let mut rows = Vec::new();
    measure_all(
        &Case::ALL,
        |case| case.stays(settings),
        |case, stays| {
            let mut begin = 0.0;
            for (place, stay) in stays.iter().enumerate() {
                let shared = stay.shared_after().map_or("never".to_owned(), |it| format!("{it} s"));
                tell(&format!("{}, place {place}: shared out after {shared}", case.name()));
                for piece in &stay.pieces {
                    let values = [piece.busiest, piece.possible, piece.answered];
                    for (panel, value) in panels.iter_mut().zip(values) {
                        panel.add(case.name(), begin + piece.second, value);
                    }
                }
                begin += stay.pieces.len() as f64 * PIECE.as_secs_f64();
                rows.push(row(*case, place, stay));
            }
        },
    );
    Figure {
        title: "Load while a hot range moves".to_owned(),
        notes: notes(settings),
        table: Table { columns: COLUMNS.to_vec(), rows },
        panels: panels.to_vec(),
    }
}

fn notes(settings: &TurboKvSettings) -> Vec<String> {
    let TurboKvSettings { nodes, pace, keys, replicas, partitions, seed, window, .. } = settings;
    let every = window.unwrap_or(EVERY);
    vec![
        format!(
            "{nodes} nodes that serve {} requests/s each; chains of {replicas}; {keys} keys of \
             {KEY_BYTES} bytes, values of {VALUE_BYTES}; reads, zipf {} in the order of names; \
             seed {seed}",
            pace.node_rate(),
            settings.theta()
        ),
        format!(
            "placement follows load: one partition at first; else {partitions} with as many keys \
             each. The range is where it is first for {} s; then it moves every {} s by a quarter \
             of the keyspace",
            (every * GROWING_TIMES).as_secs_f64(),
            every.as_secs_f64()
        ),
        format!(
            "possible: what the node of the most popular key can serve with nothing beside it; \
             asked for: {UTILISATION} of that; shared out: the nodes could serve {SHARED} of it, \
             from then on"
        ),
    ]
}

const COLUMNS: [Column; 11] = [
    Column { head: "placement", key: "placement" },
    Column { head: "place", key: "place" },
    Column { head: "possible at first", key: "possible_first" },
    Column { head: "at last", key: "possible_last" },
    Column { head: "shared out after s", key: "shared_after_s" },
    Column { head: "answered at worst", key: "answered_worst" },
    Column { head: "partitions", key: "partitions" },
    Column { head: "turns", key: "turns" },
    Column { head: "moves", key: "moves" },
    Column { head: "splits", key: "splits" },
    Column { head: "merges", key: "merges" },
];

fn row(case: Case, place: usize, stay: &Stay) -> Vec<Cell> {
    let possible = |piece: Option<&Piece>| Cell::number(piece.map(|it| it.possible), 3);
    let mut row = vec![
        Cell::text(case.name()),
        Cell::number(place as f64, 0),
        possible(stay.pieces.first()),
        possible(stay.pieces.last()),
        Cell::number(stay.shared_after(), 0),
        Cell::number(stay.least(|it| it.answered), 3),
        Cell::number(stay.partitions as f64, 0),
    ];
    row.extend(stay.changes.map(|count| Cell::number(count as f64, 0)));
    row
}
