//! What a member holds is compared before it is believed: every state within the bounds keeps what
//! was acknowledged, and every broken rule loses some of it.

use model::{ReturnBug, ReturnScope, exhaust_returns, hunt_return};

#[test]
fn whatever_is_put_back_nothing_older_is_shown() {
    for scope in ReturnScope::everyday() {
        exhaust_returns(scope, None).assert_holds(scope.name);
    }
}

#[test]
fn every_rule_of_comparing_that_is_broken_shows_something_older() {
    for bug in ReturnBug::ALL {
        let (scope, story) = hunt_return(bug).unwrap_or_else(|| panic!("{bug:?} is not found"));
        println!("{bug:?} in {scope}, {} steps:\n{story}", story.0.len());
    }
}
