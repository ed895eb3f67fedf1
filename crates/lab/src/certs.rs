//! The certificates of a cluster in a lab, and the secret that the keys of its envelopes follow
//! from.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where they are of a cluster whose files are here.
pub fn directory_in(files: &Path) -> PathBuf {
    files.join("certs")
}

/// Makes them for all members of a configuration with a command of `keyway`.
pub(crate) fn make(mut keyway: Command, config: &Path) -> Result<()> {
    keyway.args(["certs", "init", "--config"]).arg(config);
    let made = keyway.output().context("cannot make certificates")?;
    let why = String::from_utf8_lossy(&made.stderr);
    ensure!(made.status.success(), "cannot make certificates: {why}");
    Ok(())
}
