//! Every state within the bounds of the model of fences shows no stale read, and every bug does.

mod holds;

use holds::assert_holds;
use model::fence::{Bug, Scope, exhaust, hunt};

/// As many cores as CI is sure to have.
const THREADS: usize = 2;

#[test]
fn no_read_is_stale_within_the_bounds() {
    for scope in Scope::everyday() {
        assert_holds(scope.name, exhaust(&scope, THREADS));
    }
}

#[test]
fn every_bug_shows_a_stale_read() {
    for bug in Bug::ALL {
        let (_, story) = hunt(bug).broken.unwrap_or_else(|| panic!("{bug:?} is not found"));
        println!("{bug:?}: a stale read after {} steps", story.0.len());
    }
}
