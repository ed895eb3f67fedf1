//! Comparing what the members of a chain hold, while they serve (section 11 of `spec/protocol.md`).
//!
//! The tail of each partition leads: it asks all members for digests of their records, finds the
//! keys that differ, and lets the wrong ones be given what is right where that is certain. Every
//! member's part is in [`look`], what to think of a key in [`judge`].

mod judge;
pub(crate) mod look;
pub(crate) mod run;

use cluster::{PartitionId, Verification, VerifyOrder};
use machine::Instant;
use run::Run;
use std::collections::{BTreeMap, BTreeSet};

/// What this shard has compared, and goes on to compare, as a tail.
#[derive(Debug, Default)]
pub(crate) struct Verifier {
    pub(crate) wanted: Option<VerifyOrder>,
    pub(crate) left: BTreeSet<PartitionId>,
    pub(crate) run: Option<Run>,
    pub(crate) results: BTreeMap<PartitionId, Verification>,
}

impl Verifier {
    pub(crate) fn due(&self) -> Option<Instant> {
        self.run.as_ref().map(|run| run.due)
    }

    /// Number of the newest wish.
    pub(crate) fn number(&self) -> u64 {
        self.wanted.map_or(0, |order| order.number)
    }

    /// What has been found so far.
    pub(crate) fn report(&self) -> Vec<Verification> {
        let running = self.run.as_ref().map(|run| &run.sum);
        let others = self
            .results
            .values()
            .filter(|it| running.is_none_or(|running| running.partition != it.partition));
        others.chain(running).cloned().collect()
    }
}
