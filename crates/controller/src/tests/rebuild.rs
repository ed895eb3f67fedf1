//! Maps made anew from records: what comes of mixed ones, and why some are refused.

use crate::rebuild::{Basis, RebuildError, Rebuilt, rebuild};
use crate::{Controller, ControllerConfig, Saved};
use cluster::{
    Assignment, ClusterId, Epoch, Incarnation, Keyspace, KeyspaceId, KeyspaceKind, Map, Match,
    MaybeMutant, NodeId, NodeRecord, NodeSpec, Partition, PartitionId, Returned, Selection,
    StoreId, SwitchRecord,
};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use wire::{Endpoint, Revision, Version};

const NOW: Instant = Instant::from_unix_ms(1_800_000_000_000);
const SEED: u64 = 7;
/// Revision of the map that nodes follow.
const REVISION: u64 = 1_000;

fn endpoint(port: u16) -> Endpoint {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into()
}

fn node(id: u16) -> NodeSpec {
    NodeSpec { id: NodeId(id), endpoint: endpoint(7_800 + id), shards: 1 }
}

fn config() -> ControllerConfig {
    let control = |id| (NodeId(id), SocketAddr::from((Ipv4Addr::LOCALHOST, 7_890 + id)));
    ControllerConfig {
        seed: SEED,
        cluster: ClusterId(99),
        switches: vec![endpoint(7_700), endpoint(7_701)],
        nodes: (1..=3).map(node).collect(),
        caches: Vec::new(),
        controls: (1..=3).map(control).collect(),
        poll_interval: Duration::from_millis(100),
        lease: Duration::from_millis(500),
        overlap: Duration::ZERO,
        copy_bytes_per_s: 1 << 20,
        hot_selection: Selection::default(),
        content: None,
        load_floor: crate::LOAD_FLOOR,
        split_bytes: crate::SPLIT_BYTES,
    }
}

/// Half of the match values each: partition 1 with nodes 1 to 3, partition 2 with nodes 2 and 3.
fn partition(id: u32, epoch: u32, chain: &[u16]) -> Partition {
    let half = u128::MAX / 2;
    let (first, last) = if id == 1 { (0, half) } else { (half + 1, u128::MAX) };
    Partition {
        id: PartitionId(id),
        keyspace: KeyspaceId(1),
        first: Match(first),
        last: Match(last),
        epoch: Epoch(epoch),
        chain: chain.iter().copied().map(NodeId).collect(),
        since: vec![Revision::new(500); chain.len()],
        open: true,
        opened: Epoch(epoch),
        ..Partition::default()
    }
}

fn usual() -> Vec<Partition> {
    vec![partition(1, 5, &[1, 2, 3]), partition(2, 3, &[2, 3])]
}

/// What a node has on record that follows these partitions.
fn record(id: u16, revision: u64, partitions: &[Partition]) -> NodeRecord {
    let keyspace = Keyspace {
        id: KeyspaceId(1),
        name: "default".into(),
        kind: KeyspaceKind::Hash,
        seed: SEED,
        replicas: 3,
        hot: cluster::HotPolicy::default(),
        content: None,
    };
    let map = Map {
        revision: Revision::new(revision),
        cluster: ClusterId(1),
        copy_bytes_per_s: 1 << 20,
        nodes: (1..=3).map(node).collect(),
        keyspaces: vec![keyspace],
        partitions: partitions.to_vec(),
        ..Map::default()
    };
    let store = StoreId(100 + u64::from(id));
    NodeRecord {
        node: NodeId(id),
        store,
        incarnation: Incarnation(200 + u64::from(id)),
        past: Vec::new(),
        leased: false,
        revision: Revision::new(revision),
        assignment: Some(map.assignment(NodeId(id), store, endpoint(7_701))),
    }
}

fn blank(id: u16) -> NodeRecord {
    NodeRecord { revision: Revision::NONE, assignment: None, ..record(id, 1, &[]) }
}

fn records() -> Vec<NodeRecord> {
    (1..=3).map(|id| record(id, REVISION, &usual())).collect()
}

