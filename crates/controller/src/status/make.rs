//! Making a status from what the controller knows.

use super::copies::copies;
use super::form::{
    KeyspaceStatus, MemberState, MemberStatus, NodeLoad, PartitionStatus, Protection,
    STATUS_SCHEMA, Status, StoreStatus,
};
use super::hot::hot;
use super::members::member_status;
use super::verify::{verified, verify};
use super::view::View;
use crate::members::Members;
use cluster::{
    CLOCK_RATE_MAX_PERCENT, Keyspace, Member, MemberReport, NodeId, NodeReport, Partition,
    PartitionId, Volume,
};
use std::collections::{BTreeMap, BTreeSet};

impl View<'_> {
    /// Everything. O(partitions).
    pub(crate) fn status(&self) -> Status {
        make(self)
    }
}

fn make(view: &View<'_>) -> Status {
    let map = &view.state.map;
    let members: Vec<MemberStatus> = view
        .members
        .iter()
        .filter_map(|(member, peer)| member_status(view, member, peer))
        .collect();
    let counts = counts(view.members);
    let durable = view.durable == map.revision;
    let keyspaces: Vec<KeyspaceStatus> =
        map.keyspaces.iter().map(|k| keyspace_status(view, k, &counts)).collect();
    let partitions = || keyspaces.iter().flat_map(|k| &k.partitions);
    let mut status = Status {
        schema: STATUS_SCHEMA,
        term: view.state.term,
        // Whoever has it knows.
        store: StoreStatus::default(),
        security: Protection::default(),
        envelopes: false,
        trouble: None,
        at_ms: view.now.unix_ms(),
        cluster: map.cluster,
        revision: map.revision,
        durable_revision: view.durable,
        covered: is_covered(view),
        ready: false,
        replicated: keyspaces.iter().all(is_replicated),
        unheard: partitions().filter(|p| p.unheard > 0).count(),
        under_replicated: partitions().filter(|p| p.missing > 0).count(),
        closed: partitions().filter(|p| !p.open).count(),
        paused: view.state.paused,
        lease_ms: view.lease_ms,
        serves_alone_ms: serves_alone_ms(view, &members),
        active_switch: map.active_switch,
        orders: view.orders,
        load: load(view, &counts),
        hot: hot(view),
        hot_revision: view.hot.revision(),
        placement: view.placement.clone(),
        hot_decisions: view.hot.log.iter().cloned().collect(),
        copies: copies(view),
        verify: verify(view),
        decisions: view.decisions.iter().cloned().collect(),
        keyspaces,
        // Whoever has the configuration knows.
        awaited: Vec::new(),
        members,
    };
    status.ready = durable && status.late().next().is_none();
    status
}

fn is_replicated(keyspace: &KeyspaceStatus) -> bool {
    let whole = |p: &PartitionStatus| p.chain.len() == keyspace.replicas && p.learner.is_none();
    keyspace.partitions.iter().all(|p| p.open && whole(p) && p.unheard == 0)
}

/// Reads and writes of each partition.
type Counts = BTreeMap<PartitionId, (u64, u64)>;

fn counts(members: &Members) -> Counts {
    let mut counts = Counts::new();
    let by_switches = members.iter().any(|(_, peer)| {
        let state = peer.report.as_ref().map(|report| &report.state);
        matches!(state, Some(MemberReport::Switch(it)) if it.counts_by_address())
    });
    for (_, peer) in members.iter() {
        let mut add = |partition, (more_reads, more_writes)| {
            let (reads, writes): &mut (u64, u64) = counts.entry(partition).or_default();
            *reads = reads.saturating_add(more_reads);
            *writes = writes.saturating_add(more_writes);
        };
        match peer.report.as_ref().map(|report| &report.state) {
            Some(MemberReport::Switch(counters)) => {
                counters.partitions.iter().for_each(|it| add(it.partition, (it.reads, it.writes)));
            }
            Some(MemberReport::Node(report)) if !by_switches => {
                report.counts.iter().for_each(|it| add(it.partition, (it.reads, it.writes)));
            }
            Some(MemberReport::Node(_) | MemberReport::Cache(_)) | None => {}
        }
    }
    counts
}

