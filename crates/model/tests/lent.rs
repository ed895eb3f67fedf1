//! Within the bounds of the model of keys that are lent no read is stale, and no write is held back
//! for long. Every bug breaks that.

use model::lent::{Bug, Scope, exhaust, hunt};

/// As many cores as CI is sure to have.
const THREADS: usize = 2;

#[test]
fn no_read_is_stale_and_no_write_waits_within_the_bounds() {
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
