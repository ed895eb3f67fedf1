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
        fences(&options)
    } else if options.disks {
        disks(&options)
    } else if options.delegated {
        delegated_writes(&options)
    } else if options.splits {
        splits(&options)
    } else if options.lent {
        lent_keys(&options)
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

/// Tells what the checker found in the model of fences, and whether all is well.
fn fences(options: &Options) -> bool {
    if options.bugs {
        let bugs = fence::Bug::ALL.into_iter();
        return bugs.filter(|bug| tell(&format!("{bug:?}"), &fence::hunt(*bug))).count() == 0;
    }
    let part = options.scope.as_deref().unwrap_or_default();
    let scopes = fence::Scope::everyday();
    let named = scopes.iter().filter(|scope| scope.name.contains(part));
    let holds = |scope: &&fence::Scope| tell(scope.name, &fence::exhaust(scope, options.threads));
    named.filter(|scope| !holds(scope)).count() == 0
}

/// Tells what the checker found in the model of late disks, and whether all is well.
fn disks(options: &Options) -> bool {
    if options.bugs {
        let bugs = durable::Bug::ALL.into_iter();
        return bugs.filter(|bug| tell(&format!("{bug:?}"), &durable::hunt(*bug))).count() == 0;
    }
    let part = options.scope.as_deref().unwrap_or_default();
    let scopes = if options.long { durable::Scope::long() } else { durable::Scope::everyday() };
    let named = scopes.iter().filter(|scope| scope.name.contains(part));
    let holds =
        |scope: &&durable::Scope| tell(scope.name, &durable::exhaust(scope, options.threads));
    named.filter(|scope| !holds(scope)).count() == 0
}

/// Tells what the checker found in the model of delegated writes, and whether all is well.
fn delegated_writes(options: &Options) -> bool {
    if options.bugs {
        let bugs = delegated::Bug::ALL.into_iter();
        return bugs.filter(|bug| tell(&format!("{bug:?}"), &delegated::hunt(*bug))).count() == 0;
    }
    let part = options.scope.as_deref().unwrap_or_default();
    let scopes = if options.long { delegated::Scope::long() } else { delegated::Scope::everyday() };
    let named = scopes.iter().filter(|scope| scope.name.contains(part));
    let holds =
        |scope: &&delegated::Scope| tell(scope.name, &delegated::exhaust(scope, options.threads));
    named.filter(|scope| !holds(scope)).count() == 0
}

/// Tells what the checker found in the model of splits and merges, and whether all is well.
fn splits(options: &Options) -> bool {
    if options.bugs {
        let bugs = split::Bug::ALL.into_iter();
        return bugs.filter(|bug| tell(&format!("{bug:?}"), &split::hunt(*bug))).count() == 0;
    }
    let part = options.scope.as_deref().unwrap_or_default();
    let scopes = if options.long { split::Scope::long() } else { split::Scope::everyday() };
    let named = scopes.iter().filter(|scope| scope.name.contains(part));
    let holds = |scope: &&split::Scope| tell(scope.name, &split::exhaust(scope, options.threads));
    named.filter(|scope| !holds(scope)).count() == 0
}

/// Tells what the checker found in the model of keys that are lent, and whether all is well.
fn lent_keys(options: &Options) -> bool {
    if options.bugs {
        let bugs = lent::Bug::ALL.into_iter();
        return bugs.filter(|bug| tell(&format!("{bug:?}"), &lent::hunt(*bug))).count() == 0;
    }
    let part = options.scope.as_deref().unwrap_or_default();
    let scopes = if options.long { lent::Scope::long() } else { lent::Scope::everyday() };
    let named = scopes.iter().filter(|scope| scope.name.contains(part));
    let holds = |scope: &&lent::Scope| tell(scope.name, &lent::exhaust(scope, options.threads));
    named.filter(|scope| !holds(scope)).count() == 0
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
