//! Server processes: started, limited, and what processor time they took.

use super::cgroup::Group;
use anyhow::{Context, Result};
use lab::process::{Running, tied};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A process that ends when this is dropped, or this program ends.
#[derive(Debug)]
pub(crate) struct Process(Running);

impl Process {
    /// Starts a program; what it prints goes to a file in `logs`.
    pub(crate) fn start(program: &str, arguments: &[String], logs: &Path) -> Result<Self> {
        let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
        let number = fs::read_dir(logs).context("no directory for logs")?.count();
        let log = logs.join(format!("{number}-{name}.log"));
        let running = Running::start(tied(Path::new(program)).args(arguments), log);
        running.with_context(|| format!("cannot start {program}")).map(Self)
    }

    /// Processor time so far, of the threads that there are.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let tasks = format!("/proc/{}/task", self.0.pid());
        let mut nanoseconds = 0;
        for task in fs::read_dir(&tasks).context("a server has ended by itself")? {
            let path = task?.path().join("schedstat");
            // A thread may end between the two looks.
            let Ok(text) = fs::read_to_string(path) else { continue };
            nanoseconds += text.split(' ').next().and_then(|it| it.parse().ok()).unwrap_or(0);
        }
        Ok(Duration::from_nanos(nanoseconds))
    }
}

/// A process that may have a limit of its own.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    // Dropped first: a group with processes cannot be removed.
    process: Process,
    group: Option<Group>,
}

impl ServerProcess {
    /// Starts a program, without a limit yet, in a control group of this name if it is to have one.
    pub(crate) fn start(
        program: &str,
        arguments: &[String],
        logs: &Path,
        group: Option<&str>,
    ) -> Result<Self> {
        let name = |group| format!("keyway-bench-{}-{group}", std::process::id());
        let group = group.map(|group| Group::new(&name(group))).transpose()?;
        let process = Process::start(program, arguments, logs)?;
        if let Some(group) = &group {
            group.take(process.0.pid())?;
        }
        Ok(Self { process, group })
    }

    /// Sets what share of one processor it gets; `None`: all it wants.
    pub(crate) fn limit(&self, share: Option<f64>) -> Result<()> {
        self.group.as_ref().map_or(Ok(()), |group| group.limit(share))
    }

    /// Processor time so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        self.process.cpu()
    }
}

/// Processor time of this process so far, of threads that have ended as well.
pub(crate) fn own_cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).context("no processor times")?;
    let time = |it: TimeVal| {
        let microseconds = it.tv_sec() * 1_000_000 + it.tv_usec();
        Duration::from_micros(u64::try_from(microseconds).unwrap_or(0))
    };
    Ok(time(usage.user_time()) + time(usage.system_time()))
}
