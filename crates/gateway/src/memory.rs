//! Memory of the gateway's process, as the kernel counts it.

use nix::sys::resource::{UsageWho, getrusage};

/// What the process has now, in bytes; 0 if the kernel does not say.
pub(crate) fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}

/// The most that it ever had, in bytes.
pub(crate) fn peak() -> u64 {
    getrusage(UsageWho::RUSAGE_SELF)
        .map_or(0, |usage| u64::try_from(usage.max_rss()).unwrap_or_default() << 10)
        .max(resident())
}
