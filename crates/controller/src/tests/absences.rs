//! Members that are asked to end: others take over before they go, and they are taken back.

use super::world::{POLL, World, node};
use crate::{AWAY_MAX, MemberState};
use cluster::{Member, NodeId, Order, Partition};
use std::time::Duration;

const SWITCH: Member = Member::Switch(0);
const STANDBY: Member = Member::Switch(1);

/// How long it may take until a member may end: a few rounds of messages.
const PROMPT: Duration = POLL.saturating_mul(5);

fn leave(world: &mut World, member: Member) {
    world.delivered.clear();
    world.member(member).leaving = true;
}

fn may_end(world: &World, member: Member) -> bool {
    let told = |(to, order): &(Member, Order)| *to == member && order.may_end;
    world.delivered.iter().any(told)
}

fn holds(world: &World, id: u16) -> usize {
    let chains = &world.controller.map().partitions;
    chains.iter().filter(|it: &&Partition| it.chain.contains(&NodeId(id))).count()
}

fn ends(world: &mut World, member: Member) {
    world.live_until(|world| may_end(world, member));
    world.kill(member);
    world.member(member).leaving = false;
}

#[test]
fn a_node_that_leaves_may_end_when_others_have_all_that_it_did() {
    let mut world = World::with_keyspace(4, 1, 6, 3);
    assert!(holds(&world, 2) > 0);
    leave(&mut world, node(2));
    let waited = world.live_until(|world| may_end(world, node(2)));
    assert!(waited < PROMPT, "{waited:?}");
    assert_eq!(holds(&world, 2), 0);
    assert!(world.controller.map().fence(NodeId(2)).is_some(), "nothing is sent to it");
    let status = world.status();
    assert!(status.covered, "{status:?}");
    world.kill(node(2));
    world.live_for(Duration::from_secs(30));
    let learns = world.controller.map().partitions.iter().any(|it| it.has_learner);
    assert!(!learns, "nobody is copied what it will bring back");
    let trouble = world.controller.decisions_since(0).filter(|it| it.trouble).count();
    assert_eq!(trouble, 0, "it was asked to");
}

#[test]
fn one_that_ends_before_its_chains_have_settled_is_away_only_where_writes_are_united() {
    for unites in [true, false] {
        let mut world = World::with_keyspace(3, 1, 6, 3);
        if !unites {
            // Chains go by that when they open anew.
            world.chain = 0;
            world.kill(node(0));
            world.live_until(|world| world.map().partitions.iter().all(|it| !it.sends_early));
            world.revive(node(0));
            world.live_until(|world| world.status().replicated);
        }
        world.settling = Duration::from_secs(5);
        leave(&mut world, node(2));
        world.live_until(|world| world.map().partitions.iter().all(|it| !it.open));
        world.kill(node(2));
        world.live_until(|world| holds(world, 2) == 0);
        let is_away = |it: &Partition| it.away.iter().any(|away| away.node == NodeId(2));
        assert!(world.map().partitions.iter().all(|it| is_away(it) == unites), "{unites}");
        world.member(node(2)).leaving = false;
        world.revive(node(2));
        world.live_until(|world| world.status().replicated);
    }
}

#[test]
fn one_that_is_back_is_compared_and_sent_what_it_lacks_alone() {
    for others_hold in [7, 8] {
        let mut world = World::with_keyspace(3, 1, 6, 3);
        world.copying = Duration::from_millis(500);
        for id in 0..3 {
            world.member(node(id)).holds = 7;
        }
        let since: Vec<_> =
            world.map().partitions.iter().map(|it| it.since(NodeId(2)).unwrap()).collect();
        leave(&mut world, node(2));
        ends(&mut world, node(2));
        for id in 0..2 {
            world.member(node(id)).holds = others_hold;
        }
        world.revive(node(2));
        let learns = |world: &World| world.map().partitions.iter().any(|it| it.has_learner);
        if others_hold == 8 {
            world.live_until(learns);
            // It is sent what it lacks.
            world.member(node(2)).holds = 8;
            world.live_until(|world| world.status().replicated);
        } else {
            world.live_until(|world| learns(world) || world.status().replicated);
            let now = world.map().partitions;
            let now: Vec<_> = now.iter().map(|it| it.since(NodeId(2)).unwrap()).collect();
            assert_eq!(now, since, "it keeps what it has");
        }
        assert_eq!(world.controller.unequal(), 0, "nobody is to blame");
        assert!(world.controller.map().fences.is_empty());
    }
}

#[test]
fn who_had_left_is_never_alone_believed() {
    let mut world = World::with_keyspace(2, 1, 4, 2);
    leave(&mut world, node(1));
    ends(&mut world, node(1));
    world.kill(node(0));
    world.revive(node(1));
    world.live_for(crate::LEASE * 4);
    assert!(!world.status().covered, "what was written meanwhile only the other one has");
    world.revive(node(0));
    world.live_until(|world| world.status().covered);
}

#[test]
fn who_stays_away_for_too_long_is_not_waited_for() {
    let mut world = World::with_keyspace(4, 1, 6, 3);
    leave(&mut world, node(2));
    ends(&mut world, node(2));
    world.live_for(AWAY_MAX - Duration::from_secs(5));
    assert!(!world.status().replicated);
    world.live_for(Duration::from_secs(10));
    world.live_until(|world| world.status().replicated);
    world.revive(node(2));
    world.live_for(Duration::from_secs(3));
    assert!(world.status().replicated);
}

#[test]
fn another_copy_is_made_when_a_chain_loses_one_more() {
    let mut world = World::with_keyspace(5, 1, 5, 3);
    leave(&mut world, node(2));
    ends(&mut world, node(2));
    world.kill(node(3));
    world.live_for(Duration::from_secs(30));
    let map = world.map();
    let both = |it: &&Partition| it.members().len() + it.away.len() < 3;
    assert_eq!(map.partitions.iter().filter(both).count(), 0, "{map:?}");
}

#[test]
fn who_has_nobody_to_leave_its_partitions_to_may_end_at_once() {
    let mut world = World::with_keyspace(3, 1, 6, 1);
    leave(&mut world, node(2));
    let waited = world.live_until(|world| may_end(world, node(2)));
    assert!(waited < PROMPT, "{waited:?}");
    assert_eq!(holds(&world, 2), 2, "they wait for it");
    // All at once: the last of each chain stays.
    let mut world = World::with_keyspace(3, 1, 6, 3);
    for id in 0..3 {
        world.member(node(id)).leaving = true;
    }
    world.live_until(|world| (0..3).all(|id| may_end(world, node(id))));
    assert!(world.map().partitions.iter().all(|it| !it.members().is_empty()));
}

#[test]
fn a_switch_that_leaves_hands_over_to_the_other_one() {
    let mut world = World::with_keyspace(3, 2, 6, 3);
    leave(&mut world, SWITCH);
    let waited = world.live_until(|world| may_end(world, SWITCH));
    assert!(waited < PROMPT, "{waited:?}");
    assert_eq!(world.map().active_switch, 1);
    assert!(!world.map().handing_over && world.members[&STANDBY].serves(world.now));
    assert_eq!(world.state_of(STANDBY), MemberState::Ready);
    // It would not be handed back to who is about to end.
    world.member(STANDBY).leaving = true;
    world.live_for(POLL * 5);
    assert_eq!(world.map().active_switch, 1);
    assert!(may_end(&world, STANDBY), "there is nobody to hand over to");
}
