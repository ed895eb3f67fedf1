//! Who belongs to the cluster, and what becomes of those that come back different.

use super::world::{World, hash, node};
use crate::{CreateError, MemberState};
use cluster::{ClusterId, Install, Map, Member, NodeId, StoreId};
use std::time::Duration;
use wire::Revision;

fn with_keyspace(nodes: u16) -> World {
    World::with_keyspace(nodes, 1, 6, 2)
}

#[test]
fn a_fresh_cluster_takes_everybody_in_and_reaches_one_revision() {
    let mut world = World::new(4, 2);
    assert!(!world.status().ready);
    world.settle();
    let status = world.status();
    assert!(status.ready && status.covered, "{status:?}");
    assert_eq!(status.members.len(), 6);
    assert!(world.members.values().all(|m| m.revision() == status.revision));
    let saved = world.saved.unwrap();
    assert_eq!(saved.stores.len(), 4);
    assert_eq!(saved.stores[&NodeId(2)], world.members[&node(2)].store);
}

#[test]
fn a_node_that_restarts_with_its_memory_goes_on_once_it_was_compared() {
    let mut world = with_keyspace(3);
    let before = world.map();
    let closed = |map: &Map| map.partitions.iter().any(|p| !p.open);
    world.member(node(1)).restart();
    world.live_until(|world| closed(world.controller.map()));
    let replicas_held =
        |map: &Map| -> Vec<_> { map.partitions.iter().map(|p| p.chain.clone()).collect() };
    assert_eq!(replicas_held(&world.map()), replicas_held(&before), "all are there to be compared");
    let of_node_1 = world.map().partitions.iter().filter(|p| p.chain.contains(&NodeId(1))).count();
    assert_eq!(world.map().partitions.iter().filter(|p| !p.open).count(), of_node_1);
    world.live_for(Duration::from_secs(1));
    assert_eq!(world.state_of(node(1)), MemberState::Ready);
    assert!(world.status().covered);
    let since = |map: &Map| -> Vec<_> { map.partitions.iter().map(|p| p.since.clone()).collect() };
    assert_eq!(since(&world.map()), since(&before), "nothing is copied");
}

#[test]
fn the_last_to_hold_something_is_given_nothing_until_it_has_its_memory_again() {
    // One replica: nobody else has what node 1 forgets.
    let mut world = World::with_keyspace(3, 1, 6, 1);
    let partitions = world.map().partitions;
    let memory = world.members[&node(1)].store;
    let incarnation = world.members[&node(1)].tenure.incarnation();
    world.member(node(1)).wipe(999);
    world.live_for(Duration::from_secs(3));
    assert!(!world.full_orders().contains(&node(1)));
    let status = world.status();
    assert!(!status.covered && !status.ready);
    assert_eq!(world.state_of(node(1)), MemberState::Forgotten);
    let detail = world.detail_of(node(1));
    assert!(detail.contains("2 of them") && detail.contains("bring its data"), "{detail}");

    // Nor does a controller that comes back meanwhile believe it.
    world.restart(world.config.clone());
    world.live_for(Duration::from_secs(3));
    assert!(!world.full_orders().contains(&node(1)));
    assert_eq!(world.state_of(node(1)), MemberState::Forgotten);
    assert_eq!(world.map().partitions, partitions);

    world.member(node(1)).store = memory;
    world.member(node(1)).past.push(incarnation);
    world.live_for(Duration::from_secs(1));
    assert_eq!(world.state_of(node(1)), MemberState::Ready);
    assert!(world.status().covered);
}

#[test]
fn a_node_without_its_memory_is_replaced_and_taken_in_anew() {
    let mut world = with_keyspace(3);
    world.member(node(1)).wipe(999);
    world.live_until(|world| world.state_of(node(1)) == MemberState::Forgotten);
    let detail = world.detail_of(node(1));
    assert!(detail.contains("taken in anew"), "{detail}");
    world.live_until(|world| world.state_of(node(1)) == MemberState::Ready);
    assert_eq!(world.saved.as_ref().unwrap().stores[&NodeId(1)], StoreId(999));
    world.live_until(|world| world.replicas_held() == [4, 4, 4] && world.status().replicated);
}

