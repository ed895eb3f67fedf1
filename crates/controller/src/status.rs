//! How the cluster stands, as data for people, dashboards and tests.

use crate::decisions::{Decision, Decisions};
use crate::peer::{Contact, Peer, Standing};
use crate::saved::Saved;
use cluster::{
    Epoch, Keyspace, KeyspaceId, KeyspaceKind, Match, Member, NodeId, NodeReport, Partition,
    PartitionId, Report,
};
use machine::Instant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Everything at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// When this was made, in Unix milliseconds.
    pub at_ms: u64,
    /// Revision of the map.
    pub revision: u64,
    /// Revision up to which the map is durable.
    pub durable_revision: u64,
    /// Every switch, and every node of every chain, is ready: all keys can be read and written.
    pub covered: bool,
    /// The map is durable and every member is ready.
    pub ready: bool,
    /// Orders sent since the controller started.
    pub orders: u64,
    /// Switches, then nodes.
    pub members: Vec<MemberStatus>,
    /// Keyspaces, by id.
    pub keyspaces: Vec<KeyspaceStatus>,
    /// Share of the load of each node, by id.
    pub load: Vec<NodeLoad>,
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
    /// In a sentence, with what to do if something is to be done.
    pub detail: String,
    /// Revision of what it has installed, as last heard; 0 for nothing.
    pub revision: u64,
    /// Milliseconds since it was last heard; `None`: never since the controller started.
    pub heard_ms_ago: Option<u64>,
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
    /// It follows another controller.
    Foreign,
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
    /// Nodes in its shortest chain.
    pub replicas: usize,
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
    /// Its nodes: head first, tail last.
    pub chain: Vec<NodeId>,
    /// GETs, MGET keys and RANGE pieces, summed over what each switch counted since it started.
    pub reads: u64,
    /// Writes, summed likewise.
    pub writes: u64,
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
    /// Partitions of which it has some role.
    pub partitions: usize,
    /// Reads of the partitions of which it is tail.
    pub reads: u64,
    /// Writes of the partitions of which it has some role.
    pub writes: u64,
    /// Requests and chain messages that it says it took since it started.
    pub requests: u64,
    /// Writes that it says it has recorded but not committed.
    pub pending: u64,
}

/// What a status is made from.
pub(crate) struct View<'a> {
    pub(crate) now: Instant,
    pub(crate) state: &'a Saved,
    pub(crate) durable: u64,
    pub(crate) peers: &'a BTreeMap<Member, Peer>,
    pub(crate) decisions: &'a Decisions,
    pub(crate) orders: u64,
}

pub(crate) fn make(view: &View<'_>) -> Status {
    let map = &view.state.map;
    let members: Vec<MemberStatus> =
        view.peers.iter().filter_map(|(member, peer)| member_status(view, *member, peer)).collect();
    let counts = counts(view.peers);
    let durable = view.durable == map.revision;
    Status {
        at_ms: view.now.unix_ms(),
        revision: map.revision,
        durable_revision: view.durable,
        covered: is_covered(view),
        ready: durable && members.iter().all(|m| m.state == MemberState::Ready),
        orders: view.orders,
        keyspaces: map.keyspaces.iter().map(|k| keyspace_status(view, k, &counts)).collect(),
        load: load(view, &counts),
        decisions: view.decisions.iter().cloned().collect(),
        members,
    }
}

/// Reads and writes of each partition.
type Counts = BTreeMap<PartitionId, (u64, u64)>;

fn counts(peers: &BTreeMap<Member, Peer>) -> Counts {
    let mut counts = Counts::new();
    for peer in peers.values() {
        let Some(Report::Switch(counters)) = &peer.report else { continue };
        for count in &counters.partitions {
            let (reads, writes) = counts.entry(count.partition).or_default();
            *reads = reads.saturating_add(count.reads);
            *writes = writes.saturating_add(count.writes);
        }
    }
    counts
}

fn is_covered(view: &View<'_>) -> bool {
    let map = &view.state.map;
    let ready = |member| view.peers.get(&member).is_some_and(|p| p.is_ready(map.revision));
    let mut switches = view.peers.keys().filter(|m| matches!(m, Member::Switch(_)));
    let mut chained = map.partitions.iter().flat_map(|p| &p.chain);
    switches.all(|m| ready(*m)) && chained.all(|id| ready(Member::Node(*id)))
}

