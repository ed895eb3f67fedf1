//! Within the bounds of the model of content routing no read is stale, and no write applied twice.
//! Every bug breaks that.

mod holds;

use holds::assert_holds;
use model::content::{Bug, Scope, exhaust, hunt};

/// As many cores as CI is sure to have.
const THREADS: usize = 2;

#[test]
fn no_read_is_stale_and_no_write_applied_twice_within_the_bounds() {
    for scope in Scope::everyday() {
        assert_holds(scope.name, exhaust(&scope, THREADS));
    }
}

#[test]
fn every_bug_breaks_a_promise() {
    for bug in Bug::ALL {
        let found = hunt(bug).broken.unwrap_or_else(|| panic!("{bug:?} is not found"));
        println!("{bug:?}: not so after {} steps: {}\n{}", found.1.0.len(), found.0, found.1);
    }
}
