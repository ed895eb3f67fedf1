//! Places of a chain, and which of them have said what: whose disks have a write, and who has
//! nothing left to offer.

use crate::replica::pending::PENDING_MAX;
use std::collections::{BTreeMap, BTreeSet};
use wire::Version;

/// Places of a chain, a bit for each.
pub(crate) type Places = u32;

/// What the last of a chain was told of writes that have not come to it yet: the places whose disks
/// have them.
#[derive(Debug, Default)]
pub(crate) struct EarlySyncs(BTreeMap<Version, Places>);

impl EarlySyncs {
    pub(crate) fn note(&mut self, version: Version, place: Places) {
        if let Some(places) = self.0.get_mut(&version) {
            *places |= place;
        } else if self.0.len() < PENDING_MAX {
            self.0.insert(version, place);
        }
    }

    /// What was told of a write, which has come.
    pub(crate) fn take(&mut self, version: Version) -> Places {
        self.0.remove(&version).unwrap_or(0)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The bit of a place.
pub(crate) fn place_bit(place: usize) -> Places {
    1 << place
}

/// How far the members of a closed chain have united.
#[derive(Debug, Default)]
pub(crate) struct Union {
    /// What is pending here and has not come down in this epoch.
    pub(crate) to_offer: BTreeSet<Version>,
    /// At the head: who has said that nothing of that is left.
    pub(crate) heard: Places,
}

impl Union {
    pub(crate) fn is_to_offer(&self, version: Version) -> bool {
        self.to_offer.contains(&version)
    }

    /// A write has come down, or is not pending any more. Says whether it was to be offered.
    pub(crate) fn see(&mut self, version: Version) -> bool {
        self.to_offer.remove(&version)
    }
}
