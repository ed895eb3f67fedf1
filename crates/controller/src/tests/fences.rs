//! Members that are left behind while their leases run.

use super::member::Obedient;
use super::world::{POLL, World, node};
use crate::LEASE;
use cluster::{Install, Member, NodeId, Partition};
use std::time::Duration;

const SWITCH: Member = Member::Switch(0);
const STANDBY: Member = Member::Switch(1);
/// How long it may take until nobody waits for a member that does not answer: it is asked twice.
const MISSED: Duration = POLL.saturating_mul(3);

fn lease_of(world: &World, member: Member) -> bool {
    world.members[&member].serves(world.now)
}

fn sends_to(switch: &Obedient, id: u16) -> bool {
    let Some(Install::Tables(tables)) = &switch.installed else { return false };
    tables.active && !tables.fenced.contains(&NodeId(id))
}

fn went_on_without(world: &World, id: u16) -> bool {
    let chains = &world.controller.map().partitions;
    chains.iter().all(|it: &Partition| !it.chain.contains(&NodeId(id)))
}

fn is_fenced(world: &World, id: u16) -> bool {
    world.controller.map().fence(NodeId(id)).is_some()
}

#[test]
fn chains_go_on_without_a_node_as_soon_as_its_switch_sends_it_nothing() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    world.member(node(2)).cut_off = true;
    let waited = world.live_until(|world| went_on_without(world, 2));
    assert!(waited < MISSED, "{waited:?}");
    assert!(lease_of(&world, node(2)), "its lease runs");
    assert!(!sends_to(&world.members[&SWITCH], 2));
    let detail = world.detail_of(node(2));
    assert!(detail.ends_with("it is fenced: switches send it nothing"), "{detail}");
    let waited = world.live_until(|world| world.status().covered);
    assert!(waited < POLL, "{waited:?}");
}

#[test]
fn until_the_switch_has_confirmed_the_fence_chains_wait() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    world.member(node(2)).cut_off = true;
    world.member(SWITCH).stuck = true;
    world.live_for(MISSED);
    assert!(is_fenced(&world, 2) && !went_on_without(&world, 2));
    world.live_until(|world| went_on_without(world, 2));
    assert!(!lease_of(&world, node(2)), "a switch that does not answer sends it something still");
}

#[test]
fn a_standby_that_was_the_active_switch_counts_too() {
    let mut world = World::with_keyspace(3, 2, 3, 3);
    // It stays behind with the tables of before.
    world.member(SWITCH).cut_off = true;
    world.member(node(2)).cut_off = true;
    world.live_for(MISSED);
    assert!(sends_to(&world.members[&SWITCH], 2) && lease_of(&world, SWITCH));
    assert!(!went_on_without(&world, 2), "the two serve each other's clients");
    assert!(!sends_to(&world.members[&STANDBY], 1), "nor does the other switch serve");
    world.live_until(|world| went_on_without(world, 2));
    assert!(!lease_of(&world, SWITCH) || !lease_of(&world, node(2)));
}

#[test]
fn nobody_is_fenced_where_nobody_else_would_go_on() {
    let mut world = World::with_keyspace(3, 1, 6, 1);
    let map = world.map();
    world.member(node(2)).cut_off = true;
    world.live_for(MISSED);
    assert_eq!(world.map(), map);
    for id in 0..2 {
        world.member(node(id)).cut_off = true;
    }
    world.live_for(MISSED);
    assert_eq!(world.map(), map);
}

#[test]
fn after_a_power_cut_the_last_that_was_asked_is_not_left_alone() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    let map = world.map();
    for id in 0..2 {
        world.kill(node(id));
    }
    // Node 2 is gone as well: what it is asked is on its way still when the others are missed.
    let end = world.now + POLL * 5 / 2;
    while world.now < end {
        world.save();
        match world.controller.poll_order() {
            Some((member, order)) if member != node(2) => world.deliver(member, order),
            Some(_) => {}
            None => world.step(),
        }
    }
    world.kill(node(2));
    world.live_for(Duration::from_secs(5));
    assert_eq!(world.map().partitions, map.partitions, "whoever comes back has what it had");
}

