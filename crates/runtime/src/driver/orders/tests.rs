//! Whatever an assignment says, the machine gets it only if it is sound.

use super::*;
use crate::driver::{NodeDriver, NodeLimits, SwitchDriver};
use crate::net::Socket;
use cluster::{
    ClusterId, Epoch, HotOrder, Incarnation, Keyspace, KeyspaceKind, Leader, Lease, NodeId,
    PartitionId, StoreId, SwitchTables, Term,
};
use node::engine::memory::MemoryEngine;
use wire::{Generation, Revision};

const INCARNATION: Incarnation = Incarnation(7);
const STORES: [StoreId; 2] = [StoreId(1), StoreId(2)];

fn start_node() -> NodeDriver {
    let sockets = Socket::bind_row("127.0.0.1:0".parse().unwrap(), 2).unwrap();
    let engines = STORES.map(MemoryEngine::new).into();
    NodeDriver::start(NodeId(1), INCARNATION, sockets, engines, NodeLimits::default(), None)
        .unwrap()
}

fn start_switch() -> SwitchDriver {
    SwitchDriver::start("127.0.0.1:0".parse().unwrap(), 2, INCARNATION, None, None).unwrap()
}

fn partition(id: u32, first: u128, last: u128) -> Partition {
    Partition {
        id: PartitionId(id),
        keyspace: KeyspaceId(1),
        first: Match(first),
        last: Match(last),
        epoch: Epoch(1),
        chain: vec![NodeId(2), NodeId(1)],
        since: vec![Revision::new(1), Revision::new(1)],
        open: true,
        ..Partition::default()
    }
}

/// A sound assignment for this node, which shares two partitions with another.
fn sound(node: &NodeHandle) -> Assignment {
    let mut other = node.spec();
    other.id = NodeId(2);
    other.endpoint.addr[15] = 99;
    let kind = KeyspaceKind::Hash;
    let keyspace = Keyspace {
        id: KeyspaceId(1),
        name: "k".into(),
        kind,
        seed: 7,
        replicas: 2,
        hot: cluster::HotPolicy::Replicate,
        content: None,
    };
    Assignment {
        caches: Vec::new(),
        revision: Revision::new(5),
        cluster: ClusterId(3),
        node: NodeId(1),
        store: node.store(),
        incarnation: None,
        aged: Revision::NONE,
        switch: node.spec().endpoint,
        copy_bytes_per_s: 1_000,
        nodes: vec![node.spec(), other],
        keyspaces: vec![keyspace],
        partitions: vec![partition(1, 0, 9), partition(2, 10, u128::MAX)],
    }
}

fn assign(assignment: Assignment) -> Order {
    Order { install: Some(Install::Assignment(assignment)), ..Order::default() }
}

fn obey(member: &MemberHandle, order: Order) -> Result<Report, OrderError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(member.obey(order))
}

/// A lease of an hour that rests on this report.
fn lease(report: &Report, revision: u64) -> Order {
    let Report { incarnation, at, .. } = *report;
    let lease = Lease {
        cluster: ClusterId(3),
        incarnation,
        revision: Revision::new(revision),
        from: at,
        duration_ms: 3_600_000,
    };
    Order { lease: Some(lease), ..Order::default() }
}

/// The leader of this term in the cluster of all assignments here.
fn leader(term: u64) -> Option<Leader> {
    Some(Leader { cluster: ClusterId(3), term: Term(term) })
}

#[test]
fn an_order_of_a_leader_that_was_deposed_is_refused_and_counted() {
    let driver = start_node();
    let node = driver.handle();
    let member = MemberHandle::Node(node.clone());
    let order = Order { leader: leader(8), ..assign(sound(&node)) };
    let report = obey(&member, order).unwrap();
    let newer = Assignment { revision: Revision::new(6), ..sound(&node) };
    let late = Order { leader: leader(7), ..assign(newer.clone()) };
    let refused = obey(&member, late).unwrap_err();
    let deposed = Unheeded::Deposed { term: Term(7), newest: Term(8) };
    assert_eq!(refused, OrderError::Unheeded(deposed));
    let late = Order { leader: leader(7), ..lease(&report, 5) };
    obey(&member, late).unwrap_err();
    let snapshot = node.snapshot().unwrap();
    assert_eq!(snapshot.report.revision, Revision::new(5));
    assert!(snapshot.shards.iter().all(|shard| !shard.leased));
    // Every handle to it knows the same.
    assert_eq!((driver.handle().obedience().term(), node.obedience().refused()), (Term(8), 2));
    // Somebody of another cluster may say what he likes.
    let foreign = Some(Leader { cluster: ClusterId(4), term: Term(99) });
    obey(&member, Order { leader: foreign, ..Order::default() }).unwrap();
    obey(&member, Order { leader: leader(8), ..assign(newer) }).unwrap();
    assert_eq!(node.snapshot().unwrap().report.revision, Revision::new(6));
}

