//! One role of a cluster as a process of the binary under test.

use crate::rack::{Host, INTERFACE, Place};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// A switch, by its position in the configuration.
    Switch(u8),
    /// One of two controllers: whoever comes first is active, the other stands by.
    Controller(u8),
    /// A storage node, by its id.
    Node(u8),
}

/// Where the switches switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plane {
    /// In their processes.
    User,
    /// In the kernel, on the one interface that their hosts have.
    Xdp,
}

impl Role {
    /// The host on which it runs.
    pub(crate) fn place(self) -> Place {
        match self {
            Self::Switch(index) => Place::Switch(index),
            Self::Controller(_) => Place::Controllers,
            Self::Node(id) => Place::Node(id),
        }
    }

    fn arguments(self, plane: Plane) -> Vec<String> {
        let xdp = ["--plane", "xdp", "--ports", INTERFACE].map(str::to_owned);
        match self {
            Self::Switch(index) => {
                let which = ["switch".into(), "--index".into(), index.to_string()];
                which.into_iter().chain(xdp.into_iter().filter(|_| plane == Plane::Xdp)).collect()
            }
            Self::Controller(_) => vec!["controller".into(), "--standby".into()],
            Self::Node(id) => vec!["node".into(), "--id".into(), id.to_string()],
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(index) => write!(f, "switch-{index}"),
            Self::Controller(index) => write!(f, "controller-{index}"),
            Self::Node(id) => write!(f, "node-{id}"),
        }
    }
}

/// The binary under test, without settings from outside; killed when the thread that starts it
/// ends.
pub(crate) fn keyway() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", env!("CARGO_BIN_EXE_keyway")]);
    for name in ["KEYWAY_SERVICE", "KEYWAY_ADMIN", "KEYWAY_KEYSPACE", "KEYWAY_LOG"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// A process that runs until it is killed.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts this role on this host. What it prints goes to `log`.
    pub(crate) fn start(
        host: &Host,
        role: Role,
        plane: Plane,
        config: &Path,
        log: PathBuf,
    ) -> Self {
        let mut command = keyway();
        command.args(role.arguments(plane)).arg("--config").arg(config);
        let file = File::create(&log).expect("the folder of logs is there");
        command.stdout(file.try_clone().expect("a file descriptor")).stderr(file);
        let child = host.run(move || command.spawn()).expect("setpriv and the binary are there");
        Self { child, log }
    }

    /// Kills it as a crash would.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself, and then `end_of` has told.
        self.child.kill().ok();
        self.child.wait().expect("our own child");
    }

    /// Stops it, so that it does nothing until it is told to go on.
    pub(crate) fn stop(&self) {
        self.signal(Signal::SIGSTOP);
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("process ids are positive");
        // It is not waited for before it is killed, so that its id is not another's.
        kill(Pid::from_raw(id), signal).ok();
    }

    /// How it ended, if it did so without having been killed.
    pub(crate) fn end(&mut self) -> Option<String> {
        let status = self.child.try_wait().expect("our own child")?;
        Some(format!("{status}, see {}", self.log.display()))
    }

    /// What it has printed so far.
    pub(crate) fn printed(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
