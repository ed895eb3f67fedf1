//! Whatever an assignment says, the machine gets it only if it is sound.

use super::*;
use crate::driver::{NodeDriver, SwitchDriver};
use cluster::{Epoch, Keyspace, KeyspaceKind, NodeId, PartitionId, SwitchTables};
use node::engine::memory::MemoryEngine;

const STORES: [StoreId; 2] = [StoreId(1), StoreId(2)];

fn start_node() -> NodeDriver {
    let sockets = NodeDriver::bind("127.0.0.1:0".parse().unwrap(), 2).unwrap();
    let engines = STORES.map(MemoryEngine::new).into();
    NodeDriver::start(NodeId(1), sockets, engines).unwrap()
}

fn start_switch() -> SwitchDriver {
    SwitchDriver::start("127.0.0.1:0".parse().unwrap(), 1).unwrap()
}

fn partition(id: u32, first: u128, last: u128) -> Partition {
    Partition {
        id: PartitionId(id),
        keyspace: KeyspaceId(1),
        first: Match(first),
        last: Match(last),
        epoch: Epoch(1),
        chain: vec![NodeId(2), NodeId(1)],
    }
}

/// A sound assignment for this node, which shares two partitions with another.
fn sound(node: &NodeHandle) -> Assignment {
    let mut other = node.spec();
    other.id = NodeId(2);
    other.endpoint.addr[15] = 99;
    let keyspace =
        Keyspace { id: KeyspaceId(1), name: "k".into(), kind: KeyspaceKind::Hash, seed: 7 };
    Assignment {
        revision: 5,
        node: NodeId(1),
        store: node.store(),
        switch: node.spec().endpoint,
        nodes: vec![node.spec(), other],
        keyspaces: vec![keyspace],
        partitions: vec![partition(1, 0, 9), partition(2, 10, u128::MAX)],
    }
}

#[test]
fn a_sound_assignment_is_taken_by_all_shards() {
    let driver = start_node();
    let node = driver.handle();
    let mut member = MemberHandle::Node(node.clone());
    let report = member.obey(Order::Assign(sound(&node))).unwrap();
    assert_eq!(report.revision(), 5);
    let shards = node.snapshot().unwrap().shards;
    let partitions: Vec<usize> = shards.iter().map(|shard| shard.partitions).collect();
    assert_eq!(partitions, [1, 1]);
}

#[test]
fn an_unsound_assignment_changes_nothing() {
    type Change = fn(&mut Assignment);
    let mistakes: [(Change, &str); 14] = [
        (|it| it.node = NodeId(2), "is for node 2"),
        (|it| it.node = NodeId(3), "not in its own node table"),
        (|it| it.store = StoreId(0), "with memory"),
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
    ];
    let driver = start_node();
    let node = driver.handle();
    let mut member = MemberHandle::Node(node.clone());
    for (change, expected) in mistakes {
        let mut assignment = sound(&node);
        change(&mut assignment);
        let error = member.obey(Order::Assign(assignment)).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected:?} not in {error:?}");
    }
    assert_eq!(member.obey(Order::Report).unwrap().revision(), 0);
}

#[test]
fn an_order_for_the_other_role_is_refused() {
    let (node, switch) = (start_node(), start_switch());
    let (mut node_member, mut switch_member) =
        (MemberHandle::Node(node.handle()), MemberHandle::Switch(switch.handle()));
    let tables = Order::Tables(SwitchTables::default());
    let assignment = Order::Assign(sound(&node.handle()));
    let wrong = |result| matches!(result, Err(OrderError::WrongRole { .. }));
    assert!(wrong(node_member.obey(tables)));
    assert!(wrong(switch_member.obey(assignment)));
}

#[test]
fn a_member_that_has_ended_says_so() {
    let switch = start_switch();
    let mut member = MemberHandle::Switch(switch.handle());
    drop(switch);
    assert_eq!(member.obey(Order::Report), Err(OrderError::Unreached(MailError::Ended)));
}

#[test]
fn one_shard_without_its_memory_makes_another_node() {
    let first = start_node().handle().store();
    let sockets = NodeDriver::bind("127.0.0.1:0".parse().unwrap(), 2).unwrap();
    let engines = [StoreId(1), StoreId(3)].map(MemoryEngine::new).into();
    let driver = NodeDriver::start(NodeId(1), sockets, engines).unwrap();
    assert_ne!(driver.handle().store(), first);
    assert_eq!(start_node().handle().store(), first);
}
