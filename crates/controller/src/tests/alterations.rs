//! Keyspaces that are altered while they serve: their chains become longer and shorter.

use super::world::{World, hash, node};
use crate::{Alteration, CommandError, KeyspaceStatus, MemberState};
use cluster::{NodeId, Partition};
use std::time::Duration;

fn replicas(replicas: u8) -> Alteration {
    Alteration { replicas: Some(replicas), ..Alteration::default() }
}

fn alter(world: &mut World, count: u8) {
    world.controller.alter_keyspace(world.now, "a", replicas(count)).unwrap();
}

/// Incarnations until all chains have so many members; while they change, every partition has as
/// many as it is to keep, and nobody gives or takes more than one copy.
fn live_until_all_have(world: &mut World, count: usize) -> Duration {
    let least = world.map().partitions.iter().map(|it| it.members().len()).min().unwrap();
    let least = least.min(count);
    let took = world.live_until(|world| {
        let partitions = &world.controller.map().partitions;
        assert!(partitions.iter().all(|it| it.members().len() >= least), "{partitions:?}");
        let done = |it: &Partition, node: Option<NodeId>| {
            node.is_none_or(|node| world.copied(it, node).is_some_and(|permille| permille >= 1_000))
        };
        let runs = |it: &&Partition| !done(it, it.tail()) || !done(it, it.learner());
        for end in [Partition::tail, Partition::learner] {
            let copies = partitions.iter().filter(|it| it.open && it.has_learner);
            let mut ends: Vec<_> = copies.filter(runs).map(end).collect();
            ends.sort_unstable();
            let twice = ends.windows(2).any(|it| it[0] == it[1]);
            assert!(!twice, "a node gives or takes two copies: {partitions:?}");
        }
        let status = world.status();
        status.replicated && status.ready
    });
    assert_eq!(lengths(world), vec![count; world.map().partitions.len()]);
    took
}

fn lengths(world: &World) -> Vec<usize> {
    world.map().partitions.iter().map(|it| it.members().len()).collect()
}

/// By how many the node that has most of something has more than the one that has fewest.
fn spread(of: impl Iterator<Item = usize> + Clone) -> usize {
    of.clone().max().unwrap() - of.min().unwrap()
}

fn status_of(world: &World, name: &str) -> KeyspaceStatus {
    world.status().keyspaces.into_iter().find(|it| it.name == name).unwrap()
}

#[test]
fn more_replicas_are_copied_and_fewer_are_let_go() {
    let mut world = World::with_keyspace(5, 1, 20, 1);
    world.copying = Duration::from_millis(100);
    for (count, copies) in [(3, true), (1, false), (2, true), (5, true), (3, false), (1, false)] {
        let before = world.map().partitions;
        let longer = usize::from(count) > before[0].members().len();
        alter(&mut world, count);
        assert!(!world.status().replicated, "its chains have still to follow");
        let took = live_until_all_have(&mut world, count.into());
        assert_eq!(took > Duration::from_millis(300), copies, "to {count}: {took:?}");
        let kept = |(before, now): &(&Partition, Partition)| {
            let [few, many] = if longer { [*before, now] } else { [now, *before] };
            few.members().iter().all(|it| many.members().contains(it))
        };
        // Where those that are left are not even, a replica or two move afterwards.
        world.live_for(Duration::from_secs(2));
        let moved = before.iter().zip(world.map().partitions).filter(|it| !kept(it)).count();
        assert!(moved <= if longer { 0 } else { 2 }, "to {count}: {moved} changed places");
        let status = world.status();
        assert_eq!(spread(status.load.iter().map(|it| it.partitions)), 0, "to {count}: {status:?}");
        assert!(spread(status.load.iter().map(|it| it.tails)) <= 2, "to {count}: {status:?}");
        assert!(spread(status.load.iter().map(|it| it.heads)) <= 2, "to {count}: {status:?}");
        let keyspace = status_of(&world, "a");
        assert_eq!((keyspace.replicas, keyspace.replicas_min), (count.into(), count.into()));
    }
}