#[test]
fn an_order_for_another_incarnation_is_answered_and_not_obeyed() {
    let switch = start_switch();
    let member = MemberHandle::Switch(switch.handle());
    let tables = SwitchTables {
        revision: Revision::new(5),
        cluster: ClusterId(3),
        ..SwitchTables::default()
    };
    let install = Some(Install::Tables(tables));
    let order = Order { leader: leader(8), install, may_end: true, ..Order::default() };
    let other = Order { incarnation: Some(Incarnation(6)), ..order.clone() };
    let leaving = member.leaving();
    leaving.begin();
    let report = obey(&member, other).unwrap();
    assert!(!leaving.may_end(), "it is another one that may");
    assert_eq!((report.incarnation, report.revision()), (INCARNATION, Revision::NONE));
    let ours = Order { incarnation: Some(INCARNATION), ..order };
    assert_eq!(obey(&member, ours).unwrap().revision(), Revision::new(5));
    assert!(leaving.may_end());
}

#[test]
fn a_sound_assignment_is_taken_by_all_shards() {
    let driver = start_node();
    let node = driver.handle();
    let member = MemberHandle::Node(node.clone());
    let report = obey(&member, assign(sound(&node))).unwrap();
    assert_eq!((report.incarnation, report.revision()), (INCARNATION, Revision::new(5)));
    let shards = node.snapshot().unwrap().shards;
    let partitions: Vec<usize> = shards.iter().map(|shard| shard.partitions).collect();
    assert_eq!(partitions, [1, 1]);
    assert!(shards.iter().all(|shard| shard.at >= report.at), "the earliest counts");
}

#[test]
fn a_closed_partition_is_reported_settled_whichever_shard_has_it() {
    let driver = start_node();
    let node = driver.handle();
    let member = MemberHandle::Node(node.clone());
    let mut assignment = sound(&node);
    for partition in &mut assignment.partitions {
        (partition.open, partition.chain, partition.since) =
            (false, vec![NodeId(1)], vec![Revision::new(1)]);
    }
    let report = obey(&member, assign(assignment)).unwrap();
    let MemberReport::Node(report) = report.state else { panic!("{report:?}") };
    let mut settled: Vec<_> = report.settled.iter().map(|it| it.partition.0).collect();
    settled.sort_unstable();
    assert_eq!(settled, [1, 2]);
    assert_eq!(report.cluster, Some(ClusterId(3)));
}

#[test]
fn a_lease_is_taken_by_every_thread_once_what_it_is_for_is_installed() {
    let (node, switch) = (start_node(), start_switch());
    let (node, switch) = (node.handle(), switch.handle());
    let leased = || {
        let shards = node.snapshot().unwrap().shards;
        (shards.iter().all(|shard| shard.leased), switch.snapshot().unwrap().leased)
    };
    let tables = SwitchTables {
        cluster: ClusterId(3),
        revision: Revision::new(5),
        ..SwitchTables::default()
    };
    let tables = Order { install: Some(Install::Tables(tables)), ..Order::default() };
    for (member, install) in [
        (MemberHandle::Node(node.clone()), assign(sound(&node))),
        (MemberHandle::Switch(switch.clone()), tables),
    ] {
        let report = obey(&member, Order::default()).unwrap();
        obey(&member, lease(&report, 5)).unwrap();
        let report = obey(&member, install).unwrap();
        let other = Report { incarnation: Incarnation(8), ..report.clone() };
        obey(&member, lease(&other, 5)).unwrap();
        assert_eq!(report.revision(), Revision::new(5));
    }
    assert_eq!(leased(), (false, false));
    for member in [MemberHandle::Node(node.clone()), MemberHandle::Switch(switch.clone())] {
        let report = obey(&member, Order::default()).unwrap();
        obey(&member, lease(&report, 5)).unwrap();
    }
    assert_eq!(leased(), (true, true));
}

