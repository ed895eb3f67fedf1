//! Which tables are taken, what becomes of the counters when they change, and what `explain` says.

use cluster::{
    ClusterId, Epoch, HotOrder, Incarnation, InstallError, KeyspaceId, Lease, Match, NodeId,
    NodeSpec, Partition, PartitionCount, PartitionId, SwitchControl as _, SwitchTables,
};
use machine::{Instant, Outbox};
use std::net::SocketAddr;
use std::sync::Arc;
use switch::{Counters, Directory, Explanation, Pipeline, Tables, explain};
use wire::{DropReason, Endpoint, Header, Op, Revision};

const HALF: u128 = 1 << 127;
const NOW: Instant = Instant::from_unix_ms(1_000);

/// A pipeline that may forward.
fn leased() -> Pipeline {
    let mut pipeline = Pipeline::new(Incarnation(1));
    pipeline.renew(
        NOW,
        &Lease {
            cluster: cluster::ClusterId(0),
            incarnation: Incarnation(1),
            revision: Revision::NONE,
            from: NOW,
            duration_ms: 1,
        },
    );
    pipeline
}

fn endpoint(host: u8, port: u16) -> Endpoint {
    Endpoint::from(SocketAddr::from(([10, 0, 0, host], port)))
}

fn node(id: u16, port: u16, shards: u16) -> NodeSpec {
    NodeSpec { id: NodeId(id), endpoint: endpoint(1, port), shards }
}

fn partition(id: u32, first: u128, last: u128, chain: &[u16]) -> Partition {
    Partition {
        id: PartitionId(id),
        keyspace: KeyspaceId(1),
        first: Match(first),
        last: Match(last),
        epoch: Epoch(4),
        chain: chain.iter().copied().map(NodeId).collect(),
        open: true,
        ..Partition::default()
    }
}

fn sound() -> SwitchTables {
    SwitchTables {
        fenced: Vec::new(),
        caches: Vec::new(),
        cluster: cluster::ClusterId(0),
        revision: Revision::new(3),
        active: true,
        nodes: vec![node(1, 9000, 2), node(2, 9002, 2)],
        partitions: vec![
            partition(7, 0, HALF - 1, &[1, 2]),
            partition(8, HALF, u128::MAX, &[2, 1]),
        ],
    }
}

fn get(pipeline: &mut Pipeline, at: u128) {
    let header = Header { op: Op::Get as u8, keyspace: 1, match_value: at, ..Header::default() };
    let mut datagram = Vec::new();
    wire::emit(&mut datagram, &header, &[]);
    pipeline.process(NOW, endpoint(9, 1), &mut datagram, &mut Outbox::default()).expect("sent");
}

fn loads(counters: &Counters) -> Vec<(u32, u64)> {
    counters.partitions().iter().map(|load| (load.partition.0, load.reads)).collect()
}

type Spoil = fn(&mut SwitchTables);

#[test]
fn nothing_is_sent_to_a_node_that_is_fenced_and_what_it_sends_is_a_node_s() {
    let mut pipeline = leased();
    pipeline.install(&SwitchTables { fenced: vec![NodeId(2)], ..sound() }).unwrap();
    let mut send = |op: Op, at: u128, from: Endpoint| {
        let header = Header {
            op: op as u8,
            keyspace: 1,
            match_value: at,
            client: 1,
            node: 2,
            reply_port: 5,
            ..Header::default()
        };
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, &[]);
        pipeline.process(NOW, from, &mut datagram, &mut Outbox::default())
    };
    let (client, fenced) = (endpoint(9, 1), endpoint(1, 9002));
    // Node 2 is the tail of the first partition and the head of the second.
    assert_eq!(send(Op::Get, 0, client), Err(DropReason::NoNode));
    assert_eq!(send(Op::Get, HALF, client), Ok(()));
    assert_eq!(send(Op::Del, HALF, client), Err(DropReason::NoNode));
    assert_eq!(send(Op::Get, HALF, fenced), Err(DropReason::RequestFromNode));
}