#[test]
fn only_the_keyspace_that_was_named_changes() {
    let mut world = World::with_keyspace(4, 1, 4, 2);
    world.controller.create_keyspace(world.now, hash("b", 4, 2)).unwrap();
    world.live_for(Duration::from_secs(1));
    world.controller.alter_keyspace(world.now, "b", replicas(3)).unwrap();
    world.live_until_replicated();
    assert_eq!(lengths(&world), [2, 2, 2, 2, 3, 3, 3, 3]);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut world = World::with_keyspace(10, 1, 4, 2);
    let before = world.map();
    let refuse = |world: &mut World, name: &str, count, refusal: CommandError| {
        let now = world.now;
        let refused = world.controller.alter_keyspace(now, name, replicas(count));
        assert_eq!(refused, Err(refusal.clone()));
        refusal.to_string()
    };
    let too_many = |replicas, most| CommandError::Replicas { keyspace: "a".into(), replicas, most };
    let text = refuse(&mut world, "a", 0, too_many(0, 8));
    assert_eq!(text, "keyspace \"a\" has to have 1 replica or more");
    let text = refuse(&mut world, "a", 9, too_many(9, 8));
    assert_eq!(text, "keyspace \"a\" cannot have 9 replicas: 8 at most");
    let text = refuse(&mut world, "b", 3, CommandError::UnknownKeyspace("b".into()));
    assert!(text.contains("keyway keyspace list"), "{text}");
    assert_eq!(world.map(), before);

    let mut world = World::with_keyspace(6, 1, 4, 2);
    world.member(node(0)).wipe(999);
    world.kill(node(1));
    world.controller.drain_node(world.now, NodeId(2)).unwrap();
    world.live_for(Duration::from_secs(1));
    assert_eq!(world.state_of(node(1)), MemberState::Silent);
    let text = refuse(&mut world, "a", 6, too_many(6, 4));
    assert!(text.contains("4 nodes answer and stay; add nodes first"), "{text}");
}

#[test]
fn what_is_so_already_is_no_change() {
    let mut world = World::with_keyspace(3, 1, 4, 2);
    let revision = world.map().revision;
    alter(&mut world, 2);
    world.controller.alter_keyspace(world.now, "a", Alteration::default()).unwrap();
    assert_eq!(world.map().revision, revision);
    // It was so before nodes were lost: that is no reason to refuse what changes nothing.
    world.kill(node(0));
    world.kill(node(1));
    world.live_for(Duration::from_secs(3));
    alter(&mut world, 2);
}

#[test]
fn fewer_can_be_asked_for_however_few_nodes_are_left() {
    let mut world = World::with_keyspace(4, 1, 4, 4);
    for id in [1, 2, 3] {
        world.kill(node(id));
    }
    world.live_for(crate::LEASE * 3);
    alter(&mut world, 3);
    alter(&mut world, 1);
    world.live_until(|world| lengths(world) == [1; 4] && world.status().replicated);
    let refused = world.controller.alter_keyspace(world.now, "a", replicas(2));
    assert!(matches!(refused, Err(CommandError::Replicas { most: 1, .. })), "{refused:?}");
    // Nodes that are gone for good are not needed any more.
    for id in [1, 2, 3] {
        world.controller.remove_node(world.now, NodeId(id)).unwrap();
    }
}

#[test]
fn the_decision_outlives_the_controller_as_soon_as_it_is_saved() {
    let mut world = World::with_keyspace(4, 1, 4, 1);
    let mut other = world.clone();
    alter(&mut other, 3);
    other.restart(other.config.clone());
    assert_eq!(other.map().keyspaces[0].replicas, 1, "nobody was told that it is done");
    alter(&mut world, 3);
    let revision = world.map().revision;
    world.save();
    assert!(world.controller.durable_revision() >= revision);
    world.restart(world.config.clone());
    assert_eq!(world.map().keyspaces[0].replicas, 3);
    world.live_until_replicated();
    assert_eq!(lengths(&world), [3; 4]);
}

#[test]
fn a_change_of_mind_ends_copies_that_nobody_needs() {
    let mut world = World::with_keyspace(4, 1, 8, 1);
    world.copying = Duration::from_secs(60);
    alter(&mut world, 3);
    world.live_until(|world| !world.status().copies.is_empty());
    alter(&mut world, 1);
    let took = live_until_all_have(&mut world, 1);
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(world.status().copies.is_empty());
}

