//! Every state within the bounds of the model of splits and merges keeps the promises, and every
//! bug breaks one.

use model::split::{Bug, Scope, exhaust, hunt};

/// As many cores as CI is sure to have.
const THREADS: usize = 2;

#[test]
fn partitions_are_split_and_merged_without_harm_within_the_bounds() {
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
