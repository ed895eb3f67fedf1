//! Processes of a lab, and how one is known again: by its id and when it began.

use crate::namespace;
use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

/// One process among all that there were since the machine began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub pid: i32,
    /// In ticks since the machine began.
    started: u64,
}

impl Identity {
    /// The process that has this id now; `None` if there is none, or none that runs.
    pub fn of(pid: Pid) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it may contain anything, even brackets.
        let (_, after) = stat.rsplit_once(')')?;
        let mut fields = after.split_ascii_whitespace();
        let ended = matches!(fields.next()?, "Z" | "X");
        let started = fields.nth(STARTED_AFTER_STATE)?.parse().ok()?;
        (!ended).then_some(Self { pid: pid.as_raw(), started })
    }

    /// Whether it still runs.
    pub fn runs(self) -> bool {
        Self::of(Pid::from_raw(self.pid)) == Some(self)
    }

    /// Sends it a signal, if it still runs.
    pub fn signal(self, signal: Signal) {
        if self.runs() {
            // It may end between the look and the signal; ids are not given again that soon.
            kill(Pid::from_raw(self.pid), signal).ok();
        }
    }
}

/// Fields of `/proc/PID/stat` between the state (the third) and the start (the 22nd).
const STARTED_AFTER_STATE: usize = 18;

/// A process of a lab.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Process {
    /// Whose: `n1`, `sw`.
    pub place: String,
    /// Where.
    pub namespace: String,
    /// Which.
    pub identity: Identity,
    /// What it prints.
    pub log: PathBuf,
}

/// What to start, and where.
#[derive(Clone, Debug)]
pub struct Launch {
    pub place: String,
    pub namespace: String,
    /// Which program; this one if none is named.
    pub program: Option<&'static str>,
    pub arguments: Vec<String>,
    /// Of its environment.
    pub variables: Vec<(&'static str, PathBuf)>,
    pub log: PathBuf,
    /// Whether the kernel is to kill it when this process ends.
    pub tied: bool,
}

/// Starts a process. `ended` is called when it has ended, in a thread that is there until then:
/// a process that is tied ends with the thread that started it.
pub fn start(
    plan: Launch,
    ended: impl FnOnce(&str, ExitStatus) + Send + 'static,
) -> Result<Process> {
    let Launch { place, namespace, log, .. } = plan.clone();
    let (sender, started) = channel();
    let body = move || {
        let mut child = match spawn(&plan) {
            Ok(child) => child,
            Err(error) => return report(&sender, Err(error)),
        };
        let pid = i32::try_from(child.id()).expect("process ids are positive");
        report(&sender, Ok(pid));
        let status = child.wait().expect("our own child");
        ended(&plan.place, status);
    };
    thread::Builder::new().name(place.clone()).spawn(body).context("cannot start a thread")?;
    let pid = started.recv().context("the thread ended")?;
    let pid = pid.with_context(|| format!("cannot start {place}"))?;
    // One that has ended already is found missing later.
    let identity = Identity::of(Pid::from_raw(pid)).unwrap_or(Identity { pid, started: u64::MAX });
    Ok(Process { place, namespace, identity, log })
}

fn report(sender: &Sender<Result<i32>>, result: Result<i32>) {
    sender.send(result).expect("the starter waits");
}

fn spawn(plan: &Launch) -> Result<Child> {
    namespace::enter(&plan.namespace)?;
    let binary = plan.program.map_or_else(this_binary, |program| Ok(program.into()))?;
    let mut command = if plan.tied { tied(&binary) } else { Command::new(binary) };
    let log =
        File::create(&plan.log).with_context(|| format!("cannot create {}", plan.log.display()))?;
    command.args(&plan.arguments).stdin(Stdio::null());
    command.envs(plan.variables.iter().map(|(name, value)| (name, value)));
    command.stdout(log.try_clone().context("no file descriptors left")?).stderr(log);
    without_settings(&mut command);
    // Ctrl-C is for the lab as a whole.
    command.process_group(0);
    command.spawn().context(ADVICE)
}

const ADVICE: &str = "is setpriv there? apt-get install util-linux";

/// A program that the kernel kills when the thread that starts it ends.
pub fn tied(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program).stdin(Stdio::null());
    command
}

