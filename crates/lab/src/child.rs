//! A rack that a child keeps, `keyway lab up`, which takes it down when it is told to or when this
//! process is no more.

use crate::namespace::inside;
use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// A rack that is up; it is taken down when this is dropped.
#[derive(Debug)]
pub struct ChildLab {
    name: String,
    /// What its first line says.
    pub ready: Value,
    child: Child,
}

impl ChildLab {
    /// Lets this program build a rack of this name with these options, and waits until it serves.
    /// `spawn` starts it.
    ///
    /// # Errors
    ///
    /// If there is no rack: what it complained about.
    pub fn up(
        mut program: Command,
        name: &str,
        options: &[&str],
        spawn: impl FnOnce(&mut Command) -> io::Result<Child>,
    ) -> Result<Self> {
        program.args(["lab", "up", "--json", "--name", name]).args(options).stdin(Stdio::null());
        program.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(&mut program).context("keyway and setpriv are there")?;
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).context("its output is text")?;
        let Ok(ready) = serde_json::from_str::<Value>(&line) else {
            let output = child.wait_with_output().context("our own child")?;
            bail!("no lab {name}: {}", String::from_utf8_lossy(&output.stderr));
        };
        // What it says later would fill the pipes.
        read_on(stdout);
        read_on(child.stderr.take().expect("piped"));
        Ok(Self { name: name.to_owned(), ready, child })
    }

    /// What the lab is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Does this on one of its hosts.
    ///
    /// # Panics
    ///
    /// If this process may not go there: that takes root.
    pub fn on<T>(&self, host: &str, job: impl FnOnce() -> T) -> T {
        let done = inside(&format!("keyway-{}-{host}", self.name), || Ok(job()));
        done.unwrap_or_else(|why| panic!("{host}: {why:#}"))
    }

    /// Ends it as Ctrl-C does; the exit code of the child.
    pub fn interrupt(mut self) -> Option<i32> {
        self.end(Signal::SIGINT)
    }

    /// Kills the child, and leaves the lab to its guard.
    pub fn kill(mut self) {
        self.end(Signal::SIGKILL);
    }

    fn end(&mut self, signal: Signal) -> Option<i32> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("process ids are positive"));
        // One that was waited for has left its id to others.
        if let Ok(None) = self.child.try_wait() {
            kill(pid, signal).ok();
        }
        self.child.wait().expect("our own child").code()
    }
}

impl Drop for ChildLab {
    fn drop(&mut self) {
        self.end(Signal::SIGTERM);
    }
}

fn read_on(mut from: impl Read + Send + 'static) {
    std::thread::spawn(move || io::copy(&mut from, &mut io::sink()));
}
