//! The form of a status.

use crate::decisions::Decision;
use crate::hot::{HotDecision, WhyCopied};
use crate::placement::PlacementStatus;
use cluster::{
    Capabilities, ClusterId, ContentReport, Epoch, Findings, HotKey, HotPolicy, KeyspaceId,
    KeyspaceKind, Match, Member, NodeId, PartitionId, Resources, Term, Versions, Volume,
};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use wire::{DelegationId, Revision};

/// Version of the form of [`Status`], which `docs/reference/json.md` describes. Raised when a field
/// goes or means something else; fields may come at any time.
pub const STATUS_SCHEMA: u32 = 1;

/// What protects a control plane: orders, and what operators ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Certificates, under TLS, at both ends of every connection.
    MutualTls,
    /// Nothing: the network must not let others in.
    #[default]
    Open,
    /// Nothing, and it listens on this machine only.
    Loopback,
}

/// Everything at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Version of this form: see [`STATUS_SCHEMA`].
    #[serde(default)]
    pub schema: u32,
    /// When this was made, in Unix milliseconds.
    pub at_ms: u64,
    /// Identity of the cluster.
    pub cluster: ClusterId,
    /// Revision of the map.
    pub revision: Revision,
    /// The term of the controller that leads: higher than that of any before.
    #[serde(default)]
    pub term: Term,
    /// Where it keeps the map.
    #[serde(default)]
    pub store: StoreStatus,
    /// What protects the control plane.
    #[serde(default)]
    pub security: Protection,
    /// Whether packets are in envelopes.
    #[serde(default)]
    pub envelopes: bool,
    /// What keeps the controller from deciding, if anything does: a full disk.
    #[serde(default)]
    pub trouble: Option<String>,
    /// Revision up to which the map is durable.
    pub durable_revision: Revision,
    /// The active switch is ready, every partition is open, and every member of every chain is
    /// ready: all keys can be read and written.
    pub covered: bool,
    /// The map is durable, every switch and node is ready, and every keyspace of the configuration
    /// is there.
    pub ready: bool,
    /// Every partition is open, has as many members as its keyspace wants, takes nobody in, and
    /// every one of its members says, to this controller, that it has installed that. Whether they
    /// hold the same is not said by it: see [`PartitionStatus::verified`].
    pub replicated: bool,
    /// Partitions of which some member has not said so.
    #[serde(default)]
    pub unheard: usize,
    /// Partitions with fewer members than their keyspace wants.
    pub under_replicated: usize,
    /// Partitions that are closed for a moment, because their chain changes.
    pub closed: usize,
    /// Whether copying is paused.
    pub paused: bool,
    /// How long a lease lasts, in milliseconds.
    pub lease_ms: u64,
    /// For how long all keys that are served now would be without any controller, in milliseconds:
    /// until the first lease of the active switch or of a node that is in a chain and answers ends.
    #[serde(default)]
    pub serves_alone_ms: u64,
    /// The switch that forwards, by its position in the configuration.
    pub active_switch: u16,
    /// Orders sent since the controller started.
    pub orders: u64,
    /// Switches, then nodes, then caches.
    pub members: Vec<MemberStatus>,
    /// Keyspaces, by id.
    pub keyspaces: Vec<KeyspaceStatus>,
    /// Keyspaces of the configuration that are not there yet: the cluster is not ready before.
    #[serde(default)]
    pub awaited: Vec<AwaitedStatus>,
    /// Share of the load of each node, by id.
    pub load: Vec<NodeLoad>,
    /// The keys that clients ask for most, the hottest first; all hot and pinned ones, however
    /// little is asked of them.
    #[serde(default)]
    pub hot: Vec<HotStatus>,
    /// Revision of the hot keys that the active switch has; 0 for none.
    #[serde(default)]
    pub hot_revision: Revision,
    /// Who has how much to do, and what is changed because of it.
    #[serde(default)]
    pub placement: PlacementStatus,
    /// What the controller did lately about hot keys, oldest first.
    #[serde(default)]
    pub hot_decisions: Vec<HotDecision>,
    /// Copies that run or are about to, by keyspace and first match value.
    pub copies: Vec<CopyStatus>,
    /// The comparison of replicas that was asked for last, if one was since this controller began.
    #[serde(default)]
    pub verify: Option<VerifyStatus>,
    /// What the controller did lately, oldest first.
    pub decisions: Vec<Decision>,
}

