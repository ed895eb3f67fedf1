//! Maps, nodes with what they hold and what is on their disks, and what was answered.

use crate::state::Bits;
use arrayvec::ArrayVec;
use std::collections::BTreeSet;
use std::fmt;

/// Nodes there can be.
pub const NODES: usize = 3;
/// Keys there are: 0 is before 1.
pub(super) const KEYS: usize = 2;
/// Requests there can be.
pub const REQUESTS: usize = 3;
/// Maps there can be.
pub(super) const MAPS: usize = 8;
/// Partitions at a time, and of which one can be made.
pub(super) const PARTITIONS: usize = 2;

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    /// Its id, which is never used again.
    pub id: u8,
    /// Its keys.
    pub keys: Bits,
    /// Its configuration number.
    pub epoch: u8,
    /// Whether it serves.
    pub open: bool,
    /// Its nodes: the head, then the tail.
    pub chain: ArrayVec<u8, 2>,
    /// What it was made of.
    pub parents: ArrayVec<u8, PARTITIONS>,
    /// The node of its chain that has to be copied to before it settles.
    pub empty: Option<u8>,
}

/// A map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Map {
    /// Its partitions.
    pub partitions: ArrayVec<Partition, PARTITIONS>,
}

/// What is held of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Record {
    /// The version of the last write; 0: none.
    pub version: u8,
    /// The requests that were applied.
    pub made_by: Bits,
    /// One was applied twice.
    pub twice: bool,
    /// One was given a version that is not above all before.
    pub back: bool,
}

/// What is held of a partition beside its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Held {
    /// Of which.
    pub id: u8,
    /// The epoch in which it was copied here; 0: it was not.
    pub since: u8,
    /// The last version.
    pub last: u8,
    /// Of each request the version that it was given; 0: none.
    pub sessions: [u8; REQUESTS],
}

/// What a node holds, or what is on its disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Store {
    /// By key.
    pub records: [Record; KEYS],
    /// By id, in no order.
    pub held: ArrayVec<Held, 5>,
    /// The newest map that it has followed.
    pub revision: u8,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Node {
    /// What it holds, the unsynced too.
    pub holds: Store,
    /// What power leaves of that.
    pub disk: Store,
    /// The map that it has installed since it started, counted from 1; 0: none.
    pub installed: u8,
}

/// A partition and an epoch that a packet may be stamped with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// Which partition.
    pub id: u8,
    /// Which epoch of it.
    pub epoch: u8,
}

/// A write on its way from the head to the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Write {
    /// For which chain.
    pub stamp: Stamp,
    /// Its version.
    pub version: u8,
    /// Which request.
    pub request: u8,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// All maps, the oldest first.
    pub maps: ArrayVec<Map, MAPS>,
    /// The nodes.
    pub nodes: ArrayVec<Node, NODES>,
    /// What was sent.
    pub network: BTreeSet<Write>,
    /// Partitions whose chain has settled in the epoch of the newest map.
    pub settled: Bits,
    /// The version that each request was answered; 0: not yet.
    pub answers: [u8; REQUESTS],
    /// A request was answered two versions.
    pub torn: bool,
    /// Some request was applied by a partition that was made of others.
    pub late: bool,
    /// Some was answered again by one, which had not applied it.
    pub again: bool,
    /// How many partitions may still be split, united and moved, and how often power may go.
    pub left: [u8; 4],
    /// The next partition's id.
    pub next_id: u8,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A copy of a request arrives at a node, stamped so.
    Request(u8, u8, Stamp),
    /// A write arrives at a node.
    Deliver(u8, Write),
    /// The controller closes a partition.
    Close(u8),
    /// It opens one that has settled.
    Open(u8),
    /// It splits one that has settled.
    Split(u8),
    /// It makes one of all, which have settled.
    Merge,
    /// It replaces the head of one that has settled by a node that has nothing of it.
    Move(u8),
    /// The nodes of a closed chain settle.
    Settle(u8),
    /// What the tail of a closed chain holds is copied to its new head.
    Copy(u8),
    /// A node installs the map of this revision.
    Install(u8, u8),
    /// A disk has taken what its node holds.
    Sync(u8),
    /// Power goes at a node, which starts anew.
    Cut(u8),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Map {
    /// The partition of this id.
    #[must_use]
    pub fn get(&self, id: u8) -> Option<&Partition> {
        self.partitions.iter().find(|it| it.id == id)
    }

    pub(super) fn get_mut(&mut self, id: u8) -> Option<&mut Partition> {
        self.partitions.iter_mut().find(|it| it.id == id)
    }
}

impl Store {
    /// What is held of a partition.
    #[must_use]
    pub fn held(&self, id: u8) -> Option<&Held> {
        self.held.iter().find(|it| it.id == id)
    }

    pub(super) fn held_mut(&mut self, id: u8) -> Option<&mut Held> {
        self.held.iter_mut().find(|it| it.id == id)
    }

    /// What is held of a key.
    #[must_use]
    pub fn record(&self, key: u8) -> Record {
        self.records.get(usize::from(key)).copied().unwrap_or_default()
    }

    pub(super) fn set(&mut self, key: u8, record: Record) {
        if let Some(place) = self.records.get_mut(usize::from(key)) {
            *place = record;
        }
    }

    /// Applies a request of a partition.
    pub(super) fn apply(&mut self, id: u8, key: u8, request: u8, version: u8) {
        let before = self.record(key);
        let twice = before.twice || before.made_by.has(request);
        let back = before.back || version <= before.version;
        let made_by = before.made_by.or(Bits::of(request));
        self.set(key, Record { version, made_by, twice, back });
        if let Some(held) = self.held_mut(id) {
            held.last = version;
            if let Some(place) = held.sessions.get_mut(usize::from(request)) {
                *place = version;
            }
        }
    }
}

impl Held {
    /// The version that a request was given; 0: none.
    #[must_use]
    pub fn session(&self, request: u8) -> u8 {
        self.sessions.get(usize::from(request)).copied().unwrap_or(0)
    }
}

impl World {
    /// The newest map.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn map(&self) -> &Map {
        self.maps.last().expect("there is a map from the beginning")
    }

    /// The map that a node has installed.
    #[must_use]
    pub fn map_of(&self, node: u8) -> Option<&Map> {
        self.maps.get(usize::from(self.node(node).installed).checked_sub(1)?)
    }

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

    /// The version that a request was answered; 0: not yet.
    #[must_use]
    pub fn answer(&self, request: u8) -> u8 {
        self.answers.get(usize::from(request)).copied().unwrap_or(0)
    }
}
