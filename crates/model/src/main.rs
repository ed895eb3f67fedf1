//! Runs the model checker on chosen bounds, or tells the stories of bugs.

use clap::Parser;
use model::delegated;
use model::durable;
use model::fence;
use model::lent;
use model::split;
use model::{Bug, ReturnBug, Scope, Verdict, exhaust, hunt, hunt_return, stuck};
use std::fmt;
use std::process::ExitCode;

/// Visits every state of the model within the named bounds.
#[derive(Parser)]
struct Options {
    /// A part of the names of the bounds; all of them if it is missing.
    scope: Option<String>,
    /// Take the long ones, which need minutes each and gigabytes.
    #[arg(long)]
    long: bool,
    /// Look for states in which a request can never be answered.
    #[arg(long)]
    stuck: bool,
    /// Tell the shortest story of every bug.
    #[arg(long, conflicts_with_all = ["scope", "long", "stuck"])]
    bugs: bool,
    /// The model of fences instead.
    #[arg(long, conflicts_with_all = ["long", "stuck"])]
    fences: bool,
    /// The model of disks that are late instead.
    #[arg(long, conflicts_with_all = ["stuck", "fences"])]
    disks: bool,
    /// The model of delegated writes and late disks instead.
    #[arg(long, conflicts_with_all = ["stuck", "fences", "disks"])]
    delegated: bool,
    /// The model of partitions that are split and merged instead.
    #[arg(long, conflicts_with_all = ["stuck", "fences", "disks", "delegated"])]
    splits: bool,
    /// The model of keys that are lent to caches instead.
    #[arg(long, conflicts_with_all = ["stuck", "fences", "disks", "delegated", "splits"])]
    lent: bool,
    /// Threads of the checker.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let holds = if options.fences {
        let scopes = fence::Scope::everyday();
        look_into(&options, (scopes, |it| it.name), fence::Bug::ALL, fence::exhaust, fence::hunt)
    } else if options.disks {
        let scopes = if options.long { durable::Scope::long() } else { durable::Scope::everyday() };
        look_into(
            &options,
            (scopes, |it| it.name),
            durable::Bug::ALL,
            durable::exhaust,
            durable::hunt,
        )
    } else if options.delegated {
        let scopes =
            if options.long { delegated::Scope::long() } else { delegated::Scope::everyday() };
        look_into(
            &options,
            (scopes, |it| it.name),
            delegated::Bug::ALL,
            delegated::exhaust,
            delegated::hunt,
        )
    } else if options.splits {
        let scopes = if options.long { split::Scope::long() } else { split::Scope::everyday() };
        look_into(&options, (scopes, |it| it.name), split::Bug::ALL, split::exhaust, split::hunt)
    } else if options.lent {
        let scopes = if options.long { lent::Scope::long() } else { lent::Scope::everyday() };
        look_into(&options, (scopes, |it| it.name), lent::Bug::ALL, lent::exhaust, lent::hunt)
    } else if options.bugs {
        ReturnBug::ALL.into_iter().for_each(tell_return);
        Bug::all().into_iter().filter(|bug| tell(&bug.name(), &hunt(*bug))).count() == 0
    } else {
        let scopes = if options.long { Scope::long() } else { Scope::everyday() };
        let part = options.scope.unwrap_or_default();
        let named = scopes.iter().filter(|scope| scope.name.contains(&part));
        let failed = named.filter(|scope| {
            if options.stuck {
                !goes_on(scope)
            } else {
                !tell(scope.name, &exhaust(scope, options.threads))
            }
        });
        failed.count() == 0
    };
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tells what the checker found in one of the models, within its bounds or of its bugs, and whether
/// all is well.
fn look_into<S, B: Copy + fmt::Debug, A: fmt::Display>(
    options: &Options,
    (scopes, name): (Vec<S>, fn(&S) -> &'static str),
    bugs: impl IntoIterator<Item = B>,
    exhaust: fn(&S, usize) -> Verdict<A>,
    hunt: fn(B) -> Verdict<A>,
) -> bool {
    if options.bugs {
        let missed = bugs.into_iter().filter(|bug| tell(&format!("{bug:?}"), &hunt(*bug)));
        return missed.count() == 0;
    }
    let part = options.scope.as_deref().unwrap_or_default();
    let named = scopes.iter().filter(|scope| name(scope).contains(part));
    named.filter(|scope| !tell(name(scope), &exhaust(scope, options.threads))).count() == 0
}

/// Tells what the checker found, and whether all is well.
fn tell<A: fmt::Display>(name: &str, verdict: &Verdict<A>) -> bool {
    let Verdict { states, steps, broken, unreached } = verdict;
    println!("{name}: {states} states, {steps} steps between them");
    if let Some((promise, story)) = broken {
        print!("  broken after {} steps: {promise}\n{story}", story.0.len());
        return false;
    }
    for what in unreached {
        println!("  never: {what}");
    }
    unreached.is_empty()
}

/// Tells what a broken rule of comparing members that came back does.
fn tell_return(bug: ReturnBug) {
    let Some((scope, story)) = hunt_return(bug) else { return println!("{bug:?}: not found") };
    print!("{bug:?}, in {scope}: broken after {} steps\n{story}", story.0.len());
}

/// Tells whether every request can be answered from every state.
fn goes_on(scope: &Scope) -> bool {
    let (states, story) = stuck(scope);
    println!("{}: {states} states", scope.name);
    if let Some(story) = &story {
        print!("  stuck after {} steps:\n{story}", story.0.len());
    }
    story.is_none()
}