#[test]
fn an_unsound_assignment_changes_nothing() {
    type Change = fn(&mut Assignment);
    let mistakes: [(Change, &str); 15] = [
        (|it| it.node = NodeId(2), "is for node 2"),
        (|it| it.node = NodeId(3), "not in its own node table"),
        (|it| it.nodes[0].shards = 1, "with 1 shards"),
        (|it| it.nodes.push(it.nodes[1]), "twice"),
        (|it| it.switch.port = 0, "no port"),
        (|it| it.keyspaces.push(it.keyspaces[0].clone()), "twice"),
        (|it| it.partitions[0].id = PartitionId(2), "twice"),
        (|it| it.partitions[0].keyspace = KeyspaceId(2), "no keyspace"),
        (|it| it.partitions[0].first = Match(10), "empty"),
        (|it| it.partitions[1].first = Match(9), "overlap"),
        (|it| it.partitions[0].chain = vec![NodeId(2)], "chain"),
        (|it| it.partitions[0].chain = vec![NodeId(1), NodeId(1)], "chain"),
        (|it| it.partitions[0].chain = vec![NodeId(1), NodeId(7)], "chain"),
        (|it| it.partitions[0].since = vec![Revision::new(1)], "chain"),
        (
            |it| {
                let partition = &mut it.partitions[0];
                (partition.chain, partition.since, partition.has_learner) =
                    (vec![NodeId(1)], vec![Revision::new(1)], true);
            },
            "chain",
        ),
    ];
    let driver = start_node();
    let node = driver.handle();
    let member = MemberHandle::Node(node.clone());
    for (change, expected) in mistakes {
        let mut assignment = sound(&node);
        change(&mut assignment);
        let error = obey(&member, assign(assignment)).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected:?} not in {error:?}");
    }
    assert_eq!(obey(&member, Order::default()).unwrap().revision(), Revision::NONE);
}

#[test]
fn what_does_not_belong_to_the_node_is_not_installed_and_the_report_shows_why() {
    let driver = start_node();
    let node = driver.handle();
    let member = MemberHandle::Node(node.clone());
    let other = Assignment { store: StoreId(0), ..sound(&node) };
    let report = obey(&member, assign(other)).unwrap();
    assert_eq!(report.revision(), Revision::NONE);
    let MemberReport::Node(state) = report.state else { panic!("{report:?}") };
    assert_eq!(state.store, node.store());

    obey(&member, assign(sound(&node))).unwrap();
    let other = Assignment { cluster: ClusterId(4), revision: Revision::new(6), ..sound(&node) };
    let report = obey(&member, assign(other)).unwrap();
    assert_eq!(report.revision(), Revision::new(5));
    let MemberReport::Node(state) = report.state else { panic!("{report:?}") };
    assert_eq!(state.cluster, Some(ClusterId(3)));
}

#[test]
fn an_order_for_the_other_role_is_refused() {
    let (node, switch) = (start_node(), start_switch());
    let (node_member, switch_member) =
        (MemberHandle::Node(node.handle()), MemberHandle::Switch(switch.handle()));
    let tables = Install::Tables(SwitchTables::default());
    let tables = Order { install: Some(tables), ..Order::default() };
    let assignment = assign(sound(&node.handle()));
    let wrong = |result| matches!(result, Err(OrderError::WrongRole { .. }));
    assert!(wrong(obey(&node_member, tables)));
    assert!(wrong(obey(&switch_member, assignment)));
}

#[test]
fn a_member_that_has_ended_says_so() {
    let switch = start_switch();
    let member = MemberHandle::Switch(switch.handle());
    drop(switch);
    assert_eq!(obey(&member, Order::default()), Err(OrderError::Unreached(MailError::Ended)));
}

#[test]
fn one_shard_without_its_memory_makes_another_node() {
    let first = start_node().handle().store();
    let sockets = Socket::bind_row("127.0.0.1:0".parse().unwrap(), 2).unwrap();
    let engines = [StoreId(1), StoreId(3)].map(MemoryEngine::new).into();
    let driver =
        NodeDriver::start(NodeId(1), INCARNATION, sockets, engines, NodeLimits::default(), None)
            .unwrap();
    assert_ne!(driver.handle().store(), first);
    assert_eq!(start_node().handle().store(), first);
}

/// Hot keys of revision 9 for this switch: one, with two places for copies.
fn hot() -> HotOrder {
    let key = cluster::HotEntry {
        keyspace: KeyspaceId(1),
        key: b"k".to_vec(),
        keyhash: 1,
        match_value: cluster::Match(0),
        generation: Generation::new(9),
        first: 1,
        readers: 2,
        delegation: None,
    };
    let place = |id| Some((NodeId(id), INCARNATION));
    HotOrder {
        cluster: ClusterId(3),
        revision: Revision::new(9),
        switch: INCARNATION,
        places: vec![place(1), place(2)],
        keys: vec![key],
        ..HotOrder::default()
    }
}

