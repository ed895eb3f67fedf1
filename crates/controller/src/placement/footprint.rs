//! What a byte of a client takes at a node.

use crate::holdings::Holding;

/// A node that holds one part in so many of what it may tells what a client's byte takes there: of
/// one that holds less most may be what any node takes.
const TELLING_PART: u64 = 4;

/// Bytes that a node holds for bytes of clients.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Footprint {
    pub(super) held: u64,
    pub(super) stored: u64,
}

impl Footprint {
    /// Of a node that has given so many bytes away and has freed so many, as if it had done
    /// neither; `None` if it holds too little to tell.
    pub(super) fn of(it: &Holding, (given, freed): (u64, u64)) -> Option<Self> {
        let stored = it.stored.saturating_add(given);
        let tells = it.held >= it.most / TELLING_PART && stored > 0;
        tells.then_some(Self { held: it.held.saturating_add(freed), stored })
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            held: self.held.saturating_add(other.held),
            stored: self.stored.saturating_add(other.stored),
        }
    }

    /// What so many bytes of clients take; never less than these.
    pub(super) fn apply(self, bytes: u64) -> u64 {
        let taken = u128::from(bytes) * u128::from(self.held);
        let taken = taken.checked_div(self.stored.into()).unwrap_or(0);
        u64::try_from(taken).unwrap_or(u64::MAX).max(bytes)
    }
}
