//! Who finds the node that a request is for: the same rack, held to what each way takes.

use experiments::paper::turbokv::{
    Exhibit, FIGURES, FORWARD_PERCENT, TABLES, TurboKvRefusal, TurboKvSettings, check, make,
};
use experiments::paper::{
    Cell, Figure, Finder, Finding, Load, Order, Pace, Rack, RackSpec, Scans, Skew, Store, Trial,
};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn spec(by: Finder) -> RackSpec {
    RackSpec {
        store: Store {
            order: Order::Shuffled,
            partitions: Some(64),
            key_bytes: 16,
            value_bytes: 128,
            load_floor: None,
            memory_max: None,
        },
        replicas: 3,
        finding: Finding { by, forward_permille: 500, cables_past: 2 },
        // Eight keys to a partition, whose values one datagram holds.
        ..RackSpec::new(8, 512, 1)
    }
}

/// A rack that is used to requests past the switch.
fn rack(by: Finder, load: &Load) -> Rack {
    let mut rack = Rack::new(spec(by));
    let rate = 0.3 * rack.bounds(load).hashing;
    rack.run(load, rate, 300 * MS, None);
    rack
}

fn mixed() -> Load {
    let scans = Some(Scans { percent: 10, keys_max: 30 });
    Load { reads_percent: 60, scans, ..Load::only_reads(Skew::Zipf(0.9)) }
}

#[test]
fn every_way_serves_reads_writes_and_scans_and_takes_what_it_is_reckoned_to_take() {
    for by in Finder::ALL {
        let mut rack = rack(by, &mixed());
        let bounds = rack.bounds(&mixed());
        let trial = rack.run(&mixed(), 0.7 * bounds.hashing, 300 * MS, None);
        assert_eq!(trial.done, trial.begun, "{by:?} {trial:?}");
        let visits = trial.busy_mean / (trial.throughput() / bounds.cap);
        assert!((0.95..1.05).contains(&visits), "{by:?}: {visits} of what it is reckoned to take");
        let busiest = trial.busiest / (trial.throughput() / bounds.hashing);
        assert!((0.9..1.1).contains(&busiest), "{by:?}: {busiest} of that of its busiest node");
    }
}

#[test]
fn passing_on_costs_half_a_service_and_seven_of_eight_are_passed_on() {
    let load = Load::only_reads(Skew::Uniform);
    let rack = rack(Finder::Nodes, &load);
    let cap = rack.bounds(&load).cap;
    assert!((cap - 80_000.0 / (1.0 + 0.5 * 7.0 / 8.0)).abs() < 1.0, "{cap}");
    assert!((rack.bounds_by(&load, Finder::Clients).cap - 80_000.0).abs() < 1.0);
}

fn idle(by: Finder, load: &Load) -> Trial {
    rack(by, load).run(load, 100.0, 5_000 * MS, None)
}

#[test]
fn an_idle_rack_takes_four_cables_and_a_service_and_two_cables_more_to_pass_on() {
    let load = Load::only_reads(Skew::Uniform);
    let mean = |by| idle(by, &load).latencies.mean_us();
    // A cable takes 100 us to 110 us, a service 100 us.
    let direct = 520.0;
    for by in [Finder::Switch, Finder::Clients] {
        let mean = mean(by);
        assert!((mean - direct).abs() < 10.0, "{by:?}: {mean}");
    }
    let passed_on = direct + 7.0 / 8.0 * (2.0 * 105.0 + 50.0);
    let mean = mean(Finder::Nodes);
    assert!((mean - passed_on).abs() < 15.0, "{mean}, not {passed_on}");
}

#[test]
fn a_write_goes_down_its_chain_over_the_same_cables_in_every_way() {
    let load = Load { reads_percent: 0, ..Load::only_reads(Skew::Uniform) };
    let mean = |by| idle(by, &load).latencies.mean_us();
    let (by_switch, by_client) = (mean(Finder::Switch), mean(Finder::Clients));
    // Client to head, down the chain of three, and back: four times two cables, three services.
    assert!((by_switch - (8.0 * 105.0 + 300.0)).abs() < 15.0, "{by_switch}");
    assert!((by_switch - by_client).abs() < 15.0, "{by_client}");
}

