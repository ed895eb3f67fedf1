//! Runs the checker on any of the models and tells what it found.

use crate::bug::Bug;
use crate::protocol::{Action, Protocol};
use crate::scope::Scope;
use crate::story::Story;
use stateright::{Checker, HasDiscoveries, Model};
use std::collections::BTreeSet;
use std::fmt;
use std::hash::Hash;

/// What became of one run.
#[derive(Clone, Debug)]
pub struct Verdict<A> {
    /// Different states.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// The promise that was broken and the story of how, if one was.
    pub broken: Option<(&'static str, Story<A>)>,
    /// What must be possible and was not.
    pub unreached: Vec<&'static str>,
}

impl<A: fmt::Display> Verdict<A> {
    /// Says how large the scope of this name was.
    ///
    /// # Panics
    ///
    /// With the story if a promise is broken, and with what was never reached if that must be
    /// possible.
    pub fn assert_holds(&self, name: &str) {
        println!("{name}: {} states, {} steps", self.states, self.steps);
        if let Some((promise, story)) = &self.broken {
            panic!("{name}: not so: {promise}\n{story}");
        }
        assert!(self.unreached.is_empty(), "never in {name}: {:?}", self.unreached);
    }

    /// Tells the story in which this bug breaks a promise.
    ///
    /// # Panics
    ///
    /// If it breaks none.
    pub fn assert_broken_by(&self, bug: impl fmt::Debug) {
        let found = self.broken.as_ref();
        let (promise, story) = found.unwrap_or_else(|| panic!("{bug:?} is not found"));
        println!("{bug:?}: not so after {} steps: {promise}\n{story}", story.0.len());
    }
}

/// Visits every state of a scope.
#[must_use]
pub fn exhaust(scope: &Scope, threads: usize) -> Verdict<Action> {
    run(Protocol::new(scope.clone(), None), threads, None)
}

/// Looks for the shortest story in which clients see what a bug does, in its own scope.
///
/// # Panics
///
/// If the model has nothing that the bug is about: it is none of [`Bug::all`].
#[must_use]
pub fn hunt(bug: Bug) -> Verdict<Action> {
    let scope = bug.scope().expect("a bug of the model");
    shortest(|| Protocol::new(scope.clone(), Some(bug)).seen_by_clients())
}

/// Looks for the shortest story of a broken promise.
pub(crate) fn shortest<M>(model: impl Fn() -> M) -> Verdict<M::Action>
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: Clone + PartialEq,
{
    let mut verdict = run(model(), 1, None);
    // The checker goes on for a while after the first story, and tells the last that it came upon.
    while let Some((_, story)) = &verdict.broken {
        let shorter = run(model(), 1, Some(story.0.len()));
        if shorter.broken.is_none() {
            break;
        }
        verdict = shorter;
    }
    verdict
}

/// Runs until a promise is broken, or through all states in less than `depth` steps of the first.
pub(crate) fn run<M>(model: M, threads: usize, depth: Option<usize>) -> Verdict<M::Action>
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: Clone + PartialEq,
{
    let properties = model.properties();
    let kept: Vec<&str> = properties
        .iter()
        .filter(|property| property.expectation.discovery_is_failure())
        .map(|property| property.name)
        .collect();
    let builder = model.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
    // The checker counts states on the way, of which there is one more than steps.
    let builder = match depth {
        Some(depth) => builder.target_max_depth(depth + 1),
        None => builder,
    };
    let checker = builder.spawn_bfs().join();
    let mut found = checker.discoveries();
    let reached: BTreeSet<&str> = found.keys().copied().collect();
    let broken = kept.iter().find_map(|name| {
        let path = found.remove(name)?;
        Some((*name, Story(path.into_actions())))
    });
    let possible = properties.iter().filter(|p| !kept.contains(&p.name)).map(|p| p.name);
    Verdict {
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        broken,
        unreached: possible.filter(|name| !reached.contains(name)).collect(),
    }
}
