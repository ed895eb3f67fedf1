//! What a status is made from.

use super::watches::Watches;
use crate::clock::ClusterClock;
use crate::decisions::Decisions;
use crate::hot::Hot;
use crate::members::Members;
use crate::placement::PlacementStatus;
use crate::saved::Saved;
use crate::verify::Verifying;
use machine::Instant;
use wire::Revision;

/// What the controller knows at one moment.
pub(crate) struct View<'a> {
    pub(crate) now: Instant,
    pub(crate) state: &'a Saved,
    pub(crate) durable: Revision,
    pub(crate) members: &'a Members,
    pub(crate) watches: &'a Watches,
    pub(crate) verifying: &'a Verifying,
    pub(crate) decisions: &'a Decisions,
    pub(crate) hot: &'a Hot,
    pub(crate) placement: PlacementStatus,
    pub(crate) clock: &'a ClusterClock,
    pub(crate) orders: u64,
    pub(crate) lease_ms: u64,
}

/// Milliseconds from an earlier moment to a later one.
pub(super) fn ms_between(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.since(from).as_millis()).unwrap_or(u64::MAX)
}
