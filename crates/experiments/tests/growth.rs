//! A keyspace of one partition with a hot range grows until its nodes share the load (TurboKV,
//! section 5.1), and when the range moves they do again.

use experiments::paper::turbokv::{Exhibit, FORWARD_PERCENT, TurboKvSettings, make};
use experiments::paper::{Arm, Cell, Figure, Load, Order, Pace, Rack, RackSpec, Skew, Store};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn settings(replicas: u8) -> TurboKvSettings {
    TurboKvSettings {
        nodes: 16,
        keys: 10_000,
        partitions: 128,
        replicas,
        forward_percent: FORWARD_PERCENT,
        scan_keys: 1,
        pace: Pace::slowed(200).expect("not too slow"),
        seed: 1,
        finders: Vec::new(),
        thetas: Vec::new(),
        window: Some(30 * SECOND),
    }
}

fn column(figure: &Figure, key: &str) -> Vec<Option<f64>> {
    let place = figure.table.columns.iter().position(|column| column.key == key);
    let place = place.expect("there is such a column");
    let number = |row: &Vec<Cell>| match row.get(place) {
        Some(Cell::Number(number, _)) => Some(*number),
        _ => None,
    };
    figure.table.rows.iter().map(number).collect()
}

#[test]
fn nodes_share_a_hot_range_wherever_it_moves() {
    for replicas in [1, 3] {
        let figure = make(Exhibit::Migration, &settings(replicas), |line| eprintln!("{line}"));
        let figure = figure.expect("sound settings");
        let after = column(&figure, "shared_after_s");
        let (follows, fixed) = after.split_at(4);
        assert!(follows.iter().all(Option::is_some), "{after:?}");
        assert!(fixed.iter().all(Option::is_none), "{after:?}");
        let last = column(&figure, "possible_last");
        assert!(last.iter().take(4).all(|it| it.is_some_and(|it| it >= 0.9)), "{last:?}");
    }
}

#[test]
fn with_copies_of_hot_keys_nodes_serve_nearly_what_they_do_where_all_keys_are_alike() {
    let load = Load::only_reads(Skew::Zipf(0.99));
    let mut rack = Rack::new(RackSpec {
        pace: Pace::slowed(200).expect("not too slow"),
        store: Store {
            order: Order::Ranked,
            partitions: Some(1),
            key_bytes: 16,
            value_bytes: 128,
            load_floor: Some(50),
            memory_max: None,
        },
        replicas: 3,
        arm: Arm::Copies,
        ..RackSpec::new(16, 10_000, 1)
    });
    let cap = rack.bounds(&load).cap;
    rack.run(&load, 0.5 * cap, 60 * SECOND, None);
    rack.run(&load, 0.8 * cap, 60 * SECOND, None);
    let trial = rack.run(&load, 0.98 * cap, 10 * SECOND, None);
    let share = trial.throughput() / cap;
    eprintln!("{share} of the cap; {} of {} answered", trial.done, trial.begun);
    assert!(share >= 0.94, "{share}");
}
