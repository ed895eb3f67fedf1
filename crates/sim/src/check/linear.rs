//! Is there one order of these operations that a single key could have done?
//!
//! The search goes through calls and returns in the order of time and lets an operation take effect
//! only when it, or something that depends on it, is about to return (just-in-time linearization,
//! Lowe 2016). Three things keep it short however long the history:
//!
//! - Versions order a key's writes, and place whoever saw one: of answered operations with a
//!   version only one can be next.
//! - An operation of unknown outcome may take effect at any time after its call, or never. It is
//!   tried only right before an operation that has seen what it would leave, and of those that
//!   would do the same, only the one that was called first.
//! - What fits and changes nothing takes effect at once.
//!
//! So memory and work are linear in a history without open choices. Where there are choices (which
//! increments of unknown outcome add up to the sum seen?), points that were tried in vain are
//! remembered. Before all of them are tried, a *loose* search, in which unknown operations may take
//! effect more than once, shows most violations to be some whatever is chosen.

mod plan;
mod pool;
mod search;
mod state;
mod ways;

use super::Op;
use plan::Plan;
use search::{Bookkeeping, End, Search};
use state::DeadEnd;
use wire::Version;

/// What the search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is such an order.
    Linearizable,
    /// There is none.
    Violation,
    /// The search gave up: after [`STEPS_MAX`], or because more increments of unknown outcome
    /// could explain a sum than it tries.
    Exhausted,
}

/// What the search found, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether there is an order.
    pub verdict: Verdict,
    /// Of a violation: the operations, by index, that no order could bring together, the one that
    /// came no further first.
    pub culprits: Vec<usize>,
    /// Of a violation: why, in words.
    pub why: String,
    /// Steps taken: events passed and moves looked at.
    pub steps: u64,
}

/// Steps of one key's search: some seconds of work. A history without choices takes two for each
/// operation.
pub const STEPS_MAX: u64 = 20_000_000;

/// Steps for each event before the loose search is asked whether there is any hope: enough to take
/// back a few choices.
const STEPS_FIRST: u64 = 8;

/// Looks for an order. `skew_ms` is how far the clocks of nodes may be ahead, so that values go
/// earlier by as much.
#[must_use]
pub fn check(history: &[Op], skew_ms: u64) -> Finding {
    let plan = Plan::new(history, skew_ms);
    let mut steps = 0;
    let mut run = |bookkeeping, steps_max| {
        let mut search = Search::new(&plan, bookkeeping, steps_max);
        let end = search.run();
        steps += search.steps;
        (end, search.farthest)
    };
    let first = STEPS_FIRST * (plan.events.len() as u64 + 1_000);
    let mut found = run(Bookkeeping::Strict, first);
    for bookkeeping in [Bookkeeping::None, Bookkeeping::OfNamed, Bookkeeping::Strict] {
        let is_settled = match bookkeeping {
            Bookkeeping::None => found.0 != End::OutOfSteps,
            // Only strictly kept books show that there is an order.
            Bookkeeping::OfNamed | Bookkeeping::Strict => found.0 == End::Impossible,
        };
        if is_settled {
            break;
        }
        found = run(bookkeeping, STEPS_MAX);
    }
    let (end, farthest) = found;
    let verdict = match end {
        End::Found => Verdict::Linearizable,
        End::Impossible => Verdict::Violation,
        End::OutOfSteps => Verdict::Exhausted,
    };
    if verdict != Verdict::Violation {
        return Finding { verdict, culprits: Vec::new(), why: String::new(), steps };
    }
    let mut culprits = vec![farthest.op];
    culprits.extend(farthest.missing);
    Finding { verdict, culprits, why: why(history, farthest), steps }
}

fn why(history: &[Op], end: DeadEnd) -> String {
    let Some(op) = history.get(end.op) else { return String::new() };
    if let Some(missing) = end.missing.and_then(|missing| history.get(missing)) {
        return format!(
            "client {} was answered at version {}, and only later client {} asked and was answered \
             at version {}",
            op.client, op.version, missing.client, missing.version
        );
    }
    let holds = match end.state.present() {
        Some(value) => format!("holds {value}"),
        None => "holds nothing".into(),
    };
    let version = match (end.state.version, end.state.exact) {
        (Version::NONE, _) => String::new(),
        (version, true) => format!(" (version {version})"),
        (version, false) => format!(" (version {version} or later)"),
    };
    format!(
        "no order lets client {} end with `{}`{}: when it has to take effect, the key \
         {holds}{version}",
        op.client,
        op.kind,
        if op.version.is_none() { String::new() } else { format!(" at version {}", op.version) },
    )
}
