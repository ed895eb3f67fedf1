//! The test binaries of the workspace, as cargo tells them.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A test binary.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Suite {
    /// As cargo names it: where its source begins, from the folder of its crate.
    pub(super) name: String,
    pub(super) program: PathBuf,
    /// The folder of its crate, in which it runs.
    pub(super) folder: PathBuf,
}

impl Suite {
    /// Lets a command that runs it find what cargo would let it find; `skips` is where it says
    /// which tests cannot run here.
    pub(super) fn prepare(&self, command: &mut Command, skips: &Path) {
        command.current_dir(&self.folder).env("KEYWAY_SKIPS", skips);
        command.env("CARGO_MANIFEST_DIR", &self.folder);
    }
}

/// What cargo says of something that it has built; other messages have no `executable`.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Builds all test binaries, and says which there are.
pub(super) fn build(root: &Path) -> Result<Vec<Suite>> {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--workspace", "--locked", "--no-run"]);
    cargo.arg("--message-format=json-render-diagnostics").current_dir(root);
    let output = cargo.stderr(Stdio::inherit()).output().context("cargo starts")?;
    ensure!(output.status.success(), "the tests do not build");
    let text = String::from_utf8(output.stdout).context("cargo speaks UTF-8")?;
    let suites: Vec<Suite> = text.lines().filter_map(suite).collect();
    ensure!(!suites.is_empty(), "cargo names no test binary");
    Ok(suites)
}

fn suite(line: &str) -> Option<Suite> {
    let message: Message = serde_json::from_str(line).ok()?;
    message.profile.filter(|profile| profile.test)?;
    let folder = message.manifest_path?.parent()?.to_owned();
    let source = message.target?.src_path;
    let source = source.strip_prefix(&folder).unwrap_or(&source);
    let name = format!("{}/{}", folder.file_name()?.to_str()?, source.display());
    Some(Suite { name, program: message.executable?, folder })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_binary_is_told_from_all_else_that_cargo_says() {
        let line = |test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/k/crates/a/Cargo.toml",
                "target":{{"kind":["test"],"src_path":"/k/crates/a/tests/b/main.rs"}},
                "profile":{{"test":{test}}},"executable":"/k/target/debug/deps/b-1"}}"#
            )
        };
        let expected = Suite {
            name: "a/tests/b/main.rs".to_owned(),
            program: PathBuf::from("/k/target/debug/deps/b-1"),
            folder: PathBuf::from("/k/crates/a"),
        };
        assert_eq!(suite(&line(true)), Some(expected));
        assert_eq!(suite(&line(false)), None);
        assert_eq!(suite(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(suite("no JSON"), None);
    }
}
