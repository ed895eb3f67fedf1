//! Nodes with their stores, the map, the switch, and what was acknowledged.

use crate::returns::Store;
use crate::state::Bits;
use arrayvec::ArrayVec;

/// Nodes there can be.
pub const NODES_MAX: usize = 3;
/// Writes there can be: as many as a store of the model has room for.
pub(super) const WRITES_MAX: usize = 3;

/// What the controller has decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Map {
    /// Counts the decisions.
    pub revision: u8,
    /// Of the chain.
    pub epoch: u8,
    /// The last one in which it was open.
    pub opened: u8,
    /// Whether clients are served.
    pub open: bool,
    /// Head first.
    pub chain: ArrayVec<u8, NODES_MAX>,
    /// Of members that came back and were not compared since, whether they are believed by
    /// themselves.
    pub returned: [Option<bool>; NODES_MAX],
    /// The incarnation that each node is known by.
    pub incarnations: [u8; NODES_MAX],
    /// Nodes that are away.
    pub away: Bits,
    /// Since which revision the switch is to send a node nothing, 0 if it may.
    pub fences: [u8; NODES_MAX],
}

/// How a node is to end, or has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum End {
    /// It was not told that it may.
    #[default]
    Untold,
    /// It was told so while nobody could go on without it.
    Alone,
    /// It was told so, and nobody waits for it.
    InOrder,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Node {
    /// Its disk.
    pub store: Store,
    /// Whether it runs.
    pub up: bool,
    /// Counts its starts.
    pub incarnation: u8,
    /// What was stable at the beginning of that, if it was not compared since.
    pub base: Option<u8>,
    /// What it has installed in this incarnation.
    pub map: Option<Map>,
    /// Whether it had no part in a chain since it was started or was away.
    pub returns: bool,
    /// Whether it may end.
    pub end: End,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// The nodes.
    pub nodes: ArrayVec<Node, NODES_MAX>,
    /// What is decided.
    pub map: Map,
    /// What the switch has installed.
    pub tables: Map,
    /// Nodes that have said that they leave, and not begun another incarnation since.
    pub leaving: Bits,
    /// Nodes that have not answered for very long.
    pub given_up: Bits,
    /// Writes begun.
    pub writes: u8,
    /// Of each write the version that it was acknowledged with, 0: it was not.
    pub acknowledged: [u8; WRITES_MAX],
    /// How often a node may still be asked to end, crash and start.
    pub left: (u8, u8, u8),
    /// Nodes that were away and are members again: those that held the same, and those that were
    /// sent what they lacked.
    pub back: (Bits, Bits),
}

impl Map {
    /// Since which revision a node is fenced, if it is.
    #[must_use]
    pub fn fence(&self, node: u8) -> Option<u8> {
        self.fences.get(usize::from(node)).copied().filter(|since| *since > 0)
    }

    pub(super) fn set_fence(&mut self, node: u8, since: u8) {
        if let Some(fence) = self.fences.get_mut(usize::from(node)) {
            *fence = since;
        }
    }

    /// The incarnation that a node is known by.
    #[must_use]
    pub fn incarnation(&self, node: u8) -> u8 {
        self.incarnations.get(usize::from(node)).copied().unwrap_or(0)
    }

    /// Whether a member came back and was not compared since, and whether it is believed.
    #[must_use]
    pub fn has_returned(&self, node: u8) -> Option<bool> {
        self.returned.get(usize::from(node)).copied().flatten()
    }

    pub(super) fn set_returned(&mut self, node: u8, is_believed: Option<bool>) {
        if let Some(returned) = self.returned.get_mut(usize::from(node)) {
            *returned = is_believed;
        }
    }
}

impl World {
    /// A node of the model.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn node(&self, node: u8) -> &Node {
        self.nodes.get(usize::from(node)).expect("chains consist of nodes of the model")
    }

    pub(super) fn node_mut(&mut self, node: u8) -> &mut Node {
        self.nodes.get_mut(usize::from(node)).expect("chains consist of nodes of the model")
    }

    /// Whether a node runs in the incarnation that it is known by.
    #[must_use]
    pub fn is_known(&self, node: u8) -> bool {
        let it = self.node(node);
        it.up && it.incarnation == self.map.incarnation(node)
    }

    /// Whether a node runs and follows the chain of this epoch.
    #[must_use]
    pub fn is_in(&self, node: u8, epoch: u8) -> bool {
        let it = self.node(node);
        it.up && it.map.as_ref().is_some_and(|own| own.epoch == epoch)
    }

    /// Whether a node follows the present chain.
    #[must_use]
    pub fn follows(&self, node: u8) -> bool {
        self.is_known(node) && self.is_in(node, self.map.epoch)
    }

    /// Whether others may leave a chain to this node.
    #[must_use]
    pub fn goes_on(&self, node: u8) -> bool {
        self.is_known(node) && self.node(node).map.is_some() && !self.leaving.has(node)
    }

    /// Whether all of a closed chain have settled, but for these.
    #[must_use]
    pub fn has_settled_but(&self, excused: Bits) -> bool {
        let mut awaited = self.map.chain.iter().filter(|node| !excused.has(**node));
        awaited.all(|node| self.follows(*node) && self.node(*node).store.pending().is_empty())
    }
}
