//! Goal: the bound on the rates of clocks is one that matters.
//! Method: clusters that are cut in two again and again, with clocks that break the bound: in some
//! of them a promise must break. With clocks at the bound itself, the same worlds keep all of them.

use sim::{Faults, Options, Profile, run_many};
use std::ops::ControlFlow;
use std::time::Duration;

/// Worlds in which a member may serve on while another has taken over, if its clock lets it.
fn worlds(rate_percent: u64) -> Vec<Options> {
    let draw = |seed| {
        let mut options = Options::draw(Profile::Partitions, seed);
        (options.nodes, options.replicas, options.partitions, options.switches) = (3, 2, 1, 2);
        options.lead = Duration::from_millis(2_200);
        options.span = Duration::from_secs(8);
        options.faults = Faults {
            cut_every: Duration::from_millis(800),
            length_max: Duration::from_millis(1_500),
            ..Faults::default()
        };
        (options.load.clients, options.load.in_flight) = (4, 3);
        (options.load.think, options.load.registers) = (Duration::from_millis(10), 1);
        options.clock_rate_max_percent = rate_percent;
        // Room to be fast or slow for longer than a lease.
        options.clock_skew_max = Duration::from_secs(2);
        options
    };
    (1..=500).map(draw).collect()
}

fn breaks(worlds: &[Options]) -> Option<String> {
    let seen = run_many(worlds, |options, outcome| {
        if outcome.violations.is_empty() {
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(format!("{options}{}", outcome.violations.join("\n")))
    });
    seen.break_value()
}

#[test]
fn clocks_beyond_their_bound_break_promises() {
    let allowed = cluster::CLOCK_RATE_MAX_PERCENT.into();
    assert_eq!(breaks(&worlds(allowed)), None);
    assert!(breaks(&worlds(200)).is_some(), "leases seem not to rest on clocks");
}