#[test]
fn a_controller_that_was_cut_off_waits_for_all_when_it_reaches_the_first() {
    let mut world = World::with_keyspace(3, 2, 3, 3);
    let before = world.map();
    for it in world.members.values_mut() {
        it.cut_off = true;
    }
    world.live_for(LEASE / 2);
    for first in [node(2), Member::Switch(1)] {
        world.member(first).cut_off = false;
    }
    world.live_for(POLL * 2);
    for it in world.members.values_mut() {
        it.cut_off = false;
    }
    world.live_for(Duration::from_secs(1));
    assert_eq!(world.map(), before);
}

#[test]
fn a_node_is_let_in_when_it_knows_that_chains_went_on() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    world.member(node(2)).cut_off = true;
    world.live_until(|world| went_on_without(world, 2));
    let left = world.map().revision;
    world.member(node(2)).cut_off = false;
    // It answers, and takes nothing.
    world.member(node(2)).stuck = true;
    world.live_for(Duration::from_secs(2));
    assert!(is_fenced(&world, 2));
    world.member(node(2)).stuck = false;
    // It is heard with what it had before it is given anything.
    world.live_until(|world| !is_fenced(world, 2));
    assert!(world.members[&node(2)].revision() >= left);
    world.live_until(|world| world.status().replicated && world.status().ready);
    assert!(sends_to(&world.members[&SWITCH], 2));
}

#[test]
fn a_node_that_answers_again_before_chains_went_on_stays_in_them() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    world.member(SWITCH).stuck = true;
    world.member(node(2)).cut_off = true;
    world.live_until(|world| is_fenced(world, 2));
    world.member(node(2)).cut_off = false;
    world.live_until(|world| !is_fenced(world, 2));
    assert!(!went_on_without(&world, 2));
    world.member(SWITCH).stuck = false;
    world.live_until(|world| world.status().ready);
}

#[test]
fn another_switch_serves_when_no_node_takes_anything_from_the_one_before_it() {
    let mut world = World::with_keyspace(3, 2, 3, 3);
    world.member(SWITCH).cut_off = true;
    world.member(node(1)).stuck = true;
    world.live_until(|world| world.status().active_switch == 1);
    world.settle();
    assert!(lease_of(&world, SWITCH), "its lease runs");
    assert!(!sends_to(&world.members[&STANDBY], 0), "node 1 has not heard");
    let detail = world.detail_of(STANDBY);
    assert!(detail.contains("waits until no node takes anything"), "{detail}");
    world.member(node(1)).stuck = false;
    let waited = world.live_until(|world| sends_to(&world.members[&STANDBY], 0));
    assert!(waited < POLL * 2, "{waited:?}");
}

#[test]
fn who_may_answer_direct_requests_is_waited_for() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    assert!(!world.members[&node(2)].answers_directly(world.now), "nobody asks it");
    world.member(node(2)).asked_directly = true;
    let now = world.now;
    world.controller.handle_alert(now, NodeId(2));
    world.settle();
    assert!(world.members[&node(2)].answers_directly(now), "it is heard and given one at once");
    world.live();
    assert!(world.members[&node(2)].answers_directly(world.now));
    assert!(!world.members[&node(1)].answers_directly(world.now));
    world.member(node(2)).cut_off = true;
    world.live_until(|world| went_on_without(world, 2));
    assert!(!world.members[&node(2)].answers_directly(world.now));
}

#[test]
fn a_controller_that_comes_back_goes_by_what_members_confirm() {
    let mut world = World::with_keyspace(3, 2, 3, 3);
    world.member(node(2)).cut_off = true;
    world.restart(world.config.clone());
    let waited = world.live_until(|world| went_on_without(world, 2));
    let direct = Duration::from_millis(510);
    assert!(waited <= direct + POLL, "it cannot know who was asked directly: {waited:?}");
}