fn try_with(records: &[NodeRecord], without: &[u16]) -> Result<Rebuilt, RebuildError> {
    let without: BTreeSet<NodeId> = without.iter().copied().map(NodeId).collect();
    let config = config();
    let basis = Basis {
        config: &config,
        records,
        switches: &[],
        without: &without,
        older: None,
        mutant: MaybeMutant::default(),
    };
    rebuild(&basis, NOW)
}

#[track_caller]
fn with(records: &[NodeRecord], without: &[u16]) -> Rebuilt {
    let found = try_with(records, without).unwrap();
    // Whatever comes out, a controller begins with it.
    let begun = Controller::new(config(), Some(found.saved.clone()), NOW).unwrap();
    assert_eq!(begun.map().cluster, ClusterId(1));
    found
}

#[track_caller]
fn refused(records: &[NodeRecord], without: &[u16], words: &[&str]) -> RebuildError {
    let error = try_with(records, without).unwrap_err();
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is missing: {text}");
    }
    error
}

fn chain(found: &Rebuilt, id: u32) -> Vec<u16> {
    let partition = found.saved.map.partitions.iter().find(|it| it.id.0 == id).unwrap();
    partition.chain.iter().map(|node| node.0).collect()
}

fn change(record: &mut NodeRecord, id: u32, change: impl FnOnce(&mut Partition)) {
    let assignment = record.assignment.as_mut().unwrap();
    change(assignment.partitions.iter_mut().find(|it| it.id.0 == id).unwrap());
}

#[test]
fn a_keyspace_is_as_it_was_altered_last() {
    let mut records = records();
    let altered = |record: &mut NodeRecord, revision, replicas| {
        record.revision = Revision::new(revision);
        let assignment = record.assignment.as_mut().unwrap();
        assignment.revision = record.revision;
        assignment.keyspaces[0].replicas = replicas;
    };
    // One node was down when it was altered, and another when it was altered again.
    altered(&mut records[1], REVISION + 1, 2);
    altered(&mut records[2], REVISION + 2, 1);
    let made = try_with(&records, &[]).unwrap();
    assert_eq!(made.saved.map.keyspaces[0].replicas, 1);
}

#[test]
fn the_map_comes_back_closed_and_everybody_is_to_be_compared() {
    let found = with(&records(), &[]);
    let Saved { map, stores, incarnations, issued, next_keyspace, next_partition, .. } =
        &found.saved;
    assert_eq!((chain(&found, 1), chain(&found, 2)), (vec![1, 2, 3], vec![2, 3]));
    for (new, old) in map.partitions.iter().zip(usual()) {
        assert!(!new.open && new.epoch > old.epoch, "{new:?}");
        assert_eq!((new.opened, &new.since), (old.opened, &old.since));
        let compared: Vec<NodeId> = new.returned.iter().map(|it| it.node).collect();
        assert_eq!(compared, new.chain);
        assert!(new.returned.iter().all(|it| it.remembers));
    }
    assert!(map.revision > Revision::new(NOW.unix_ms()) && *issued == [map.revision]);
    assert_eq!(stores[&NodeId(2)], StoreId(102));
    assert_eq!(incarnations[&NodeId(2)], Incarnation(202));
    assert_eq!((*next_keyspace, *next_partition, map.active_switch), (2, 3, 1));
    assert_eq!(map.copy_bytes_per_s, config().copy_bytes_per_s);
    assert!(found.nodes.iter().all(|it| it.behind + it.aged + it.left == 0 && !it.without));
}

#[test]
fn one_node_ahead_alone_is_the_chain_and_the_others_are_not() {
    let mut all = records();
    all[0] = record(1, REVISION + 9, &[partition(1, 7, &[1])]);
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let records: Vec<NodeRecord> = order.iter().map(|at| all[*at].clone()).collect();
        let found = with(&records, &[]);
        assert_eq!((chain(&found, 1), chain(&found, 2)), (vec![1], vec![2, 3]));
        let left: Vec<usize> = found.nodes.iter().map(|it| it.left).collect();
        assert_eq!(left, [0, 1, 1]);
        assert_eq!(found.partitions[0].recorded, Epoch(7));
        assert_eq!(found.partitions[0].sources, [NodeId(1)]);
    }
    // If nobody asks it, the others do not know.
    refused(&all[1..], &[], &["node 1", "--without 1", "lost"]);
    let found = with(&all[1..], &[1]);
    assert_eq!(chain(&found, 1), [2, 3]);
    assert_eq!(found.partitions[0].lost, [NodeId(1)]);
    assert!(found.nodes.iter().any(|it| it.node == NodeId(1) && it.without));
}

