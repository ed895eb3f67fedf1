//! Goal: a key is out of reach for less than 400 ms when a node of its chain fails.
//! Method: many calm clusters with default leases, a crash in each, keys probed all the time.

use sim::{Outages, measure_outages};
use std::time::Duration;

#[test]
fn a_failed_node_is_missed_for_less_than_400_ms() {
    let seeds: Vec<u64> = (1..=40).collect();
    let Outages { reads, writes } = measure_outages(&seeds);
    assert!(reads.len() > 100, "chains of {} keys failed", reads.len());
    for (what, outages) in [("reads", reads), ("writes", writes)] {
        let p99 = Outages::percentile(&outages, 99);
        assert!(p99 < Duration::from_millis(400), "{what}: {p99:?}");
        // Something did fail: at least the loss has to be noticed.
        let most = outages.last().copied().unwrap_or_default();
        assert!(most > Duration::from_millis(100), "{what}: {most:?}");
    }
}
