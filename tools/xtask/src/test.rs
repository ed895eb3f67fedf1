//! `cargo xtask test`: everything that must hold before a change goes in, cheapest first.

use crate::{codegen, fuzz, tidy};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use xshell::{Shell, cmd};

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
    cmd!(shell, "cargo test --workspace --locked").run()?;
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

fn step(what: &str) {
    eprintln!("\n== {what}");
}

/// Where cargo builds.
fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}