#[test]
fn a_member_that_did_not_hear_of_the_last_epoch_is_compared_and_one_with_an_old_store_not_believed()
{
    let closed = |epoch: u32, opened| Partition {
        open: false,
        opened: Epoch(opened),
        ..partition(1, epoch, &[1, 2, 3])
    };
    let others = [partition(2, 3, &[2, 3])];
    // Opened in 5, closed in 6: node 2 has heard of neither, and settled in 4 before.
    let ahead = [&[closed(6, 5)], &others[..]].concat();
    for (epoch, aged) in [(5, 0), (4, 0), (3, 1), (2, 1)] {
        let all = [
            record(1, REVISION, &ahead),
            record(2, REVISION - 9, &[&[closed(epoch, 3)], &others[..]].concat()),
            record(3, REVISION, &ahead),
        ];
        let found = with(&all, &[]);
        assert_eq!(found.partitions[0].behind, [NodeId(2)]);
        let node = found.nodes.iter().find(|it| it.node == NodeId(2)).unwrap();
        assert_eq!((node.behind, node.aged), (1, aged), "epoch {epoch}");
        let remembers = Returned { node: NodeId(2), remembers: aged == 0, left: false };
        assert!(found.saved.map.partitions[0].returned.contains(&remembers), "epoch {epoch}");
        assert_eq!(found.saved.aged.contains_key(&NodeId(2)), aged > 0);
    }
}

/// Nobody else has heard yet that it was let go, and it holds nothing any more: it must not count
/// as a member, least of all of a partition that was never closed before.
#[test]
fn who_follows_a_newer_map_without_the_partition_is_no_member_of_it() {
    for epoch in [1, 5] {
        let all = [partition(1, epoch, &[1, 2, 3]), partition(2, 3, &[2, 3])];
        let usual = (1..=3).map(|id| record(id, REVISION, &all));
        let mut records: Vec<NodeRecord> = usual.collect();
        records[1] = record(2, REVISION + 1, &all[1..]);
        let found = with(&records, &[]);
        assert_eq!((chain(&found, 1), chain(&found, 2)), (vec![1, 3], vec![2, 3]), "{epoch}");
        assert_eq!(found.partitions[0].lost, [NodeId(2)]);
        // One that was not told yet that it was taken in lacks nothing.
        records[1] = record(2, 499, &[]);
        let found = with(&records, &[]);
        assert_eq!(chain(&found, 1), [1, 2, 3], "{epoch}");
    }
}

#[test]
fn who_was_found_to_have_an_older_store_is_not_better_for_a_new_map() {
    let mut all = records();
    for record in &mut all {
        change(record, 1, |it| {
            (it.open, it.epoch) = (false, Epoch(6));
            it.returned = vec![Returned { node: NodeId(3), remembers: false, left: false }];
        });
        record.assignment.as_mut().unwrap().aged =
            Revision::new(u64::from(record.node.0 == 3) * 800);
    }
    let found = with(&all, &[]);
    let forgot: Vec<u16> = found.saved.map.partitions[0]
        .returned
        .iter()
        .filter(|it| !it.remembers)
        .map(|it| it.node.0)
        .collect();
    assert_eq!(forgot, [3]);
    assert_eq!(found.saved.aged, BTreeMap::from([(NodeId(3), Revision::new(800))]));
    // An operator's word since then changes no epoch.
    all[1].revision = Revision::new(REVISION + 1);
    all[1].assignment.as_mut().unwrap().revision = Revision::new(REVISION + 1);
    change(&mut all[1], 1, |it| it.returned[0].remembers = true);
    assert!(with(&all, &[]).saved.map.partitions[0].returned.iter().all(|it| it.remembers));
}

