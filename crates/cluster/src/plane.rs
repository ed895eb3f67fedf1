//! What switches packets: what it can do, what it counts, and how the controller fills it. Each
//! plane states what it can do, and the controller, clients and people go by that.

use crate::{ClusterId, HotCount, HotOrder, Lease, PartitionId, SwitchTables};
use machine::Instant;
use serde::{Deserialize, Serialize};
use std::fmt;
use wire::Revision;

/// What a plane does for the requests that it forwards. Nothing, as far as nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// Writes into each request which chain it is for, so that nodes need not look themselves.
    pub stamps: bool,
    /// Takes MGETs and scans apart.
    pub splits: bool,
    /// Spreads reads of hot keys over copies, of which it knows how new they are.
    pub directory: bool,
    /// Lets writes of hot keys go anywhere.
    pub delegates: bool,
    /// Leads reads of a key that a cache holds to that cache.
    pub rules: bool,
    /// Counts what each partition is asked for.
    pub counts: bool,
    /// How much its tables hold.
    pub sizes: TableSizes,
}

/// What the tables of a plane hold at most. `None`: as much as its memory does, or nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TableSizes {
    /// Partitions.
    pub partitions: Option<u64>,
    /// Hot keys that nodes have copies of.
    pub hot_keys: Option<u64>,
    /// Rules of cached keys.
    pub rules: Option<u64>,
}

impl TableSizes {
    /// What is known of either.
    const fn or(self, other: Self) -> Self {
        const fn first(one: Option<u64>, other: Option<u64>) -> Option<u64> {
            if one.is_some() { one } else { other }
        }
        Self {
            partitions: first(self.partitions, other.partitions),
            hot_keys: first(self.hot_keys, other.hot_keys),
            rules: first(self.rules, other.rules),
        }
    }
}

impl Capabilities {
    /// Of a program that reads the key in each request.
    pub const PROGRAM: Self = Self {
        stamps: true,
        splits: true,
        directory: true,
        delegates: true,
        rules: true,
        counts: true,
        sizes: TableSizes {
            partitions: Some(wire::PARTITIONS_MAX as u64),
            hot_keys: Some(wire::HOT_KEYS_MAX as u64),
            // A rule has two buckets to choose from: with half of all places taken, none is full.
            rules: Some((wire::CACHE_RULE_BUCKETS * wire::CACHE_RULE_BUCKET_LEN / 2) as u64),
        },
    };

    /// Of whatever forwards by addresses, and has never heard of keys: a router.
    pub const ADDRESSES: Self = Self {
        stamps: false,
        splits: false,
        directory: false,
        delegates: false,
        rules: true,
        counts: false,
        sizes: TableSizes { partitions: None, hot_keys: None, rules: None },
    };

    /// What one of two can do that are one switch together.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            stamps: self.stamps || other.stamps,
            splits: self.splits || other.splits,
            directory: self.directory || other.directory,
            delegates: self.delegates || other.delegates,
            rules: self.rules || other.rules,
            counts: self.counts || other.counts,
            sizes: self.sizes.or(other.sizes),
        }
    }

    /// Each of them: what people call it, and whether it is there.
    #[must_use]
    pub const fn named(self) -> [(&'static str, bool); 6] {
        let Self { stamps, splits, directory, delegates, rules, counts, sizes: _ } = self;
        [
            ("stamps requests", stamps),
            ("splits multigets and scans", splits),
            ("spreads hot keys", directory),
            ("delegates their writes", delegates),
            ("leads cached keys to caches", rules),
            ("counts per partition", counts),
        ]
    }
}

