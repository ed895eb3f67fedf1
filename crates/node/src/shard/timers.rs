//! When which pending write is to be sent again.

use cluster::PartitionId;
use machine::Instant;
use std::collections::BTreeSet;
use wire::Version;

/// Instants with partition and version.
pub(crate) type Timers = BTreeSet<(Instant, PartitionId, Version)>;

/// Takes out the writes that are due by `now`: partition and version, the earliest first. Not more
/// than may be in one turn; the others stay due.
pub(crate) fn take_due(timers: &mut Timers, now: Instant) -> Vec<(PartitionId, Version)> {
    let mut due = Vec::new();
    while due.len() < DUE_AT_ONCE
        && let Some((at, partition, version)) = timers.first().copied()
        && at <= now
    {
        timers.pop_first();
        due.push((partition, version));
    }
    due
}

/// Writes sent again in one turn: a millisecond of work. A node whose successor is gone has many.
const DUE_AT_ONCE: usize = 1_024;