#[test]
fn unsound_tables_are_refused_and_change_nothing() {
    let mut pipeline = leased();
    pipeline.install(&sound()).unwrap();
    let refused: [(&str, Spoil); 12] = [
        ("node 1 is there twice", |t| t.nodes.push(node(1, 9100, 1))),
        ("node id 1024 is too large", |t| t.nodes.push(node(1024, 9100, 1))),
        ("node 3: 0 shards", |t| t.nodes.push(node(3, 9100, 0))),
        ("node 3: 2 shards from 10.0.0.1:65535", |t| t.nodes.push(node(3, 65535, 2))),
        ("node 3: 1 shards from 10.0.0.1:0", |t| t.nodes.push(node(3, 0, 1))),
        ("nodes 1 and 3 share an endpoint", |t| t.nodes.push(node(3, 9001, 1))),
        ("partition id 0 is reserved", |t| t.partitions.push(partition(0, 0, 1, &[1]))),
        ("partition 7 is there twice", |t| t.partitions.push(partition(7, 0, 1, &[1]))),
        ("partition 9 has a chain of 0", |t| t.partitions.push(partition(9, 0, 1, &[]))),
        ("partition 9 has a chain of 9", |t| t.partitions.push(partition(9, 0, 1, &[1; 9]))),
        ("partition 9 is empty", |t| t.partitions.push(partition(9, 5, 4, &[1]))),
        ("partitions 8 and 9 overlap", |t| {
            t.partitions.push(partition(9, HALF + 1, HALF + 1, &[1]))
        }),
    ];
    for (why, spoil) in refused {
        let mut tables = SwitchTables { revision: Revision::new(4), ..sound() };
        spoil(&mut tables);
        let Err(InstallError::Unsound(found)) = pipeline.install(&tables) else {
            panic!("{why}: taken, or refused otherwise");
        };
        assert!(found.contains(why), "{found:?} does not say {why:?}");
        assert_eq!(pipeline.revision(), Revision::new(3));
    }
}

#[test]
fn a_table_has_room_for_its_limit_and_not_for_one_more() {
    let hosts = |count: usize| SwitchTables {
        nodes: (0u16..).map(|id| node(id, 1 + id, 1)).take(count).collect(),
        ..SwitchTables::default()
    };
    let full = |table| Err(InstallError::TableFull(table));
    assert!(Tables::compile(&hosts(wire::NODES_MAX)).is_ok());
    assert_eq!(Tables::compile(&hosts(wire::NODES_MAX + 1)).map(drop), full("node"));
    let spread = |count: usize, keyspaces: usize| {
        let places = (1u32..).zip(0..count);
        let partitions = places.map(|(id, place)| Partition {
            keyspace: KeyspaceId(u16::try_from(place % keyspaces).unwrap()),
            ..partition(id, u128::from(id), u128::from(id), &[1])
        });
        SwitchTables { partitions: partitions.collect(), ..SwitchTables::default() }
    };
    assert!(Tables::compile(&spread(wire::PARTITIONS_MAX, wire::KEYSPACES_MAX)).is_ok());
    let partitions = spread(wire::PARTITIONS_MAX + 1, 1);
    assert_eq!(Tables::compile(&partitions).map(drop), full("partition"));
    let keyspaces = spread(wire::KEYSPACES_MAX + 1, wire::KEYSPACES_MAX + 1);
    assert_eq!(Tables::compile(&keyspaces).map(drop), full("keyspace"));
}

#[test]
fn a_sender_is_known_by_any_of_its_ports_and_no_other() {
    let tables = Tables::compile(&sound()).unwrap();
    let found: Vec<Option<u16>> =
        (8999..=9004).map(|port| tables.sender(endpoint(1, port)).map(|node| node.0)).collect();
    assert_eq!(found, [None, Some(1), Some(1), Some(2), Some(2), None]);
    assert_eq!(tables.sender(endpoint(2, 9000)), None);
    assert_eq!(tables.sender(endpoint(0, 9000)), None);
}

#[test]
fn counters_follow_the_partition_id_through_new_tables() {
    let mut pipeline = leased();
    pipeline.install(&sound()).unwrap();
    get(&mut pipeline, 0);
    get(&mut pipeline, HALF);
    get(&mut pipeline, HALF);
    let mut split = SwitchTables { revision: Revision::new(4), ..sound() };
    split.partitions = vec![
        partition(8, HALF, u128::MAX, &[1]),
        partition(6, 0, 9, &[1]),
        partition(9, 10, HALF - 1, &[2]),
    ];
    pipeline.install(&split).unwrap();
    assert_eq!(loads(pipeline.counters_ref()), [(6, 0), (8, 2), (9, 0)]);
    get(&mut pipeline, u128::MAX);
    get(&mut pipeline, 9);
    assert_eq!(loads(pipeline.counters_ref()), [(6, 1), (8, 3), (9, 0)]);
    assert_eq!((pipeline.counters().packets, pipeline.counters().emitted), (5, 5));
}