/// A table of content addresses that a switch's process keeps elsewhere, in a router or in a switch
/// that knows nothing of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentReport {
    /// What people call the plane: as `keyway switch --plane` does.
    pub plane: String,
    /// What it can do with requests to content addresses.
    pub capabilities: Capabilities,
    /// Changes a second that it is asked for at most; `None`: as many as it makes.
    pub changes_per_second: Option<u32>,
    /// Prefixes of partitions that it has.
    pub partitions: u64,
    /// Rules of cached keys that it has.
    pub rules: u64,
    /// Entries that it lacks still.
    pub pending: u64,
    /// Entries that it has refused, mostly because its table is full. Requests to them go where a
    /// shorter prefix leads: to nodes.
    pub refused: u64,
    /// Partitions that no prefix can lead to: requests about them go to the service address.
    pub unroutable: u64,
    /// What is wrong with it, if it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// A switch's counters since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchCounters {
    /// Revision of the installed tables; 0 for none.
    pub revision: Revision,
    /// The cluster that it follows: that of the first tables it was given. It takes no orders of
    /// another one before it is started anew.
    #[serde(default)]
    pub cluster: Option<ClusterId>,
    /// Packets that came in.
    pub packets: u64,
    /// Packets that went out.
    pub emitted: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Load of each partition.
    pub partitions: Vec<PartitionCount>,
    /// Revision of the installed order of hot keys; 0 for none, also after the switch had to
    /// forget it.
    #[serde(default)]
    pub hot_revision: Revision,
    /// Load of each hot key.
    #[serde(default)]
    pub hot: Vec<HotCount>,
    /// What it can do with requests to the service address.
    #[serde(flatten)]
    pub capabilities: Capabilities,
    /// The table of content addresses that it keeps, if it keeps one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentReport>,
    /// Whether it has been asked to end, and waits for another one to take over.
    #[serde(default)]
    pub leaving: bool,
}

impl SwitchCounters {
    /// Whether it counts requests to the content addresses of keys as well. If not, nodes do.
    #[must_use]
    pub fn counts_by_address(&self) -> bool {
        self.content.as_ref().is_some_and(|content| content.capabilities.counts)
    }
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

/// What a node has counted of one partition, since it has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeCount {
    /// Which.
    pub partition: PartitionId,
    /// Reads that came to the content addresses of keys: no switch counts them.
    pub reads: u64,
    /// Writes that came there.
    pub writes: u64,
    /// Records that scans have examined, however the scans came.
    #[serde(default)]
    pub scanned: u64,
    /// Bytes of the requests that it has served, as its head or tail.
    #[serde(default)]
    pub bytes_in: u64,
    /// Bytes of its answers to reads.
    #[serde(default)]
    pub bytes_out: u64,
}

impl NodeCount {
    /// Nothing yet.
    #[must_use]
    pub fn new(partition: PartitionId) -> Self {
        Self { partition, ..Self::default() }
    }
}

/// A scan costs a node as much as a request more for each so many records that it examines, one by
/// one in the order of keys. Of nodes that serve GETs of 100 bytes in 1.2 us of processor time, a
/// record takes 0.13 us where it is small.
pub const RECORDS_PER_REQUEST: u64 = 8;

/// How the controller fills any kind of switch; which kind it is, nobody else knows.
pub trait SwitchControl {
    /// Replaces all tables at once: every packet sees the old ones or the new ones, whole. Older
    /// revisions than the installed one are ignored, and so are tables, hot keys and leases of
    /// another cluster than that of the first tables.
    ///
    /// # Errors
    ///
    /// If the switch cannot hold them; it then keeps what it had.
    fn install(&mut self, tables: &SwitchTables) -> Result<(), InstallError>;

    /// Replaces the directory of hot keys, unless it is older than the present one, made for
    /// another incarnation of a switch, or this switch stands by. What is known of keys that
    /// generation, by the same number, is kept.
    ///
    /// # Errors
    ///
    /// If the switch cannot hold it; it then keeps what it had.
    fn install_hot(&mut self, order: &HotOrder) -> Result<(), InstallError>;

    /// Renews the switch's lease, if it is for what is installed. Without a lease it drops requests
    /// and replies alike. If there was an instant without one before `now`, somebody else may have
    /// forwarded what this switch does not know of: it forgets its directory.
    fn renew(&mut self, now: Instant, lease: &Lease);

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
    /// A switch of this kind does not do this.
    Unsupported(&'static str),
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TableFull(table) => write!(f, "the {table} table is full"),
            Self::Unsound(why) => write!(f, "unsound tables: {why}"),
            Self::Unsupported(what) => write!(f, "this kind of switch {what}"),
        }
    }
}

impl std::error::Error for InstallError {}
