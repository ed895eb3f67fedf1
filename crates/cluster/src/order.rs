//! What the controller tells switches and nodes, and what they say back.
//!
//! An order is a whole desired state with a revision, so that a lost, repeated or late one does no
//! harm: members install the newest they have seen and report its revision.

use crate::{Keyspace, NodeId, NodeSpec, Partition, PartitionId, StoreId, text};
use serde::{Deserialize, Serialize};
use std::fmt;
use wire::Endpoint;

/// Everything a switch forwards by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchTables {
    /// Revision of the map this was made from.
    pub revision: u64,
    /// The node table.
    pub nodes: Vec<NodeSpec>,
    /// The partition table, of all keyspaces.
    pub partitions: Vec<Partition>,
}

/// Everything a node serves by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// Revision of the map this was made from.
    pub revision: u64,
    /// Whom this is for.
    pub node: NodeId,
    /// The memory that `node` had when it was judged. A node with another one (it was started
    /// anew, empty, while this was on its way) must not install it, for it would answer as if
    /// no key of its partitions had ever been written.
    pub store: StoreId,
    /// Where replies go.
    #[serde(with = "text::endpoint")]
    pub switch: Endpoint,
    /// All nodes, to reach chain neighbours.
    pub nodes: Vec<NodeSpec>,
    /// All keyspaces, to check what a key looks like to the switch.
    pub keyspaces: Vec<Keyspace>,
    /// The partitions whose chain this node is in.
    pub partitions: Vec<Partition>,
}

/// Who takes orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Member {
    /// A switch, by its position in the configuration.
    Switch(u16),
    /// A storage node.
    Node(NodeId),
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(index) => write!(f, "switch {index}"),
            Self::Node(id) => write!(f, "node {id}"),
        }
    }
}

/// One order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Say how you are; change nothing.
    Report,
    /// For a switch: forward by these tables.
    Tables(SwitchTables),
    /// For a node: serve these partitions.
    Assign(Assignment),
}

/// What a member answers to every order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// From a switch.
    Switch(SwitchCounters),
    /// From a node.
    Node(NodeReport),
}

impl Report {
    /// Revision of what the member has installed; 0 for nothing yet.
    #[must_use]
    pub fn revision(&self) -> u64 {
        match self {
            Self::Switch(counters) => counters.revision,
            Self::Node(report) => report.revision,
        }
    }
}

/// A node's state of health.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Revision of the installed assignment; 0 for none.
    pub revision: u64,
    /// Identity of its memory.
    pub store: StoreId,
    /// Client requests and chain messages taken since it started.
    pub requests: u64,
    /// Writes recorded and not yet committed.
    pub pending: u64,
}

/// A switch's counters since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchCounters {
    /// Revision of the installed tables; 0 for none.
    pub revision: u64,
    /// Packets that came in.
    pub packets: u64,
    /// Packets that went out.
    pub emitted: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Load of each partition.
    pub partitions: Vec<PartitionCount>,
}

/// Load of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionCount {
    /// Which.
    pub partition: PartitionId,
    /// GETs, MGET keys and RANGE pieces that matched it.
    pub reads: u64,
    /// Writes that matched it.
    pub writes: u64,
}

/// How the controller fills any kind of switch; which kind it is, nobody else knows.
pub trait SwitchControl {
    /// Replaces all tables at once: every packet sees the old ones or the new ones, whole. Older
    /// revisions than the installed one are ignored.
    ///
    /// # Errors
    ///
    /// If the switch cannot hold them; it then keeps what it had.
    fn install(&mut self, tables: &SwitchTables) -> Result<(), InstallError>;

    /// The counters as of now.
    fn counters(&self) -> SwitchCounters;
}

/// Why a switch did not take its tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallError {
    /// More entries than the named table has room for.
    TableFull(&'static str),
    /// The tables contradict themselves.
    Unsound(String),
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TableFull(table) => write!(f, "the {table} table is full"),
            Self::Unsound(why) => write!(f, "unsound tables: {why}"),
        }
    }
}

impl std::error::Error for InstallError {}
