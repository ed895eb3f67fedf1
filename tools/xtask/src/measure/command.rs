//! Programs that measure: how they are built, and what they print.

use super::record;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Program {
    Bench { package: &'static str, name: &'static str },
    Keyway,
}

/// A program and its arguments.
#[derive(Clone, Debug)]
pub(super) struct Measuring {
    pub(super) program: Program,
    /// Tells its rows from those of the section's other commands.
    label: String,
    arguments: Vec<String>,
    /// Whether what counts is how many lines it prints in which time, and not what they say.
    timed: bool,
}

impl Measuring {
    pub(super) fn bench(package: &'static str, name: &'static str) -> Self {
        let label = name.to_owned();
        Self {
            program: Program::Bench { package, name },
            label,
            arguments: Vec::new(),
            timed: false,
        }
    }

    /// `keyway` with these words.
    pub(super) fn keyway(label: impl Into<String>, words: &str) -> Self {
        let arguments = words.split_whitespace().map(str::to_owned).collect();
        Self { program: Program::Keyway, label: label.into(), arguments, timed: false }
    }

    /// The same, of which lines are counted.
    pub(super) fn timed(self) -> Self {
        Self { timed: true, ..self }
    }

    /// As it is typed.
    pub(super) fn shown(&self) -> String {
        let arguments = self.arguments.join(" ");
        match self.program {
            Program::Bench { package, name } => format!("cargo bench -p {package} --bench {name}"),
            Program::Keyway => format!("keyway {arguments}"),
        }
    }

    /// Runs it, and gives its rows. What it says on standard error goes to the log.
    #[expect(clippy::disallowed_methods, reason = "a chore has a clock")]
    pub(super) fn run(&self, places: &Places, log: &File) -> Result<Vec<Value>> {
        let began = Instant::now();
        let printed = self.output(places, log)?;
        let took_s = began.elapsed().as_secs_f64();
        if self.timed {
            let printed = printed.lines().count();
            let row = json!({ "command": self.label, "printed": printed, "took_s": took_s });
            return Ok(vec![row]);
        }
        record::rows(&self.label, &printed)
    }

    fn output(&self, places: &Places, log: &File) -> Result<String> {
        let mut command = match self.program {
            Program::Bench { package, name } => {
                let mut command = Command::new("cargo");
                command.args(["bench", "--locked", "--quiet", "-p", package, "--bench", name]);
                command.args(["--", "--json"]);
                command
            }
            Program::Keyway => {
                let mut command = Command::new(&places.keyway);
                command.arg("--json");
                command
            }
        };
        command.args(&self.arguments).current_dir(&places.root);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.try_clone()?);
        let output = command.output().with_context(|| format!("{} starts", self.shown()))?;
        ensure!(output.status.success(), "{} ended badly: {}", self.shown(), output.status);
        String::from_utf8(output.stdout).context("a program that prints JSON speaks UTF-8")
    }
}

/// Where things are.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) root: PathBuf,
    keyway: PathBuf,
}

impl Places {
    pub(super) fn of(root: &Path, target: &Path) -> Self {
        let target = std::path::absolute(target).unwrap_or_else(|_| target.to_owned());
        Self { root: root.to_owned(), keyway: target.join("release/keyway") }
    }

    /// Builds programs, so that nothing is compiled while something is measured.
    pub(super) fn build(&self, programs: impl Iterator<Item = Program>) -> Result<()> {
        let programs: BTreeSet<Program> = programs.collect();
        for program in programs {
            let mut cargo = Command::new("cargo");
            match program {
                Program::Bench { package, name } => {
                    cargo.args(["bench", "--locked", "--no-run", "-p", package, "--bench", name])
                }
                Program::Keyway => {
                    cargo.args(["build", "--release", "--locked", "--bin", "keyway"])
                }
            };
            let status = cargo.current_dir(&self.root).status().context("cargo starts")?;
            ensure!(status.success(), "{program:?} does not build; nothing was measured");
        }
        Ok(())
    }
}
