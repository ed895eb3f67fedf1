//! Descriptors of this process: how many there may be, and whose they are.
//!
//! Whatever lets strangers in, such as the gateway, asks here how many are [left] for them.
//! What the engine and the control plane may need is [reserved](Reserve) before, so that no number
//! of connections keeps a node from its files.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::sync::atomic::{AtomicU64, Ordering};

/// Descriptors that every process needs: the standard ones, a log, the program itself, and what
/// libraries open for a moment.
const BASE: u64 = 64;

/// Descriptors that are reserved besides.
static RESERVED: AtomicU64 = AtomicU64::new(0);

/// Descriptors for somebody; given up when this is dropped.
#[derive(Debug)]
#[must_use = "they are reserved as long as this is there"]
pub struct Reserve(u64);

impl Reserve {
    /// Reserves so many.
    pub fn new(count: u64) -> Self {
        RESERVED.fetch_add(count, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        RESERVED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Descriptors that this process may have: raises the limit to what the system allows. It is asked
/// each time, for somebody outside may change it.
#[must_use]
pub fn limit() -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return LIMIT_UNKNOWN };
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() {
        return hard;
    }
    soft
}

/// What a process has if the system does not say: the usual limit.
const LIMIT_UNKNOWN: u64 = 1024;

/// Descriptors that are reserved, those that every process needs among them.
#[must_use]
pub fn reserved() -> u64 {
    RESERVED.load(Ordering::Relaxed).saturating_add(BASE)
}

/// Descriptors that nobody has reserved.
#[must_use]
pub fn left() -> u64 {
    limit().saturating_sub(reserved())
}

/// Descriptors that are open; 0 if the system does not say.
#[must_use]
pub fn open() -> u64 {
    // One of them is the directory that is read.
    let count = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    u64::try_from(count).unwrap_or(u64::MAX).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_not_left_until_it_is_given_up() {
        let before = reserved();
        let one = Reserve::new(1_000_000);
        assert!(reserved() >= before + 1_000_000 && left() + reserved() >= limit());
        drop(one);
        assert!(reserved() < before + 1_000_000);
        assert!((3..limit()).contains(&open()));
    }
}
