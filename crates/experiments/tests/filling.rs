//! Keys that are written one after the other fill the nodes of one partition. Placement spreads
//! them over all nodes before one of them is full.

use experiments::paper::turbokv::{Exhibit, FORWARD_PERCENT, TurboKvSettings, make};
use experiments::paper::{Cell, Figure, Pace};
use std::time::Duration;

/// Rows of each case, and how many there are.
const PHASES: usize = 3;
const CASES: usize = 3;

fn settings(nodes: u16, replicas: u8, pace: Pace) -> TurboKvSettings {
    TurboKvSettings {
        nodes,
        keys: 20_000,
        partitions: 64,
        replicas,
        forward_percent: FORWARD_PERCENT,
        scan_keys: 1,
        pace,
        seed: 1,
        finders: Vec::new(),
        thetas: Vec::new(),
        window: Some(Duration::from_secs(240)),
    }
}

/// The numbers of a column, by case.
fn column(figure: &Figure, key: &str) -> [Vec<f64>; CASES] {
    let place = figure.table.columns.iter().position(|column| column.key == key);
    let place = place.expect("there is such a column");
    let number = |row: &Vec<Cell>| match row.get(place) {
        Some(Cell::Number(number, _)) => *number,
        other => panic!("{key} is {other:?}"),
    };
    let all: Vec<f64> = figure.table.rows.iter().map(number).collect();
    let cases: Vec<Vec<f64>> = all.chunks(PHASES).map(<[f64]>::to_vec).collect();
    cases.try_into().expect("as many rows for each case")
}

fn made(settings: &TurboKvSettings) -> Figure {
    let figure = make(Exhibit::Filling, settings, |line| eprintln!("{line}"));
    figure.expect("sound settings")
}

#[test]
fn nothing_is_refused_while_the_rack_has_room_if_placement_follows_it() {
    // At the second pace load is evened out as well.
    for (replicas, slowed) in [(3, 10), (1, 10), (1, 100)] {
        let pace = Pace::slowed(slowed).expect("not too slow");
        let figure = made(&settings(8, replicas, pace));
        let [placed, ranges, whole] = column(&figure, "refused_full");
        assert_eq!((&placed[..], &ranges[..]), (&[0.0; 3][..], &[0.0; 3][..]));
        let [answered, ..] = column(&figure, "answered");
        assert!(answered.iter().all(|share| *share > 0.999), "{answered:?}");
        let [placed, ..] = column(&figure, "fullest");
        assert!(placed.iter().all(|share| *share < 0.93), "{placed:?}");
        // One chain of three has 0.35 of the room of eight nodes, one of one 0.12.
        assert!(whole[2] > 0.999, "{whole:?}");
        let [placed, _, whole] = column(&figure, "mean");
        assert!((0.57..0.63).contains(&placed[2]), "{placed:?}");
        let held = 0.9375 * f64::from(replicas) / 8.0;
        assert!((whole[2] - held).abs() < 0.01, "{whole:?}, not {held}");
        let [placed, ranges, whole] = column(&figure, "copies");
        assert!(placed.iter().sum::<f64>() > 0.0);
        assert_eq!((ranges, whole), (vec![0.0; 3], vec![0.0; 3]));
    }
}

/// A part that has just moved rests, and its nodes fill up meanwhile. Then it is split, which
/// copies nothing.
#[test]
fn what_must_not_move_again_yet_is_split_before_its_nodes_are_full() {
    let fast = TurboKvSettings {
        keys: 100_000,
        window: Some(Duration::from_secs(120)),
        ..settings(16, 3, Pace::USUAL)
    };
    let [placed, ..] = column(&made(&fast), "refused_full");
    assert_eq!(placed, [0.0; 3]);
}

#[test]
fn the_figure_is_a_plot_and_the_same_each_time() {
    let short = TurboKvSettings {
        keys: 2_000,
        window: Some(Duration::from_secs(30)),
        ..settings(4, 1, Pace::USUAL)
    };
    let first = made(&short);
    assert!(first.svg().contains(&first.title));
    assert!(first.table.rows.iter().all(|row| row.len() == first.table.columns.len()));
    assert_eq!(first, made(&short));
    assert_ne!(first.table, made(&TurboKvSettings { seed: 2, ..short }).table);
}
