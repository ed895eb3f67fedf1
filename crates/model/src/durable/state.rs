//! Nodes with what they hold and what is on their disks, the map, and what was shown.

use crate::state::Bits;
use arrayvec::ArrayVec;
use std::collections::BTreeSet;
use std::fmt;

/// Nodes there can be.
pub const NODES_MAX: usize = 3;
/// Versions there can be, counted from 1.
pub const VERSIONS_MAX: u8 = 3;

/// What a node holds, or what is on its disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Store {
    /// Of each version the write that has it, counted from 1; 0: none.
    pub held: [u8; VERSIONS_MAX as usize],
    /// Versions that are committed.
    pub committed: Bits,
    /// Up to this one all are committed everywhere, as the head has said.
    pub stable: u8,
    /// The epoch of the chain that it has followed last.
    pub epoch: u8,
    /// Whether it has all that was written before it came.
    pub caught_up: bool,
}

/// How a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Life {
    /// It runs, in an incarnation that the controller knows.
    #[default]
    Known,
    /// It has started anew, and the controller has not heard of that.
    Back,
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
    /// The chain that it has installed in this incarnation; in epoch 0 none.
    pub chain: Chain,
    /// As the last of the chain: what each place of it has said to be on its disk in this epoch.
    pub told: [Bits; NODES_MAX],
    /// Versions that the head of this epoch is known to have.
    pub arrived: Bits,
    /// As a closed head: members that have nothing more to offer.
    pub offered: Bits,
    /// Whether the closed head has said that nothing is pending.
    pub heard_stable: bool,
}

/// A chain as the controller decided it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Chain {
    /// Which.
    pub epoch: u8,
    /// The last epoch in which it was open.
    pub opened: u8,
    /// Whether clients are served.
    pub open: bool,
    /// Whether the last is a learner.
    pub has_learner: bool,
    /// Head first.
    pub nodes: ArrayVec<u8, NODES_MAX>,
}

/// What is on its way, in an epoch. What was sent may arrive late, again or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// CHAIN_WRITE to the next: version, write.
    Write {
        /// In which epoch.
        epoch: u8,
        /// To whom.
        to: u8,
        /// Which version.
        version: u8,
        /// Which write has it.
        write: u8,
        /// How far all is stable.
        stable: u8,
    },
    /// CHAIN_DURABLE to the last of the chain.
    Durable {
        /// In which epoch.
        epoch: u8,
        /// To whom.
        to: u8,
        /// The place of who says so.
        place: u8,
        /// Which version.
        version: u8,
    },
    /// CHAIN_COMMIT to the one before, or from the head to who has offered.
    Commit {
        /// In which epoch.
        epoch: u8,
        /// To whom.
        to: u8,
        /// Which version.
        version: u8,
    },
    /// CHAIN_OFFER to a closed head: a pending write.
    Offer {
        /// In which epoch.
        epoch: u8,
        /// Who has it.
        from: u8,
        /// Which version.
        version: u8,
        /// Which write has it.
        write: u8,
    },
    /// The same with nothing in it: there is nothing that the head does not have.
    Nothing {
        /// In which epoch.
        epoch: u8,
        /// Who says so.
        from: u8,
    },
    /// CHAIN_STABLE of a closed head.
    Stable {
        /// In which epoch.
        epoch: u8,
        /// How far all is stable: its newest version.
        stable: u8,
    },
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// The nodes.
    pub nodes: ArrayVec<Node, NODES_MAX>,
    /// What the controller has decided.
    pub map: Chain,
    /// Nodes that have reported to have settled in the present epoch.
    pub settled: Bits,
    /// What was sent.
    pub network: BTreeSet<Message>,
    /// Of each version the write that somebody was shown; 0: none.
    pub shown: [u8; VERSIONS_MAX as usize],
    /// How many nodes may still be taken in.
    pub joins: u8,
    /// How often the controller may still close a chain that lacks nobody.
    pub closes: u8,
    /// How often power may still go.
    pub cuts: u8,
    /// How many nodes may still go for good.
    pub losses: u8,
}

impl Store {
    /// The newest version here, 0 without any.
    #[must_use]
    pub fn newest(&self) -> u8 {
        (1..=VERSIONS_MAX).rev().find(|version| self.write(*version) > 0).unwrap_or(0)
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

    /// Whether a version is committed here, as far as this node knows.
    #[must_use]
    pub fn is_committed(&self, version: u8) -> bool {
        version <= self.stable || self.committed.has(version)
    }

    /// Whether a request is known here.
    #[must_use]
    pub fn knows(&self, write: u8) -> bool {
        self.held.contains(&write)
    }

    /// Versions that are recorded and not committed.
    #[must_use]
    pub fn pending(&self) -> Bits {
        let all = (1..=VERSIONS_MAX).filter(|version| self.write(*version) > 0);
        all.filter(|version| !self.committed.has(*version)).collect()
    }
}

impl Chain {
    /// The place of a node.
    #[must_use]
    pub fn place(&self, node: u8) -> Option<usize> {
        self.nodes.iter().position(|other| *other == node)
    }

    /// Who comes after a node.
    #[must_use]
    pub fn after(&self, node: u8) -> Option<u8> {
        self.nodes.get(self.place(node)? + 1).copied()
    }

    /// Who comes before a node.
    #[must_use]
    pub fn before(&self, node: u8) -> Option<u8> {
        self.nodes.get(self.place(node)?.checked_sub(1)?).copied()
    }

    /// Whether a node is the last of it.
    #[must_use]
    pub fn is_last(&self, node: u8) -> bool {
        self.nodes.last() == Some(&node)
    }

    /// Whether a node is the first of it.
    #[must_use]
    pub fn is_head(&self, node: u8) -> bool {
        self.nodes.first() == Some(&node)
    }

    /// The full members.
    #[must_use]
    pub fn members(&self) -> &[u8] {
        let count = self.nodes.len() - usize::from(self.has_learner);
        self.nodes.get(..count).unwrap_or_default()
    }
}

impl Message {
    /// The epoch that it belongs to.
    #[must_use]
    pub fn epoch(&self) -> u8 {
        match *self {
            Self::Write { epoch, .. }
            | Self::Durable { epoch, .. }
            | Self::Commit { epoch, .. }
            | Self::Offer { epoch, .. }
            | Self::Nothing { epoch, .. }
            | Self::Stable { epoch, .. } => epoch,
        }
    }
}

impl Node {
    /// Whether all others of a closed chain have said to this head that they have nothing more.
    #[must_use]
    pub fn is_united(&self, head: u8) -> bool {
        let mut others = self.chain.nodes.iter().filter(|other| **other != head);
        others.all(|other| self.offered.has(*other))
    }
}

impl World {
    /// A node that the map names.
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

    /// Whether a node follows the present map.
    #[must_use]
    pub fn follows(&self, node: u8) -> bool {
        let it = self.node(node);
        it.life == Life::Known && it.chain.epoch == self.map.epoch
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let door = if self.open { "open" } else { "closed" };
        let learner = if self.has_learner { ", the last a learner" } else { "" };
        write!(f, "epoch {} {door} {:?}{learner}", self.epoch, self.nodes)
    }
}
