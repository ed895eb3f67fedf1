//! When orders leave, to whom, and what they say.

use super::world::{POLL, World, config, hash, node};
use crate::{Controller, DECISIONS_MAX, MemberState, Status};
use cluster::{KeyspaceId, Member, PartitionCount, PartitionId, Stored, Volume};
use machine::Instant;
use wire::Revision;

#[test]
fn nothing_but_questions_leaves_before_a_decision_is_durable() {
    let mut world = World::settled(3, 1);
    let now = world.now;
    world.controller.create_keyspace(now, hash("a", 6, 2)).unwrap();
    let saved = world.controller.poll_save().unwrap();
    assert_eq!(world.controller.poll_save(), None, "each state is handed out once");
    for _ in 0..10 {
        while let Some((member, order)) = world.controller.poll_order() {
            assert_eq!(order.install, None);
            world.deliver(member, order);
        }
        world.step();
    }
    assert!(!world.status().ready);
    let now = world.now;
    world.controller.handle_saved(now, saved.map.revision);
    world.settle();
    assert!(world.status().ready);
}

#[test]
fn a_save_that_was_overtaken_lets_nothing_out() {
    let mut world = World::settled(3, 1);
    let now = world.now;
    world.controller.create_keyspace(now, hash("a", 6, 2)).unwrap();
    let first = world.controller.poll_save().unwrap();
    world.controller.create_keyspace(now, hash("b", 6, 2)).unwrap();
    world.controller.handle_saved(now, first.map.revision);
    while let Some((member, order)) = world.controller.poll_order() {
        assert_eq!(order.install, None);
        world.deliver(member, order);
    }
    world.settle();
    assert!(world.status().ready);
}

#[test]
#[should_panic(expected = "only what was handed out")]
fn a_save_that_nobody_asked_for_is_a_bug_of_the_driver() {
    let mut controller = Controller::new(config(1, 1), None, Instant(0)).unwrap();
    controller.handle_saved(Instant(0), Revision::new(1));
}

#[test]
fn nodes_install_a_revision_before_switches_route_by_it() {
    let mut world = World::settled(4, 2);
    let now = world.now;
    world.full_orders();
    world.controller.create_keyspace(now, hash("a", 8, 2)).unwrap();
    world.settle();
    let order = world.full_orders();
    assert_eq!(order.len(), 6);
    assert!(order[..4].iter().all(|m| matches!(m, Member::Node(_))), "{order:?}");
    assert_eq!(world.now, now, "and without waiting");
}

#[test]
fn a_node_that_does_not_take_its_orders_delays_switches_by_one_interval() {
    let mut world = World::settled(4, 1);
    world.member(node(3)).stuck = true;
    let now = world.now;
    world.full_orders();
    world.controller.create_keyspace(now, hash("a", 8, 2)).unwrap();
    world.settle();
    assert!(!world.full_orders().contains(&Member::Switch(0)));
    while world.now < now + POLL {
        world.step();
        world.settle();
    }
    assert!(world.full_orders().contains(&Member::Switch(0)));
    assert_eq!(world.state_of(node(3)), MemberState::Behind);
}

#[test]
fn a_dead_node_delays_nobody() {
    let mut world = World::settled(4, 1);
    world.member(node(3)).alive = false;
    world.live();
    let now = world.now;
    world.full_orders();
    world.controller.create_keyspace(now, hash("a", 8, 2)).unwrap();
    world.settle();
    assert!(world.full_orders().contains(&Member::Switch(0)));
    assert_eq!(world.state_of(node(3)), MemberState::Silent);
    world.member(node(3)).alive = true;
    world.live();
    assert!(world.status().covered);
}

#[test]
fn a_member_that_cannot_install_its_orders_is_asked_no_more_often_than_others() {
    let mut world = World::settled(2, 1);
    world.member(Member::Switch(0)).stuck = true;
    world.member(node(0)).stuck = true;
    let now = world.now;
    world.controller.create_keyspace(now, hash("a", 4, 1)).unwrap();
    world.settle();
    world.full_orders();
    let begin = world.now;
    while world.now < begin + POLL * 10 {
        world.step();
        world.settle();
    }
    let to_node = world.full_orders().iter().filter(|m| **m == node(0)).count();
    assert!((9..=11).contains(&to_node), "{to_node} in ten intervals");
}

