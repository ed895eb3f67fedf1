//! Which core runs what, and how much of it was used.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The core of the client and the core of the servers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    pub(crate) client: usize,
    pub(crate) server: usize,
    /// Whether both run before everything else on them.
    real_time: bool,
}

const PRIORITY: &str = "10";

impl Cores {
    /// Pins this thread to the client's core and, if that is allowed, lets it and all children go
    /// before other processes.
    pub(crate) fn take() -> Self {
        let allowed = sched_getaffinity(Pid::from_raw(0)).expect("a thread may ask");
        let mut cores = (0..CpuSet::count()).filter(|core| allowed.is_set(*core) == Ok(true));
        let client = cores.next().expect("it runs somewhere");
        let server = cores.next_back().unwrap_or(client);
        pin(client);
        let real_time = Command::new("chrt")
            .args(["-f", "-p", PRIORITY, &std::process::id().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        Self { client, server, real_time }
    }

    /// Starts a process all of whose threads stay on the servers' core.
    pub(crate) fn spawn_server(&self, command: &mut Command) -> std::io::Result<Child> {
        self.as_server(|| command.spawn())
    }

    /// Does this on the servers' core: children inherit where their parent runs.
    pub(crate) fn as_server<T>(&self, job: impl FnOnce() -> T) -> T {
        pin(self.server);
        let done = job();
        pin(self.client);
        done
    }

    /// A line for people.
    pub(crate) fn describe(&self) -> String {
        let Self { client, server, .. } = self;
        let apart = if client == server { " (the machine has no other)" } else { "" };
        let priority = if self.real_time {
            format!("FIFO priority {PRIORITY}")
        } else {
            "normal priority: chrt was refused, other processes disturb the figures".into()
        };
        format!("client on core {client}, servers on core {server}{apart}, {priority}")
    }
}

fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core).expect("a core that the system named");
    sched_setaffinity(Pid::from_raw(0), &set).expect("a thread may move within what it was given");
}

/// CPU time of this thread so far.
pub(crate) fn own_cpu_time() -> Duration {
    cpu_time("/proc/thread-self/schedstat").expect("Linux with scheduler statistics")
}

/// CPU time of each thread of these processes so far, by name.
pub(crate) fn cpu_time_by_thread(processes: &[u32]) -> BTreeMap<String, Duration> {
    let mut threads = BTreeMap::new();
    for process in processes {
        let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("the process runs");
        for task in tasks {
            let path = task.expect("procfs can be listed").path();
            // A thread that has ended since the listing has no more to say.
            let Ok(name) = fs::read_to_string(path.join("comm")) else { continue };
            let Some(time) = cpu_time(path.join("schedstat")) else { continue };
            *threads.entry(name.trim().to_owned()).or_default() += time;
        }
    }
    threads
}

fn cpu_time(path: impl AsRef<std::path::Path>) -> Option<Duration> {
    let text = fs::read_to_string(path).ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}
