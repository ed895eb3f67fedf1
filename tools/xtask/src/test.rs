//! `cargo xtask test`: everything that must hold before a change goes in, cheapest first.

mod failures;
mod lanes;
mod suites;

use crate::{codegen, fuzz, tidy};
use anyhow::{Context, Result, ensure};
use failures::{Failure, Failures};
use lanes::{Ended, Job};
use std::path::{Path, PathBuf};
use std::time::Duration;
use suites::Suite;
use xshell::{Shell, cmd};

/// Suites that mostly wait: for real time to pass, for processes to come up and for the network.
/// They run one after the other, since each of them has a machine's worth of processes.
const WAITING: [&str; 4] = [
    "cli/tests/chaos/main.rs",
    "cli/tests/lab/main.rs",
    "cli/tests/e2e/main.rs",
    "cli/tests/clients/main.rs",
];

/// Suites that take longest; they begin first, so that none of them ends long after all else.
const LONG: [&str; 6] = [
    "sim/tests/promises.rs",
    "xdp/tests/sameness/main.rs",
    "model/tests/models.rs",
    "model/tests/bounds.rs",
    "experiments/tests/rack.rs",
    "runtime/src/lib.rs",
];

/// The suite whose failures are lost promises: one that does not repeat is a fault all the same.
const BELIEVED: &str = WAITING[0];

/// How many failed tests may run again; more than that is not the machine's mood.
const AGAIN_MAX: usize = 4;

/// How long a suite may take. The longest takes ten minutes; one that waits for what does not come
/// would keep all else from being told.
const SUITE_MAX: Duration = Duration::from_secs(30 * 60);

/// How long a test may take that runs once more, alone.
const ALONE_MAX: Duration = Duration::from_secs(5 * 60);

/// How many of the slowest jobs are told in the end.
const SLOWEST: usize = 12;

/// Runs all checks and tests, then says which tests were skipped.
///
/// A test that cannot run here (it needs root, say) appends one line with its name and the reason
/// to the file that `KEYWAY_SKIPS` names. A file, because the test harness hides what a passing
/// test prints.
pub(crate) fn run(root: &Path, fuzz_secs: u32) -> Result<()> {
    let shell = Shell::new()?;
    shell.change_dir(root);
    let skips = target_dir(root).join("skipped-tests.txt");
    shell.write_file(&skips, "")?;

    for name in WAITING.iter().chain(&LONG) {
        let is_there = root.join("crates").join(name).is_file();
        ensure!(is_there, "tools/xtask/src/test.rs: there is no suite {name} any more");
    }
    step("generated files are what spec/layout.toml says");
    codegen::run(root, true)?;
    step("the rules of the repository");
    tidy::run(root)?;
    step("format");
    cmd!(shell, "cargo fmt --all --check").run()?;
    step("lints");
    cmd!(shell, "cargo clippy --workspace --all-targets --locked -- -D warnings").run()?;
    step("tests and fuzz targets are built");
    // The fuzz targets have a folder of their own, and fill the gaps that the tests leave: the last
    // crates have one processor each.
    let suites = std::thread::scope(|scope| {
        let fuzzers = scope.spawn(|| fuzz::build(root, &fuzz::TARGETS));
        let suites = suites::build(root);
        fuzzers.join().expect("it does not panic").and(suites)
    })?;
    step("tests, documentation and fuzz targets, beside each other");
    let (waiting, others) = jobs(root, &suites, &skips, fuzz_secs)?;
    let ended = lanes::run(waiting, others, SUITE_MAX)?;
    let unsteady = report(ended, |failure| passes_alone(&suites, &skips, failure))?;

    let text = shell.read_file(&skips).context("the list of skipped tests")?;
    let skipped: Vec<&str> = text.lines().collect();
    let skips = skipped.len();
    let unsteady_too = unsteady.len();
    eprintln!("\nall of it passed; {skips} tests skipped, {unsteady_too} passed alone only");
    for failure in unsteady {
        let Failure { binary, test, words } = failure;
        eprintln!("UNSTEADY (passed alone): {test} of {binary}\n  {words}");
    }
    for line in skipped {
        eprintln!("SKIPPED: {line}");
    }
    Ok(())
}

/// What waits, and all the rest, the longest first.
fn jobs(
    root: &Path,
    suites: &[Suite],
    skips: &Path,
    fuzz_secs: u32,
) -> Result<(Vec<Job>, Vec<Job>)> {
    let suite = |suite: &Suite, mut job: Job| {
        suite.prepare(&mut job.command, skips);
        job
    };
    let named = |name: &&str| suites.iter().find(|suite| suite.name == *name);
    let first = |it: &Suite| suite(it, Job::new(it.name.clone(), it.program.as_os_str()));
    let waiting = WAITING.iter().filter_map(&named).map(first).collect();
    let is_rest = |it: &&Suite| {
        let name = it.name.as_str();
        !WAITING.contains(&name) && !LONG.contains(&name)
    };
    let rest = suites.iter().filter(is_rest);
    let behind = |it: &Suite| suite(it, Job::behind(it.name.clone(), it.program.as_os_str()));
    let mut others: Vec<Job> = LONG.iter().filter_map(&named).chain(rest).map(behind).collect();

    let mut cargo = |name: &str, arguments: &[&str]| {
        let mut job = Job::behind(name.to_owned(), "cargo".as_ref());
        job.command.args(arguments).current_dir(root).env("KEYWAY_SKIPS", skips);
        job.command.env("RUSTDOCFLAGS", "-D warnings");
        others.push(job);
    };
    cargo("documentation", &["doc", "--workspace", "--no-deps", "--locked", "--quiet"]);
    cargo("examples in the documentation", &["test", "--workspace", "--doc", "--locked"]);
    for target in fuzz::TARGETS {
        let fuzzer = fuzz::command(root, target, fuzz_secs)?;
        let mut job = Job::behind(format!("fuzz target {target}"), fuzzer.get_program());
        job.command.args(fuzzer.get_args()).current_dir(root);
        others.push(job);
    }
    Ok((waiting, others))
}

