//! What a node answers past the switch, or has lent to caches, counts until its direct lease is
//! over, whatever becomes of its process.

use super::world::{POLL, World, node};
use crate::{ControllerConfig, MemberState, Saved};
use cluster::NodeId;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a direct lease runs at most after it was given, and clocks may differ.
const DIRECT: Duration = Duration::from_millis(510);

/// A cluster whose node 2 is asked directly, or lends to caches, which is the same.
fn lending() -> World {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    world.member(node(2)).asked_directly = true;
    world.live();
    let now = world.now;
    assert!(world.members[&node(2)].lends(now) && !world.members[&node(1)].lends(now));
    world
}

/// Nothing about chains has changed.
fn is_as_before(world: &World, before: &World) -> bool {
    world.controller.map().partitions == before.controller.map().partitions
}

#[test]
fn a_node_that_comes_back_is_given_nothing_until_nobody_shows_what_it_has_lent() {
    let mut world = lending();
    let before = world.clone();
    world.member(node(2)).restart();
    world.full_orders();
    let waited = world.live_until(|world| !is_as_before(world, &before));
    assert!(!world.members[&node(2)].has_lent(world.now), "after {waited:?}");
    assert!(waited >= DIRECT - POLL * 2 && waited <= DIRECT, "{waited:?}");
    assert_eq!(world.full_orders(), [], "nobody was told to close anything, or to commit it");
    world.live_for(Duration::from_secs(2));
    let chains = |world: &World| -> Vec<Vec<NodeId>> {
        world.map().partitions.iter().map(|it| it.members().to_vec()).collect()
    };
    let sorted = |mut chains: Vec<Vec<NodeId>>| {
        chains.iter_mut().for_each(|it| it.sort_unstable());
        chains
    };
    assert_eq!(sorted(chains(&world)), sorted(chains(&before)), "it is a member as before");
    let since = |world: &World| -> BTreeSet<_> {
        world.map().partitions.iter().flat_map(|it| it.since.clone()).collect()
    };
    assert_eq!(since(&world), since(&before), "and nothing was copied");
    assert!(world.status().covered);
}

#[test]
fn meanwhile_it_is_not_taken_to_be_lost_and_has_no_lease() {
    let mut world = lending();
    world.member(node(2)).restart();
    world.live_for(POLL);
    assert_eq!(world.state_of(node(2)), MemberState::Behind);
    let detail = world.detail_of(node(2));
    assert!(detail.contains("when nobody shows any more"), "{detail}");
    world.live_for(POLL * 2);
    assert!(world.map().fences.is_empty());
    assert!(!world.members[&node(2)].serves(world.now));
}

#[test]
fn who_never_had_such_a_lease_comes_back_at_once() {
    let mut world = lending();
    let before = world.clone();
    world.member(node(1)).restart();
    let waited = world.live_until(|world| !is_as_before(world, &before));
    assert!(waited <= POLL, "{waited:?}");
    // Nor is it waited for after another controller has begun.
    world.live_for(Duration::from_secs(2));
    world.restart(world.config.clone());
    let before = world.clone();
    world.member(node(1)).restart();
    let waited = world.live_until(|world| !is_as_before(world, &before));
    assert!(waited <= POLL, "{waited:?}");
}

#[test]
fn a_lease_that_is_over_is_not_waited_for() {
    let mut world = lending();
    world.kill(node(2));
    world.live_for(POLL / 2);
    // Nobody else may go on, so that it is waited for.
    world.kill(node(0));
    world.kill(node(1));
    world.live_for(DIRECT * 2);
    let before = world.clone();
    world.revive(node(2));
    let waited = world.live_until(|world| !is_as_before(world, &before));
    assert!(waited <= POLL, "{waited:?}");
}

