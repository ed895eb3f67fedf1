//! What the controller tells switches and nodes, and what they say back.
//!
//! An order is a whole desired state with a revision, so that a lost, repeated or late one does no
//! harm: members install the newest they have seen and report its revision.

use crate::{
    CacheId, CacheReport, CacheSpec, CacheTables, ClockAhead, ClockOrder, ClusterId, Epoch, HotKey,
    HotOrder, Incarnation, Keyspace, Leader, Lease, NodeCount, NodeId, NodeSpec, Partition,
    PartitionId, PartitionSample, Resources, StoreId, Stored, SwitchCounters, Verification,
    VerifyOrder, Versions, text,
};
use envelope::{KeySet, RightsTable, RingPorts};
use machine::Instant;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddrV6;
use std::sync::Arc;
use wire::{Endpoint, Revision, Version};

/// Everything a switch forwards by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchTables {
    /// Revision of the map this was made from.
    pub revision: Revision,
    /// Whose map that is. A switch that follows another cluster must not install this.
    #[serde(default)]
    pub cluster: ClusterId,
    /// Whether this switch is the one to forward; one that stands by drops requests.
    #[serde(default = "forwards")]
    pub active: bool,
    /// The node table.
    pub nodes: Vec<NodeSpec>,
    /// Caches: what keys they hold, they say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CacheSpec>,
    /// Nodes of it that nothing is sent to any more, while the controller goes on without them.
    /// What they send is still a node's.
    #[serde(default)]
    pub fenced: Vec<NodeId>,
    /// The partition table, of all keyspaces.
    pub partitions: Vec<Partition>,
}

impl SwitchTables {
    /// The nodes that packets may be sent to, in the order of the node table.
    pub fn reachable(&self) -> impl Iterator<Item = &NodeSpec> {
        self.nodes.iter().filter(|node| !self.fenced.contains(&node.id))
    }
}

/// Tables written by hand are for the switch at work.
fn forwards() -> bool {
    true
}

/// Everything a node serves by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// Revision of the map this was made from.
    pub revision: Revision,
    /// Whose map that is. A node that holds data of another cluster must not install this.
    pub cluster: ClusterId,
    /// Whom this is for.
    pub node: NodeId,
    /// The memory that `node` had when it was judged. A node with another one (it was started
    /// anew, empty, while this was on its way) must not install it, for it would answer as if
    /// no key of its partitions had ever been written.
    pub store: StoreId,
    /// The incarnation that it had then. Another one must not install this: what it holds has not
    /// been compared with what the others hold. `None` is for any.
    #[serde(default)]
    pub incarnation: Option<Incarnation>,
    /// The revision in which the node was last seen to come back with an older copy of its store; 0
    /// for never. What it took under delegations of hot keys before is not all that it
    /// acknowledged.
    #[serde(default)]
    pub aged: Revision,
    /// The active switch: where replies go, and the only one that requests are taken from.
    #[serde(with = "text::endpoint")]
    pub switch: Endpoint,
    /// Bytes that each shard may send to learners in a second; 0: copying is paused.
    pub copy_bytes_per_s: u64,
    /// All nodes, to reach chain neighbours.
    pub nodes: Vec<NodeSpec>,
    /// All caches, to lend keys to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CacheSpec>,
    /// All keyspaces, to check what a key looks like to the switch.
    pub keyspaces: Vec<Keyspace>,
    /// The partitions whose chain this node is in, and those that it has left for a while: of these
    /// it keeps what it holds, and serves none.
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
    /// A cache.
    Cache(CacheId),
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(index) => write!(f, "switch {index}"),
            Self::Node(id) => write!(f, "node {id}"),
            Self::Cache(id) => write!(f, "cache {id}"),
        }
    }
}

/// One order: what to install, if anything, and how long to serve by it. Every order is answered by
/// a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Who gives it. One by hand, or of a version before there were several controllers, does not
    /// say.
    #[serde(default)]
    pub leader: Option<Leader>,
    /// The incarnation of the member that it is for. Another one does nothing but report: it may
    /// have forgotten that it obeyed a newer leader. `None` is for any.
    #[serde(default)]
    pub incarnation: Option<Incarnation>,
    /// Installed first, so that the lease that comes with it holds.
    pub install: Option<Install>,
    /// What time it is, for a node: how far the cluster's clock is ahead of the node's. Taken
    /// before the lease that comes with it.
    #[serde(default)]
    pub clock: Option<ClockOrder>,
    /// Renews the member's lease.
    pub lease: Option<Lease>,
    /// Renews a node's right to serve requests that pass no switch (`DIRECT`), which no fence
    /// keeps from it: a lease of its own, and a short one.
    #[serde(default)]
    pub direct: Option<Lease>,
    /// The hot keys, if they have changed.
    #[serde(default)]
    pub hot: Option<Arc<HotOrder>>,
    /// What replicas are to be compared, for a node that does not know.
    #[serde(default)]
    pub verify: Option<VerifyOrder>,
    /// The version of orders and reports that this is of: the newest that all members can.
    #[serde(default)]
    pub version: u16,
    /// For a cache: how many rules of its own have room in the tables of all switches, if that is
    /// known. It holds no more keys than switches lead to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules_max: Option<u64>,
    /// For a member on a network that is not to be trusted: keys, if it has not got these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Arc<EnvelopeOrder>>,
    /// For a member that is leaving: nobody waits for it any more, and it may end.
    #[serde(default)]
    pub may_end: bool,
}

