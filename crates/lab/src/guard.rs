//! Whoever takes a lab down when its keeper was killed: a process that waits for that, at the other
//! end of a pipe, which the kernel closes however the keeper ends.

use crate::process::{self, Identity};
use anyhow::{Context, Result};
use nix::unistd::Pid;
use std::io::Read as _;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

/// The keeper's side.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    /// HeldLab open.
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Sets a guard over this lab.
    pub fn set(lab: &str) -> Result<Self> {
        let mut command = Command::new(process::this_binary()?);
        command.args(["lab", "down", "--after-stdin", "--name", lab]);
        // Of whoever stopped reading from the keeper it need not know.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C is for the keeper.
        command.process_group(0);
        let mut child = command.spawn().context("cannot start the guard of the lab")?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// Its process.
    pub fn identity(&self) -> Option<Identity> {
        Identity::of(Pid::from_raw(i32::try_from(self.child.id()).ok()?))
    }

    /// Ends it: the keeper has taken the lab down itself, or lets it stay.
    pub fn dismiss(mut self) {
        // Killed before the pipe is closed, so that it does nothing more.
        self.child.kill().ok();
        self.child.wait().ok();
        drop(self.pipe.take());
    }
}

/// The guard's side: returns when the keeper has ended.
pub fn wait() {
    // What fails here is a pipe that is gone, which is what is waited for.
    std::io::stdin().lock().read_to_end(&mut Vec::new()).ok();
}
