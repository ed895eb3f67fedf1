//! Making a map anew from what nodes have on record, when the controller's own store is lost,
//! damaged or an older copy: a pure function of what all of them say.
//!
//! A node keeps the last assignment that it followed. The newest epoch that anybody has on record
//! of a partition says who its members are: whoever was left out has an older one. So every node
//! that can have been a member has to be asked; one that acknowledged alone is not known to the
//! others. What comes out is closed everywhere, and members are compared before anything opens.

mod chains;
mod error;

pub use chains::PartitionPart;
pub use error::RebuildError;

use crate::config::ControllerConfig;
use crate::saved::{FORMAT, Saved};
use chains::RebuiltChains;
use cluster::{
    Assignment, Fence, KeyName, Map, MaybeMutant, Mutant, NodeId, NodeRecord, NodeSpec, Partition,
    Standby, StoreId, SwitchRecord, is_plausible_revision,
};
use machine::Instant;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use wire::{Endpoint, Revision};

/// What a map is made anew from.
#[derive(Clone, Copy, Debug)]
pub struct Basis<'a> {
    /// The cluster as configured.
    pub config: &'a ControllerConfig,
    /// What nodes have on record.
    pub records: &'a [NodeRecord],
    /// What switches follow, as far as they say so: revisions that no node may have heard of.
    pub switches: &'a [SwitchRecord],
    /// Nodes that are gone for good, or whose memory counts for nothing: what only they have
    /// acknowledged is lost.
    pub without: &'a BTreeSet<NodeId>,
    /// What can still be read of the store that is to be replaced. It may be of any age, and of
    /// another cluster: taken from it is only what no node knows.
    pub older: Option<&'a Saved>,
    /// Breaks a rule on purpose, to know that the simulator would see it.
    pub mutant: MaybeMutant,
}

/// A map made anew, and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// For the controller's store.
    pub saved: Saved,
    /// What becomes of each node, by id.
    pub nodes: Vec<NodePart>,
    /// Where each partition comes from, in the order of the map.
    pub partitions: Vec<PartitionPart>,
}

/// What becomes of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodePart {
    /// Which.
    pub node: NodeId,
    /// Revision of the map that it has on record; 0 for none.
    pub revision: Revision,
    /// Partitions that it is a member of, or joins.
    pub replicas_held: usize,
    /// Of these, those of which others have a newer epoch on record: it is sent what it lacks.
    pub behind: usize,
    /// Of these, those in which its store is certainly an older copy: nothing that it holds of them
    /// is believed without another member that holds the same.
    pub aged: usize,
    /// Partitions that it has on record and is no member of any more: it forgets them.
    pub left: usize,
    /// It counts for nothing, because the operator said so.
    pub without: bool,
}

/// Revisions that are skipped: more than a controller can have given out that nobody who is asked
/// has heard of. They follow the time in milliseconds, so this is a minute.
const REVISIONS_SKIPPED: u64 = 60_000;

/// Makes a map from what nodes have on record.
///
/// # Errors
///
/// If what they say is not enough, or contradicts itself.
pub fn rebuild(basis: &Basis<'_>, now: Instant) -> Result<Rebuilt, RebuildError> {
    let Basis { config, without, .. } = *basis;
    let counted: Vec<&NodeRecord> =
        basis.records.iter().filter(|it| !without.contains(&it.node)).collect();
    check_records(&counted, now)?;
    let assignments: Vec<&Assignment> =
        counted.iter().filter_map(|it| it.assignment.as_ref()).collect();
    let newest = assignments.iter().max_by_key(|it| it.revision).ok_or(RebuildError::Nothing)?;
    if let Some(seed) = newest.keyspaces.iter().map(|it| it.seed).find(|it| *it != config.seed) {
        return Err(RebuildError::Seed { configured: config.seed, recorded: seed });
    }
    check_complete(basis, &counted, &assignments)?;
    let ours = basis.older.filter(|it| it.map.cluster == newest.cluster);
    let revision = next_revision(basis, now)?;
    let mut chains = RebuiltChains::new(&counted, revision, last_id(&assignments, ours));
    chains.take_newest()?;
    let all = without.is_empty() && counted.iter().all(|it| !it.is_blank());
    chains.fill_gaps(&newest.keyspaces, &takers(newest, all))?;
    let (mut partitions, parts, next_partition) = chains.finish()?;
    if basis.mutant.is(Mutant::RebuildOpen) {
        partitions.iter_mut().for_each(open_uncompared);
    }
    let paused = newest.copy_bytes_per_s == 0;
    let nodes = nodes(&assignments, newest, &partitions, without);
    let map = Map {
        revision,
        cluster: newest.cluster,
        active_switch: active_switch(config, newest),
        handing_over: true,
        fences: fences(&nodes, revision),
        copy_bytes_per_s: if paused { 0 } else { config.copy_bytes_per_s },
        nodes,
        caches: Vec::new(), // The configuration says which there are.
        keyspaces: newest.keyspaces.clone(),
        partitions,
    };
    map.check().map_err(|why| RebuildError::Unsound(why.to_string()))?;
    let nodes = node_parts(basis, &parts);
    let known = |id: &NodeId| map.nodes.iter().any(|it| it.id == *id);
    let members = || counted.iter().filter(|it| !it.is_blank() && known(&it.node));
    let is_aged = |it: &NodeRecord| nodes.iter().any(|part| part.node == it.node && part.aged > 0);
    let aged =
        |it: &&NodeRecord| seen_aged(it, if is_aged(it) { revision } else { Revision::NONE });
    let controls = ours.iter().flat_map(|it| &it.controls).chain(&config.controls);
    let saved = Saved {
        format: FORMAT,
        term: ours.map_or_else(Default::default, |it| it.term),
        seed: config.seed,
        switches: config.switches.iter().map(|at| (*at).into()).collect(),
        controls: controls.filter(|(id, _)| known(id)).map(|(id, at)| (*id, *at)).collect(),
        stores: members().map(|it| (it.node, it.store)).collect(),
        incarnations: members().map(|it| (it.node, it.incarnation)).collect(),
        switch_incarnations: BTreeMap::new(),
        aged: members().copied().filter_map(|it| aged(&it)).collect(),
        issued: VecDeque::from([revision]),
        standbys: standbys(config, &map),
        direct: None, // Nobody knows.
        departing: of_older(ours, |it| &it.departing).filter(known).collect(),
        passes: ours.map_or(0, |it| it.passes),
        classes: ours.map_or_else(BTreeMap::new, |it| it.classes.clone()),
        paused,
        placement_paused: ours.is_some_and(|it| it.placement_paused),
        pins: of_older(ours, |it| &it.pins).filter(|it| has_keyspace_of(&map, it)).collect(),
        lease_ms: ours.map_or(0, |it| it.lease_ms).max(config.lease_ms()),
        next_keyspace: next_keyspace(&map)?.max(ours.map_or(0, |it| it.next_keyspace)),
        next_partition,
        map,
    };
    Ok(Rebuilt { saved, nodes, partitions: parts })
}

