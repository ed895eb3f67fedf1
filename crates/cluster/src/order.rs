//! What the controller tells switches and nodes, and what they say back.
//!
//! An order is a whole desired state with a revision, so that a lost, repeated or late one does no
//! harm: members install the newest they have seen and report its revision.

use crate::{
    ClusterId, Epoch, Keyspace, KeyspaceId, Lease, Life, NodeId, NodeSpec, Partition, PartitionId,
    StoreId, text,
};
use machine::Instant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use wire::Endpoint;

/// Everything a switch forwards by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchTables {
    /// Revision of the map this was made from.
    pub revision: u64,
    /// Whether this switch is the one to forward; one that stands by drops requests.
    #[serde(default = "forwards")]
    pub active: bool,
    /// The node table.
    pub nodes: Vec<NodeSpec>,
    /// The partition table, of all keyspaces.
    pub partitions: Vec<Partition>,
}

/// Tables written by hand are for the switch at work.
fn forwards() -> bool {
    true
}

/// Everything a node serves by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// Revision of the map this was made from.
    pub revision: u64,
    /// Whose map that is. A node that holds data of another cluster must not install this.
    pub cluster: ClusterId,
    /// Whom this is for.
    pub node: NodeId,
    /// The memory that `node` had when it was judged. A node with another one (it was started
    /// anew, empty, while this was on its way) must not install it, for it would answer as if
    /// no key of its partitions had ever been written.
    pub store: StoreId,
    /// The active switch: where replies go, and the only one that requests are taken from.
    #[serde(with = "text::endpoint")]
    pub switch: Endpoint,
    /// Bytes that each shard may send to joiners in a second; 0: copying is paused.
    pub copy_bytes_per_s: u64,
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

/// One order: what to install, if anything, and how long to serve by it. Every order is answered by
/// a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Installed first, so that the lease that comes with it holds.
    pub install: Option<Install>,
    /// Renews the member's lease.
    pub lease: Option<Lease>,
}

/// A desired state, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Install {
    /// For a switch: forward by these tables.
    Tables(SwitchTables),
    /// For a node: serve these partitions.
    Assignment(Assignment),
}

impl Install {
    /// Revision of the map that it was made from.
    #[must_use]
    pub fn revision(&self) -> u64 {
        match self {
            Self::Tables(tables) => tables.revision,
            Self::Assignment(assignment) => assignment.revision,
        }
    }
}

/// What a member answers to every order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Which life of the member speaks.
    pub life: Life,
    /// When this was said, by the member's clock; a lease that rests on it counts from here.
    #[serde(with = "text::instant")]
    pub at: Instant,
    /// How the member is.
    pub state: MemberReport,
}

/// How a member is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberReport {
    /// From a switch.
    Switch(SwitchCounters),
    /// From a node.
    Node(NodeReport),
}

impl Report {
    /// Revision of what the member has installed; 0 for nothing yet.
    #[must_use]
    pub fn revision(&self) -> u64 {
        match &self.state {
            MemberReport::Switch(counters) => counters.revision,
            MemberReport::Node(report) => report.revision,
        }
    }
}

/// A node's state of health.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Revision of the installed assignment; 0 for none.
    pub revision: u64,
    /// Identity of its memory.
    pub store: StoreId,
    /// The cluster whose data it holds, if it was ever given an assignment.
    pub cluster: Option<ClusterId>,
    /// Closed partitions of the installed assignment in which nothing is pending any more.
    pub settled: Vec<(PartitionId, Epoch)>,
    /// Partitions of which this node is the joiner and holds everything by now.
    pub whole: Vec<(PartitionId, Epoch)>,
    /// Copies that this node is giving to joiners.
    pub copies: Vec<CopyProgress>,
    /// Partitions that it has no seat in by the installed assignment, and of which it may still
    /// hold something.
    pub vacating: Vec<PartitionId>,
    /// The keys that clients ask for most, the hottest first.
    #[serde(default)]
    pub hot: Vec<HotKey>,
    /// Client requests and chain messages taken since it started.
    pub requests: u64,
    /// Writes recorded and not yet committed.
    pub pending: u64,
}

/// A key that clients ask for often, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotKey {
    /// Its keyspace.
    pub keyspace: KeyspaceId,
    /// The key.
    #[serde(with = "text::hex")]
    pub key: Vec<u8>,
    /// Reads per second, lately.
    pub reads: u64,
    /// Writes per second, lately.
    pub writes: u64,
}

impl HotKey {
    /// Reads and writes per second.
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }

    /// The order of lists: the hottest first, and equally hot ones by name.
    #[must_use]
    pub fn hottest_first(&self, other: &Self) -> std::cmp::Ordering {
        let names = || (self.keyspace, &self.key).cmp(&(other.keyspace, &other.key));
        other.rate().cmp(&self.rate()).then_with(names)
    }

    /// Puts the reports of several shards or nodes together: each key once, the hottest of them.
    #[must_use]
    pub fn join<'a>(reports: impl Iterator<Item = &'a Self>, most: usize) -> Vec<Self> {
        let mut joint: BTreeMap<(KeyspaceId, &[u8]), (u64, u64)> = BTreeMap::new();
        for it in reports {
            let (reads, writes) = joint.entry((it.keyspace, &it.key)).or_default();
            *reads = reads.saturating_add(it.reads);
            *writes = writes.saturating_add(it.writes);
        }
        let key = |((keyspace, key), (reads, writes)): ((KeyspaceId, &[u8]), _)| Self {
            keyspace,
            key: key.to_vec(),
            reads,
            writes,
        };
        let mut list: Vec<Self> = joint.into_iter().map(key).collect();
        list.sort_by(Self::hottest_first);
        list.truncate(most);
        list
    }
}

/// How far the copy of a partition to its joiner has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyProgress {
    /// Which partition.
    pub partition: PartitionId,
    /// In which epoch it was begun: a change of epoch begins it anew.
    pub epoch: Epoch,
    /// Thousandths of it that have been sent.
    pub permille: u16,
    /// Bytes sent so far, without those sent again.
    pub bytes: u64,
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

    /// Renews the switch's lease, if it is for what is installed. Without a lease it drops requests
    /// and replies alike.
    fn renew(&mut self, lease: &Lease);

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
