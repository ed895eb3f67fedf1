//! Within the bounds of the model of content routing no read is stale, and no write applied twice.
//! Every bug breaks that.

use model::content::{Bug, Scope, exhaust, hunt};

/// As many cores as CI is sure to have.
const THREADS: usize = 2;

#[test]
fn no_read_is_stale_and_no_write_applied_twice_within_the_bounds() {
    for scope in Scope::everyday() {
        exhaust(&scope, THREADS).assert_holds(scope.name);
    }
}

#[test]
fn every_bug_breaks_a_promise() {
    for bug in Bug::ALL {
        hunt(bug).assert_broken_by(bug);
    }
}