/// How one member stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Who.
    pub member: Member,
    /// Where packets reach it.
    pub endpoint: SocketAddr,
    /// In a word.
    pub state: MemberState,
    /// Whether it is a node that is to hold nothing in the end.
    pub departing: bool,
    /// Whether it has been asked to end, and waits for others to take over.
    #[serde(default)]
    pub leaving: bool,
    /// Whether it has ended because it was asked to, and is expected back.
    #[serde(default)]
    pub away: bool,
    /// What it speaks, as last heard.
    #[serde(default)]
    pub versions: Versions,
    /// In a sentence, with what to do if something is to be done.
    pub detail: String,
    /// Revision of what it has installed, as last heard; 0 for nothing.
    pub revision: Revision,
    /// Milliseconds since it was last heard; `None`: never since the controller started.
    pub heard_ms_ago: Option<u64>,
    /// Milliseconds until its lease has certainly ended; 0: it has.
    pub lease_ms_left: u64,
    /// Milliseconds by which a node's own clock is ahead of the cluster's, by which values expire,
    /// or behind it if negative; `None` if that is not known, and for a switch.
    #[serde(default)]
    pub clock_ahead_ms: Option<i64>,
    /// How full and how good a cache is, if this is one that was heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheStatus>,
    /// What a switch can do, and where else, if this is one that was heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<SwitchStatus>,
}

/// What a switch can do, as last heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchStatus {
    /// With requests to the service address.
    pub capabilities: Capabilities,
    /// The table of content addresses that it keeps, if it keeps one.
    pub content: Option<ContentReport>,
}

/// What a cache holds, and what it is good for, as last heard. Counts are since it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheStatus {
    /// Keys that it holds.
    pub entries: u64,
    /// Keys that it has room for.
    pub room_entries: u64,
    /// Bytes of what it holds.
    pub bytes: u64,
    /// Requests that it has answered.
    pub hits: u64,
    /// Requests that came to it and that it could not answer.
    pub misses: u64,
    /// Requests that it has passed on to nodes.
    pub forwarded: u64,
    /// Lenders whose lease it has.
    pub volumes: u64,
    /// Rules of the switch that lead to it.
    pub rules: u64,
    /// Rules that are to.
    pub rules_wanted: u64,
}

impl Status {
    /// Switches and nodes that do not answer, or do not do yet what they were told. Nobody waits
    /// for a cache.
    pub fn late(&self) -> impl Iterator<Item = &MemberStatus> {
        let counts = |it: &&MemberStatus| !matches!(it.member, Member::Cache(_));
        self.members.iter().filter(counts).filter(|it| it.state != MemberState::Ready)
    }
}

impl MemberStatus {
    /// Who it is and how it is, for people.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("{}: {}", self.member, self.detail)
    }
}

/// The store that the map is kept in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// `embedded`, `etcd` or `memory`.
    pub kind: String,
    /// Where it is: a file, or endpoints and a prefix.
    pub at: String,
    /// Milliseconds since it answered last; `None` for one that needs no answer.
    #[serde(default)]
    pub silent_ms: Option<u64>,
    /// What is wrong with it, if anything is.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// The state of a member in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// It has installed the present revision.
    Ready,
    /// It answers and is about to be given the present revision.
    Behind,
    /// It does not answer, or has not been heard yet.
    Silent,
    /// A node without the memory of the partitions that the map gives it.
    Forgotten,
    /// It follows another controller, or belongs to another cluster.
    Foreign,
}

/// A keyspace that is to be created as soon as that is possible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedStatus {
    /// Its name.
    pub name: String,
    /// Why it is not there.
    pub why: String,
}

/// One keyspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyspaceStatus {
    /// Its id.
    pub id: KeyspaceId,
    /// Its name.
    pub name: String,
    /// Hash or range, with the prefix.
    #[serde(flatten)]
    pub kind: KeyspaceKind,
    /// What becomes of its hot keys.
    #[serde(default)]
    pub hot: HotPolicy,
    /// How many nodes are to hold each of its keys.
    pub replicas: usize,
    /// How many hold the keys of its weakest partition.
    pub replicas_min: usize,
    /// Its keys that have a value, each counted once; `None` if some are not counted, or lie in a
    /// store that does not say.
    #[serde(default)]
    pub stored: Option<Volume>,
    /// Its partitions, by first match value.
    pub partitions: Vec<PartitionStatus>,
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionStatus {
    /// Its id.
    pub id: PartitionId,
    /// First match value.
    pub first: Match,
    /// Last match value, inclusive.
    pub last: Match,
    /// Its configuration number.
    pub epoch: Epoch,
    /// The nodes that hold it: head first, tail last.
    pub chain: Vec<NodeId>,
    /// The node that is being taken in.
    pub learner: Option<NodeId>,
    /// Whether clients are served.
    pub open: bool,
    /// How many nodes it lacks.
    pub missing: usize,
    /// How many of its nodes have not said, to this controller, that they have installed this.
    #[serde(default)]
    pub unheard: usize,
    /// When its replicas were last compared; `None`: not since this controller began.
    #[serde(default)]
    pub verified: Option<PartitionVerified>,
    /// GETs, MGET keys and RANGE pieces, summed over what each switch counted since it started.
    pub reads: u64,
    /// Writes, summed likewise.
    pub writes: u64,
}

