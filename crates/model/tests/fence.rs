//! Every state within the bounds of the model of fences shows no stale read, and every bug does.

use model::fence::{Bug, Scope, exhaust, hunt};

/// As many cores as CI is sure to have.
const THREADS: usize = 2;

#[test]
fn no_read_is_stale_within_the_bounds() {
    for scope in Scope::everyday() {
        exhaust(&scope, THREADS).assert_holds(scope.name);
    }
}

#[test]
fn every_bug_shows_a_stale_read() {
    for bug in Bug::ALL {
        hunt(bug).assert_broken_by(bug);
    }
}