/// A desired state, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Install {
    /// For a switch: forward by these tables.
    Tables(SwitchTables),
    /// For a node: serve these partitions.
    Assignment(Assignment),
    /// For a cache: these are the others.
    Cache(CacheTables),
}

impl Install {
    /// Revision of the map that it was made from.
    #[must_use]
    pub fn revision(&self) -> Revision {
        match self {
            Self::Tables(tables) => tables.revision,
            Self::Assignment(assignment) => assignment.revision,
            Self::Cache(tables) => tables.revision,
        }
    }
}

/// What a member answers to every order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Which incarnation of the member speaks.
    pub incarnation: Incarnation,
    /// When this was said, by the member's clock; a lease that rests on it counts from here.
    #[serde(with = "text::instant")]
    pub at: Instant,
    /// What it speaks.
    #[serde(default)]
    pub versions: Versions,
    /// The number of the keys that it has; none if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<KeysNumber>,
    /// How the member is.
    pub state: MemberReport,
}

/// Tells keys apart: it is of all that is in an [`EnvelopeOrder`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeysNumber(#[serde(with = "text::hex64")] pub u64);

/// What a member opens and seals envelopes by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvelopeOrder {
    /// The number of these.
    pub number: KeysNumber,
    /// The keys. A switch has none of end tags.
    pub set: KeySet,
    /// What each class of clients may do.
    pub rights: RightsTable,
    /// Where all members are.
    pub members: Vec<RingPorts>,
    /// A content address, if keys have some: all have the first bits and the port in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<SocketAddrV6>,
}

/// How a member is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberReport {
    /// From a switch.
    Switch(SwitchCounters),
    /// From a node.
    Node(Box<NodeReport>),
    /// From a cache.
    Cache(CacheReport),
}

impl Report {
    /// Whether the member has been asked to end, and waits for others to take over.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        match &self.state {
            MemberReport::Switch(counters) => counters.leaving,
            MemberReport::Node(report) => report.leaving,
            MemberReport::Cache(report) => report.leaving,
        }
    }

    /// Revision of what the member has installed; 0 for nothing yet.
    #[must_use]
    pub fn revision(&self) -> Revision {
        match &self.state {
            MemberReport::Switch(counters) => counters.revision,
            MemberReport::Node(report) => report.revision,
            MemberReport::Cache(report) => report.revision,
        }
    }
}

/// A node's state of health.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Revision of the installed assignment; 0 for none.
    pub revision: Revision,
    /// Identity of its memory.
    pub store: StoreId,
    /// The cluster whose data it holds, if it was ever given an assignment.
    pub cluster: Option<ClusterId>,
    /// Incarnations of the node before the present one, from the last on that it knows the
    /// controller to have heard of. A store that was put back from an old copy lacks the
    /// incarnations since then.
    #[serde(default)]
    pub past: Vec<Incarnation>,
    /// Revision of the newest assignment on record, installed in this incarnation or an earlier
    /// one.
    #[serde(default)]
    pub recorded: Revision,
    /// Closed partitions of the installed assignment in which nothing is pending any more, and
    /// what is held of them.
    pub settled: Vec<Settled>,
    /// Partitions of which this node is the learner and holds everything by now.
    pub caught_up: Vec<(PartitionId, Epoch)>,
    /// Copies that this node is giving to learners.
    pub copies: Vec<CopyProgress>,
    /// Partitions that it has no replica record in by the installed assignment, and of which it may
    /// still hold something.
    pub vacating: Vec<PartitionId>,
    /// Number of the newest wish to compare replicas; 0 for none.
    #[serde(default)]
    pub verify: u64,
    /// What has been compared, of the partitions whose tail this node is.
    #[serde(default)]
    pub verified: Vec<Verification>,
    /// The keys that clients ask for most, the hottest first.
    #[serde(default)]
    pub hot: Vec<HotKey>,
    /// Revision of the installed order of hot keys; 0 for none.
    #[serde(default)]
    pub hot_revision: Revision,
    /// The highest revision of such an order that it has on record, that one or one from an earlier
    /// incarnation or from another node; 0 for none.
    #[serde(default)]
    pub hot_known: Revision,
    /// Keys of its partitions that are delegated under delegations which the installed order does
    /// not name (any more), or may be: other nodes may hold their newest writes.
    #[serde(default)]
    pub recall: u64,
    /// Requests of clients, writes that came down a chain and copies of hot keys, all of which cost
    /// a node about the same, taken since it started.
    pub requests: u64,
    /// Requests that it can serve in a second; 0: it does not say.
    #[serde(default)]
    pub rate: u32,
    /// Writes recorded and not yet committed.
    pub pending: u64,
    /// Requests found waiting; 0 if whoever runs the node does not say.
    #[serde(default)]
    pub waiting: u64,
    /// Microseconds of processor time that the node has used since it started; 0 if whoever runs
    /// it does not say.
    #[serde(default)]
    pub busy_us: u64,
    /// What it takes of its machine.
    #[serde(default)]
    pub resources: Resources,
    /// What it holds of each keyspace; none of one whose values are another store's.
    #[serde(default)]
    pub stored: Vec<Stored>,
    /// Of some of the partitions whose tail it is, others each time: the busiest and the largest
    /// with samples, the rest as their turn comes.
    #[serde(default)]
    pub samples: Vec<PartitionSample>,
    /// What it has counted of its partitions and no switch does, where there is anything.
    #[serde(rename = "by_address", default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<NodeCount>,
    /// How far it takes the cluster's clock to be ahead of its own; `None` if it was not told in
    /// this incarnation.
    #[serde(default)]
    pub clock: Option<ClockAhead>,
    /// Whether clients have asked it past the switch lately (`DIRECT`), for which it needs a lease
    /// of its own.
    #[serde(default)]
    pub asked_directly: bool,
    /// Whether it has been asked to end, and waits for others to take over what it does.
    #[serde(default)]
    pub leaving: bool,
}

