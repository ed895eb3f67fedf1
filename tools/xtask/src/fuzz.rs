//! Coverage-guided fuzzing on the stable toolchain.
//!
//! `cargo fuzz` asks for a nightly toolchain because of the address sanitizer. Without unsafe code
//! there is little for that to find, and the flags for coverage itself are stable.

#[path = "../../../crates/switch/tests/fuzzed/form.rs"]
#[expect(dead_code, reason = "what reads it is in the fuzz target")]
mod form;
#[path = "../../../crates/switch/tests/fuzzed/seeds.rs"]
mod seeds;

use anyhow::{Context, Error, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use xshell::{Shell, cmd};

/// What there is to fuzz.
pub(crate) const TARGETS: [&str; 3] = ["packet", "pipeline", "resp"];

/// What the target `resp` begins with: commands and what are none.
const COMMANDS: [&str; 4] = [
    "*2\r\n$3\r\nGET\r\n$1\r\na\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$0\r\n\r\nPING\r\n",
    "set a \"b\\x00\\n\" 'c\\''\r\n*0\r\n\r\n*-1\r\n",
    "*10\r\n$16384\r\n",
    "*2\r\n$1\r\na\r\n!",
];

/// The flags by which `cargo fuzz` instruments code, but for the sanitizer.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cdebug-assertions -Ccodegen-units=1 --cfg fuzzing";

/// Builds target `name` and runs it for `secs` seconds, starting from the vectors and from what
/// earlier runs found.
pub(crate) fn run(root: &Path, name: &str, secs: u32) -> Result<()> {
    ensure!(TARGETS.contains(&name), "targets are {}", TARGETS.join(", "));
    build(root, &[name])?;
    let status = command(root, name, secs)?.status().context("the fuzzer starts")?;
    let artifacts = artifacts(root, name);
    ensure!(status.success(), "a finding; its input is in {}", artifacts.display());
    Ok(())
}

/// Builds targets.
pub(crate) fn build(root: &Path, names: &[&str]) -> Result<()> {
    let shell = Shell::new()?;
    shell.change_dir(root);
    let (host, target_dir) = (host(&shell)?, target_dir(root));
    let targets = names.iter().flat_map(|name| ["--bin", name]);
    // With `--target` the flags are not for build scripts and procedural macros.
    cmd!(shell, "cargo build --release --locked --manifest-path fuzz/Cargo.toml")
        .args(targets)
        .args(["--target".as_ref(), host.as_ref(), "--target-dir".as_ref(), target_dir.as_os_str()])
        .env("RUSTFLAGS", FLAGS)
        .run()?;
    Ok(())
}

/// What runs target `name`, which is built, for `secs` seconds.
pub(crate) fn command(root: &Path, name: &str, secs: u32) -> Result<Command> {
    let corpus = root.join("fuzz/corpus").join(name);
    std::fs::create_dir_all(&corpus)?;
    for (seed, bytes) in seeds(root, name)? {
        std::fs::write(corpus.join(seed), bytes)?;
    }
    let artifacts = artifacts(root, name);
    std::fs::create_dir_all(&artifacts)?;
    let host = host(&Shell::new()?)?;
    let mut command = Command::new(target_dir(root).join(host).join("release").join(name));
    command.arg(format!("-max_total_time={secs}"));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.args(["-max_len=4096", "-timeout=10", "-print_final_stats=1"]).arg(corpus);
    command.current_dir(root);
    Ok(command)
}

/// Where findings are kept.
fn artifacts(root: &Path, name: &str) -> PathBuf {
    root.join("fuzz/artifacts").join(name)
}

/// What the machine that builds is called.
fn host(shell: &Shell) -> Result<String> {
    let version = cmd!(shell, "rustc -vV").read()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc says its host")?.to_owned())
}

fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), PathBuf::from)
        .join("fuzz")
}

/// What a target begins with, with file names: every datagram of the vectors in the form that the
/// target takes, or commands.
fn seeds(root: &Path, name: &str) -> Result<Vec<(String, Vec<u8>)>> {
    ensure!(TARGETS.contains(&name), "targets are {}", TARGETS.join(", "));
    if name == "resp" {
        let named = |(number, text): (usize, &&str)| (format!("commands-{number}"), (*text).into());
        return Ok(COMMANDS.iter().enumerate().map(named).collect());
    }
    let mut seeds = Vec::new();
    for entry in std::fs::read_dir(root.join("spec/vectors"))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let stem = path.file_stem().unwrap_or_default().display().to_string();
        let file: toml::Table = toml::from_str(&std::fs::read_to_string(&path)?)?;
        let cases = seeds::of_file(&file).map_err(|why| Error::msg(format!("{stem}: {why}")))?;
        for (number, case) in cases.into_iter().enumerate() {
            let seed = if name == "packet" { case.packet } else { case.pipeline };
            seeds.push((format!("vector-{stem}-{number}"), seed));
        }
    }
    ensure!(!seeds.is_empty(), "no vectors in spec/vectors");
    Ok(seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vector_is_a_seed_of_both_targets() {
        let root = crate::repository_root();
        let packets = seeds(&root, "packet").unwrap();
        let pipelines = seeds(&root, "pipeline").unwrap();
        assert!(packets.len() > 100, "{} vectors", packets.len());
        assert_eq!(packets.len(), pipelines.len());
        for ((name, datagram), (same_name, seed)) in packets.iter().zip(&pipelines) {
            assert!(name == same_name && seed.ends_with(datagram), "{name}");
        }
        assert!(seeds(&root, "nothing").is_err());
    }
}
