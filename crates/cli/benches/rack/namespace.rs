//! Going to another network namespace, and coming back.

use nix::sched::{CloneFlags, setns};
use std::fs::File;

/// Where the calling thread is.
const HERE: &str = "/proc/thread-self/ns/net";

/// Does this on a host of a lab: sockets that are opened and processes that are started there
/// belong to it from then on.
///
/// # Panics
///
/// If there is no such namespace, or if it may not be entered: that takes root.
pub(crate) fn inside<T>(name: &str, job: impl FnOnce() -> T) -> T {
    let _back = Back(File::open(HERE).expect("procfs is mounted"));
    let there = File::open(format!("/run/netns/{name}"));
    let there = there.unwrap_or_else(|error| panic!("no namespace {name}: {error}"));
    setns(there, CloneFlags::CLONE_NEWNET).expect("root may go there");
    job()
}

/// Where to go back to, also when something fails.
struct Back(File);

impl Drop for Back {
    fn drop(&mut self) {
        setns(&self.0, CloneFlags::CLONE_NEWNET).expect("it came from there");
    }
}