#[test]
fn a_node_that_forgets_while_it_is_served_by_nobody_else_keeps_its_seats() {
    // Both members of every chain are lost: one forgets, and the other one comes back.
    let mut world = World::with_keyspace(2, 1, 4, 2);
    world.member(node(0)).wipe(999);
    world.kill(node(1));
    world.live_for(Duration::from_secs(4));
    assert!(world.map().partitions.iter().all(|p| p.chain.len() == 2), "{:?}", world.map());
    let detail = world.detail_of(node(0));
    assert!(detail.contains("or the other nodes"), "{detail}");
    world.revive(node(1));
    world.live_until(|world| world.status().ready && world.status().replicated);
    assert_eq!(world.saved.as_ref().unwrap().stores[&NodeId(0)], StoreId(999));
}

#[test]
fn an_assignment_says_which_memory_it_is_for() {
    let mut world = with_keyspace(3);
    let memory = world.members[&node(1)].store;
    let now = world.now;
    world.controller.create_keyspace(now, hash("b", 3, 1)).unwrap();
    world.save();
    // While this order is on its way, node 1 is started anew with an empty memory.
    let order = loop {
        let (member, order) = world.controller.poll_order().unwrap();
        if member == node(1) {
            break order;
        }
        world.deliver(member, order);
    };
    world.member(node(1)).wipe(999);
    let Some(Install::Assignment(assignment)) = &order.install else { panic!("{order:?}") };
    assert_eq!(assignment.store, memory);
    world.deliver(node(1), order);
    assert_eq!(world.state_of(node(1)), MemberState::Forgotten);
}

#[test]
fn a_node_that_never_held_anything_may_come_back_with_a_new_memory() {
    let mut world = World::settled(3, 1);
    world.member(node(1)).wipe(999);
    world.live();
    assert_eq!(world.state_of(node(1)), MemberState::Ready);
    assert_eq!(world.saved.as_ref().unwrap().stores[&NodeId(1)], StoreId(999));
}

#[test]
fn partitions_that_never_reached_a_node_are_not_held_against_it() {
    let mut world = World::settled(3, 1);
    world.kill(node(1));
    world.live();
    let now = world.now;
    world.controller.create_keyspace(now, hash("a", 6, 2)).unwrap();
    world.live();
    world.member(node(1)).restart();
    let it = world.member(node(1));
    (it.alive, it.store) = (true, StoreId(999));
    world.live();
    assert_eq!(world.state_of(node(1)), MemberState::Ready);
    assert!(world.status().covered);
}

#[test]
fn a_late_word_of_a_process_that_was_replaced_does_not_lock_out_the_new_one() {
    let mut world = World::settled(3, 1);
    let late = world.report_of(node(1));
    world.member(node(1)).wipe(999);
    world.live();
    assert_eq!(world.state_of(node(1)), MemberState::Ready);
    let now = world.now;
    world.controller.handle_report(now, node(1), late);
    world.live();
    assert_eq!(world.state_of(node(1)), MemberState::Ready);
    assert_eq!(world.saved.as_ref().unwrap().stores[&NodeId(1)], StoreId(999));
}

#[test]
fn a_late_word_of_a_start_that_was_never_heard_does_not_lock_out_the_present_one() {
    for the_controller_starts_anew in [false, true] {
        let mut world = World::new(3, 1);
        let late = world.report_of(node(1));
        world.revive(node(1));
        world.settle();
        assert_eq!(world.state_of(node(1)), MemberState::Ready);
        if the_controller_starts_anew {
            world.restart(world.config.clone());
            world.live();
        }
        let now = world.now;
        world.controller.handle_report(now, node(1), late);
        world.live();
        assert_eq!(world.state_of(node(1)), MemberState::Ready);
    }
}

#[test]
fn two_nodes_with_one_memory_are_not_both_believed() {
    let mut world = World::new(3, 1);
    let copied = world.members[&node(2)].store;
    world.member(node(0)).store = copied;
    world.settle();
    let status = world.status();
    let foreign: Vec<_> =
        status.members.iter().filter(|m| m.state == MemberState::Foreign).collect();
    assert_eq!(foreign.len(), 1, "{status:?}");
    assert!(foreign[0].detail.contains("one data directory"), "{}", foreign[0].detail);
    let now = world.now;
    let refused = world.controller.create_keyspace(now, hash("a", 6, 2));
    assert_eq!(refused, Err(CreateError::Foreign(foreign[0].member)));
}

#[test]
fn a_node_of_another_controller_is_left_alone() {
    let mut world = World::new(3, 1);
    world.member(node(1)).claims = Some(Revision::new(5));
    world.settle();
    assert_eq!(world.state_of(node(1)), MemberState::Foreign);
    assert!(!world.full_orders().contains(&node(1)));
    world.member(node(1)).restart();
    world.live();
    assert!(world.status().ready, "{:?}", world.status().members);
}