fn member_status(view: &View<'_>, member: Member, peer: &Peer) -> Option<MemberStatus> {
    let endpoint = match member {
        Member::Switch(index) => *view.state.switches.get(usize::from(index))?,
        Member::Node(id) => view.state.map.nodes.iter().find(|n| n.id == id)?.endpoint.into(),
    };
    let (state, detail) = describe(view, peer);
    let heard_ms_ago = peer.heard.map(|at| {
        let ago = view.now.since(at).as_millis();
        u64::try_from(ago).unwrap_or(u64::MAX)
    });
    let revision = peer.revision();
    Some(MemberStatus { member, endpoint, state, detail, revision, heard_ms_ago })
}

fn describe(view: &View<'_>, peer: &Peer) -> (MemberState, String) {
    let revision = view.state.map.revision;
    match &peer.standing {
        Standing::Foreign(why) => (MemberState::Foreign, why.clone()),
        Standing::Forgotten => (
            MemberState::Forgotten,
            "it came back without the memory of its partitions and serves none of them, because \
             it would answer as if their keys had never been written: bring its data directory \
             back, or leave it out until its chains are repaired"
                .into(),
        ),
        Standing::Unheard => (MemberState::Silent, "not heard of yet: is it running?".into()),
        Standing::Accepted | Standing::Waiting(_) if peer.contact != Contact::Answering => {
            (MemberState::Silent, "it has stopped answering: is it running?".into())
        }
        Standing::Waiting(member) => (
            MemberState::Behind,
            format!("nobody is taken in while {member} follows another controller"),
        ),
        Standing::Accepted if peer.is_ready(revision) => {
            (MemberState::Ready, format!("it has installed revision {revision}"))
        }
        Standing::Accepted => {
            let installed = peer.revision();
            let detail = if peer.offered == revision {
                format!("it was given revision {revision} and reports {installed}: see its log")
            } else {
                format!("it has revision {installed}, revision {revision} is on its way")
            };
            (MemberState::Behind, detail)
        }
    }
}

fn keyspace_status(view: &View<'_>, keyspace: &Keyspace, counts: &Counts) -> KeyspaceStatus {
    let partitions = view.state.map.partitions.iter().filter(|p| p.keyspace == keyspace.id);
    let mut partitions: Vec<PartitionStatus> =
        partitions.map(|p| partition_status(p, counts)).collect();
    partitions.sort_by_key(|p| p.first);
    KeyspaceStatus {
        id: keyspace.id,
        name: keyspace.name.clone(),
        kind: keyspace.kind.clone(),
        replicas: partitions.iter().map(|p| p.chain.len()).min().unwrap_or(0),
        partitions,
    }
}

fn partition_status(partition: &Partition, counts: &Counts) -> PartitionStatus {
    let (reads, writes) = counts.get(&partition.id).copied().unwrap_or_default();
    PartitionStatus {
        id: partition.id,
        first: partition.first,
        last: partition.last,
        epoch: partition.epoch,
        chain: partition.chain.clone(),
        reads,
        writes,
    }
}

fn load(view: &View<'_>, counts: &Counts) -> Vec<NodeLoad> {
    let map = &view.state.map;
    let empty = map.nodes.iter().map(|n| (n.id, NodeLoad { node: n.id, ..NodeLoad::default() }));
    let mut load: BTreeMap<NodeId, NodeLoad> = empty.collect();
    for partition in &map.partitions {
        let (reads, writes) = counts.get(&partition.id).copied().unwrap_or_default();
        for id in &partition.chain {
            let Some(node) = load.get_mut(id) else { continue };
            node.partitions += 1;
            node.writes = node.writes.saturating_add(writes);
            if partition.head() == Some(*id) {
                node.heads += 1;
            }
            if partition.tail() == Some(*id) {
                node.tails += 1;
                node.reads = node.reads.saturating_add(reads);
            }
        }
    }
    for node in load.values_mut() {
        let report = view.peers.get(&Member::Node(node.node)).and_then(|p| p.report.as_ref());
        if let Some(Report::Node(NodeReport { requests, pending, .. })) = report {
            (node.requests, node.pending) = (*requests, *pending);
        }
    }
    load.into_values().collect()
}