fn is_covered(view: &View<'_>) -> bool {
    let map = &view.state.map;
    let ready = |member| view.members.get(member).is_some_and(|p| p.is_ready(map.revision));
    let serves = |p: &Partition| p.open && p.chain.iter().all(|id| ready(Member::Node(*id)));
    ready(Member::Switch(map.active_switch)) && map.partitions.iter().all(serves)
}

/// The shortest lease among those that are needed, counted as clocks that differ most would.
fn serves_alone_ms(view: &View<'_>, members: &[MemberStatus]) -> u64 {
    let map = &view.state.map;
    let chained: BTreeSet<&NodeId> = map.partitions.iter().flat_map(|it| &it.chain).collect();
    let is_needed = |it: &&MemberStatus| match it.member {
        Member::Switch(index) => index == map.active_switch,
        Member::Cache(_) => false,
        Member::Node(id) => chained.contains(&id) && it.state != MemberState::Silent,
    };
    let percent = u64::from(CLOCK_RATE_MAX_PERCENT);
    let may_differ = view.lease_ms * percent / 100 - view.lease_ms * 100 / percent;
    let left = members.iter().filter(is_needed).map(|it| it.lease_ms_left);
    left.min().unwrap_or_default().saturating_sub(may_differ)
}

fn keyspace_status(view: &View<'_>, keyspace: &Keyspace, counts: &Counts) -> KeyspaceStatus {
    let replicas = usize::from(keyspace.replicas);
    let partitions = view.state.map.partitions.iter().filter(|p| p.keyspace == keyspace.id);
    let mut partitions: Vec<PartitionStatus> =
        partitions.map(|p| partition_status(view, p, replicas, counts)).collect();
    partitions.sort_by_key(|p| p.first);
    KeyspaceStatus {
        id: keyspace.id,
        name: keyspace.name.clone(),
        kind: keyspace.kind.clone(),
        hot: keyspace.hot,
        replicas,
        replicas_min: partitions.iter().map(|p| p.chain.len()).min().unwrap_or(0),
        stored: stored(view, keyspace, &partitions),
        partitions,
    }
}

/// What all tails say together, if they have counted all.
fn stored(view: &View<'_>, keyspace: &Keyspace, partitions: &[PartitionStatus]) -> Option<Volume> {
    let tails: BTreeSet<&NodeId> = partitions.iter().filter_map(|p| p.chain.last()).collect();
    let said = tails.into_iter().map(|id| {
        let stored = &view.members.node_report(*id)?.stored;
        let stored = stored.iter().find(|it| it.keyspace == keyspace.id)?;
        stored.counted.then_some(stored.as_tail)
    });
    said.sum::<Option<Volume>>()
}

fn partition_status(
    view: &View<'_>,
    partition: &Partition,
    replicas: usize,
    counts: &Counts,
) -> PartitionStatus {
    let (reads, writes) = counts.get(&partition.id).copied().unwrap_or_default();
    let changed = partition.since.iter().copied().max().unwrap_or_default();
    let has = |id: &NodeId| {
        let peer = view.members.node(*id);
        peer.is_some_and(|peer| peer.follows() && peer.revision() >= changed)
    };
    PartitionStatus {
        id: partition.id,
        first: partition.first,
        last: partition.last,
        epoch: partition.epoch,
        chain: partition.members().to_vec(),
        learner: partition.learner(),
        open: partition.open,
        missing: replicas.saturating_sub(partition.members().len()),
        unheard: partition.chain.iter().filter(|id| !has(id)).count(),
        verified: verified(view, partition),
        reads,
        writes,
    }
}

fn load(view: &View<'_>, counts: &Counts) -> Vec<NodeLoad> {
    let map = &view.state.map;
    let empty = map.nodes.iter().map(|n| {
        let (node, shards) = (n.id, n.shards);
        (node, NodeLoad { node, shards, ..NodeLoad::default() })
    });
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
        if let Some(report) = view.members.node_report(node.node) {
            node.stored = report.stored.iter().map(|it| it.held).reduce(Volume::plus);
            let NodeReport { requests, pending, waiting, busy_us, resources, .. } = *report;
            (node.requests, node.pending) = (requests, pending);
            (node.waiting, node.busy_us, node.resources) = (waiting, busy_us, resources);
        }
    }
    load.into_values().collect()
}
