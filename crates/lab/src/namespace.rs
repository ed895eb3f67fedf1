//! Named network namespaces: going there, and who is there.

use anyhow::{Context, Result};
use nix::sched::{CloneFlags, setns};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where `ip netns` keeps them.
const FOLDER: &str = "/run/netns";

fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// Whether there is one of this name.
pub fn exists(name: &str) -> bool {
    path(name).exists()
}

/// Moves the calling thread there for good: sockets that it opens and processes that it starts
/// from now on belong there.
pub fn enter(name: &str) -> Result<()> {
    let file = File::open(path(name)).with_context(|| format!("no namespace {name}"))?;
    setns(file, CloneFlags::CLONE_NEWNET).with_context(|| format!("cannot enter {name}"))
}

/// Does this there, and comes back: sockets that it opens and processes and threads that it starts
/// stay there.
pub fn inside<T>(name: &str, job: impl FnOnce() -> Result<T>) -> Result<T> {
    let _back = Back(File::open(HERE).context("cannot see the network of this thread")?);
    enter(name)?;
    job()
}

/// Where the calling thread is.
const HERE: &str = "/proc/thread-self/ns/net";

/// Where to go back to, also when something fails.
struct Back(File);

impl Drop for Back {
    fn drop(&mut self) {
        setns(&self.0, CloneFlags::CLONE_NEWNET).expect("it came from there");
    }
}

/// All processes in these namespaces, but this one.
pub fn processes(names: &[String]) -> Vec<Pid> {
    let identity = |path: &Path| fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
    let ours: BTreeSet<(u64, u64)> =
        names.iter().filter_map(|name| identity(&path(name))).collect();
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    let there = |pid: &i32| {
        let namespace = format!("/proc/{pid}/ns/net");
        identity(Path::new(&namespace)).is_some_and(|it| ours.contains(&it))
    };
    let pids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(there).map(Pid::from_raw).filter(|pid| *pid != Pid::this()).collect()
}
