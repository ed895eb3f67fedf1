//! `cargo xtask test`: everything that must hold before a change goes in, cheapest first.

mod failures;
mod lanes;
mod suites;

use crate::{codegen, fuzz, tidy};
use anyhow::{Context, Result, ensure};
use failures::{Failure, Failures};
use lanes::{Ended, Job};
use std::path::{Path, PathBuf};
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
const LONG: [&str; 5] = [
    "sim/tests/promises.rs",
    "xdp/tests/sameness/main.rs",
    "model/tests/bounds.rs",
    "paper/tests/rack.rs",
    "runtime/src/lib.rs",
];

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
    report(lanes::run(waiting, others)?)?;

    let text = shell.read_file(&skips).context("the list of skipped tests")?;
    let skipped: Vec<&str> = text.lines().collect();
    eprintln!("\nall of it passed; {} tests skipped", skipped.len());
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
        job.command.current_dir(&suite.folder).env("KEYWAY_SKIPS", skips);
        job.command.env("CARGO_MANIFEST_DIR", &suite.folder);
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
/// did and why.
fn report(mut ended: Vec<Ended>) -> Result<()> {
    ended.sort_by_key(|it| std::cmp::Reverse(it.took));
    eprintln!("\nwhat took longest, in seconds:");
    for it in ended.iter().take(SLOWEST) {
        eprintln!("{:6}  {}", it.took.as_secs(), it.name);
    }
    let failures: Vec<Failure> = ended.iter().flat_map(failures).collect();
    for failure in &failures {
        eprintln!("\nFAILED: {} of {}\n  {}", failure.test, failure.binary, failure.words);
    }
    let names: Vec<&str> = failures.iter().map(|failure| failure.test.as_str()).collect();
    ensure!(names.is_empty(), "{} failed: {}", names.len(), names.join(", "));
    Ok(())
}

/// The tests of a job that failed, or the job itself if none of them said so.
fn failures(of: &Ended) -> Vec<Failure> {
    let mut failures = Failures::of(&of.name);
    of.said.lines().for_each(|line| failures.read(line));
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
fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}