impl NodeReport {
    /// The report of a whole node whose shards say this: it has installed what all of them have.
    /// `store` is the identity of their memory together, `hot_max` how many hot keys it tells of.
    #[must_use]
    pub fn of_shards<'a>(
        shards: impl Iterator<Item = &'a Self> + Clone,
        store: StoreId,
        hot_max: usize,
    ) -> Self {
        let all = || shards.clone();
        Self {
            revision: all().map(|it| it.revision).min().unwrap_or_default(),
            store,
            cluster: all().find_map(|it| it.cluster),
            // A copy of one shard's store is as old as one of all.
            past: shards.clone().next().map_or_else(Vec::new, |first| {
                let known =
                    |incarnation: &&Incarnation| all().all(|it| it.past.contains(incarnation));
                first.past.iter().filter(known).copied().collect()
            }),
            recorded: all().map(|it| it.recorded).max().unwrap_or_default(),
            settled: all().flat_map(|it| it.settled.iter().copied()).collect(),
            caught_up: all().flat_map(|it| it.caught_up.iter().copied()).collect(),
            copies: all().flat_map(|it| it.copies.iter().copied()).collect(),
            vacating: all().flat_map(|it| it.vacating.iter().copied()).collect(),
            verify: all().map(|it| it.verify).min().unwrap_or(0),
            verified: all().flat_map(|it| it.verified.iter().cloned()).collect(),
            hot: HotKey::join(all().flat_map(|it| &it.hot), hot_max),
            hot_revision: all().map(|it| it.hot_revision).min().unwrap_or_default(),
            hot_known: all().map(|it| it.hot_known).max().unwrap_or_default(),
            recall: all().map(|it| it.recall).sum(),
            requests: all().map(|it| it.requests).sum(),
            rate: all().map(|it| it.rate).max().unwrap_or(0),
            pending: all().map(|it| it.pending).sum(),
            waiting: all().map(|it| it.waiting).sum(),
            busy_us: all().map(|it| it.busy_us).sum(),
            resources: Resources::of_shards(all().map(|it| it.resources)),
            stored: Stored::join(all().flat_map(|it| it.stored.iter().copied())),
            samples: all().flat_map(|it| it.samples.iter().cloned()).collect(),
            counts: all().flat_map(|it| it.counts.iter().copied()).collect(),
            clock: all().find_map(|it| it.clock),
            asked_directly: all().any(|it| it.asked_directly),
            leaving: all().any(|it| it.leaving),
        }
    }
}

/// What a node holds of a closed partition in which nothing is pending any more. Members of a chain
/// that have settled in the same epoch hold the same, so that these numbers are the same; else one
/// of them came back with less than it had acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Settled {
    /// Which partition.
    pub partition: PartitionId,
    /// In which epoch.
    pub epoch: Epoch,
    /// The newest version that it has recorded, committed or been copied.
    pub newest: Version,
    /// A number made of the versions of all writes that it has committed.
    pub history: u64,
    /// A number made of all keys that it holds a value of, and their versions; `None` while it has
    /// not gone through a partition that was made of others.
    pub digest: Option<u64>,
    /// The newest version of any tombstone that it has collected.
    pub collected: Version,
    /// If it held the partition in an earlier incarnation already, and has not been compared since:
    /// every version up to this one is certainly here.
    #[serde(default)]
    pub base: Option<Version>,
    /// How many writes it has committed, of those that `history` is made of; `None` if it was not
    /// there for all of them, and nobody has told it.
    #[serde(default)]
    pub writes: Option<u64>,
    /// Whether a key of it is delegated: the newest writes of that are elsewhere.
    #[serde(default)]
    pub delegated: bool,
}

impl Settled {
    /// Of which partition, and in which epoch.
    #[must_use]
    pub fn place(&self) -> (PartitionId, Epoch) {
        (self.partition, self.epoch)
    }
}

/// How far the copy of a partition to its learner has come.
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
