//! What clients cost a node in memory, as the kernel counts it: this test has a process for itself.
#![cfg(test)]

use cluster::{
    ClusterId, Epoch, HotPolicy, Incarnation, Keyspace, KeyspaceId, KeyspaceKind, Lease, Map,
    Match, NodeId, NodeSpec, Partition, PartitionId, StoreId,
};
use machine::Instant;
use node::engine::memory::MemoryEngine;
use node::{Node, NodeConfig, TrackerConfig};
use std::time::Duration;
use wire::{Endpoint, Header, Op, PutBody, Revision};

const KEYSPACE: KeyspaceId = KeyspaceId(1);
const NODE: NodeId = NodeId(0);

/// Clients that each write once: fewer than a partition keeps sessions for.
const CLIENTS: u64 = 15_000;
const PARTITIONS: u32 = 16;

fn at(port: u16) -> Endpoint {
    Endpoint { addr: [1; 16], port }
}

fn map() -> Map {
    let width = u128::MAX / u128::from(PARTITIONS);
    let partition = |index: u32| Partition {
        id: PartitionId(index + 1),
        keyspace: KEYSPACE,
        first: Match(width * u128::from(index) + u128::from(index.min(1))),
        last: if index + 1 == PARTITIONS {
            Match::MAX
        } else {
            Match(width * u128::from(index + 1))
        },
        epoch: Epoch(1),
        chain: vec![NODE],
        since: vec![Revision::new(1)],
        open: true,
        ..Partition::default()
    };
    Map {
        caches: Vec::new(),
        handing_over: false,
        fences: Vec::new(),
        revision: Revision::new(1),
        cluster: ClusterId(1),
        active_switch: 0,
        copy_bytes_per_s: 1 << 30,
        nodes: vec![NodeSpec { id: NODE, endpoint: at(100), shards: 1 }],
        keyspaces: vec![Keyspace {
            id: KEYSPACE,
            name: "k".into(),
            kind: KeyspaceKind::Range { prefix: Vec::new() },
            seed: 3,
            replicas: 1,
            hot: HotPolicy::default(),
            content: None,
        }],
        partitions: (0..PARTITIONS).map(partition).collect(),
    }
}

fn node(map: &Map, now: Instant) -> Node<MemoryEngine> {
    let incarnation = Incarnation(7);
    let config =
        NodeConfig { shard: 0, shards: 1, incarnation, rate: 0, tracker: TrackerConfig::default() };
    let mut node = Node::new(config, MemoryEngine::new(StoreId(1)), now);
    node.install(now, &map.assignment(NODE, StoreId(1), at(1)));
    node.renew(&Lease {
        cluster: map.cluster,
        incarnation,
        revision: map.revision,
        from: now,
        duration_ms: 1 << 40,
    });
    node
}

/// Resident memory of this process, in bytes.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split(' ').nth(1)?.parse::<u64>().ok()? * 4096)
}

#[test]
fn a_session_costs_what_the_node_counts_for_it() {
    let Some(_) = resident() else {
        println!("skipped: this system does not say how much memory a process has");
        return;
    };
    let map = map();
    map.check().unwrap();
    let mut now = Instant::from_unix_ms(1_000_000);
    let mut node = node(&map, now);
    let mut datagram = Vec::new();
    let mut round = |node: &mut Node<MemoryEngine>, client: u64| {
        for partition in &map.partitions {
            let key = partition.first.0.to_be_bytes();
            let mut header = Header {
                partition: partition.id.0,
                epoch: partition.epoch.0,
                reply_addr: [9; 16],
                reply_port: 9,
                match_value: partition.first.0,
                keyhash: map.keyspaces[0].keyhash(&key),
                op: Op::Put as u8,
                keyspace: KEYSPACE.0,
                key_len: 16,
                client,
                seq: 1,
                ..Header::default()
            };
            header.set_chain([NODE.0]);
            datagram.clear();
            wire::emit(&mut datagram, &header, &[&PutBody::default().to_bytes(), &key, b"v"]);
            node.handle_packet(now, at(1), 0, &datagram);
        }
        node.flush().unwrap();
        while node.poll_transmit().is_some() {}
        now = now + Duration::from_micros(100);
        node.handle_timeout(now);
    };
    // What every node has, whoever its clients are.
    round(&mut node, u64::MAX);
    let (before, counted) = (resident().unwrap(), node.memory_used());
    (1..=CLIENTS).for_each(|client| round(&mut node, client.reverse_bits()));
    assert_eq!(node.sessions() as u64, (CLIENTS + 1) * u64::from(PARTITIONS));
    let sessions = CLIENTS * u64::from(PARTITIONS);
    node.handle_timeout(now + Duration::from_secs(5));
    let costs = (resident().unwrap() - before) / sessions;
    let counts = (node.memory_used() - counted) / sessions;
    println!("a session with one outcome: {costs} bytes of resident memory, {counts} are counted");
    assert!(counts * 3 / 4 <= costs && costs <= counts * 5 / 4, "{costs} and not {counts}");
}
