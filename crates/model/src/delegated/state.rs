//! Nodes with what they hold and what is on their disks, home, and what was shown.

use crate::state::Bits;
use arrayvec::ArrayVec;
use std::collections::BTreeSet;
use std::fmt;

/// Nodes there can be.
pub const NODES: usize = 3;
/// Nodes that a chain can have.
pub const CHAIN: usize = 3;
/// Versions there can be, of all delegations together, counted from 1.
pub const VERSIONS: usize = 3;

/// What a node holds, or what is on its disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Store {
    /// The newest version that it has taken; 0: none. Its delegation goes by it.
    pub newest: u8,
    /// The newest order that it was given.
    pub order: u8,
}

/// How a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Life {
    /// It runs.
    #[default]
    Up,
    /// It is gone for good.
    Gone,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Node {
    /// Whether it is there.
    pub life: Life,
    /// What it holds, the unsynced too.
    pub holds: Store,
    /// What power leaves of that.
    pub disk: Store,
    /// The order that it has installed since it started; 0: none.
    pub installed: u8,
    /// The first order that it has installed since it started anew; 0 if it never did, and is
    /// older than all.
    pub begun_with: u8,
    /// As the last of a chain: of each version the places that it waits for, `None` without it.
    pub waits: [Option<Bits>; VERSIONS],
    /// What each node has told it, up to which version its disk has it.
    pub told: [u8; NODES],
    /// What it has shown or answered: versions that home is told of under a bug.
    pub shown: Bits,
}

/// What is on its way. What was sent may arrive late, again or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// The write of a version, for this place of its chain, with the places whose disks do not have
    /// it.
    Write {
        /// Which version.
        version: u8,
        /// For whom.
        place: u8,
        /// Who lacks it.
        unsynced: Bits,
    },
    /// DELEGATION_DURABLE.
    Durable {
        /// Who says so.
        from: u8,
        /// To whom.
        to: u8,
        /// Up to which version its disk has it.
        version: u8,
    },
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// The nodes.
    pub nodes: ArrayVec<Node, NODES>,
    /// The newest order: 1 names the first delegation, 2 ends it, 3 names the second.
    pub order: u8,
    /// The chains that versions were given, the oldest first.
    pub chains: ArrayVec<ArrayVec<u8, CHAIN>, VERSIONS>,
    /// What was sent.
    pub network: BTreeSet<Message>,
    /// Nodes that have told home of the first delegation.
    pub asked: Bits,
    /// Those of them that had started anew.
    pub anew: Bits,
    /// The newest of it that they have told of.
    pub found: u8,
    /// What came home of it, once it did.
    pub home: Option<u8>,
    /// Versions that somebody was shown, or answered.
    pub shown: Bits,
    /// How often power may still go.
    pub cuts: u8,
    /// How many nodes may still go for good.
    pub losses: u8,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The switch gives the next version, with this chain.
    Grant(ArrayVec<u8, CHAIN>),
    /// A message arrives.
    Deliver(Message),
    /// A disk has taken what its node holds.
    Sync(u8),
    /// Power goes at a node, which starts anew.
    Cut(u8),
    /// A node goes for good.
    Lose(u8),
    /// Power goes at a node, whose disk then lacks all that it took.
    Tear(u8),
    /// The controller gives the next order.
    Order,
    /// A node installs an order.
    Install(u8, u8),
    /// A node tells home what it holds of the first delegation.
    Tell(u8),
    /// What was told of it comes home.
    Recall,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
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

    /// The same, to change.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn node_mut(&mut self, node: u8) -> &mut Node {
        self.nodes.get_mut(usize::from(node)).expect("chains consist of nodes of the model")
    }

    /// The chain of a version; nobody for one that was not given.
    #[must_use]
    pub fn chain(&self, version: u8) -> &[u8] {
        let chain = self.chains.get(usize::from(version).wrapping_sub(1));
        chain.map(|chain| &chain[..]).unwrap_or_default()
    }
}

impl Node {
    /// What it waits for before it shows a version.
    pub(super) fn waits_mut(&mut self, version: u8) -> Option<&mut Option<Bits>> {
        self.waits.get_mut(usize::from(version).wrapping_sub(1))
    }

    /// Up to which version a node's disk has it, as that has told.
    pub(super) fn told_by(&self, node: u8) -> u8 {
        self.told.get(usize::from(node)).copied().unwrap_or(0)
    }
}