/// Says what failed, so that the last words, which a log that was cut still has, are which tests
/// did and why. Gives those that pass when they have the machine to themselves.
fn report(
    mut ended: Vec<Ended>,
    passes_alone: impl Fn(&Failure) -> Result<bool>,
) -> Result<Vec<Failure>> {
    ended.sort_by_key(|it| std::cmp::Reverse(it.took));
    eprintln!("\nwhat took longest, in seconds:");
    for it in ended.iter().take(SLOWEST) {
        eprintln!("{:6}  {}", it.took.as_secs(), it.name);
    }
    let mut failures: Vec<Failure> = ended.iter().flat_map(failures).collect();
    let mut unsteady = Vec::new();
    if failures.len() <= AGAIN_MAX {
        for failure in std::mem::take(&mut failures) {
            let into = if passes_alone(&failure)? { &mut unsteady } else { &mut failures };
            into.push(failure);
        }
    }
    for failure in &failures {
        eprintln!("\nFAILED: {} of {}\n  {}", failure.test, failure.binary, failure.words);
    }
    let names: Vec<&str> = failures.iter().map(|failure| failure.test.as_str()).collect();
    ensure!(names.is_empty(), "{} failed: {}", names.len(), names.join(", "));
    Ok(unsteady)
}

/// Whether a test that failed beside others passes alone. Many tests hold real time against a
/// bound, and other suites have the processors meanwhile.
fn passes_alone(suites: &[Suite], skips: &Path, failure: &Failure) -> Result<bool> {
    let is_its = |suite: &&Suite| suite.name == failure.binary && suite.name != BELIEVED;
    let Some(suite) = suites.iter().find(is_its).filter(|_| failure.test != failure.binary) else {
        return Ok(false);
    };
    step(&format!("{} once more, alone", failure.test));
    let mut job = Job::new(suite.name.clone(), suite.program.as_os_str());
    suite.prepare(&mut job.command, skips);
    job.command.args(["--exact", &failure.test]);
    let ended = job.run(ALONE_MAX).context("a suite that ran before")?;
    // A name that no test has is no failure to the harness.
    Ok(ended.succeeded && ended.said.contains("test result: ok. 1 passed;"))
}

/// The tests of a job that failed, or the job itself if none of them said so.
fn failures(of: &Ended) -> Vec<Failure> {
    let mut failures = Failures::of(&of.name);
    of.said.lines().for_each(|line| failures.read(line));
    if of.hung {
        failures.cut_off(&of.said);
    }
    let mut found = failures.into_found();
    if found.is_empty() && !of.succeeded {
        let test = of.name.clone();
        let words = "it ended badly, and no test said that it failed".to_owned();
        found.push(Failure { binary: of.name.clone(), test, words });
    }
    found
}

fn step(what: &str) {
    eprintln!("\n== {what}");
}

/// Where cargo builds.
pub(crate) fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    fn ended(said: &str, succeeded: bool) -> Vec<Ended> {
        let (name, said) = ("a/b.rs".to_owned(), said.to_owned());
        vec![Ended { name, said, succeeded, hung: false, took: Duration::ZERO }]
    }

    fn failed(tests: usize) -> String {
        let words = |test| format!("---- t{test} stdout ----\nthread 't' panicked at x\n");
        (0..tests).map(words).collect()
    }

    #[test]
    fn a_test_that_passes_alone_is_told_and_one_that_does_not_is_a_failure() {
        let first = |failure: &Failure| Ok(failure.test == "t0");
        let unsteady = report(ended(&failed(1), false), first).unwrap();
        assert_eq!(unsteady[0].test, "t0");
        let error = report(ended(&failed(2), false), first).unwrap_err();
        assert_eq!(error.to_string(), "1 failed: t1");
    }

    #[test]
    fn many_failures_are_believed_at_once() {
        let failing = ended(&failed(AGAIN_MAX + 1), false);
        let error = report(failing, |_| panic!("it runs again")).unwrap_err();
        assert!(error.to_string().starts_with("5 failed: t0, t1"), "{error}");
    }

    #[test]
    fn what_no_suite_can_run_again_and_a_lost_promise_are_failures() {
        let folder = tempfile::tempdir().unwrap();
        let suite = |name: &str, passed: u32| {
            let program = folder.path().join(passed.to_string());
            let script = format!("#!/bin/sh\necho 'test result: ok. {passed} passed; 0 failed'\n");
            std::fs::write(&program, script).unwrap();
            std::fs::set_permissions(&program, Permissions::from_mode(0o700)).unwrap();
            Suite { name: name.to_owned(), program, folder: folder.path().to_owned() }
        };
        let suites = [suite(BELIEVED, 1), suite("a/b.rs", 1), suite("a/c.rs", 0)];
        let passes = |binary: &str, test: &str| {
            let (binary, test) = (binary.to_owned(), test.to_owned());
            let failure = Failure { binary, test, words: String::new() };
            passes_alone(&suites, Path::new("/dev/null"), &failure).unwrap()
        };
        assert!(passes("a/b.rs", "t"));
        assert!(!passes("a/b.rs", "a/b.rs"));
        assert!(!passes("a/c.rs", "t"), "it ran no test");
        assert!(!passes(BELIEVED, "t"));
        assert!(!passes("fuzz target resp", "t"));
    }
}
