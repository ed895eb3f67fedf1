//! What the controller did lately and why, for people.

use machine::Instant;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Decisions remembered: several per member in a cluster of some dozens, and still read at one
/// sitting. Older ones are in the driver's log.
pub const DECISIONS_MAX: usize = 256;

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// When, in Unix milliseconds.
    pub at_ms: u64,
    /// What the controller saw.
    pub saw: String,
    /// What it did about it.
    pub did: String,
    /// What became different by that; empty if nothing did.
    pub changed: String,
}

/// The last [`DECISIONS_MAX`] decisions, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions {
    ring: VecDeque<Decision>,
}

impl Decisions {
    pub(crate) fn note(
        &mut self,
        now: Instant,
        saw: impl Into<String>,
        did: impl Into<String>,
        changed: impl Into<String>,
    ) {
        if self.ring.len() == DECISIONS_MAX {
            self.ring.pop_front();
        }
        let (saw, did, changed) = (saw.into(), did.into(), changed.into());
        self.ring.push_back(Decision { at_ms: now.unix_ms(), saw, did, changed });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Decision> {
        self.ring.iter()
    }
}
