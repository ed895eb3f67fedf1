//! Coverage-guided fuzzing on the stable toolchain.
//!
//! `cargo fuzz` asks for a nightly toolchain because of the address sanitizer. Without unsafe code
//! there is little for that to find, and the flags for coverage itself are stable.

use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xshell::{Shell, cmd};

/// What there is to fuzz.
pub(crate) const TARGETS: [&str; 5] = ["packet", "pipeline", "resp", "envelope", "openflow"];

/// What the target `resp` begins with: commands and what are none.
const COMMANDS: [&str; 4] = [
    "*2\r\n$3\r\nGET\r\n$1\r\na\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$0\r\n\r\nPING\r\n",
    "set a \"b\\x00\\n\" 'c\\''\r\n*0\r\n\r\n*-1\r\n",
    "*10\r\n$16384\r\n",
    "*2\r\n$1\r\na\r\n!",
];

/// What the target `openflow` begins with: a switch that says what it speaks and what it is, and
/// then is asked for something.
const SWITCHES: [&[u8]; 3] = [
    b"\x00\x10\x04\0\0\x10\0\0\0\0\0\x01\0\x08\0\0\0\x10\
      \x00\x20\x04\x06\0\x20\0\0\0\x02\0\0\0\0\0\0\0\x07\0\0\0\0\xfe\0\0\0\0\0\0\0\0\0\0\0\
      \x02\x00\x00\x10\x04\x13\0\x10\0\0\0\x05\0\x01\0\0\0\0\0\0",
    b"\x00\x10\x04\0\0\x10\0\0\0\0\0\x01\0\x08\0\0\0\x10\
      \x00\x20\x04\x06\0\x20\0\0\0\x02\0\0\0\0\0\0\0\x07\0\0\0\0\xfe\0\0\0\0\0\0\0\0\0\0\0\
      \x04\x00\x00\x08\x04\x15\0\x08\0\0\0\x05",
    b"\x00\x0c\x04\x02\0\x0c\0\0\0\x07echo",
];

/// What a target's fuzzer is told besides. It sees what is compared and tries that: it would forge
/// tags, for which nobody else has the keys.
const BESIDES: [(&str, &str); 1] = [("envelope", "-use_cmp=0")];

/// What the fuzzer says of how many inputs it has tried, when it ends.
const TRIED: &str = "stat::number_of_executed_units:";

/// The flags by which `cargo fuzz` instruments code, but for the sanitizer.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cdebug-assertions -Ccodegen-units=1 --cfg fuzzing";

/// Builds these targets, all if none is named, and runs one after the other for `secs` seconds,
/// starting from the vectors and from what earlier runs found.
pub(crate) fn run(root: &Path, names: &[String], secs: u32) -> Result<()> {
    let known = |name: &String| TARGETS.contains(&name.as_str());
    ensure!(names.iter().all(known), "targets are {}", TARGETS.join(", "));
    let is_asked = |target: &&str| names.is_empty() || names.iter().any(|name| name == target);
    let targets: Vec<&str> = TARGETS.into_iter().filter(is_asked).collect();
    build(root, &targets)?;
    let mut tried = Vec::new();
    for name in targets {
        tried.push((name, fuzz(root, name, secs)?));
    }
    for (name, inputs) in &tried {
        println!("{name}: {inputs} inputs");
    }
    println!("{} inputs in all", tried.iter().map(|(_, inputs)| inputs).sum::<u64>());
    Ok(())
}

/// Runs a target that is built; how many inputs it has tried.
fn fuzz(root: &Path, name: &str, secs: u32) -> Result<u64> {
    let mut command = command(root, name, secs)?;
    let mut fuzzer = command.stderr(Stdio::piped()).spawn().context("the fuzzer starts")?;
    let mut tried = 0;
    for line in BufReader::new(fuzzer.stderr.take().context("it is piped")?).lines() {
        let line = line?;
        if let Some(inputs) = line.strip_prefix(TRIED) {
            tried = inputs.trim().parse()?;
        }
        eprintln!("{name}: {line}");
    }
    let artifacts = artifacts(root, name);
    ensure!(fuzzer.wait()?.success(), "a finding; its input is in {}", artifacts.display());
    Ok(tried)
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
    seed(root, name, &corpus)?;
    let artifacts = artifacts(root, name);
    std::fs::create_dir_all(&artifacts)?;
    let host = host(&Shell::new()?)?;
    let mut command = Command::new(target_dir(root).join(host).join("release").join(name));
    command.arg(format!("-max_total_time={secs}"));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.args(["-max_len=4096", "-timeout=10", "-print_final_stats=1"]);
    command.args(BESIDES.iter().filter(|(target, _)| *target == name).map(|(_, option)| option));
    command.arg(corpus);
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

/// Writes what a target begins with into its folder: every datagram of the vectors in the form that
/// the target takes, or commands.
fn seed(root: &Path, name: &str, folder: &Path) -> Result<()> {
    let written: Vec<&[u8]> = match name {
        "resp" => COMMANDS.iter().map(|text| text.as_bytes()).collect(),
        "openflow" => SWITCHES.to_vec(),
        _ => Vec::new(),
    };
    for (number, bytes) in written.iter().enumerate() {
        std::fs::write(folder.join(format!("begin-{number}")), bytes)?;
    }
    if !written.is_empty() {
        return Ok(());
    }
    let shell = Shell::new()?;
    shell.change_dir(root);
    cmd!(shell, "cargo run --quiet --locked -p keyway-testkit --bin fuzz-seeds --")
        .args([root.as_os_str(), name.as_ref(), folder.as_os_str()])
        .run()?;
    Ok(())
}
