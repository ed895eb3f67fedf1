//! Runs the checker on these rules.

use super::rules::{ReturnAction, Returning};
use super::scope::{ReturnBug, ReturnScope};
use crate::check::{self, Verdict};
use crate::story::Story;

/// Visits every state of a scope.
#[must_use]
pub fn exhaust_returns(scope: ReturnScope, bug: Option<ReturnBug>) -> Verdict<ReturnAction> {
    check::run(Returning { scope, bug }, 1, None)
}

/// The first of the everyday bounds in which a bug does harm, and the story of it.
#[must_use]
pub fn hunt_return(bug: ReturnBug) -> Option<(&'static str, Story<ReturnAction>)> {
    let mut scopes = ReturnScope::everyday().into_iter();
    scopes.find_map(|scope| Some((scope.name, exhaust_returns(scope, Some(bug)).broken?.1)))
}