/// One key that is asked for often, or is hot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotStatus {
    /// Which, and what is asked of it.
    #[serde(flatten)]
    pub key: HotKey,
    /// Whether an operator wants it to be hot.
    pub pinned: bool,
    /// Its copies, if it is hot.
    pub generation: Option<GenerationStatus>,
}

/// The generation of a key among the hot ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerationStatus {
    /// How many nodes are to hold copies.
    pub readers: u64,
    /// For how many milliseconds it has been hot.
    pub age_ms: u64,
    /// Reads per second when it became hot.
    pub reads_before: u64,
    /// Reads per second that go to copies.
    pub spread: u64,
    /// Reads per second that go to the tail of its chain.
    pub home: u64,
    /// Why it is copied though caches might hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<WhyCopied>,
    /// The delegation that its writes are on.
    #[serde(default)]
    pub delegation: Option<DelegationStatus>,
}

/// The delegation of a hot key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegationStatus {
    /// Its number.
    pub number: DelegationId,
    /// For how many milliseconds it has been ordered.
    pub age_ms: u64,
    /// Nodes that each write goes to.
    pub replicas: u8,
    /// More nodes that each is copied to.
    pub copies: u16,
}

/// The copy of one partition to a node that is being taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyStatus {
    /// Of which partition.
    pub partition: PartitionId,
    /// Who gives: the tail.
    pub from: NodeId,
    /// Who takes.
    pub to: NodeId,
    /// Thousandths that have been sent.
    pub permille: u16,
    /// Bytes that have been sent.
    pub bytes: u64,
    /// Milliseconds until its end if it goes on as fast as it has since it began; `None`: that
    /// cannot be told yet, or copying is paused.
    pub eta_ms: Option<u64>,
}

/// What falls to one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLoad {
    /// Which.
    pub node: NodeId,
    /// Partitions of which it is head.
    pub heads: usize,
    /// Partitions of which it is tail.
    pub tails: usize,
    /// Partitions of which it has some role, or is to have one.
    pub partitions: usize,
    /// Reads of the partitions of which it is tail.
    pub reads: u64,
    /// Writes of the partitions of which it has some role.
    pub writes: u64,
    /// Requests and chain messages that it says it took since it started.
    pub requests: u64,
    /// Writes that it says it has recorded but not committed.
    pub pending: u64,
    /// Its shards, each of which keeps one processor busy at most.
    #[serde(default)]
    pub shards: u16,
    /// Requests that it says it found waiting.
    #[serde(default)]
    pub waiting: u64,
    /// Microseconds of processor time that it says it has used since it started.
    #[serde(default)]
    pub busy_us: u64,
    /// What it says it takes of its machine.
    #[serde(default)]
    pub resources: Resources,
    /// Keys that have a value there, as far as they are counted, of all keyspaces; `None` if none
    /// are, or lie in a store that does not say.
    #[serde(default)]
    pub stored: Option<Volume>,
}

/// How far the comparison of replicas has come that was asked for last, summed over partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyStatus {
    /// Number of the wish.
    pub number: u64,
    /// Whether what is certainly wrong is made right.
    pub mend: bool,
    /// Partitions to compare.
    pub partitions: usize,
    /// Partitions that have been compared.
    pub done: usize,
    /// Thousandths of all that have been.
    pub permille: u16,
    /// Partitions with one replica, which has nobody to be compared with.
    pub alone: usize,
    /// What was found in all of them.
    #[serde(flatten)]
    pub found: Findings,
}

/// When the replicas of a partition were last compared, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionVerified {
    /// Milliseconds ago.
    pub ms_ago: u64,
    /// Replicas that were compared.
    pub members: u8,
    /// Keys of which they hold different things still.
    pub left: u64,
}
