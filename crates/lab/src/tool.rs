//! Programs of the system that build networks: `ip`, `ethtool`, `nft`.

use anyhow::{Context, Result, bail};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Runs a program in the network of the calling thread.
///
/// # Errors
///
/// What it complains about if it fails.
pub fn run(program: &str, arguments: &[&str], input: &str) -> Result<()> {
    let advice = "is it installed? apt-get install iproute2 ethtool nftables";
    run_with(program, arguments, input, &[], advice)
}

/// The same with variables of its environment; if there is no such program, people are advised.
///
/// # Errors
///
/// As [`run()`].
pub fn run_with(
    program: &str,
    arguments: &[&str],
    input: &str,
    variables: &[(&str, PathBuf)],
    advice: &str,
) -> Result<()> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let mut child = command.spawn().with_context(|| format!("cannot run {program}; {advice}"))?;
    let mut stdin = child.stdin.take().expect("piped");
    // One that ends before it has read all says why.
    stdin.write_all(input.as_bytes()).ok();
    drop(stdin);
    let output = child.wait_with_output().with_context(|| format!("cannot wait for {program}"))?;
    if output.status.success() {
        return Ok(());
    }
    bail!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())
}

/// Lets `ip` do all these lines.
///
/// # Errors
///
/// As [`run()`].
pub fn ip(options: &[&str], batch: &str) -> Result<()> {
    let mut arguments = options.to_vec();
    arguments.extend(["-batch", "-"]);
    run("ip", &arguments, batch)
}
