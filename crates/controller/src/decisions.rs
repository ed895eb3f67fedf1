//! What the controller did lately and why, for people.

use crate::ring::Ring;
use machine::Instant;
use serde::{Deserialize, Serialize};

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
    /// Whether it is about somebody who was lost, or does what it should not.
    #[serde(default)]
    pub trouble: bool,
}

/// How much a decision matters to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// It is how things go.
    Usual,
    /// It is about somebody who was lost, or does what it should not.
    Trouble,
}

/// The last [`DECISIONS_MAX`] decisions, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Decisions(Ring<Decision>);

impl Default for Decisions {
    fn default() -> Self {
        Self(Ring::new(DECISIONS_MAX))
    }
}

impl Decisions {
    pub(crate) fn note(
        &mut self,
        now: Instant,
        level: Level,
        saw: impl Into<String>,
        did: impl Into<String>,
        changed: impl Into<String>,
    ) {
        let (saw, did, changed) = (saw.into(), did.into(), changed.into());
        let trouble = level == Level::Trouble;
        self.0.note(Decision { at_ms: now.unix_ms(), saw, did, changed, trouble });
    }

    pub(crate) fn noted(&self) -> u64 {
        self.0.noted()
    }

    /// Those after the first `seen`, as far as they are remembered.
    pub(crate) fn since(&self, seen: u64) -> impl Iterator<Item = &Decision> {
        self.0.since(seen)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Decision> {
        self.0.iter()
    }
}
