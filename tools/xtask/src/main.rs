//! `cargo xtask`: the project's chores, in its own language.

mod codegen;
mod fuzz;
mod layout;
mod measure;
mod test;
mod tidy;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Chores of the repository.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Write everything that is generated from spec/layout.toml
    Codegen {
        /// Change nothing; fail if a generated file differs
        #[arg(long)]
        check: bool,
    },
    /// Fuzz what takes bytes of strangers, starting from spec/vectors
    Fuzz {
        /// Which targets of fuzz/ (default: all, one after the other)
        names: Vec<String>,
        /// For how long each
        #[arg(long, default_value_t = 60)]
        secs: u32,
    },
    Measure(measure::Args),
    /// Check the rules of the repository that the compiler does not know
    Tidy,
    /// Run every check and test, as before each merge
    Test {
        /// Seconds for which each fuzz target runs
        #[arg(long, default_value_t = 60)]
        fuzz_secs: u32,
    },
}

fn main() -> ExitCode {
    match run(Args::parse().chore) {
        Ok(()) => ExitCode::SUCCESS,
        // Without a backtrace, whatever the environment says: the last words of a chore are what
        // it found.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(chore: Chore) -> Result<()> {
    let root = repository_root();
    match chore {
        Chore::Codegen { check } => codegen::run(&root, check),
        Chore::Fuzz { names, secs } => fuzz::run(&root, &names, secs),
        Chore::Measure(args) => measure::run(&root, &test::target_dir(&root), &args),
        Chore::Tidy => tidy::run(&root),
        Chore::Test { fuzz_secs } => test::run(&root, fuzz_secs),
    }
}

/// The checkout that this binary was built in.
fn repository_root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
