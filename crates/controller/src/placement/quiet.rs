//! Which partitions have been quiet for long, so that nobody needs them apart.

use super::loads::Loads;
use cluster::{Map, PartitionId};
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// For so long both have to have been quiet.
const QUIET: Duration = Duration::from_secs(600);

/// Quiet is what has less than one part in so many of what a node is never too busy with: far less
/// than what would have it split again.
const QUIET_PART: u64 = 16;

/// Since when partitions are quiet.
#[derive(Clone, Debug, Default)]
pub(super) struct Quiet(BTreeMap<PartitionId, Instant>);

impl Quiet {
    /// Another sample was taken.
    pub(super) fn note(&mut self, now: Instant, map: &Map, loads: &Loads, floor: u64) {
        let before = std::mem::take(&mut self.0);
        let since = |id: PartitionId| {
            let known = before.get(&id).copied();
            // Whoever has just changed is as quiet as it was.
            let quiet = if loads.is_settled(id) { known.or(Some(now)) } else { known };
            quiet.filter(|_| loads.of(id).all() * QUIET_PART <= floor)
        };
        self.0 = map.partitions.iter().filter_map(|it| Some((it.id, since(it.id)?))).collect();
    }

    /// One was made of these, and is as quiet as they were.
    pub(super) fn note_merged(&mut self, origins: &[PartitionId], joint: PartitionId) {
        let since: Option<Vec<Instant>> =
            origins.iter().map(|id| self.0.get(id).copied()).collect();
        if let Some(since) = since.and_then(|it| it.into_iter().max()) {
            self.0.insert(joint, since);
        }
    }

    pub(super) fn is_quiet(&self, now: Instant, partition: PartitionId) -> bool {
        self.0.get(&partition).is_some_and(|since| *since + QUIET <= now)
    }
}