#[test]
fn hot_keys_are_taken_by_all_threads_of_the_active_switch_and_by_all_shards() {
    let (node, switch) = (start_node(), start_switch());
    let hot = || Order { hot: Some(Arc::new(hot())), ..Order::default() };
    let member = MemberHandle::Node(node.handle());
    obey(&member, assign(sound(&node.handle()))).unwrap();
    let MemberReport::Node(report) = obey(&member, hot()).unwrap().state else { panic!() };
    assert_eq!(report.hot_revision, Revision::new(9));

    let member = MemberHandle::Switch(switch.handle());
    let says = |report: Report| match report.state {
        MemberReport::Switch(counters) => counters.hot_revision,
        MemberReport::Node(_) | MemberReport::Cache(_) => panic!(),
    };
    assert_eq!(
        says(obey(&member, hot()).unwrap()),
        Revision::NONE,
        "it does not know that it is the active one"
    );
    let nodes = sound(&node.handle()).nodes;
    let tables = SwitchTables {
        cluster: ClusterId(3),
        revision: Revision::new(5),
        active: true,
        nodes,
        ..SwitchTables::default()
    };
    let tables = Order { install: Some(Install::Tables(tables)), ..hot() };
    assert_eq!(says(obey(&member, tables).unwrap()), Revision::new(9));
    assert_eq!(switch.handle().snapshot().unwrap().counters.hot().len(), 1);
}

/// It would be the last that is taken. The rest of the order is taken, for leases rest on it.
#[test]
fn hot_keys_from_far_ahead_are_left_out_of_an_order() {
    let (node, switch) = (start_node(), start_switch());
    let members = [MemberHandle::Node(node.handle()), MemberHandle::Switch(switch.handle())];
    obey(&members[0], assign(sound(&node.handle()))).unwrap();
    let nodes = sound(&node.handle()).nodes;
    let (cluster, active) = (ClusterId(3), true);
    let tables = SwitchTables {
        cluster,
        revision: Revision::new(5),
        active,
        nodes,
        ..SwitchTables::default()
    };
    let tables = Some(Install::Tables(tables));
    obey(&members[1], Order { install: tables, ..Order::default() }).unwrap();
    for member in &members {
        for (revision, taken) in [(u64::MAX, 0), ((1 << 48) - 1, 0), (9, 9)] {
            let hot = HotOrder { revision: Revision::new(revision), ..hot() };
            let order = Order { hot: Some(Arc::new(hot)), ..Order::default() };
            let says = match obey(member, order).unwrap().state {
                MemberReport::Node(report) => report.hot_revision,
                MemberReport::Switch(counters) => counters.hot_revision,
                MemberReport::Cache(_) => panic!(),
            };
            assert_eq!(says, Revision::new(taken));
        }
        HotOrder { revision: Revision::new(1 << 48), ..hot() }.check().unwrap_err();
    }
}

#[test]
fn unsound_hot_keys_are_refused() {
    let driver = start_node();
    let member = MemberHandle::Node(driver.handle());
    let breaks: [fn(&mut HotOrder); 7] = [
        |it| it.keys[0].first = 2,
        |it| it.keys[0].readers = 3,
        |it| it.keys[0].generation = Generation::new(10),
        |it| it.keys[0].key = vec![0; wire::KEY_MAX + 1],
        |it| it.keys.push(it.keys[0].clone()),
        |it| it.keys.push(cluster::HotEntry { key: vec![], keyhash: 2, ..it.keys[0].clone() }),
        |it| it.places[1] = it.places[0],
    ];
    for (index, unsound) in breaks.into_iter().enumerate() {
        let mut hot = hot();
        unsound(&mut hot);
        let refused = obey(&member, Order { hot: Some(Arc::new(hot)), ..Order::default() });
        assert!(matches!(refused, Err(OrderError::UnsoundHot(_))), "{index}: {refused:?}");
    }
}

/// Whichever comes first: it has them whole, in all threads, and nothing of the other.
#[test]
fn of_two_clusters_that_give_a_switch_tables_at_once_it_follows_one() {
    for _ in 0..20 {
        let switch = start_switch();
        let give = |cluster: u64, revision| {
            let member = MemberHandle::Switch(switch.handle());
            let cluster = ClusterId(cluster);
            let tables = SwitchTables { cluster, revision, ..SwitchTables::default() };
            move || {
                let tables = Order { install: Some(Install::Tables(tables)), ..Order::default() };
                let report = obey(&member, tables).unwrap();
                let from = report.at;
                let lease = Lease {
                    incarnation: report.incarnation,
                    cluster,
                    revision,
                    from,
                    duration_ms: 3_600_000,
                };
                obey(&member, Order { lease: Some(lease), ..Order::default() }).unwrap().state
            }
        };
        let (one, other) = (give(3, Revision::new(5)), give(4, Revision::new(6)));
        let said = std::thread::scope(|scope| {
            let threads = [scope.spawn(one), scope.spawn(other)];
            threads.map(|thread| thread.join().unwrap())
        });
        let snapshot = switch.handle().snapshot().unwrap();
        let follows = snapshot.cluster.unwrap();
        assert_eq!(snapshot.revision, Revision::new(follows.0 + 2), "{snapshot:?}");
        for state in said {
            let MemberReport::Switch(counters) = state else { panic!() };
            assert_eq!(
                (counters.cluster, counters.revision),
                (Some(follows), Revision::new(follows.0 + 2))
            );
        }
        assert!(snapshot.leased);
    }
}
