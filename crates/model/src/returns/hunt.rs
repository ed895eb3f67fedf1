//! Runs the checker on these rules.

use super::rules::{ReturnAction, Returning};
use super::scope::{ReturnBug, ReturnScope};
use stateright::{Checker, HasDiscoveries, Model};

/// Visits every state of a scope: how many those are, the story of a broken promise, and what must
/// be possible and was not.
#[must_use]
pub fn exhaust_returns(
    scope: ReturnScope,
    bug: Option<ReturnBug>,
) -> (usize, Option<Vec<ReturnAction>>, Vec<&'static str>) {
    let model = Returning { scope, bug };
    let properties = model.properties();
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let mut found = checker.discoveries();
    let failing = properties.iter().filter(|it| it.expectation.discovery_is_failure());
    let broken = failing.map(|it| it.name).find_map(|name| found.remove(name));
    let wanted = properties.iter().filter(|it| !it.expectation.discovery_is_failure());
    let unreached = wanted.map(|it| it.name).filter(|name| !found.contains_key(name)).collect();
    (checker.unique_state_count(), broken.map(|path| path.into_actions()), unreached)
}

/// The first of the everyday bounds in which a bug does harm, and the story of it.
#[must_use]
pub fn hunt_return(bug: ReturnBug) -> Option<(&'static str, Vec<ReturnAction>)> {
    let mut scopes = ReturnScope::everyday().into_iter();
    scopes.find_map(|scope| Some((scope.name, exhaust_returns(scope, Some(bug)).1?)))
}
