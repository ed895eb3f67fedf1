//! Every state within the bounds of the model of late disks keeps the promises, and every bug
//! breaks one.

use model::durable::{Bug, Scope, exhaust, hunt};

/// As many cores as CI is sure to have.
const THREADS: usize = 2;

#[test]
fn what_was_shown_is_never_lost_within_the_bounds() {
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
