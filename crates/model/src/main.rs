//! Runs the model checker on chosen bounds, or tells the stories of bugs.

use clap::Parser;
use model::content;
use model::delegated;
use model::durable;
use model::fence;
use model::lent;
use model::split;
use model::{Bug, ReturnBug, Scope, Verdict, exhaust, hunt, hunt_return, stuck};
use std::fmt;
use std::num::NonZero;
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
    /// The model of content routing instead.
    #[arg(long, conflicts_with_all = ["stuck", "fences", "disks", "delegated", "splits", "lent"])]
    content: bool,
    /// Threads of the checker.
    #[arg(long, default_value = "2")]
    threads: NonZero<usize>,
}

fn main() -> ExitCode {
    match look(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Looks into the model that is asked for; says whether all is well.
fn look(options: &Options) -> Result<bool, NoSuchScope> {
    if options.fences {
        let scopes = fence::Scope::everyday();
        look_into(options, (scopes, |it| it.name), fence::Bug::ALL, fence::exhaust, fence::hunt)
    } else if options.disks {
        let scopes = if options.long { durable::Scope::long() } else { durable::Scope::everyday() };
        look_into(
            options,
            (scopes, |it| it.name),
            durable::Bug::ALL,
            durable::exhaust,
            durable::hunt,
        )
    } else if options.delegated {
        let scopes =
            if options.long { delegated::Scope::long() } else { delegated::Scope::everyday() };
        look_into(
            options,
            (scopes, |it| it.name),
            delegated::Bug::ALL,
            delegated::exhaust,
            delegated::hunt,
        )
    } else if options.splits {
        let scopes = if options.long { split::Scope::long() } else { split::Scope::everyday() };
        look_into(options, (scopes, |it| it.name), split::Bug::ALL, split::exhaust, split::hunt)
    } else if options.lent {
        let scopes = if options.long { lent::Scope::long() } else { lent::Scope::everyday() };
        look_into(options, (scopes, |it| it.name), lent::Bug::ALL, lent::exhaust, lent::hunt)
    } else if options.content {
        let scopes = content::Scope::everyday();
        let (exhaust, hunt) = (content::exhaust, content::hunt);
        look_into(options, (scopes, |it| it.name), content::Bug::ALL, exhaust, hunt)
    } else if options.bugs {
        let returns = ReturnBug::ALL.into_iter().filter(|bug| !tell_return(*bug)).count();
        let missed = Bug::all().into_iter().filter(|bug| tell(&bug.name(), &hunt(*bug))).count();
        Ok(returns + missed == 0)
    } else {
        let scopes = if options.long { Scope::long() } else { Scope::everyday() };
        let failed = options.named(scopes, |it| it.name)?.into_iter().filter(|scope| {
            if options.stuck {
                !goes_on(scope)
            } else {
                !tell(scope.name, &exhaust(scope, options.threads.get()))
            }
        });
        Ok(failed.count() == 0)
    }
}

/// No bounds have a name with what was asked for in it.
#[derive(Debug)]
struct NoSuchScope {
    part: String,
    names: Vec<&'static str>,
}

impl fmt::Display for NoSuchScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no bounds have {:?} in their names, which are:", self.part)?;
        self.names.iter().try_for_each(|name| write!(f, "\n  {name}"))
    }
}

impl Options {
    /// Those of the bounds that are asked for.
    fn named<S>(
        &self,
        scopes: Vec<S>,
        name: fn(&S) -> &'static str,
    ) -> Result<Vec<S>, NoSuchScope> {
        let part = self.scope.as_deref().unwrap_or_default();
        let names = scopes.iter().map(name).collect();
        let named: Vec<S> = scopes.into_iter().filter(|scope| name(scope).contains(part)).collect();
        if named.is_empty() { Err(NoSuchScope { part: part.to_owned(), names }) } else { Ok(named) }
    }
}

/// Tells what the checker found in one of the models, within its bounds or of its bugs, and whether
/// all is well.
fn look_into<S, B: Copy + fmt::Debug, A: fmt::Display>(
    options: &Options,
    (scopes, name): (Vec<S>, fn(&S) -> &'static str),
    bugs: impl IntoIterator<Item = B>,
    exhaust: fn(&S, usize) -> Verdict<A>,
    hunt: fn(B) -> Verdict<A>,
) -> Result<bool, NoSuchScope> {
    if options.bugs {
        let missed = bugs.into_iter().filter(|bug| tell(&format!("{bug:?}"), &hunt(*bug)));
        return Ok(missed.count() == 0);
    }
    let named = options.named(scopes, name)?;
    let threads = options.threads.get();
    let failed = named.iter().filter(|scope| !tell(name(scope), &exhaust(scope, threads)));
    Ok(failed.count() == 0)
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

/// Tells what a broken rule of comparing members that came back does, and whether that was found.
fn tell_return(bug: ReturnBug) -> bool {
    let Some((scope, story)) = hunt_return(bug) else {
        println!("{bug:?}: not found");
        return false;
    };
    print!("{bug:?}, in {scope}: broken after {} steps\n{story}", story.0.len());
    true
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_bounds_have_is_an_error_that_says_which_there_are() {
        for model in
            ["--fences", "--disks", "--delegated", "--splits", "--lent", "--content", "--stuck"]
        {
            let options = Options::parse_from(["keyway-model", model, "nothing has this name"]);
            let error = look(&options).expect_err("nothing is looked into");
            assert!(!error.names.is_empty(), "{model}");
            let said = error.to_string();
            assert!(error.names.iter().all(|name| said.contains(name)), "{said}");
        }
    }

    #[test]
    fn a_part_of_a_name_suffices() {
        let options = Options::parse_from(["keyway-model", "--lent", "batch"]);
        let named = options.named(lent::Scope::everyday(), |it| it.name).unwrap();
        assert_eq!(named.iter().map(|it| it.name).collect::<Vec<_>>(), ["a batch"]);
    }
}
