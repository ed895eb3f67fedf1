//! What members hold, and what they serve.

use super::bug::Bug;
use super::controller::{Hot, Map};
use super::scope::Rules;

/// A switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Switch {
    /// Counts its starts; a new one has forgotten all below.
    pub incarnation: u8,
    /// Whether its lease runs.
    pub lease: bool,
    /// Its tables.
    pub map: Option<Map>,
    /// The tables that it says it has: it says so when all of its pipelines have them.
    pub told: Option<Map>,
    /// The floor of the key, if it has a proven entry of it.
    pub floor: Option<u8>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Node {
    /// Whether its lease runs.
    pub lease: bool,
    /// Whether it may answer requests that pass no switch.
    pub direct: bool,
    /// The assignment that the shard of the key has installed.
    pub map: Option<Map>,
    /// The revision that another shard of it has installed.
    pub other_shard: u8,
    /// The newest version that it has, as a member of the chain.
    pub newest: u8,
    /// The newest that is committed.
    pub committed: u8,
    /// The version of its copy, if it is no member.
    pub copy: u8,
}

impl Switch {
    /// The tables by which it serves clients.
    pub(super) fn serves(&self, own: u8) -> Option<&Map> {
        self.map.as_ref().filter(|map| self.lease && map.activates(own))
    }

    /// Takes an order. Which incarnation it is for keeps a leader that was deposed from one that
    /// has forgotten the term.
    pub(super) fn install(&mut self, rules: &Rules, own: u8, map: &Map) {
        if !map.activates(own) || map.hot != Hot::Copied {
            self.floor = None;
        }
        self.told = Some(map.clone());
        if !rules.has(Bug::ConfirmEarly) {
            self.map = Some(map.clone());
        }
    }

    /// Whether whoever decided this map knew of this incarnation.
    pub(super) fn is_known_to(&self, own: u8, map: &Map) -> bool {
        map.incarnations.get(usize::from(own)) == Some(&self.incarnation)
    }

    /// Whether an order is for it, and news.
    pub(super) fn accepts(&self, rules: &Rules, own: u8, map: &Map) -> bool {
        let known = self.is_known_to(own, map) || rules.has(Bug::ObeyUnregistered);
        let is_new = |told: &Map| {
            let old = rules.has(Bug::ObeyOldTerm) && map.term < told.term;
            old || map.term >= told.term && map.revision > told.revision
        };
        known && self.told.as_ref().is_none_or(is_new)
    }
}

impl Node {
    /// The assignment, if the node takes part in it with a lease.
    pub(super) fn serves(&self) -> Option<&Map> {
        self.map.as_ref().filter(|_| self.lease)
    }

    /// Whether an assignment is news.
    pub(super) fn accepts(&self, map: &Map) -> bool {
        let is_new = |own: &Map| map.term >= own.term && map.revision > own.revision;
        self.map.as_ref().is_none_or(is_new)
    }

    /// Takes an assignment. The last of a closed chain commits what it has, and answers it: gives
    /// the version.
    pub(super) fn install(&mut self, own: u8, map: &Map) -> Option<u8> {
        self.map = Some(map.clone());
        let commits = !map.open && map.tail() == Some(own) && self.committed < self.newest;
        if commits {
            self.committed = self.newest;
        }
        commits.then_some(self.newest)
    }
}