/// When a node was last seen to come back with an older copy of its store, if it ever was: now, in
/// this revision, or before, as it says.
fn seen_aged(it: &NodeRecord, now: Revision) -> Option<(NodeId, Revision)> {
    let before = it.assignment.as_ref().map_or(Revision::NONE, |assignment| assignment.aged);
    Some((it.node, if now.is_none() { before } else { now })).filter(|(_, seen)| !seen.is_none())
}

/// The last id of a partition that was given out, as far as anybody knows.
fn last_id(assignments: &[&Assignment], older: Option<&Saved>) -> u32 {
    let ids = assignments.iter().flat_map(|it| &it.partitions).map(|it| it.id.0);
    let last = ids.chain(older.map(|it| it.next_partition.saturating_sub(1))).max();
    last.unwrap_or(0)
}

fn has_keyspace_of(map: &Map, key: &KeyName) -> bool {
    map.keyspaces.iter().any(|keyspace| keyspace.id == key.keyspace)
}

fn open_uncompared(partition: &mut Partition) {
    (partition.open, partition.opened) = (true, partition.epoch);
    partition.returned.clear();
}

/// What an older store has of a set.
fn of_older<T: Clone + 'static>(
    older: Option<&Saved>,
    of: fn(&Saved) -> &BTreeSet<T>,
) -> impl Iterator<Item = T> {
    older.into_iter().flat_map(move |it| of(it).iter().cloned())
}

/// Whether records go together: they are of one cluster, each of a memory of its own, and whole.
fn check_records(records: &[&NodeRecord], now: Instant) -> Result<(), RebuildError> {
    let mut clusters = records.iter().filter_map(|it| Some(it.assignment.as_ref()?.cluster));
    if let Some(first) = clusters.next()
        && let Some(other) = clusters.find(|it| *it != first)
    {
        return Err(RebuildError::Clusters(first, other));
    }
    let mut memories: BTreeMap<StoreId, NodeId> = BTreeMap::new();
    let mut said = BTreeSet::new();
    for record in records.iter().filter(|it| !it.is_blank()) {
        let node = record.node;
        if let Some(other) = memories.insert(record.store, node) {
            return Err(RebuildError::OneMemory(other, node));
        }
        if !said.insert(node) {
            let why = format!("two nodes say that they are node {node}");
            return Err(RebuildError::Unsound(why));
        }
        let assignment = record.assignment.as_ref();
        if let Some(other) = assignment.map(|it| it.node).filter(|it| *it != node) {
            let why = format!("node {node} has what was said to node {other}");
            return Err(RebuildError::Unsound(why));
        }
        if !is_plausible_revision(now, record.revision) {
            let revision = record.revision;
            let why = format!("node {node} has revision {revision}, which cannot be");
            return Err(RebuildError::Unsound(why));
        }
    }
    let unknown = |it: &&&NodeRecord| !it.is_blank() && it.assignment.is_none();
    let unknown: Vec<NodeId> = records.iter().filter(unknown).map(|it| it.node).collect();
    if unknown.is_empty() { Ok(()) } else { Err(RebuildError::Unrecorded(unknown)) }
}

