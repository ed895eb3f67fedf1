//! A rack whose keys lie in order: scans, hot ranges, and what placement makes of them.

use experiments::paper::{Load, Order, Pace, Rack, RackSpec, Scans, Skew, Store};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn spec(order: Order, partitions: u32) -> RackSpec {
    let partitions = Some(partitions);
    let store = Store { order, partitions, key_bytes: 16, ..Store::PEGASUS };
    RackSpec { store, ..RackSpec::new(8, 8_000, 1) }
}

#[test]
fn a_scan_visits_the_tail_of_every_partition_that_it_has_keys_of() {
    for order in [Order::Ranked, Order::Shuffled] {
        // Five keys to a partition, and values of six keys to a datagram.
        let mut rack = Rack::new(spec(order, 1_600));
        let load = Load::only_scans(Skew::Uniform, 6);
        let cap = rack.bounds(&load).cap;
        // Of six equally frequent lengths, those above 1 cross a bound with chances of 1/5 to 5/5.
        assert!((cap * 1.5 - 80_000.0).abs() < 100.0, "{cap}");
        let trial = rack.run(&load, 0.6 * cap, 300 * MS, None);
        assert_eq!(trial.done, trial.begun, "{trial:?}");
        let visits = trial.busy_mean / (trial.throughput() / cap);
        assert!((0.95..1.05).contains(&visits), "{visits} of what the partitions take");
    }
}

#[test]
fn reads_writes_and_scans_share_a_rack() {
    let mut rack = Rack::new(RackSpec { replicas: 3, ..spec(Order::Shuffled, 32) });
    let scans = Some(Scans { percent: 30, keys_max: 4 });
    let load = Load { reads_percent: 50, scans, ..Load::only_reads(Skew::Zipf(0.9)) };
    let bounds = rack.bounds(&load);
    let trial = rack.run(&load, 0.7 * bounds.hashing, 300 * MS, None);
    assert_eq!(trial.done, trial.begun, "{trial:?}");
    let visits = trial.busy_mean / (trial.throughput() / bounds.cap);
    assert!((0.95..1.05).contains(&visits), "{visits}");
}

#[test]
fn popular_keys_beside_each_other_are_a_hot_range_and_scattered_ones_are_not() {
    let load = Load::only_reads(Skew::Zipf(0.9));
    let gain_max = |order| Rack::new(spec(order, 64)).bounds(&load).gain_max();
    let (ranked, shuffled) = (gain_max(Order::Ranked), gain_max(Order::Shuffled));
    assert!(ranked > 3.0, "one of 64 partitions has more than half of all requests: {ranked}");
    assert!(shuffled < 2.2, "{shuffled}");
}

#[test]
fn placement_follows_the_load_of_ranges_by_what_the_switch_has_counted() {
    let pace = Pace::slowed(100).expect("not too slow");
    let still = RackSpec { pace, replicas: 2, ..spec(Order::Ranked, 64) };
    let moving = Store { load_floor: Some(100), ..still.store };
    let load = Load::only_reads(Skew::Zipf(0.7));
    let limits = |spec: RackSpec| {
        let mut rack = Rack::new(spec);
        let before = rack.bounds(&load).hashing;
        rack.run(&load, 0.8 * before, 30_000 * MS, None);
        (before, rack.bounds(&load).hashing)
    };
    let (before, after) = limits(still);
    assert!((before - after).abs() < 1e-9, "{before} {after}: nothing is to move");
    let (before, after) = limits(RackSpec { store: moving, ..still });
    assert!(after > 1.2 * before, "{before} {after}: replicas have moved, or tails");
}

#[test]
fn one_partition_is_one_node_at_the_beginning() {
    let rack = Rack::new(spec(Order::Ranked, 1));
    let bounds = rack.bounds(&Load::only_reads(Skew::Uniform));
    assert!((bounds.gain_max() - 8.0).abs() < 1e-6, "{bounds:?}");
}
