//! What a node may take of its machine, and how its shards share it.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use node::MemoryLimit;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a node may take of its machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeLimits {
    /// Requests per second that each shard serves; without it as many as it can.
    pub rate: Option<NonZero<u32>>,
    /// Bytes in memory of all shards together.
    pub memory: Option<u64>,
}

impl NodeLimits {
    pub(super) fn memory(self) -> Option<MemoryLimit> {
        self.memory.map(MemoryLimit::of)
    }
}

/// What each shard of a node holds in memory, for the others to see.
#[derive(Debug)]
pub(super) struct Memory(Vec<AtomicU64>);

impl Memory {
    pub(super) fn of(shards: u16) -> Self {
        Self((0..shards).map(|_| AtomicU64::new(0)).collect())
    }

    /// Notes what this shard holds, and says what the others do.
    pub(super) fn exchange(&self, shard: u16, bytes: u64) -> u64 {
        let held = |(index, it): (usize, &AtomicU64)| {
            if index == usize::from(shard) {
                it.store(bytes, Ordering::Relaxed);
                return 0;
            }
            it.load(Ordering::Relaxed)
        };
        self.0.iter().enumerate().map(held).fold(0, u64::saturating_add)
    }
}

/// Microseconds of processor time that this thread has used.
pub(super) fn busy_us() -> u64 {
    let used = getrusage(UsageWho::RUSAGE_THREAD)
        .map(|usage| usage.user_time().num_microseconds() + usage.system_time().num_microseconds());
    used.ok().and_then(|micros| u64::try_from(micros).ok()).unwrap_or(0)
}
