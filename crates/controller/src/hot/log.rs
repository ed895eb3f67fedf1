//! What was decided about hot keys and why, for people, and what came of it.

use super::policy::Rates;
use crate::ring::Ring;
use cluster::KeyName;
use machine::Instant;
use serde::{Deserialize, Serialize};

/// Decisions about hot keys remembered. Older ones are in the driver's log.
pub const HOT_DECISIONS_MAX: usize = 256;

/// What was decided about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HotAction {
    /// It is hot from now on: its reads are spread.
    Added,
    /// Other nodes, or more or fewer of them, are to hold copies.
    Readers,
    /// It is hot no longer.
    Removed,
    /// A trip begins: its writes go anywhere.
    TripBegun,
    /// The trip is over: its writes go through the chain of its partition.
    TripEnded,
    /// An operator wants it to be hot whatever is asked of it.
    Pinned,
    /// An operator wants that no longer.
    Unpinned,
}

/// One decision about one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotDecision {
    /// When, in Unix milliseconds.
    pub at_ms: u64,
    /// About which key.
    #[serde(flatten)]
    pub name: KeyName,
    /// What.
    pub did: HotAction,
    /// Why.
    pub why: String,
    /// Reads per second, before.
    pub reads: u64,
    /// Writes per second, before.
    pub writes: u64,
    /// How many nodes were to hold copies from then on; 0 for none.
    pub readers: u64,
    /// Which, by their ids, as `0-3 7`; on a trip those that its writes may go to.
    pub nodes: String,
    /// Reads that went to a copy since, until the next decision about the key.
    pub spread: u64,
    /// Reads that went to the tail of its chain since, likewise.
    pub home: u64,
}

/// The last [`HOT_DECISIONS_MAX`] of them, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct HotLog(Ring<HotDecision>);

impl Default for HotLog {
    fn default() -> Self {
        Self(Ring::new(HOT_DECISIONS_MAX))
    }
}

impl HotLog {
    /// Notes a decision; returns its number.
    pub(crate) fn note(
        &mut self,
        now: Instant,
        name: &KeyName,
        (did, why): (HotAction, String),
        rates: Rates,
        (readers, nodes): (u64, String),
    ) -> u64 {
        let (name, Rates { reads, writes }) = (name.clone(), rates);
        let at_ms = now.unix_ms();
        let (spread, home) = (0, 0);
        self.0.note(HotDecision {
            at_ms,
            name,
            did,
            why,
            reads,
            writes,
            readers,
            nodes,
            spread,
            home,
        })
    }

    /// Adds to what came of a decision, if it is remembered.
    pub(crate) fn count(&mut self, decision: u64, spread: u64, home: u64) {
        if let Some(it) = self.0.get_mut(decision) {
            it.spread = it.spread.saturating_add(spread);
            it.home = it.home.saturating_add(home);
        }
    }

    pub(crate) fn noted(&self) -> u64 {
        self.0.noted()
    }

    /// Those after the first `seen`, as far as they are remembered.
    pub(crate) fn since(&self, seen: u64) -> impl Iterator<Item = &HotDecision> {
        self.0.since(seen)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &HotDecision> {
        self.0.iter()
    }
}