#[test]
fn nothing_is_copied_while_copies_are_paused_and_members_go_all_the_same() {
    let mut world = World::with_keyspace(4, 1, 8, 2);
    world.controller.pause_copies(world.now);
    alter(&mut world, 3);
    world.live_for(Duration::from_secs(5));
    assert_eq!(lengths(&world), [2; 8]);
    assert_eq!(world.status().under_replicated, 8);
    alter(&mut world, 1);
    live_until_all_have(&mut world, 1);
    alter(&mut world, 3);
    world.controller.resume_copies(world.now);
    live_until_all_have(&mut world, 3);
}

#[test]
fn who_is_departing_goes_first() {
    let mut world = World::with_keyspace(4, 1, 8, 3);
    // Nobody can take its place: that would take a fourth node for some and time for all.
    world.copying = Duration::from_secs(60);
    world.controller.drain_node(world.now, NodeId(2)).unwrap();
    alter(&mut world, 2);
    world.live_for(Duration::from_secs(1));
    assert_eq!(world.replicas_held()[2], 0);
    assert_eq!(lengths(&world), [2; 8]);
    world.live_until(|world| world.status().replicated);
    world.controller.remove_node(world.now, NodeId(2)).unwrap();
}

#[test]
fn chains_follow_though_nodes_are_lost_meanwhile() {
    for count in [1, 3] {
        let mut world = World::with_keyspace(5, 1, 10, 2);
        world.copying = Duration::from_millis(300);
        alter(&mut world, count);
        world.live_for(Duration::from_millis(200));
        world.kill(node(3));
        // A partition that has no other member waits for it.
        world.live_for(crate::LEASE * 4);
        world.revive(node(3));
        world.live_for(Duration::from_secs(1));
        live_until_all_have(&mut world, count.into());
    }
}

#[test]
fn parts_of_a_split_partition_follow_as_well() {
    for (count, at_once) in [(1, true), (1, false), (4, false)] {
        let mut world = World::with_keyspace(5, 1, 1, 3);
        let id = world.partition(0).id;
        world.settling = Duration::from_millis(50);
        world.controller.split(world.now, id, None).unwrap();
        world.live_until(|world| at_once || world.controller.map().partitions.len() == 2);
        alter(&mut world, count);
        live_until_all_have(&mut world, count.into());
        assert_eq!(world.map().partitions.len(), 2, "it was split all the same");
        assert!(world.status().load.iter().all(|it| it.tails <= 1), "each has another tail");
    }
}

#[test]
fn whoever_left_for_a_while_is_not_needed_where_fewer_are_enough() {
    let mut world = World::with_keyspace(3, 1, 6, 3);
    world.member(node(2)).leaving = true;
    world.live_for(Duration::from_secs(1));
    assert_eq!(lengths(&world), [2; 6]);
    world.kill(node(2));
    world.member(node(2)).leaving = false;
    alter(&mut world, 2);
    world.live_until(|world| world.status().replicated);
    assert_eq!(lengths(&world), [2; 6]);
    world.revive(node(2));
    world.live_for(Duration::from_secs(2));
    live_until_all_have(&mut world, 2);
    let away = world.map().partitions.iter().map(|it| it.away.len()).sum::<usize>();
    assert_eq!(away, 0, "nobody waits for it");
}

#[test]
fn a_node_cannot_go_that_the_new_number_needs() {
    let mut world = World::with_keyspace(3, 1, 4, 2);
    alter(&mut world, 3);
    let refused = world.controller.drain_node(world.now, NodeId(1));
    assert!(matches!(refused, Err(CommandError::TooFewNodes { replicas: 3, left: 2, .. })));
    alter(&mut world, 2);
    world.controller.drain_node(world.now, NodeId(1)).unwrap();
    let refused = world.controller.alter_keyspace(world.now, "a", replicas(3));
    assert!(matches!(refused, Err(CommandError::Replicas { most: 2, .. })), "{refused:?}");
}
