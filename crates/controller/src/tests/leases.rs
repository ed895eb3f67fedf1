//! Who is granted what, and when somebody counts as silent.

use super::world::{POLL, World, hash, node};
use crate::{ControllerConfig, LEASE};
use cluster::{Incarnation, Install, Lease, Map, Member, NodeId, Order};
use machine::Instant;
use std::time::Duration;
use wire::Revision;

/// A lease as long as the controller has to wait for it.
fn lease_bound() -> Duration {
    Lease::over_by(Instant(0), LEASE).since(Instant(0))
}

/// The next order for a member, everything else being saved and delivered.
fn next_order(world: &mut World, to: Member) -> Order {
    loop {
        world.save();
        if let Some(order) = order_of_now(world, to) {
            return order;
        }
        if world.controller.durable_revision() == world.controller.map().revision {
            world.step();
        }
    }
}

/// The same, with a store that is slow.
fn next_order_unsaved(world: &mut World, to: Member) -> Order {
    loop {
        if let Some(order) = order_of_now(world, to) {
            return order;
        }
        world.step();
    }
}

fn order_of_now(world: &mut World, to: Member) -> Option<Order> {
    while let Some((member, order)) = world.controller.poll_order() {
        if member == to {
            return Some(order);
        }
        world.deliver(member, order);
    }
    None
}

#[test]
fn every_order_to_a_member_renews_the_lease_that_its_last_report_asked_for() {
    let mut world = World::with_keyspace(3, 1, 6, 2);
    let revision = world.map().revision;
    for member in [node(0), Member::Switch(0)] {
        let said = world.members[&member].clock(world.now);
        let incarnation = world.members[&member].tenure.incarnation();
        let order = next_order(&mut world, member);
        let lease = order.lease.unwrap();
        assert_eq!((lease.incarnation, lease.revision), (incarnation, revision));
        assert!(lease.from <= said, "it rests on a report that was made before");
        assert_eq!(Duration::from_millis(lease.duration_ms), LEASE);
        world.deliver(member, order);
    }
    assert!(world.members.values().all(|it| it.serves(world.now)));
}

#[test]
fn who_has_not_reported_and_who_is_not_accepted_has_no_lease() {
    let mut world = World::new(2, 1);
    let order = next_order(&mut world, node(0));
    assert_eq!((order.install, order.lease), (None, None));
    world.member(node(1)).claims = Some(Revision::new(9_000_000));
    world.live();
    assert_eq!(next_order(&mut world, node(1)).lease, None);
}

#[test]
fn a_lease_is_for_what_the_same_order_gives() {
    let mut world = World::with_keyspace(2, 1, 2, 1);
    let now = world.now;
    world.controller.create_keyspace(now, hash("b", 2, 1)).unwrap();
    let before = next_order_unsaved(&mut world, node(0));
    let revision = world.controller.durable_revision();
    // Not durable yet: the lease is for what the node has.
    assert_eq!(before.install, None);
    assert_eq!(before.lease.unwrap().revision, revision);
    world.deliver(node(0), before);
    world.save();
    let after = next_order(&mut world, node(0));
    let given = after.install.as_ref().map(Install::revision);
    assert_eq!(given, Some(world.map().revision));
    assert_eq!(after.lease.unwrap().revision, world.map().revision);
}

#[test]
fn nobody_is_taken_to_be_silent_before_the_last_lease_has_certainly_ended() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    world.live();
    let map = world.map();
    // It goes on serving, unheard, and its clock is the slowest allowed. Nobody knows what the
    // switch does.
    world.member(node(2)).cut_off = true;
    world.member(Member::Switch(0)).cut_off = true;
    world.live_until(|world| world.controller.map().partitions != map.partitions);
    assert!(!world.members[&node(2)].serves(world.now));
    assert!(world.map().partitions.iter().all(|p| !p.open && p.chain.len() == 2));
}

#[test]
fn a_new_incarnation_and_a_new_memory_do_not_end_the_lease_of_the_old_incarnation() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    let granted_until = world.now + lease_bound() - POLL * 2;
    world.member(node(2)).wipe(999);
    world.member(Member::Switch(0)).cut_off = true;
    let before = world.map().partitions;
    world.live_until(|world| world.controller.map().partitions != before);
    assert!(world.now >= granted_until, "the old process may still serve until then");
}

#[test]
fn a_node_that_comes_back_with_its_memory_at_once_stays_a_member() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    let map = world.map();
    world.kill(node(2));
    world.live_for(POLL);
    world.revive(node(2));
    world.live_for(Duration::from_secs(3));
    assert!(same_chains(&world.map(), &map), "it is compared, and nothing is copied");
    assert!(world.status().covered);
}

/// Whether the same nodes are in the chains, and since the same revisions.
fn same_chains(one: &Map, other: &Map) -> bool {
    let chain = |map: &Map| -> Vec<(Vec<NodeId>, Vec<Revision>)> {
        map.partitions.iter().map(|p| (p.chain.clone(), p.since.clone())).collect()
    };
    chain(one) == chain(other)
}

#[test]
fn a_controller_that_comes_back_waits_for_what_its_predecessor_may_have_granted() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    world.kill(node(2));
    world.kill(Member::Switch(0));
    let begin = world.now;
    let before = world.map().partitions;
    world.restart(world.config.clone());
    world.live_until(|world| world.controller.map().partitions != before);
    let waited = world.now.since(begin);
    assert!(waited >= lease_bound(), "{waited:?}");
    assert!(waited <= lease_bound() + POLL, "{waited:?}");
}

