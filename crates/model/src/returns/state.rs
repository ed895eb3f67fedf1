//! Nodes with their stores, the map, and what was acknowledged.

use crate::state::Bits;
use arrayvec::ArrayVec;

/// Nodes there can be.
pub(super) const NODES_MAX: usize = 3;
/// Writes there can be, and so versions that are in use at one time.
pub(super) const WRITES_MAX: usize = 3;
/// Copies of stores that can be taken.
pub(super) const COPIES_MAX: usize = 2;

/// What is on a node's disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Store {
    /// Of each version, counted from 1, the write that has it, counted from 1; 0: none.
    pub held: [u8; WRITES_MAX],
    /// Versions, counted from 1, that are committed.
    pub committed: Bits,
    /// Every version up to this one is committed everywhere.
    pub stable: u8,
    /// Incarnations on record, the present one too.
    pub past: Bits,
    /// The newest revision that it has followed.
    pub revision: u8,
    /// The epoch of the chain on record.
    pub epoch: u8,
}

/// A node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Member {
    /// Its disk.
    pub store: Store,
    /// Whether it runs.
    pub up: bool,
    /// Its incarnation, while it runs.
    pub incarnation: u8,
    /// `stable` at the beginning of that, if it has not been compared since.
    pub base: Option<u8>,
    /// The revision that it has installed in this incarnation.
    pub installed: Option<u8>,
}

/// The controller's store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Map {
    /// Of this state of it. No two are the same, for time is in it.
    pub revision: u8,
    /// Revisions that were given out by it.
    pub given: u32,
    /// Of the chain.
    pub epoch: u8,
    /// The last one in which it was open.
    pub opened: u8,
    /// Whether clients are served.
    pub open: bool,
    /// Head first.
    pub chain: ArrayVec<u8, NODES_MAX>,
    /// Of members that came back and were not compared since, whether they remember the
    /// incarnation that they were known by.
    pub returned: [Option<bool>; NODES_MAX],
    /// The incarnation that each node is known by.
    pub incarnations: [u8; NODES_MAX],
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cluster {
    /// The nodes.
    pub nodes: ArrayVec<Member, NODES_MAX>,
    /// What the controller goes by.
    pub map: Map,
    /// Nodes that have reported to this controller.
    pub heard: Bits,
    /// Whether the controller's store was put back and not all nodes have reported since.
    pub rewound: bool,
    /// Whether somebody has reported to this controller that follows a map it knows nothing of.
    pub overtaken: bool,
    /// Copies of nodes' stores.
    pub copies: ArrayVec<(u8, Store), COPIES_MAX>,
    /// A copy of the controller's.
    pub old_map: Option<Map>,
    /// Revisions and incarnations given so far.
    pub revisions: u8,
    /// The same.
    pub incarnations: u8,
    /// Writes begun.
    pub writes: u8,
    /// Of each write the version that it was acknowledged with, 0: it was not.
    pub acknowledged: [u8; WRITES_MAX],
    /// How often nodes may still stop.
    pub stops: u8,
    /// How often a copy may still be put back.
    pub restores: u8,
    /// Whether somebody was sent only what it lacked.
    pub resumed: bool,
    /// Whether the controller's store was put back once.
    pub is_rewritten: bool,
}

impl Store {
    /// The newest version here, 0 without any.
    #[must_use]
    pub fn newest(&self) -> u8 {
        (1..)
            .zip(self.held)
            .filter(|(_, write)| *write > 0)
            .map(|(version, _)| version)
            .last()
            .unwrap_or(0)
    }

    /// The write that has a version, 0 for none.
    #[must_use]
    pub fn write(&self, version: u8) -> u8 {
        self.held.get(usize::from(version).wrapping_sub(1)).copied().unwrap_or(0)
    }

    /// Records a write.
    pub fn record(&mut self, version: u8, write: u8) {
        if let Some(place) = self.held.get_mut(usize::from(version).wrapping_sub(1)) {
            *place = write;
        }
    }

    /// Versions that are recorded and not committed, ascending.
    #[must_use]
    pub fn pending(&self) -> Vec<u8> {
        let all = (1..=self.newest()).filter(|version| self.write(*version) > 0);
        all.filter(|version| !self.committed.has(*version)).collect()
    }

    /// The next write that this lacks and the store of its predecessor has.
    #[must_use]
    pub fn next_of(&self, before: &Self) -> Option<u8> {
        (1..=before.newest())
            .find(|version| before.write(*version) > 0 && self.write(*version) == 0)
    }

    /// Whether all that was acknowledged is recorded here, and committed if it `shows` that. Of
    /// each write the version is told that it was acknowledged with, 0 for none.
    #[must_use]
    pub fn holds(&self, acknowledged: &[u8], shows: bool) -> bool {
        let mut acknowledged = (1..).zip(acknowledged).filter(|(_, version)| **version > 0);
        acknowledged.all(|(write, version)| {
            self.write(*version) == write && (!shows || self.committed.has(*version))
        })
    }

    /// Is copied all that is above this version.
    pub fn resume(&mut self, source: &Self, above: u8) {
        for version in (1..=self.newest()).rev().filter(|version| *version > above) {
            self.forget(version);
        }
        for version in (above + 1)..=source.newest() {
            self.record(version, source.write(version));
        }
        self.committed = source.committed;
    }

    /// Forgets a version.
    pub fn forget(&mut self, version: u8) {
        self.record(version, 0);
        self.committed.0 &= !(1 << version);
    }
}

impl Cluster {
    /// A node that the map names.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn node(&self, node: u8) -> &Member {
        self.nodes.get(usize::from(node)).expect("chains consist of nodes of the model")
    }

    /// The same, to change.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn node_mut(&mut self, node: u8) -> &mut Member {
        self.nodes.get_mut(usize::from(node)).expect("chains consist of nodes of the model")
    }

    /// Whether a node follows the present map, in the incarnation that this knows.
    #[must_use]
    pub fn follows(&self, node: u8) -> bool {
        let it = self.node(node);
        it.up && it.installed == Some(self.map.revision)
    }
}
