//! What choosing hot keys goes by.

use super::caches::{Caches, Unhelped, WhyCopied};
use super::places::Places;
use super::policy::{Known, Policy, Rates};
use cluster::{HotKey, KeyName, Keyspace, KeyspaceId, KeyspaceKind, MaybeMutant, NodeId};
use machine::Instant;
use std::collections::BTreeSet;
use wire::Revision;

/// What choosing goes by.
pub(crate) struct ChoiceInputs<'a> {
    pub(crate) now: Instant,
    pub(crate) policy: Policy,
    pub(crate) keyspaces: &'a [Keyspace],
    pub(crate) pins: &'a BTreeSet<KeyName>,
    /// What the nodes say, the hottest first.
    pub(crate) list: &'a [HotKey],
    pub(crate) places: &'a Places,
    /// What caches say.
    pub(crate) caches: Caches,
    /// Keys that caches might hold and seem not to.
    pub(crate) unhelped: &'a Unhelped,
    /// Whether the active switch can let writes go anywhere.
    pub(crate) delegates: bool,
    /// Nodes that have an order of hot keys.
    pub(crate) informed: BTreeSet<NodeId>,
    /// Revision of the order that takes in what comes in now.
    pub(crate) revision: Revision,
    /// The rule that is broken on purpose.
    pub(crate) mutant: MaybeMutant,
}

impl ChoiceInputs<'_> {
    /// The keyspace, if its hot keys are to have copies.
    pub(super) fn keyspace(&self, id: KeyspaceId) -> Option<&Keyspace> {
        let wanted = |it: &&Keyspace| it.id == id && it.copies_hot_keys();
        self.keyspaces.iter().find(wanted)
    }

    /// The keyspace of a key, if that may be delegated.
    pub(super) fn delegated(&self, name: &KeyName) -> Option<&Keyspace> {
        let short = name.key.len() <= wire::DELEGATED_KEY_MAX;
        self.keyspace(name.keyspace).filter(|it| {
            let wanted = it.hot.delegates() && it.kind == KeyspaceKind::Hash;
            wanted && short && self.delegates && self.places.nodes() >= it.replicas.into()
        })
    }

    /// Whether caches might hold a key that nodes might copy.
    pub(super) fn is_either(&self, name: &KeyName) -> bool {
        self.keyspace(name.keyspace).is_some_and(|it| it.hot.caches())
    }

    /// Whether a key that is worth copies is to have some, and why if caches might hold it; `None`:
    /// they can help it.
    pub(super) fn copies(&self, name: &KeyName, rates: Rates) -> Option<Option<WhyCopied>> {
        if !self.is_either(name) {
            return Some(None);
        }
        self.unhelped.why_copied(self.now, &self.caches, name, rates).map(Some)
    }

    /// Whether a key is to be taken in: for its reads, or for a delegation.
    pub(super) fn is_wanted(&self, name: &KeyName, rates: Rates, known: Known) -> bool {
        let worth = |it: &Keyspace| self.policy.is_worth_delegation(rates, it.replicas, known);
        self.policy.is_hot(rates) || self.delegated(name).is_some_and(worth)
    }

    /// Whether a key that nobody has pinned is too cold to stay.
    pub(super) fn is_cold(&self, name: &KeyName, rates: Rates) -> bool {
        let keeps =
            |it: &Keyspace| self.policy.keeps_delegation(rates, it.replicas, Known::default());
        self.policy.is_cold(rates) && !self.delegated(name).is_some_and(keeps)
    }
}
