//! What the checker must have found where no rule is broken.

use model::Verdict;
use std::fmt::Display;

/// Panics with the story if a promise is broken, and with what was never reached if that must be
/// possible.
pub(crate) fn assert_holds<A: Display>(name: &str, verdict: Verdict<A>) {
    println!("{name}: {} states, {} steps", verdict.states, verdict.steps);
    if let Some((promise, story)) = verdict.broken {
        panic!("{name}: not so: {promise}\n{story}");
    }
    assert_eq!(verdict.unreached, Vec::<&str>::new(), "never in {name}");
}