#[test]
fn a_node_of_another_cluster_is_foreign_and_hinders_no_repair() {
    let mut world = with_keyspace(4);
    world.member(node(3)).wipe(999);
    world.member(node(3)).cluster = Some(ClusterId(0xbad));
    world.live();
    assert_eq!(world.state_of(node(3)), MemberState::Foreign);
    let detail = world.detail_of(node(3));
    assert!(detail.contains("0000000000000bad"), "{detail}");
    assert!(detail.contains("empty data directory"), "{detail}");
    world.live_until_replicated();
    assert_eq!(world.replicas_held()[3], 0);
    world.full_orders();
    world.live();
    assert_eq!(world.full_orders(), [], "and it is told nothing");
    // To be rid of it, it may be removed.
    let now = world.now;
    world.controller.remove_node(now, NodeId(3)).unwrap();
    world.live();
    assert!(world.status().ready);
}

#[test]
fn a_member_ahead_of_its_controller_stops_every_change() {
    let mut world = World::new(3, 1);
    world.member(Member::Switch(0)).claims = Some(Revision::new(9_000_000));
    world.member(node(0)).alive = false;
    world.member(node(2)).alive = false;
    world.settle();
    world.member(node(0)).alive = true;
    world.member(node(2)).alive = true;
    world.live();
    assert_eq!(world.state_of(Member::Switch(0)), MemberState::Foreign);
    assert_eq!(world.state_of(node(0)), MemberState::Behind, "it waits to be taken in");
    let now = world.now;
    let refused = world.controller.create_keyspace(now, hash("a", 6, 2));
    assert_eq!(refused, Err(CreateError::Foreign(Member::Switch(0))));
    world.member(Member::Switch(0)).restart();
    world.live();
    assert!(world.status().ready, "{:?}", world.status().members);
}

#[test]
fn a_controller_ahead_of_which_somebody_is_changes_no_chain() {
    let mut world = with_keyspace(3);
    let map = world.map();
    world.member(node(0)).claims = Some(Revision::new(map.revision.get() + 10));
    world.kill(node(1));
    world.live_for(Duration::from_secs(3));
    assert_eq!(world.map(), map);
    assert!(world.detail_of(node(0)).contains("newest"));
    world.member(node(0)).claims = None;
    world.live_until_replicated();
}

/// An older store is mended by its operator; a lie is nobody's map, and holds nobody up.
#[test]
fn a_revision_that_cannot_be_is_a_lie_and_not_an_older_store() {
    let mut world = with_keyspace(3);
    let map = world.map();
    world.member(node(0)).claims = Some(Revision::new(u64::MAX));
    world.kill(node(1));
    world.live_for(Duration::from_secs(3));
    assert!(world.map().revision > map.revision, "chains go on without the lost");
    let detail = world.detail_of(node(0));
    assert!(detail.contains("cannot be") && !detail.contains("old copy"), "{detail}");
}

#[test]
fn a_controller_that_lost_its_store_overrules_old_tables() {
    let mut world = with_keyspace(3);
    let old = world.map().revision;
    world.live();
    world.saved = None;
    for id in 0..3 {
        world.member(node(id)).wipe(900 + u64::from(id));
    }
    world.restart(world.config.clone());
    world.live();
    assert!(world.map().revision > old);
    assert!(world.status().ready, "{:?}", world.status().members);
    let tables = world.delivered.iter().rev().find_map(|(_, order)| match &order.install {
        Some(Install::Tables(tables)) => Some(tables),
        Some(Install::Assignment(_) | Install::Cache(_)) | None => None,
    });
    assert_eq!(tables.unwrap().partitions, []);
}

#[test]
fn a_report_of_a_stranger_or_in_another_form_is_noted_and_not_used() {
    let mut world = World::settled(2, 1);
    let map = world.map();
    let (now, report) = (world.now, world.report_of(node(0)));
    world.controller.handle_report(now, node(77), report.clone());
    world.controller.handle_report(now, Member::Switch(0), report);
    assert_eq!(world.map(), map);
    assert_eq!(world.state_of(Member::Switch(0)), MemberState::Silent);
    let status = world.status();
    let saw: Vec<&str> = status.decisions.iter().rev().take(2).map(|d| d.saw.as_str()).collect();
    assert!(saw[0].contains("form of another role"), "{saw:?}");
    assert!(saw[1].contains("not configured"), "{saw:?}");
}
