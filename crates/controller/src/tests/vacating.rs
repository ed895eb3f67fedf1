//! Nodes that have lost replicas and are not through with forgetting what they held there.

use super::world::{World, node};
use cluster::NodeId;
use std::time::Duration;

const FORGETTING: Duration = Duration::from_secs(4);

/// Incarnations until a node has a replica in the only partition; says how long that took.
fn until_placed(world: &mut World, id: u16) -> Duration {
    world.live_until(|world| world.partition(0).chain.contains(&NodeId(id)))
}

/// A node that has lost its only replica, and comes back with all that it held.
fn returned(nodes: u16) -> World {
    let mut world = World::with_keyspace(nodes, 1, 1, 3);
    world.forgetting = FORGETTING;
    world.kill(node(2));
    world.live_until(|world| !world.partition(0).chain.contains(&NodeId(2)));
    world.live_for(Duration::from_secs(1));
    world.revive(node(2));
    world
}

#[test]
fn a_node_is_seated_again_as_soon_as_it_has_forgotten_and_no_sooner() {
    let mut world = returned(3);
    let took = until_placed(&mut world, 2);
    assert!((FORGETTING..FORGETTING * 2).contains(&took), "{took:?}");
    assert!(world.members[&node(2)].vacating(world.now, FORGETTING).is_empty());
    world.live_until_replicated();
}

#[test]
fn it_is_told_that_its_seat_is_lost_before_it_counts_as_having_forgotten() {
    let mut world = returned(3);
    // It answers and takes no orders, so all that it says is of before.
    world.member(node(2)).stuck = true;
    world.live_for(FORGETTING * 2);
    assert_eq!(world.partition(0).chain.len(), 2);
    world.member(node(2)).stuck = false;
    let took = until_placed(&mut world, 2);
    assert!(took >= FORGETTING, "{took:?}");
    world.live_until_replicated();
}

#[test]
fn a_controller_that_has_not_seen_who_lost_what_waits_as_well() {
    let mut world = returned(3);
    let mut took = Duration::ZERO;
    while world.partition(0).chain.len() == 2 && took < FORGETTING * 2 {
        world.live_for(Duration::from_millis(300));
        took += Duration::from_millis(300);
        world.restart(world.config.clone());
    }
    assert!((FORGETTING..FORGETTING * 2).contains(&took), "{took:?}");
    world.live_until_replicated();
}

#[test]
fn nobody_waits_for_it_where_another_can_take_its_place() {
    let mut world = World::with_keyspace(4, 1, 1, 3);
    world.forgetting = FORGETTING;
    world.kill(node(0));
    world.live_until(|world| world.partition(0).chain.len() == 2);
    world.revive(node(0));
    let took = until_placed(&mut world, 3);
    assert!(took < Duration::from_secs(1), "{took:?}");
    world.live_until_replicated();
}

#[test]
fn seats_are_evened_out_where_the_node_has_forgotten_or_never_been() {
    let mut world = World::with_keyspace(4, 1, 24, 2);
    world.forgetting = FORGETTING;
    world.kill(node(1));
    world.live_until_replicated();
    world.revive(node(1));
    world.live_until(|world| {
        let mine = |p: &&cluster::Partition| p.chain.contains(&NodeId(1));
        let map = world.map();
        let member = &world.members[&node(1)];
        let mut replicas_held = map.partitions.iter().filter(mine);
        assert!(replicas_held.all(|p| !member.vacating(world.now, FORGETTING).contains(&p.id)));
        world.replicas_held() == [12, 12, 12, 12] && world.status().replicated
    });
}

#[test]
fn a_drained_node_can_be_removed_when_it_has_forgotten_all() {
    let mut world = World::with_keyspace(4, 1, 12, 3);
    world.forgetting = FORGETTING;
    let now = world.now;
    world.controller.drain_node(now, NodeId(1)).unwrap();
    world.live_until(|world| world.replicas_held()[1] == 0 && world.status().ready);
    let detail = world.detail_of(node(1));
    assert!(detail.contains("it still forgets what it held of"), "{detail}");
    assert!(!detail.contains("can be removed"), "{detail}");
    world.live_for(FORGETTING * 2);
    let detail = world.detail_of(node(1));
    assert!(detail.contains("can be removed") && !detail.contains("forgets"), "{detail}");
}
