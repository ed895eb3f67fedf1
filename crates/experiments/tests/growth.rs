//! A keyspace of one partition, most of whose load lies in a few keys beside each other, grows
//! until all nodes share that load (TurboKV section 5.1).

use cluster::Selection;
use experiments::paper::{Arm, Finding, Load, Order, Pace, Rack, RackSpec, Skew, Store};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const THETA: f64 = 0.99;

fn spec(nodes: u16, replicas: u8, keys: u64) -> RackSpec {
    let store = Store {
        order: Order::Ranked,
        partitions: Some(1),
        key_bytes: 16,
        value_bytes: 128,
        load_floor: Some(50),
    };
    RackSpec {
        nodes,
        pace: Pace::slowed(100).expect("not too slow"),
        half_slow: false,
        keys,
        store,
        replicas,
        finding: Finding::PEGASUS,
        arm: Arm::Hashing,
        selection: Selection::default(),
        hot_keys_max: None,
        seed: 1,
    }
}

/// Which part of what is possible the rack can serve after so long: no node can serve less than all
/// reads of the most popular key.
fn share_of_possible(spec: RackSpec, time: Duration) -> f64 {
    let load = Load::only_reads(Skew::Zipf(THETA));
    let mut rack = Rack::new(spec);
    let one = rack.bounds(&load).hashing;
    rack.run(&load, 0.8 * one, time / 2, None);
    // What one node could serve tells little of the places of all the others.
    let rate = 0.5 * rack.bounds(&load).hashing;
    rack.run(&load, rate, time / 2, None);
    let bounds = rack.bounds(&load);
    let most_popular = 1.0 / workload::zeta(spec.keys, THETA);
    let possible = bounds.cap * (1.0 / (f64::from(spec.nodes) * most_popular)).min(1.0);
    let share = bounds.hashing / possible;
    eprintln!(
        "{} nodes, {} replicas, {} keys: {one:.0}/s at first, {:.0}/s then; {share:.3} of \
         {possible:.0}/s",
        spec.nodes, spec.replicas, spec.keys, bounds.hashing
    );
    share
}

#[test]
fn one_partition_with_a_hot_range_grows_until_nearly_all_that_is_possible_is_served() {
    for replicas in [1, 3] {
        let share = share_of_possible(spec(16, replicas, 20_000), 120 * SECOND);
        assert!(share >= 0.9, "{replicas} replicas: {share}");
    }
}
