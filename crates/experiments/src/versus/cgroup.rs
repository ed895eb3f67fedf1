//! Control groups that limit processor time, of either version.

use anyhow::{Context, Result, bail};
use console::note;
use nix::unistd::Pid;
use std::fs;
use std::path::{Path, PathBuf};

/// A group; removed when it is dropped. Its processes must have ended by then.
#[derive(Debug)]
pub(crate) struct Group {
    directory: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// A hierarchy for each controller.
    One,
    /// One for all.
    Two,
}

/// Processor time of each period, in microseconds: the least that the kernel takes, so that a
/// process which has used it up waits as short as can be.
const QUOTA_US: f64 = 1_000.0;

/// Where the hierarchies are mounted.
const ROOT: &str = "/sys/fs/cgroup";

impl Group {
    /// Makes one, without a limit.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let (version, parent) = hierarchy()?;
        let directory = parent.join(name);
        fs::create_dir(&directory).with_context(|| {
            format!("cannot make the control group {}: this takes root", directory.display())
        })?;
        Ok(Self { directory, version })
    }

    /// Takes a process in, with all its threads.
    pub(crate) fn take(&self, pid: Pid) -> Result<()> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// Sets what share of one processor its processes get together; `None`: all they want.
    pub(crate) fn limit(&self, share: Option<f64>) -> Result<()> {
        let period = share.map_or(QUOTA_US, |share| (QUOTA_US / share).round());
        match self.version {
            Version::One => {
                self.write("cpu.cfs_period_us", &period.to_string())?;
                let quota = share.map_or_else(|| "-1".to_owned(), |_| QUOTA_US.to_string());
                self.write("cpu.cfs_quota_us", &quota)
            }
            Version::Two => {
                let quota = share.map_or_else(|| "max".to_owned(), |_| QUOTA_US.to_string());
                self.write("cpu.max", &format!("{quota} {period}"))
            }
        }
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = self.directory.join(file);
        fs::write(&path, text).with_context(|| format!("cannot write {text} to {}", path.display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes that could not be killed keep it.
        if let Err(error) = fs::remove_dir(&self.directory) {
            note!("the control group {} is left: {error}", self.directory.display());
        }
    }
}

/// The hierarchy that limits processor time.
fn hierarchy() -> Result<(Version, PathBuf)> {
    let root = Path::new(ROOT);
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    if controllers.split_ascii_whitespace().any(|it| it == "cpu") {
        // Fails if it is not ours to say; then making a group says so, or its limit.
        fs::write(root.join("cgroup.subtree_control"), "+cpu").ok();
        return Ok((Version::Two, root.to_owned()));
    }
    let first = root.join("cpu");
    if first.join("cgroup.procs").exists() {
        return Ok((Version::One, first));
    }
    bail!(
        "no control groups that limit processor time below {ROOT}: servers cannot be held to the \
         same share"
    )
}
