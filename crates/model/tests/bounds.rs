//! Every state within the everyday bounds keeps the promises, and every bug breaks one.

use model::{Bug, Scope, exhaust, hunt, stuck};

/// As many cores as CI is sure to have.
const THREADS: usize = 2;

#[test]
fn every_state_within_the_bounds_keeps_the_promises() {
    for scope in Scope::everyday() {
        exhaust(&scope, THREADS).assert_holds(scope.name);
    }
}

#[test]
fn whatever_happens_every_request_can_still_be_answered() {
    for scope in Scope::everyday() {
        if let (states, Some(story)) = stuck(&scope) {
            panic!("{}, one of {states} states is stuck:\n{story}", scope.name);
        }
    }
}

#[test]
fn every_bug_does_harm_that_clients_see() {
    for bug in Bug::all() {
        let name = bug.name();
        let (promise, story) = hunt(bug).broken.unwrap_or_else(|| panic!("{name} is not found"));
        println!("{name}: not so after {} steps: {promise}", story.0.len());
    }
}

#[test]
fn without_its_bug_no_scope_of_a_bug_shows_harm() {
    for bug in Bug::all() {
        let scope = bug.scope().expect("a bug of the model");
        if let Some((promise, story)) = exhaust(&scope, 1).broken {
            panic!("{}: not so without it: {promise}\n{story}", bug.name());
        }
    }
}
