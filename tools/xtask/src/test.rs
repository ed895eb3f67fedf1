//! `cargo xtask test`: everything that must hold before a change goes in, cheapest first.

mod failures;

use crate::{codegen, fuzz, tidy};
use anyhow::{Context, Result, bail, ensure};
use failures::Failures;
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use xshell::{Shell, cmd};

/// How long the rest of what cargo printed may take to be read once cargo has ended.
const AFTERWARDS: Duration = Duration::from_secs(10);

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
    shell.set_var("KEYWAY_SKIPS", &skips);

    step("generated files are what spec/layout.toml says");
    codegen::run(root, true)?;
    step("the rules of the repository");
    tidy::run(root)?;
    step("format");
    cmd!(shell, "cargo fmt --all --check").run()?;
    step("lints");
    cmd!(shell, "cargo clippy --workspace --all-targets --locked -- -D warnings").run()?;
    step("tests");
    run_tests(root, &skips)?;
    step("documentation");
    let _deny = shell.push_env("RUSTDOCFLAGS", "-D warnings");
    cmd!(shell, "cargo doc --workspace --no-deps --locked --quiet").run()?;

    for target in fuzz::TARGETS {
        step(&format!("fuzz target {target}, {fuzz_secs} s"));
        fuzz::run(root, target, fuzz_secs)?;
    }

    let text = shell.read_file(&skips).context("the list of skipped tests")?;
    let skipped: Vec<&str> = text.lines().collect();
    eprintln!("\nall of it passed; {} tests skipped", skipped.len());
    for line in skipped {
        eprintln!("SKIPPED: {line}");
    }
    Ok(())
}

/// Runs every test, also after one that failed: the last words, which a log that was cut still has,
/// say which ones did and why.
fn run_tests(root: &Path, skips: &Path) -> Result<()> {
    let (ours, theirs) = std::io::pipe()?;
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    cargo.current_dir(root).env("KEYWAY_SKIPS", skips);
    // In one pipe, so that what fails stands behind the binary that it is in.
    cargo.stdout(theirs.try_clone()?).stderr(theirs);
    let mut child = cargo.spawn().context("cargo starts")?;
    // The ends that are written to go away with it.
    drop(cargo);
    let failures = Arc::new(Mutex::new(Failures::default()));
    let reading = Arc::clone(&failures);
    let (done, is_read) = mpsc::channel();
    std::thread::spawn(move || {
        // Whoever listens may be gone by then; nobody misses the word.
        let _unheard = done.send(pass_on(ours, &reading));
    });
    let status = child.wait()?;
    // A process that a failed test left behind holds the pipe open.
    if let Ok(read) = is_read.recv_timeout(AFTERWARDS) {
        read.context("what cargo prints")?;
    }

    let failures = std::mem::take(&mut *failures.lock().expect("no reader panicked")).into_found();
    for failure in &failures {
        eprintln!("\nFAILED: {} of {}\n  {}", failure.test, failure.binary, failure.words);
    }
    let names: Vec<&str> = failures.iter().map(|failure| failure.test.as_str()).collect();
    ensure!(names.is_empty(), "{} tests failed: {}", names.len(), names.join(", "));
    if !status.success() {
        bail!("cargo test ended with {status}, and no test said that it failed");
    }
    Ok(())
}

/// Prints what comes out of a pipe, and looks for tests that failed.
#[expect(clippy::disallowed_methods, reason = "its errors are looked at here")]
fn pass_on(pipe: PipeReader, failures: &Mutex<Failures>) -> std::io::Result<()> {
    for line in BufReader::new(pipe).split(b'\n') {
        let line = line?;
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(&line)?;
        stdout.write_all(b"\n")?;
        failures.lock().expect("nobody panicked").read(&String::from_utf8_lossy(&line));
    }
    Ok(())
}

fn step(what: &str) {
    eprintln!("\n== {what}");
}

/// Where cargo builds.
fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}