#[test]
fn merged_counters_are_those_of_one_switch_that_took_all_packets() {
    let [mut first, mut second, mut alone] = [(); 3].map(|()| leased());
    for pipeline in [&mut first, &mut second, &mut alone] {
        pipeline.install(&sound()).unwrap();
    }
    get(&mut first, 0);
    get(&mut second, 0);
    get(&mut second, HALF);
    for at in [0, 0, HALF] {
        get(&mut alone, at);
    }
    for pipeline in [&mut second, &mut alone] {
        let outcome = pipeline.process(NOW, endpoint(9, 1), &mut [], &mut Outbox::default());
        assert_eq!(outcome, Err(DropReason::Truncated));
    }
    let mut sum = Counters::default();
    for thread in [first, second] {
        sum.merge(thread.counters_ref());
    }
    assert_eq!(&sum, alone.counters_ref());
    assert_eq!(sum.report(Some(ClusterId(0)), Revision::new(3), Revision::NONE), alone.counters());
    let count =
        |partition, reads| PartitionCount { partition: PartitionId(partition), reads, writes: 0 };
    assert_eq!(alone.counters().partitions, [count(7, 2), count(8, 1)]);
    assert_eq!((alone.counters().packets, alone.counters().dropped), (4, 1));
}

#[test]
fn explain_says_what_packets_meet() {
    let mut tables = sound();
    tables.partitions.remove(0);
    tables.partitions.push(partition(9, 3, 5, &[6, 2, 1]));
    let tables = Tables::compile(&tables).unwrap();
    let of = |at| explain(&tables, KeyspaceId(1), Match(at));
    let mid = Explanation {
        partition: PartitionId(9),
        first: Match(3),
        last: Match(5),
        epoch: Epoch(4),
        chain: vec![NodeId(6), NodeId(2), NodeId(1)],
        read: Some(endpoint(1, 9001)),
        write: None,
    };
    assert_eq!((of(2), of(6)), (None, None));
    assert_eq!((of(3), of(5)), (Some(mid.clone()), Some(mid)));
    assert_eq!(explain(&tables, KeyspaceId(2), Match(3)), None);
}

#[test]
fn a_switch_falls_silent_when_its_lease_ends_and_while_it_stands_by() {
    let mut pipeline = leased();
    pipeline.install(&sound()).unwrap();
    get(&mut pipeline, 0);
    let end = Instant::from_unix_ms(1_001);
    let mut datagram = Vec::new();
    let header = Header { op: Op::Get as u8, keyspace: 1, ..Header::default() };
    wire::emit(&mut datagram, &header, &[]);
    let at = |pipeline: &mut Pipeline, now| {
        pipeline.process(now, endpoint(9, 1), &mut datagram.clone(), &mut Outbox::default())
    };
    assert_eq!(at(&mut pipeline, end), Err(DropReason::NoLease));
    let lease = Lease {
        cluster: cluster::ClusterId(0),
        incarnation: Incarnation(1),
        revision: Revision::new(4),
        from: end,
        duration_ms: 1,
    };
    pipeline.renew(end, &lease);
    assert_eq!(at(&mut pipeline, end), Err(DropReason::NoLease), "it is for a newer revision");
    pipeline
        .install(&SwitchTables { revision: Revision::new(4), active: false, ..sound() })
        .unwrap();
    pipeline.renew(end, &lease);
    assert_eq!(at(&mut pipeline, end), Err(DropReason::Standby));
}

#[test]
fn a_switch_takes_no_orders_of_another_cluster_than_the_first() {
    let directory = Arc::new(Directory::new(Incarnation(1)));
    let mut threads = [(); 2].map(|()| Pipeline::sharing(Incarnation(1), directory.clone()));
    let [one, other] = &mut threads;
    one.install(&sound()).unwrap();
    let rival = ClusterId(9);
    let tables =
        SwitchTables { cluster: rival, revision: Revision::new(4), partitions: vec![], ..sound() };
    let lease = Lease {
        incarnation: Incarnation(1),
        cluster: rival,
        revision: Revision::new(3),
        from: NOW,
        duration_ms: 1,
    };
    let hot = HotOrder {
        revision: Revision::new(5),
        cluster: rival,
        switch: Incarnation(1),
        ..HotOrder::default()
    };
    for thread in [&mut *one, &mut *other] {
        thread.install(&tables).unwrap();
        thread.renew(NOW, &lease);
        thread.install_hot(&hot).unwrap();
        assert!(!thread.is_leased(NOW));
        assert_eq!(thread.counters().cluster, Some(ClusterId(0)), "and it says so");
        assert_eq!(thread.counters().hot_revision, Revision::NONE);
    }
    assert_eq!(
        (one.revision(), other.revision()),
        (Revision::new(3), Revision::NONE),
        "threads follow one cluster together"
    );
    let ours = Lease { cluster: ClusterId(0), ..lease };
    other.install(&sound()).unwrap();
    for thread in [one, other] {
        thread.renew(NOW, &ours);
        get(thread, 0);
    }
}