#[test]
fn a_member_that_is_heard_again_is_granted_a_lease_at_once() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    for it in world.members.values_mut() {
        it.cut_off = true;
    }
    world.live_for(Duration::from_secs(1));
    for it in world.members.values_mut() {
        it.cut_off = false;
    }
    world.restart(world.config.clone());
    let now = world.now;
    world.settle();
    assert_eq!(world.now, now);
    assert!(world.members.values().all(|it| it.serves(now)));
}

#[test]
fn the_status_says_how_long_members_serve_without_a_controller() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    world.live_for(Duration::from_secs(1));
    let alone = Duration::from_millis(world.status().serves_alone_ms);
    assert!(alone < LEASE && alone > LEASE * 9 / 10, "{alone:?}");
    for it in world.members.values_mut() {
        it.cut_off = true;
    }
    let end = world.now + alone;
    world.live_for(alone - POLL);
    assert!(world.members.values().all(|it| it.serves(world.now) && it.serves(end)));
    world.live_for(LEASE);
    assert!(!world.members.values().any(|it| it.serves(world.now)));
    assert_eq!(world.status().serves_alone_ms, 0);
}

#[test]
fn a_longer_lease_of_a_predecessor_counts_until_it_is_over() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    let long = LEASE * 10;
    world.restart(ControllerConfig { lease: long, ..world.config.clone() });
    world.live_for(Duration::from_secs(1));
    let before = world.map().partitions;
    for _ in 0..2 {
        // Twice, for the first successor must not forget it.
        world.restart(ControllerConfig { lease: LEASE, ..world.config.clone() });
        world.kill(node(2));
        world.member(Member::Switch(0)).cut_off = true;
        world.live_for(LEASE * 8);
        assert_eq!(world.map().partitions, before);
    }
    world.live_for(LEASE * 4);
    assert_ne!(world.map().partitions, before);
    assert_eq!(Duration::from_millis(world.saved.as_ref().unwrap().lease_ms), LEASE);
}

#[test]
fn a_node_that_cannot_install_what_it_is_given_loses_its_lease_and_then_its_seats() {
    let mut world = World::with_keyspace(4, 1, 4, 2);
    world.member(node(3)).stuck = true;
    let now = world.now;
    world.controller.create_keyspace(now, hash("b", 1, 1)).unwrap();
    world.live_for(Duration::from_secs(1));
    assert!(
        world.detail_of(node(3)).contains("the log of its process"),
        "{}",
        world.detail_of(node(3))
    );
    world.live_until_replicated();
    assert_eq!(world.replicas_held()[3], 0);
    world.member(node(3)).stuck = false;
    world.live_until(|world| world.replicas_held() == [3, 2, 2, 2]);
}

#[test]
fn a_controller_that_was_stopped_asks_before_it_takes_anybody_to_be_silent() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    let map = world.map();
    // Orders are on their way when it is stopped, and their answers are lost.
    world.step();
    let mut asked = Vec::new();
    while let Some((member, _)) = world.controller.poll_order() {
        asked.push(member);
    }
    world.now = world.now + Duration::from_secs(20);
    let now = world.now;
    for member in asked {
        world.controller.handle_silence(now, member);
    }
    world.live_for(Duration::from_secs(3));
    assert_eq!(world.map(), map);
    assert!(world.status().covered);
    let decisions = world.status().decisions;
    assert!(decisions.iter().any(|d| d.saw.contains("in which nothing was done")));
}

#[test]
fn the_first_to_be_back_after_a_power_cut_waits_for_the_others() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    let map = world.map();
    for id in 0..3 {
        world.kill(node(id));
    }
    world.live_for(Duration::from_secs(60));
    for id in 0..3 {
        world.revive(node(id));
        world.live_for(Duration::from_millis(600));
    }
    world.live_for(Duration::from_secs(3));
    assert!(same_chains(&world.map(), &map), "nothing had to be copied");
    assert!(world.status().covered);

    // Whoever does not come back is waited for, and not for ever.
    for id in 0..3 {
        world.kill(node(id));
    }
    world.live_for(Duration::from_secs(60));
    world.revive(node(0));
    world.live_for(6 * crate::LEASE - Duration::from_secs(1));
    assert!(world.map().partitions.iter().all(|p| !p.open && p.chain.len() == 3));
    world.live_for(Duration::from_secs(4));
    assert!(world.map().partitions.iter().all(|p| p.open && p.chain.len() == 1));
}

#[test]
fn who_came_back_does_not_go_on_before_it_was_compared_with_one_who_stayed() {
    let mut world = World::with_keyspace(2, 1, 3, 2);
    world.member(node(0)).restart();
    world.kill(node(1));
    world.live_for(3 * crate::LEASE);
    assert!(world.map().partitions.iter().all(|p| !p.open && p.chain.len() == 2));

    world.member(node(1)).alive = true;
    world.live_for(Duration::from_secs(3));
    assert!(world.map().partitions.iter().all(|p| p.open && p.members().len() == 2));
}

#[test]
fn a_incarnation_that_is_over_has_no_use_for_its_lease() {
    let mut world = World::with_keyspace(2, 1, 2, 1);
    let order = next_order(&mut world, node(0));
    world.member(node(0)).restart();
    let lease = order.lease.unwrap();
    assert_ne!(lease.incarnation, world.members[&node(0)].tenure.incarnation());
    assert_ne!(lease.incarnation, Incarnation::default());
    let silent = Order { lease: Some(lease), ..Order::default() };
    world.deliver(node(0), silent);
    assert!(!world.members[&node(0)].serves(world.now));
}