/// Whether everybody who can have been a member is there and remembers.
fn check_complete(
    basis: &Basis<'_>,
    records: &[&NodeRecord],
    assignments: &[&Assignment],
) -> Result<(), RebuildError> {
    let Basis { config, without, .. } = *basis;
    let tables = assignments.iter().flat_map(|it| &it.nodes).chain(&config.nodes);
    let placed = || assignments.iter().flat_map(|it| &it.partitions).flat_map(|it| &it.chain);
    let named: BTreeSet<NodeId> = tables.map(|it| it.id).chain(placed().copied()).collect();
    let said = |id: &NodeId| records.iter().find(|it| it.node == *id);
    let missing = named.iter().filter(|id| !without.contains(id) && said(id).is_none());
    let missing: Vec<NodeId> = missing.copied().collect();
    if !missing.is_empty() {
        return Err(RebuildError::Missing(missing));
    }
    let blank = |id: &&NodeId| said(id).is_some_and(|it| it.is_blank());
    let blank: BTreeSet<NodeId> = placed().filter(blank).copied().collect();
    if blank.is_empty() { Ok(()) } else { Err(RebuildError::Blank(blank.into_iter().collect())) }
}

/// A revision above all that anybody can know of.
fn next_revision(basis: &Basis<'_>, now: Instant) -> Result<Revision, RebuildError> {
    let plausible = |revision: &Revision| is_plausible_revision(now, *revision);
    let recorded = basis.records.iter().map(|it| it.revision);
    let followed = basis.switches.iter().map(|it| it.revision);
    let older = basis.older.map(|it| it.map.revision);
    let known = recorded.chain(followed).chain(older).filter(plausible);
    let last = known.max().unwrap_or_default().get().max(now.unix_ms());
    last.checked_add(REVISIONS_SKIPPED).map(Revision::new).ok_or_else(error::exhausted)
}

/// The switch that was active, by its place in the configuration; the first if it is gone.
fn active_switch(config: &ControllerConfig, newest: &Assignment) -> u16 {
    let place = (0..).zip(&config.switches).find(|(_, at)| **at == newest.switch);
    place.map_or(0, |(index, _)| index)
}

/// Nodes that may be given what nobody has on record: all or none.
fn takers(newest: &Assignment, all: bool) -> Vec<NodeId> {
    newest.nodes.iter().map(|it| it.id).filter(|_| all).collect()
}

fn next_keyspace(map: &Map) -> Result<u16, RebuildError> {
    let last = map.keyspaces.iter().map(|it| it.id.0).max().unwrap_or(0);
    last.checked_add(1).ok_or_else(error::exhausted)
}

/// Nobody knows any more which nodes had been left behind: each has to take this map before it is
/// reached again.
fn fences(nodes: &[NodeSpec], revision: Revision) -> Vec<Fence> {
    nodes.iter().map(|node| Fence::new(node.id, revision)).collect()
}

/// All switches, none of which serves by the map.
fn standbys(config: &ControllerConfig, map: &Map) -> BTreeMap<SocketAddr, Standby> {
    let since = map.revision;
    let standby = |(index, at): (u16, &Endpoint)| {
        let unnamed = (index != map.active_switch).then_some(since);
        ((*at).into(), Standby { since, unnamed })
    };
    (0..).zip(&config.switches).map(standby).collect()
}

/// The nodes of the newest table, and those that are in chains for all that.
fn nodes(
    assignments: &[&Assignment],
    newest: &Assignment,
    partitions: &[Partition],
    without: &BTreeSet<NodeId>,
) -> Vec<NodeSpec> {
    let mut by_age: Vec<&&Assignment> = assignments.iter().collect();
    by_age.sort_by_key(|it| it.revision);
    let known = by_age.into_iter().flat_map(|it| &it.nodes).map(|node| (node.id, *node));
    let known: BTreeMap<NodeId, NodeSpec> = known.collect();
    let wanted = |id: &NodeId| {
        let placed = partitions.iter().any(|it| it.chain.contains(id));
        placed || newest.nodes.iter().any(|it| it.id == *id) && !without.contains(id)
    };
    known.into_values().filter(|node| wanted(&node.id)).collect()
}

fn node_parts(basis: &Basis<'_>, partitions: &[PartitionPart]) -> Vec<NodePart> {
    let part = |node: NodeId| {
        let record = basis.records.iter().find(|it| it.node == node);
        let count = |of: fn(&PartitionPart) -> &Vec<NodeId>| {
            partitions.iter().filter(|it| of(it).contains(&node)).count()
        };
        NodePart {
            node,
            revision: record.map_or(Revision::NONE, |it| it.revision),
            replicas_held: count(|it| &it.chain),
            behind: count(|it| &it.behind),
            aged: count(|it| &it.aged),
            left: count(|it| &it.left),
            without: basis.without.contains(&node),
        }
    };
    let ids = basis.records.iter().map(|it| it.node).chain(basis.without.iter().copied());
    let ids: BTreeSet<NodeId> = ids.collect();
    ids.into_iter().map(part).collect()
}