#[test]
fn a_takeover_waits_for_what_former_incarnations_have_lent() {
    let mut world = lending();
    let before = world.clone();
    world.member(node(2)).restart();
    world.live_for(POLL);
    assert!(is_as_before(&world, &before));
    world.kill(node(2));
    let waited = world.live_until(|world| !is_as_before(world, &before));
    assert!(!world.members[&node(2)].lends(world.now), "after {waited:?}");
    assert!(waited <= DIRECT, "its other lease is severed by its fence: {waited:?}");
    assert!(world.map().partitions.iter().all(|it| !it.chain.contains(&NodeId(2))));
}

#[test]
fn a_controller_that_begins_knows_who_may_have_lent_something() {
    let mut world = lending();
    assert_eq!(world.saved.as_ref().unwrap().direct, Some(BTreeSet::from([NodeId(2)])));
    world.restart(world.config.clone());
    let before = world.clone();
    world.member(node(2)).restart();
    let waited = world.live_until(|world| !is_as_before(world, &before));
    assert!(!world.members[&node(2)].has_lent(world.now), "after {waited:?}");
    assert!(waited >= DIRECT && waited <= DIRECT + POLL, "{waited:?}");
}

#[test]
fn nobody_has_such_a_lease_before_that_is_on_record() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    world.member(node(2)).asked_directly = true;
    let recorded = |world: &World| {
        let saved = world.saved.as_ref().unwrap();
        saved.direct.as_ref().unwrap().contains(&NodeId(2))
    };
    world.live_until(|world| {
        let lends = world.members[&node(2)].lends(world.now);
        assert!(!lends || recorded(world));
        lends
    });
    let revision = world.map().revision;
    world.live();
    assert_eq!(world.map().revision, revision, "it is written once");
}

#[test]
fn in_a_store_without_such_a_record_all_may_have_had_one() {
    let mut world = World::with_keyspace(3, 1, 3, 3);
    let mut saved = serde_json::to_value(world.saved.as_ref().unwrap()).unwrap();
    saved.as_object_mut().unwrap().remove("direct");
    let saved: Saved = serde_json::from_value(saved).unwrap();
    assert_eq!(saved.direct, None);
    world.saved = Some(saved);
    world.restart(world.config.clone());
    let before = world.clone();
    world.member(node(1)).restart();
    world.full_orders();
    world.live_for(DIRECT - POLL / 2);
    assert_eq!(world.full_orders(), [], "nor is anybody else told anything");
    let waited = world.live_until(|world| !is_as_before(world, &before));
    assert!(waited <= POLL * 2, "{waited:?}");
    world.live_for(POLL);
    assert_eq!(world.saved.as_ref().unwrap().direct, Some(BTreeSet::new()), "now it is kept");
}

#[test]
fn what_a_predecessor_may_still_give_counts_for_direct_leases_too() {
    let mut world = lending();
    let overlap = Duration::from_secs(4);
    let begin = world.now;
    world.restart(ControllerConfig { overlap, ..world.config.clone() });
    let before = world.clone();
    // The controller before this one still reaches it, and this one does not.
    world.member(node(2)).cut_off = true;
    world.live_until(|world| !is_as_before(world, &before));
    let waited = world.now.since(begin);
    assert!(waited >= overlap + Duration::from_millis(500), "{waited:?}");
    assert!(waited <= (overlap + Duration::from_secs(1)) * 102 / 100, "no longer: {waited:?}");
}

#[test]
fn a_node_with_another_memory_is_let_in_after_what_the_former_process_may_have_lent() {
    let mut world = lending();
    let mut former = world.members[&node(2)].clone();
    world.member(node(2)).wipe(999);
    let before = world.clone();
    world.live_until(|world| !is_as_before(world, &before));
    assert!(!world.members[&node(2)].lends(world.now) && !former.lends(world.now));
    // It is taken in anew, fenced for as long as the former process may serve.
    world.live_until(|world| world.controller.map().fences.iter().any(|fence| fence.replaced));
    world.live_until(|world| world.controller.map().fences.is_empty());
    former.alive = true;
    assert!(!former.serves(world.now) && !former.lends(world.now));
}
