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
    /// How many there were, with those that are forgotten.
    noted: u64,
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
        self.noted += 1;
        let (saw, did, changed) = (saw.into(), did.into(), changed.into());
        self.ring.push_back(Decision { at_ms: now.unix_ms(), saw, did, changed });
    }

    pub(crate) fn noted(&self) -> u64 {
        self.noted
    }

    /// Those after the first `seen`, as far as they are remembered.
    pub(crate) fn since(&self, seen: u64) -> impl Iterator<Item = &Decision> {
        let new = usize::try_from(self.noted.saturating_sub(seen)).unwrap_or(usize::MAX);
        self.ring.iter().skip(self.ring.len().saturating_sub(new))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Decision> {
        self.ring.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_told_once_as_far_as_it_is_remembered() {
        let mut decisions = Decisions::default();
        for number in 0..300 {
            decisions.note(Instant(0), number.to_string(), "", "");
        }
        let since = |seen| decisions.since(seen).map(|it| it.saw.clone()).collect::<Vec<_>>();
        assert_eq!(since(298), ["298", "299"]);
        assert_eq!(since(0).len(), DECISIONS_MAX);
        assert!(since(decisions.noted()).is_empty());
    }
}
