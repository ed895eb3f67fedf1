//! Goal: a key is out of reach for less than 400 ms when a node of its chain fails, and for less
//! than 700 ms when the active switch does; and many nodes that fail at once are missed as one is.
//! Method: many calm clusters with default leases, crashes in each, keys probed all the time.

use sim::{Failure, Outages, measure_outages};
use std::time::Duration;

#[test]
fn a_failed_node_is_missed_for_less_than_400_ms() {
    let seeds: Vec<u64> = (1..=40).collect();
    let Outages { reads, writes, gone } =
        measure_outages(&seeds, Failure::Nodes { failed: 1, of: 5 });
    assert!(reads.len() > 100, "chains of {} keys failed", reads.len());
    assert_eq!(gone, 0, "two members are left of each chain");
    within(Duration::from_millis(400), reads, writes);
}

#[test]
fn half_of_all_nodes_are_missed_no_longer_than_one() {
    let seeds: Vec<u64> = (1..=20).collect();
    let Outages { reads, writes, gone } =
        measure_outages(&seeds, Failure::Nodes { failed: 8, of: 16 });
    assert!(reads.len() > 100 && gone > 0, "{} keys had somebody left, {gone} not", reads.len());
    within(Duration::from_millis(600), reads, writes);
}

#[test]
fn a_failed_switch_is_missed_for_less_than_700_ms() {
    let seeds: Vec<u64> = (1..=40).collect();
    let Outages { reads, writes, .. } = measure_outages(&seeds, Failure::Switch);
    within(Duration::from_millis(700), reads, writes);
}

fn within(most: Duration, reads: Vec<Duration>, writes: Vec<Duration>) {
    for (what, outages) in [("reads", reads), ("writes", writes)] {
        let p99 = Outages::percentile(&outages, 99);
        assert!(p99 < most, "{what}: {p99:?}");
        // Something did fail: at least the loss has to be noticed.
        let longest = outages.last().copied().unwrap_or_default();
        assert!(longest > Duration::from_millis(100), "{what}: {longest:?}");
    }
}
