//! Several switches: one forwards, the others stand by, and who takes over when.

use super::world::{POLL, World, node};
use crate::MemberState;
use cluster::{ClusterId, Install, Member, SwitchTables};
use std::time::Duration;

fn tables(world: &World, switch: u16) -> SwitchTables {
    match &world.members[&Member::Switch(switch)].installed {
        Some(Install::Tables(tables)) => tables.clone(),
        other => panic!("{other:?}"),
    }
}

fn two_switches() -> World {
    World::with_keyspace(3, 2, 6, 2)
}

#[test]
fn all_switches_have_tables_and_one_of_them_is_active() {
    let world = two_switches();
    assert!(tables(&world, 0).active && !tables(&world, 1).active);
    assert_eq!(tables(&world, 0).partitions, tables(&world, 1).partitions);
    assert_eq!(world.status().active_switch, 0);
}

#[test]
fn the_standby_takes_over_when_nodes_take_nothing_from_the_active_one_any_more() {
    let mut world = two_switches();
    world.member(Member::Switch(0)).cut_off = true;
    let waited = world.live_until(|world| tables(world, 1).active);
    assert!(world.members[&Member::Switch(0)].serves(world.now), "its lease runs");
    assert!(waited < POLL * 3, "{waited:?}");
    world.settle();
    for id in 0..3 {
        let Some(Install::Assignment(it)) = &world.members[&node(id)].installed else { panic!() };
        assert_eq!(it.switch, world.config.switches[1]);
    }
    assert!(world.status().covered && !world.status().ready);

    // Back again, it stands by.
    world.member(Member::Switch(0)).cut_off = false;
    world.live();
    assert!(!tables(&world, 0).active && tables(&world, 1).active);
    assert!(world.status().ready);
    // And a controller that comes back knows.
    world.restart(world.config.clone());
    assert_eq!(world.map().active_switch, 1);
}

#[test]
fn a_switch_is_named_again_only_when_it_has_stood_by() {
    let mut world = two_switches();
    world.member(Member::Switch(0)).cut_off = true;
    world.live_until(|world| tables(world, 1).active);
    // The other one fails, and this one answers again, and goes on as it was.
    world.kill(Member::Switch(1));
    world.member(Member::Switch(0)).stuck = true;
    world.member(Member::Switch(0)).cut_off = false;
    world.live_for(POLL * 20);
    assert!(tables(&world, 0).active && world.map().active_switch == 1);
    world.member(Member::Switch(0)).stuck = false;
    world.live_until(|world| world.map().active_switch == 0 && tables(world, 0).active);
}

#[test]
fn a_switch_that_comes_back_empty_is_filled_at_once() {
    let mut world = World::with_keyspace(3, 1, 6, 2);
    let map = world.map();
    world.member(Member::Switch(0)).restart();
    world.live_for(POLL);
    assert_eq!(tables(&world, 0).revision, world.map().revision);
    assert!(tables(&world, 0).active && world.members[&Member::Switch(0)].serves(world.now));
    assert_eq!(world.map().partitions, map.partitions);
}

#[test]
fn where_nobody_can_take_over_the_active_switch_stays() {
    let mut world = two_switches();
    world.kill(Member::Switch(0));
    world.kill(Member::Switch(1));
    world.live_for(Duration::from_secs(3));
    assert_eq!(world.map().active_switch, 0);
    world.revive(Member::Switch(1));
    world.live_until(|world| world.controller.map().active_switch == 1);
    world.live();
    assert!(world.status().covered);
}

#[test]
fn a_switch_that_cannot_take_new_tables_goes_on_with_the_old_ones() {
    let mut world = World::with_keyspace(3, 1, 6, 2);
    world.member(Member::Switch(0)).stuck = true;
    let now = world.now;
    world.controller.create_keyspace(now, super::world::hash("b", 1, 1)).unwrap();
    world.live_for(Duration::from_secs(2));
    assert!(world.members[&Member::Switch(0)].serves(world.now));
}

/// Another controller that was given the same switch, with a cluster and a store of its own.
fn rival_of(world: &World) -> World {
    let mut rival = World::with_keyspace(3, 1, 6, 2);
    let config = crate::ControllerConfig { cluster: ClusterId(0xbad), ..world.config.clone() };
    rival.controller = crate::Controller::new(config.clone(), None, rival.now).unwrap();
    rival.config = config;
    rival.now = rival.now.max(world.now) + Duration::from_secs(60);
    for id in 0..3 {
        rival.member(node(id)).wipe(500 + u64::from(id));
    }
    rival.members.insert(Member::Switch(0), world.members[&Member::Switch(0)].clone());
    rival
}

#[test]
fn a_switch_is_not_taken_over_by_the_controller_of_another_cluster() {
    let mut world = World::with_keyspace(3, 1, 6, 2);
    let before = tables(&world, 0);
    let mut rival = rival_of(&world);
    rival.live_for(Duration::from_secs(3));
    assert_eq!(tables(&rival, 0), before, "nothing of the newer revision was installed");
    let detail = rival.detail_of(Member::Switch(0));
    assert_eq!(rival.state_of(Member::Switch(0)), MemberState::Foreign);
    assert!(detail.starts_with("this switch follows cluster 00000000000000c1"), "{detail}");
    assert!(detail.contains("restart the switch"), "{detail}");
    assert!(!rival.status().ready && !rival.status().covered);

    // The one that it follows notices nothing of it.
    let shared = rival.members[&Member::Switch(0)].clone();
    world.members.insert(Member::Switch(0), shared);
    world.live_for(Duration::from_secs(3));
    assert!(world.status().ready && world.members[&Member::Switch(0)].serves(world.now));
}

#[test]
fn a_restarted_switch_follows_whoever_gives_it_tables_first() {
    let world = World::with_keyspace(3, 1, 6, 2);
    let mut rival = rival_of(&world);
    rival.live_for(Duration::from_secs(3));
    rival.member(Member::Switch(0)).restart();
    rival.live_for(Duration::from_secs(3));
    assert_eq!(tables(&rival, 0).cluster, ClusterId(0xbad));
    assert!(rival.status().ready, "{:?}", rival.status());
}