#[test]
fn members_that_are_up_to_date_are_only_asked_how_they_are() {
    let mut world = World::settled(3, 1);
    world.delivered.clear();
    world.live();
    assert!(world.delivered.len() >= 3 * 4, "{:?}", world.delivered);
    assert!(world.delivered.iter().all(|(_, order)| order.install.is_none()));
}

#[test]
fn an_order_whose_answer_is_lost_is_given_again() {
    let mut world = World::settled(1, 1);
    world.step();
    let mut lost = Vec::new();
    while let Some((member, _)) = world.controller.poll_order() {
        lost.push(member);
    }
    assert_eq!(lost.len(), 2, "one order at a time for each");
    for _ in 0..20 {
        world.step();
        if world.controller.poll_order().is_some() {
            return;
        }
    }
    panic!("the member has been given up");
}

#[test]
fn the_status_sums_what_all_switches_counted() {
    let mut world = World::settled(2, 2);
    let now = world.now;
    world.controller.create_keyspace(now, hash("a", 2, 2)).unwrap();
    let count = |partition, reads, writes| PartitionCount {
        partition: PartitionId(partition),
        reads,
        writes,
    };
    world.member(Member::Switch(0)).counts = vec![count(1, 10, 1), count(2, 5, 0)];
    world.member(Member::Switch(1)).counts = vec![count(1, 3, 2), count(99, 7, 7)];
    world.live();
    let status = world.status();
    let [first, second] = &status.keyspaces[0].partitions[..] else { panic!("two partitions") };
    assert_eq!((first.reads, first.writes), (13, 3));
    assert_eq!((second.reads, second.writes), (5, 0));
    // Partition 1 is 0 -> 1, partition 2 is 1 -> 0: reads fall to the tail, writes to both.
    let [zero, one] = &status.load[..] else { panic!("two nodes") };
    assert_eq!((zero.heads, zero.tails, zero.partitions), (1, 1, 2));
    assert_eq!((zero.reads, zero.writes), (5, 3));
    assert_eq!((one.reads, one.writes), (13, 3));
    assert_eq!((one.requests, one.pending), (5, 1));
    let text = serde_json::to_string(&status).unwrap();
    assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
}

#[test]
fn each_key_is_counted_once_and_not_before_all_tails_have_counted() {
    let mut world = World::settled(2, 2);
    let now = world.now;
    world.controller.create_keyspace(now, hash("a", 2, 2)).unwrap();
    let volume = |keys| Volume { keys, bytes: keys * 10 };
    let holds = |tail, counted| Stored {
        keyspace: KeyspaceId(1),
        held: volume(30),
        as_tail: volume(tail),
        counted,
    };
    world.member(node(0)).stored = vec![holds(12, true)];
    world.live();
    let status = world.status();
    assert_eq!(status.keyspaces[0].stored, None, "the other tail has said nothing");
    assert_eq!((status.load[0].stored, status.load[1].stored), (Some(volume(30)), None));
    world.member(node(1)).stored = vec![holds(18, false)];
    world.live();
    assert_eq!(world.status().keyspaces[0].stored, None, "some are not counted");
    world.member(node(1)).stored = vec![holds(18, true)];
    world.live();
    assert_eq!(world.status().keyspaces[0].stored, Some(volume(30)));
    // What shards say is one of each keyspace.
    let other = Stored { keyspace: KeyspaceId(2), ..holds(1, false) };
    let joined = Stored::join([holds(12, true), other, holds(18, true)].into_iter());
    let both = Stored { held: volume(60), ..holds(30, true) };
    assert_eq!(joined, [both, other]);
}

#[test]
fn decisions_are_remembered_up_to_their_limit() {
    let mut world = World::settled(1, 1);
    for n in 0..DECISIONS_MAX {
        world.member(node(0)).alive = n % 2 == 0;
        world.live();
    }
    let decisions = world.status().decisions;
    assert_eq!(decisions.len(), DECISIONS_MAX);
    assert!(decisions.windows(2).all(|pair| pair[0].at_ms <= pair[1].at_ms));
}