#[test]
fn partitions_that_move_are_found_in_every_way() {
    let load = Load { reads_percent: 80, ..Load::only_reads(Skew::Zipf(0.7)) };
    let pace = Pace::slowed(100).expect("not too slow");
    let store = Store { order: Order::Ranked, load_floor: Some(100), ..spec(Finder::Switch).store };
    let mut rack = Rack::new(RackSpec { pace, store, replicas: 2, ..spec(Finder::Switch) });
    let before = rack.bounds(&load).hashing;
    let trial = rack.run(&load, 0.6 * before, 20_000 * MS, None);
    assert_eq!(trial.done, trial.begun, "{trial:?}");
    assert!(rack.bounds(&load).hashing > 1.1 * before, "replicas have moved");
    // Whoever goes by a map has its placement in the way: the switch counts what passes it only.
    for by in [Finder::Clients, Finder::Nodes] {
        let finding = Finding { by, ..spec(by).finding };
        let mut rack = Rack::new(RackSpec { pace, store, replicas: 2, finding, ..spec(by) });
        let before = rack.bounds(&load).hashing;
        rack.run(&load, 0.6 * before, 5_000 * MS, None);
        let trial = rack.run(&load, 0.6 * before, 5_000 * MS, None);
        assert_eq!(trial.done, trial.begun, "{by:?} {trial:?}");
    }
}

fn settings() -> TurboKvSettings {
    TurboKvSettings {
        nodes: 4,
        keys: 64,
        partitions: 16,
        replicas: 2,
        forward_percent: FORWARD_PERCENT,
        scan_keys: 8,
        pace: Pace::USUAL,
        seed: 1,
        finders: Vec::new(),
        thetas: Vec::new(),
        window: Some(20 * MS),
    }
}

fn all() -> impl Iterator<Item = Exhibit> {
    FIGURES.into_iter().map(Exhibit::Figure).chain(TABLES.into_iter().map(Exhibit::Table))
}

fn made(exhibit: Exhibit, settings: &TurboKvSettings) -> Figure {
    let mut told = 0;
    let made = make(exhibit, settings, |_| told += 1).expect("it is one of them");
    assert_eq!(told, made.table.rows.len());
    assert!(made.table.rows.iter().all(|row| row.len() == made.table.columns.len()));
    made
}

#[test]
fn everything_is_a_table_and_a_plot_and_the_same_each_time() {
    for exhibit in all() {
        let first = made(exhibit, &settings());
        assert!(first.svg().contains(&first.title));
        if exhibit != Exhibit::Figure(13) {
            assert_eq!(first, made(exhibit, &settings()));
            assert_ne!(
                first.table,
                made(exhibit, &TurboKvSettings { seed: 2, ..settings() }).table
            );
        }
    }
}

#[test]
fn only_those_are_compared_that_are_asked_for() {
    let some = TurboKvSettings { finders: vec![Finder::Switch, Finder::Clients], ..settings() };
    let table = made(Exhibit::Table(1), &some).table;
    let place = |key| table.columns.iter().position(|column| column.key == key).expect("a column");
    let of = |key| table.rows.iter().map(move |row| &row[place(key)]).collect::<Vec<_>>();
    assert_eq!(table.rows.len(), 6);
    assert!(of("p99_cut_percent").iter().all(|cell| **cell == Cell::None));
    let over: Vec<bool> =
        of("mean_over_client_percent").iter().map(|cell| **cell != Cell::None).collect();
    assert_eq!(over, [true, false, true, false, true, false]);
    let one = TurboKvSettings { finders: vec![Finder::Nodes], thetas: vec![0.99], ..settings() };
    let rows = made(Exhibit::Figure(13), &one).table.rows;
    assert_eq!(rows.len(), 2 + 6 + 6 + 2);
}

#[test]
fn what_there_is_not_and_what_makes_no_difference_is_refused() {
    let given = TurboKvSettings { thetas: vec![0.9], ..settings() };
    for exhibit in all() {
        assert_eq!(check(exhibit, &settings()), Ok(()));
        let about_skew = exhibit == Exhibit::Figure(13);
        let expected = if about_skew { Ok(()) } else { Err(TurboKvRefusal::Thetas(exhibit)) };
        assert_eq!(check(exhibit, &given), expected);
    }
    for exhibit in [Exhibit::Figure(1), Exhibit::Table(13)] {
        assert_eq!(check(exhibit, &settings()), Err(TurboKvRefusal::Exhibit));
    }
    let moves = Exhibit::Migration;
    assert_eq!((check(moves, &settings()), check(moves, &given)), (Ok(()), Ok(())));
    let two = TurboKvSettings { thetas: vec![0.9, 0.99], ..settings() };
    assert_eq!(check(moves, &two), Err(TurboKvRefusal::Thetas(moves)));
    let arms = TurboKvSettings { finders: vec![Finder::Switch], ..settings() };
    assert_eq!(check(moves, &arms), Err(TurboKvRefusal::Finders(moves)));
    let fills = Exhibit::Filling;
    assert_eq!(check(fills, &settings()), Ok(()));
    assert_eq!(check(fills, &given), Err(TurboKvRefusal::Thetas(fills)));
    assert_eq!(check(fills, &arms), Err(TurboKvRefusal::Finders(fills)));
}
