//! Coverage-guided fuzzing on the stable toolchain.
//!
//! `cargo fuzz` asks for a nightly toolchain because of the address sanitizer. Without unsafe code
//! there is little for that to find, and the flags for coverage itself are stable.

use anyhow::{Context, Result, ensure};
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
    seed(root, name, &corpus)?;
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

/// Writes what a target begins with into its folder: every datagram of the vectors in the form that
/// the target takes, or commands.
fn seed(root: &Path, name: &str, folder: &Path) -> Result<()> {
    if name == "resp" {
        for (number, text) in COMMANDS.iter().enumerate() {
            std::fs::write(folder.join(format!("commands-{number}")), text)?;
        }
        return Ok(());
    }
    let shell = Shell::new()?;
    shell.change_dir(root);
    cmd!(shell, "cargo run --quiet --locked -p keyway-testkit --bin fuzz-seeds --")
        .args([root.as_os_str(), name.as_ref(), folder.as_os_str()])
        .run()?;
    Ok(())
}
