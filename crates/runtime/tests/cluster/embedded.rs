//! Clusters in one process: start, restart, and what they refuse.

use crate::setup::{in_memory, on_disk};
use cluster::{KeyspaceId, Map, Match, NodeId, PartitionId};
use runtime::config::EngineKind;
use runtime::up::{Embedded, UpError, UpOptions};
use std::net::UdpSocket;
use tempfile::tempdir;

fn map(cluster: &Embedded) -> Map {
    cluster.roles().controller.as_ref().unwrap().map().unwrap()
}

fn error(options: &UpOptions) -> String {
    match Embedded::start(options) {
        Ok(_) => panic!("it started"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_cluster_is_ready_when_start_returns() {
    let cluster = Embedded::start(&in_memory()).unwrap();
    let map = map(&cluster);
    let roles = cluster.roles();
    let switch = roles.switch.as_ref().unwrap().snapshot().unwrap();
    assert_eq!(switch.revision, map.revision);
    assert_eq!(roles.nodes.len(), 3);
    for node in &roles.nodes {
        assert_eq!(node.snapshot().unwrap().report.revision, map.revision);
    }
    assert_eq!(map.partitions.len(), 32);
}

#[test]
fn a_cluster_comes_back_with_its_map_and_its_memory() {
    let dir = tempdir().unwrap();
    let options = on_disk(dir.path());
    let first = Embedded::start(&options).unwrap();
    let (before, stores) = (map(&first), stores(&first));
    let service = first.service();
    first.stop();
    let options = UpOptions { service, ..options };
    let second = Embedded::start(&options).unwrap();
    assert_eq!(chains(&map(&second)), chains(&before), "open, when their members were compared");
    assert_eq!(map(&second).keyspaces, before.keyspaces);
    assert_eq!(map(&second).nodes, before.nodes, "ports are kept");
    assert_eq!(self::stores(&second), stores);
}

type Kept<'a> = (PartitionId, KeyspaceId, Match, Match, &'a [NodeId], bool);

/// What a restart leaves as it was of each partition: epochs go on.
fn chains(map: &Map) -> Vec<Kept<'_>> {
    map.partitions
        .iter()
        .map(|p| (p.id, p.keyspace, p.first, p.last, p.chain.as_slice(), p.open))
        .collect()
}

fn stores(cluster: &Embedded) -> Vec<cluster::StoreId> {
    cluster.roles().nodes.iter().map(runtime::driver::NodeHandle::store).collect()
}

#[test]
fn a_node_whose_port_is_taken_moves_and_everybody_hears_of_it() {
    let dir = tempdir().unwrap();
    let options = on_disk(dir.path());
    let first = Embedded::start(&options).unwrap();
    let before = map(&first);
    first.stop();
    let taken: std::net::SocketAddr = before.nodes[1].endpoint.into();
    let _squatter = UdpSocket::bind(taken).unwrap();
    let second = Embedded::start(&options).unwrap();
    let after = map(&second);
    assert_eq!(after.nodes[0], before.nodes[0]);
    assert_ne!(after.nodes[1].endpoint, before.nodes[1].endpoint);
    assert_eq!(chains(&after), chains(&before));
}

#[test]
fn a_directory_of_another_cluster_is_refused_with_the_way_out() {
    let dir = tempdir().unwrap();
    let options = on_disk(dir.path());
    Embedded::start(&options).unwrap().stop();
    let other = UpOptions { nodes: 4, shards: 1, ..options.clone() };
    let error = error(&other);
    assert!(error.contains("--nodes 3") && error.contains("--shards 2"), "{error}");
    Embedded::start(&options).unwrap();
}

#[test]
fn a_directory_in_use_is_refused() {
    let dir = tempdir().unwrap();
    let options = on_disk(dir.path());
    let _first = Embedded::start(&options).unwrap();
    assert!(error(&options).contains("in use"));
}

#[test]
fn a_service_address_in_use_is_refused() {
    let first = Embedded::start(&in_memory()).unwrap();
    let error = error(&UpOptions { service: first.service(), ..in_memory() });
    assert!(error.contains("the switch cannot listen"), "{error}");
}

#[test]
fn options_that_contradict_each_other_are_all_told_at_once() {
    let options = UpOptions {
        nodes: 2,
        replicas: 3,
        partitions: 0,
        shards: 0,
        engine: EngineKind::Fjall,
        service: "0.0.0.0:7700".parse().unwrap(),
        ..in_memory()
    };
    let Err(UpError::Options(problems)) = Embedded::start(&options) else { panic!("it started") };
    assert_eq!(problems.len(), 5, "{problems:#?}");
}