#[test]
fn a_learner_stays_one_and_is_no_member_by_itself() {
    let joining = Partition {
        has_learner: true,
        resumes: Some(Version::new(40)),
        ..partition(1, 5, &[1, 3])
    };
    let all = [&[joining], &usual()[1..]].concat();
    let mut records: Vec<NodeRecord> = (1..=3).map(|id| record(id, REVISION, &all)).collect();
    let found = with(&records, &[]);
    let partition = &found.saved.map.partitions[0];
    assert_eq!((partition.learner(), partition.resumes), (Some(NodeId(3)), Some(Version::new(40))));
    records.remove(0);
    let error = refused(&records, &[1], &["no member is left", "1"]);
    assert_eq!(error, RebuildError::Lost { partitions: vec![PartitionId(1)], gaps: Vec::new() });
}

#[test]
fn nothing_and_several_clusters_and_one_memory_twice_are_refused() {
    assert_eq!(try_with(&[], &[]), Err(RebuildError::Nothing));
    let all: Vec<NodeRecord> = (1..=3).map(blank).collect();
    refused(&all, &[], &["nothing to make a map from"]);
    let mut all = records();
    all[2].assignment.as_mut().unwrap().cluster = ClusterId(0xfeed);
    refused(&all, &[], &["000000000000feed", "0000000000000001"]);
    let mut all = records();
    all[2].store = all[1].store;
    refused(&all, &[], &["nodes 2 and 3 have one memory"]);
}

#[test]
fn who_is_missing_or_has_forgotten_everything_is_named() {
    // Named by the configuration alone, by tables of nodes alone.
    let mut all = records();
    let four = NodeSpec { id: NodeId(4), ..node(4) };
    all[0].assignment.as_mut().unwrap().nodes.push(four);
    let error = refused(&all, &[], &["node 4", "--without 4"]);
    assert_eq!(error, RebuildError::Missing(vec![NodeId(4)]));
    with(&all, &[4]);
    refused(&records()[..2], &[], &["node 3"]);
    let mut all = records();
    all[1] = blank(2);
    let error = refused(&all, &[], &["node 2", "memory is new", "--without 2"]);
    assert_eq!(error, RebuildError::Blank(vec![NodeId(2)]));
    let found = with(&all, &[2]);
    assert_eq!((chain(&found, 1), chain(&found, 2)), (vec![1, 3], vec![3]));
    assert!(!found.saved.stores.contains_key(&NodeId(2)), "it is taken in as a new one");
    let mut all = records();
    all[1].assignment = None;
    refused(&all, &[], &["node 2", "earlier version", "--without 2"]);
    with(&all, &[2]);
}

#[test]
fn partitions_of_which_nobody_is_left_are_named() {
    let all = &records()[..1];
    let error = refused(all, &[2, 3], &["default"]);
    let half = Match(u128::MAX / 2 + 1);
    let gaps = vec![("default".to_owned(), half, Match::MAX)];
    assert_eq!(error, RebuildError::Lost { partitions: Vec::new(), gaps });
}

#[test]
fn what_was_decided_and_told_to_nobody_is_empty_and_there() {
    let mut all: Vec<NodeRecord> = records();
    for record in &mut all {
        record.assignment.as_mut().unwrap().partitions.retain(|it| it.id.0 == 1);
    }
    let found = with(&all, &[]);
    let filled = &found.saved.map.partitions[1];
    assert_eq!((filled.first, filled.last), (Match(u128::MAX / 2 + 1), Match::MAX));
    assert_eq!((filled.chain.len(), filled.id, found.saved.next_partition), (3, PartitionId(2), 3));
    assert_eq!(found.partitions[1].recorded, Epoch(0));
    // But not if somebody who may know of it is not there.
    refused(&all[..2], &[3], &["default"]);
}

#[test]
fn a_revision_that_only_a_switch_follows_is_not_given_out_again() {
    let (config, without) = (config(), BTreeSet::new());
    let ahead = Revision::new(NOW.unix_ms() + 200_000);
    let impossible = Revision::new(u64::MAX);
    let switches = [ahead, impossible].map(|revision| SwitchRecord { revision });
    let basis = Basis {
        config: &config,
        records: &records(),
        switches: &switches,
        without: &without,
        older: None,
        mutant: MaybeMutant::default(),
    };
    let revision = rebuild(&basis, NOW).unwrap().saved.map.revision;
    assert!(ahead < revision && revision < impossible);
}

