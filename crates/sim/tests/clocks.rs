//! Goal: the bound on the rates of clocks is one that matters.
//! Method: worlds in which clocks break it; some must then break a promise. That none does at the
//! bound itself is what all the other worlds show.

use sim::{Options, Profile, run_many};
use std::ops::ControlFlow;
use std::time::Duration;

#[test]
fn clocks_beyond_their_bound_break_promises() {
    let worlds: Vec<Options> = (1..=300)
        .map(|seed| {
            let mut options = Options::draw(Profile::Partitions, seed);
            // Half as fast again, for longer than a lease.
            options.clock_rate_max_percent = 150;
            options.clock_skew_max = Duration::from_secs(2);
            options
        })
        .collect();
    let seen = run_many(&worlds, |_, outcome| {
        if outcome.violations.is_empty() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    assert!(seen.is_break(), "leases seem not to rest on clocks");
}
