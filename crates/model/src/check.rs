//! Runs the checker on any of the models and tells what it found.

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

/// Bounds of one of the models: what is in it, how often what may happen, and which of its rules
/// can be broken.
pub trait Bounds: Clone + Send + Sync + 'static {
    /// A rule that is broken.
    type Bug: Copy + fmt::Debug + PartialEq + Send + Sync + 'static;

    /// Those that every run of the tests finds.
    const BUGS: &'static [Self::Bug];

    /// The others, which take minutes: `keyway-model --bugs --long` tells their stories.
    const LONG_BUGS: &'static [Self::Bug] = &[];

    /// What these bounds are called.
    fn name(&self) -> &'static str;

    /// The bounds that every run of the tests exhausts.
    fn everyday() -> Vec<Self>;

    /// Larger bounds: minutes each. The same where there are no larger ones.
    #[must_use]
    fn long() -> Vec<Self> {
        Self::everyday()
    }

    /// The bounds in which a bug does harm.
    fn of(bug: Self::Bug) -> Self;

    /// Visits every state within these bounds.
    #[must_use]
    fn exhaust(&self, threads: usize) -> Verdict<<Rules<Self> as Model>::Action>
    where
        Rules<Self>: Checked,
    {
        run(Rules { scope: self.clone(), bug: None }, threads, None)
    }

    /// Looks for the shortest story of the harm that a bug does.
    #[must_use]
    fn hunt(bug: Self::Bug) -> Verdict<<Rules<Self> as Model>::Action>
    where
        Rules<Self>: Checked,
    {
        shortest(|| Rules { scope: Self::of(bug), bug: Some(bug) })
    }

    /// For tests: visits every state within the everyday bounds.
    ///
    /// # Panics
    ///
    /// If a promise is broken, or what must be possible is not.
    fn assert_all_hold()
    where
        Rules<Self>: Checked,
    {
        for scope in Self::everyday() {
            scope.exhaust(THREADS).assert_holds(scope.name());
        }
    }

    /// For tests: tells the story of each bug but those that take minutes.
    ///
    /// # Panics
    ///
    /// If one of them breaks no promise.
    fn assert_all_bugs_are_found()
    where
        Rules<Self>: Checked,
    {
        for bug in Self::BUGS {
            Self::hunt(*bug).assert_broken_by(bug);
        }
    }
}

/// Threads of the checker in tests: as many cores as CI is sure to have.
pub const THREADS: usize = 2;

/// The rules of a model within its bounds, perhaps with one broken.
#[derive(Clone, Copy, Debug)]
pub struct Rules<S: Bounds> {
    /// The bounds.
    pub scope: S,
    /// What is broken.
    pub bug: Option<S::Bug>,
}

impl<S: Bounds> Rules<S> {
    /// Whether this is broken.
    #[must_use]
    pub fn has(&self, bug: impl Into<S::Bug>) -> bool {
        self.bug == Some(bug.into())
    }
}

/// What the checker can run on.
pub trait Checked:
    Model<
        State: Hash + Send + Sync + Clone + PartialEq + 'static,
        Action: Clone + PartialEq + fmt::Display,
    > + Send
    + Sync
    + 'static
{
}

impl<M> Checked for M
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: Clone + PartialEq + fmt::Display,
{
}

/// Looks for the shortest story of a broken promise.
pub(crate) fn shortest<M: Checked>(model: impl Fn() -> M) -> Verdict<M::Action> {
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
pub(crate) fn run<M: Checked>(
    model: M,
    threads: usize,
    depth: Option<usize>,
) -> Verdict<M::Action> {
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