#[test]
fn records_that_contradict_each_other_or_cannot_be_are_refused() {
    let contradict = |what: fn(&mut Partition)| {
        let mut all = records();
        change(&mut all[1], 1, what);
        refused(&all, &[], &["epoch 5 of partition 1", "nodes"]);
    };
    contradict(|it| it.chain.reverse());
    contradict(|it| it.open = false);
    contradict(|it| it.since[0] = it.since[0].next(0));
    contradict(|it| it.last.0 -= 1);
    let unsound = |what: fn(&mut NodeRecord), words: &[&str]| {
        let mut all = records();
        what(&mut all[1]);
        refused(&all, &[], words);
    };
    unsound(|it| it.revision = Revision::new(u64::MAX), &["node 2 has revision"]);
    unsound(|it| it.assignment.as_mut().unwrap().node = NodeId(3), &["said to node 3"]);
    unsound(|it| it.node = NodeId(1), &["two nodes say"]);
    unsound(|it| change(it, 1, |p| p.epoch = Epoch(u32::MAX)), &["the last that there is"]);
    unsound(|it| change(it, 2, |p| (p.epoch, p.first) = (Epoch(4), Match(5))), &["gap or overlap"]);
    let mut all = records();
    all.iter_mut().for_each(|it| it.assignment.as_mut().unwrap().keyspaces[0].seed = 8);
    refused(&all, &[], &["seed 8"]);
}

#[test]
fn what_an_older_store_knows_and_no_node_does_is_kept() {
    let (config, without) = (config(), BTreeSet::new());
    let mut records = records();
    let mut older = with(&records, &[]).saved;
    older.map.revision = Revision::new(older.map.revision.get() + 5_000);
    (older.next_keyspace, older.next_partition, older.lease_ms) = (9, 90, 4_000);
    older.departing.insert(NodeId(2));
    older.pins.insert(cluster::KeyName { keyspace: KeyspaceId(1), key: b"k".to_vec() });
    older.controls.insert(NodeId(3), SocketAddr::from((Ipv4Addr::LOCALHOST, 9)));
    for record in &mut records {
        record.assignment.as_mut().unwrap().copy_bytes_per_s = 0;
    }
    let rebuilt = |older: &Saved| {
        let (config, records, without) = (&config, &records, &without);
        let (older, mutant) = (Some(older), MaybeMutant::default());
        let basis = Basis { config, records, switches: &[], without, older, mutant };
        rebuild(&basis, NOW).unwrap().saved
    };
    let saved = rebuilt(&older);
    assert!(saved.map.revision > older.map.revision);
    assert_eq!((saved.next_keyspace, saved.next_partition, saved.lease_ms), (9, 90, 4_000));
    assert_eq!((&saved.departing, &saved.pins), (&older.departing, &older.pins));
    assert!(saved.paused && saved.map.copy_bytes_per_s == 0, "the nodes say so");
    assert_eq!(saved.controls[&NodeId(3)], config.controls[&NodeId(3)], "as it is configured now");
    // One of another cluster says nothing, but its revisions may be known to somebody.
    older.map.cluster = ClusterId(5);
    let saved = rebuilt(&older);
    assert!(saved.departing.is_empty() && saved.next_keyspace == 2);
    assert!(saved.map.revision > older.map.revision);
}

#[test]
fn an_assignment_is_for_the_incarnation_that_is_on_record() {
    let found = with(&records(), &[]);
    let assignment: Assignment =
        found.saved.map.assignment(NodeId(2), found.saved.stores[&NodeId(2)], endpoint(7_700));
    assert_eq!(assignment.partitions.len(), 2);
    let recorded = records()[1].revision;
    assert!(!found.saved.is_strange(recorded), "nobody follows a map from the future");
    assert!(found.saved.is_strange(Revision::new(found.saved.map.revision.get() + 1)));
}