/// Takes settings from a command that are meant for clients, and read by all.
pub fn without_settings(command: &mut Command) {
    for name in ["KEYWAY_SERVICE", "KEYWAY_ADMIN", "KEYWAY_KEYSPACE", "KEYWAY_CERTS"] {
        command.env_remove(name);
    }
}

/// A child that runs until it is killed, at the latest when this is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts a command whose output goes to a file.
    ///
    /// # Errors
    ///
    /// If it does not start, or the file cannot be made.
    pub fn start(command: &mut Command, log: PathBuf) -> Result<Self> {
        let file = File::create(&log).with_context(|| format!("no log {}", log.display()))?;
        command.stdout(file.try_clone().context("no file descriptors left")?).stderr(file);
        Ok(Self { child: command.spawn().context(ADVICE)?, log })
    }

    /// Which process it is.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("process ids are positive"))
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        // It is not waited for before it is killed, so that its id is not another's.
        kill(self.pid(), signal).ok();
    }

    /// How it ended, if it did so without having been killed.
    pub fn end(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our own child")
    }

    /// Where its output is.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// What it has printed so far.
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Whether it has said, as JSON, that it is ready.
    pub fn is_ready(&self) -> bool {
        self.printed().contains("\"ready\"")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // As a crash would; it may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// This program, to be started once more.
pub fn this_binary() -> Result<PathBuf> {
    std::env::current_exe().context("cannot find this program")
}

/// Ends all processes in these namespaces: asks them, and kills those that do not.
pub fn end_all(namespaces: &[String]) -> Result<()> {
    // By SIGTERM a member waits for others to take over, which end as well.
    for (signal, patience) in [
        (Signal::SIGINT, ASKED_WAIT),
        (Signal::SIGTERM, ASKED_WAIT),
        (Signal::SIGKILL, KILLED_WAIT),
    ] {
        // Who has ended by itself in between is not missed.
        namespace::processes(namespaces).iter().for_each(|pid| kill(*pid, signal).unwrap_or(()));
        for _ in 0..patience.as_millis() / LOOK_INTERVAL.as_millis() {
            if namespace::processes(namespaces).is_empty() {
                return Ok(());
            }
            pause(LOOK_INTERVAL);
        }
    }
    let there: Vec<String> =
        namespace::processes(namespaces).iter().map(ToString::to_string).collect();
    bail!("processes that cannot be killed: {}", there.join(", "))
}

/// Time for nodes to write to disk what they still have to.
const ASKED_WAIT: Duration = Duration::from_secs(5);
/// The kernel needs a moment on a machine that is busy.
const KILLED_WAIT: Duration = Duration::from_secs(10);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Waits.
#[expect(clippy::disallowed_methods, reason = "a command may wait; this one looks again and again")]
pub fn pause(interval: Duration) {
    thread::sleep(interval);
}

/// The last lines of a log, for people.
pub fn last_lines(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(LINES_SHOWN_MAX);
    lines.get(from..).unwrap_or_default().iter().map(|line| format!("\n  {line}")).collect()
}

/// Enough to see why a process has ended.
const LINES_SHOWN_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start_and_not_by_its_id_alone() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        let identity = Identity::of(pid).unwrap();
        assert!(identity.runs());
        assert!(!Identity { started: identity.started + 1, ..identity }.runs());
        identity.signal(Signal::SIGKILL);
        child.wait().unwrap();
        assert!(!identity.runs());
        assert_eq!(Identity::of(pid), None);
    }

    #[test]
    fn of_a_long_log_the_end_is_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "1\n2\n3\n4\n5\n6\n7\n").unwrap();
        assert_eq!(last_lines(file.path()), "\n  3\n  4\n  5\n  6\n  7");
        assert_eq!(last_lines(Path::new("/nowhere")), "");
    }
}
