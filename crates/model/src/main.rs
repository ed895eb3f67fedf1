//! Runs the model checker on chosen bounds, or tells the stories of bugs.

use clap::{Args, Parser};
use model::{
    Bounds, Bug, Checked, ReturnScope, Rules, Scope, Verdict, content, delegated, durable, exhaust,
    fence, handover, hunt, leaders, leaving, lent, periods, split, stuck,
};
use std::fmt;
use std::num::NonZero;
use std::process::ExitCode;

/// Visits every state of the model within the named bounds.
#[derive(Parser)]
struct Options {
    /// A part of the names of the bounds; all of them if it is missing.
    scope: Option<String>,
    /// Take the long ones, which need minutes each and gigabytes, where there are such.
    #[arg(long)]
    long: bool,
    /// Look for states in which a request can never be answered.
    #[arg(long, conflicts_with = "OfItsOwn")]
    stuck: bool,
    /// Tell the shortest story of every bug, but with `--long` alone of those that take minutes.
    #[arg(long, conflicts_with_all = ["scope", "stuck"])]
    bugs: bool,
    #[command(flatten)]
    own: OfItsOwn,
    /// Threads of the checker.
    #[arg(long, default_value = "2")]
    threads: NonZero<usize>,
}

/// What has a model of its own.
#[derive(Args)]
#[group(multiple = false)]
struct OfItsOwn {
    /// The model of stores that are put back instead.
    #[arg(long)]
    returns: bool,
    /// The model of members that leave for a while instead.
    #[arg(long)]
    leaving: bool,
    /// The model of leaders and their signs instead.
    #[arg(long)]
    leaders: bool,
    /// The model of delegated writes while one switch hands over to another instead.
    #[arg(long)]
    handover: bool,
    /// The model of fences instead.
    #[arg(long)]
    fences: bool,
    /// The model of disks that are late instead.
    #[arg(long)]
    disks: bool,
    /// The model of delegated writes and late disks instead.
    #[arg(long)]
    delegated: bool,
    /// The model of partitions that are split and merged instead.
    #[arg(long)]
    splits: bool,
    /// The model of keys that are lent to caches instead.
    #[arg(long)]
    lent: bool,
    /// The model of content routing instead.
    #[arg(long)]
    content: bool,
    /// The model of keys of envelopes that change instead.
    #[arg(long)]
    periods: bool,
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
    let own = &options.own;
    if own.returns {
        look_into::<ReturnScope>(options)
    } else if own.leaving {
        look_into::<leaving::Scope>(options)
    } else if own.leaders {
        look_into::<leaders::Scope>(options)
    } else if own.handover {
        look_into::<handover::Scope>(options)
    } else if own.fences {
        look_into::<fence::Scope>(options)
    } else if own.disks {
        look_into::<durable::Scope>(options)
    } else if own.delegated {
        look_into::<delegated::Scope>(options)
    } else if own.splits {
        look_into::<split::Scope>(options)
    } else if own.lent {
        look_into::<lent::Scope>(options)
    } else if own.content {
        look_into::<content::Scope>(options)
    } else if own.periods {
        look_into::<periods::Scope>(options)
    } else if options.bugs {
        let returns = look_into::<ReturnScope>(options)?;
        let handover = look_into::<handover::Scope>(options)?;
        let missed = Bug::all().into_iter().filter(|bug| tell(&bug.name(), &hunt(*bug))).count();
        Ok(returns && handover && missed == 0)
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
fn look_into<S: Bounds>(options: &Options) -> Result<bool, NoSuchScope>
where
    Rules<S>: Checked,
{
    if options.bugs {
        let long = if options.long { S::LONG_BUGS } else { &[] };
        let bugs = S::BUGS.iter().chain(long);
        let missed = bugs.filter(|bug| tell(&format!("{bug:?}"), &S::hunt(**bug)));
        return Ok(missed.count() == 0);
    }
    let scopes = if options.long { S::long() } else { S::everyday() };
    let named = options.named(scopes, S::name)?;
    let threads = options.threads.get();
    let failed = named.iter().filter(|scope| !tell(scope.name(), &scope.exhaust(threads)));
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
        for model in [
            "--returns",
            "--leaving",
            "--leaders",
            "--handover",
            "--fences",
            "--disks",
            "--delegated",
            "--splits",
            "--lent",
            "--content",
            "--periods",
            "--stuck",
        ] {
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
