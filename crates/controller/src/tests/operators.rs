//! Nodes that come, go and stay, and copies that pause, by command.

use super::world::{World, endpoint, hash, node, spec_of_node};
use crate::{CommandError, CreateError};
use cluster::{Member, NodeId, NodeSpec};
use std::net::SocketAddr;
use std::time::Duration;
use wire::Revision;

const CONTROL: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9_000);

/// Nobody has two replicas more than another, and nothing changes any more.
fn assert_balanced_and_quiet(world: &mut World) {
    let replicas_held = world.replicas_held();
    let (least, most) = (replicas_held.iter().min().unwrap(), replicas_held.iter().max().unwrap());
    assert!(most - least <= 1, "{replicas_held:?}");
    let map = world.map();
    world.live_for(Duration::from_secs(5));
    assert_eq!(world.map(), map, "it moves replicas to and fro");
}

#[test]
fn a_node_that_is_added_gets_its_share() {
    let mut world = World::with_keyspace(3, 1, 24, 2);
    world.copying = Duration::from_millis(40);
    world.add_node(3);
    assert_eq!(world.replicas_held(), [16, 16, 16, 0]);
    world
        .live_until(|world| world.replicas_held() == [12, 12, 12, 12] && world.status().replicated);
    assert_balanced_and_quiet(&mut world);
    // Two more at once, while one of the old ones dies.
    world.add_node(4);
    world.add_node(5);
    world.kill(node(0));
    world.live_until(|world| world.replicas_held()[1..].iter().all(|n| (9..=10).contains(n)));
    world.live_until_replicated();
    world.revive(node(0));
    world.live_until(|world| world.replicas_held().iter().all(|n| *n == 8));
    assert_balanced_and_quiet(&mut world);
}

#[test]
fn while_copies_run_a_node_gives_and_takes_one_at_a_time() {
    let mut world = World::with_keyspace(4, 1, 32, 2);
    world.copying = Duration::from_millis(100);
    world.add_node(4);
    world.add_node(5);
    world.kill(node(0));
    world.live_until(|world| world.status().closed > 0);
    let most = std::cell::Cell::new(0);
    world.live_until(|world| {
        let copies = world.status().copies;
        for copy in &copies {
            let same = |other: &&crate::CopyStatus| other.from == copy.from || other.to == copy.to;
            assert_eq!(copies.iter().filter(same).count(), 1, "{copies:?}");
        }
        most.set(copies.len().max(most.get()));
        world.status().replicated
    });
    assert!(most.get() >= 2, "several nodes can be copied to at a time");
}

#[test]
fn a_drained_node_leaves_partition_by_partition_and_can_then_be_removed() {
    let mut world = World::with_keyspace(4, 1, 12, 3);
    world.copying = Duration::from_millis(150);
    let now = world.now;
    let refused = world.controller.remove_node(now, NodeId(1));
    assert_eq!(refused, Err(CommandError::NodeInUse { node: NodeId(1), partitions: 9 }));
    world.controller.drain_node(now, NodeId(1)).unwrap();
    world.live_for(Duration::from_millis(200));
    // A controller that comes back goes on.
    world.restart(world.config.clone());
    assert!(world.detail_of(node(1)).contains("it is leaving"), "{}", world.detail_of(node(1)));
    world.live_until(|world| {
        let status = world.status();
        assert_eq!(status.under_replicated, 0, "nothing is given up before it is replaced");
        status.load[1].partitions == 0
    });
    world.live_until_replicated();
    assert!(world.detail_of(node(1)).contains("can be removed"));
    assert!(world.status().members.iter().any(|m| m.departing));
    assert_eq!(world.replicas_held(), [12, 0, 12, 12]);
    let now = world.now;
    world.controller.remove_node(now, NodeId(1)).unwrap();
    world.live();
    let status = world.status();
    assert!(status.ready && status.members.iter().all(|m| m.member != node(1)));
    assert!(world.saved.as_ref().unwrap().departing.is_empty());
}

#[test]
fn a_node_that_is_kept_after_all_keeps_what_it_has() {
    let mut world = World::with_keyspace(4, 1, 12, 3);
    world.copying = Duration::from_secs(1);
    let now = world.now;
    let before = world.replicas_held();
    world.controller.drain_node(now, NodeId(1)).unwrap();
    world.live_until(|world| !world.status().copies.is_empty());
    world.live();
    let now = world.now;
    world.controller.keep_node(now, NodeId(1)).unwrap();
    // The copies are dropped, long before they would have ended.
    let took = world.live_until(|world| world.status().copies.is_empty());
    assert!(took < Duration::from_millis(200), "{took:?}");
    world.live_until_replicated();
    assert_eq!(world.replicas_held(), before);
    assert_balanced_and_quiet(&mut world);
}

#[test]
fn copies_stand_still_while_they_are_paused() {
    let mut world = World::with_keyspace(4, 1, 12, 3);
    world.copying = Duration::from_millis(300);
    world.kill(node(1));
    world.live_until(|world| !world.status().copies.is_empty());
    let now = world.now;
    world.controller.pause_copies(now);
    world.live_for(Duration::from_secs(5));
    let status = world.status();
    assert!(status.paused && !status.copies.is_empty() && !status.replicated);
    assert!(status.copies.iter().all(|copy| copy.eta_ms.is_none()));
    assert_eq!(world.map().copy_bytes_per_s, 0);
    assert!(status.covered, "clients are served meanwhile");
    // It outlives the controller.
    world.restart(world.config.clone());
    world.live_for(Duration::from_secs(2));
    assert!(world.status().paused);
    // Losses are still made good as far as that needs no copy.
    world.kill(node(2));
    world.live_for(Duration::from_secs(2));
    assert_eq!(world.status().closed, 0);
    world.revive(node(2));
    let now = world.now;
    world.controller.resume_copies(now);
    world.live_until_replicated();
    assert_eq!(world.map().copy_bytes_per_s, crate::COPY_BYTES_PER_S);
}

#[test]
fn chains_as_long_as_can_be_let_the_departing_go_first() {
    let most = u8::try_from(wire::CHAIN_MAX).unwrap();
    let mut world = World::with_keyspace(u16::from(most) + 1, 1, 3, most);
    world.copying = Duration::from_millis(40);
    let now = world.now;
    world.controller.drain_node(now, NodeId(0)).unwrap();
    world.live_until(|world| world.replicas_held()[0] == 0 && world.status().replicated);
}

#[test]
fn commands_that_cannot_be_are_refused_and_change_nothing() {
    let mut world = World::with_keyspace(3, 1, 6, 3);
    let (now, before) = (world.now, world.map());
    let controller = &mut world.controller;
    let nobody = NodeId(9);
    let unknown = CommandError::UnknownNode(nobody);
    let taken = NodeSpec { id: nobody, ..spec_of_node(1) };
    let on_switch = NodeSpec { endpoint: endpoint(0, wire::PORT), ..spec_of_node(9) };
    let shared = |at| CommandError::SharedEndpoint(at);
    let keyspace = "a".to_owned();
    let too_few = CommandError::TooFewNodes { keyspace, replicas: 3, left: 2 };
    let in_use = CommandError::NodeInUse { node: NodeId(0), partitions: 6 };
    let refusals = [
        (controller.remove_node(now, nobody), unknown.clone()),
        (controller.drain_node(now, nobody), unknown.clone()),
        (controller.keep_node(now, nobody), unknown),
        (controller.remove_node(now, NodeId(0)), in_use),
        (controller.drain_node(now, NodeId(0)), too_few),
        (controller.add_node(now, spec_of_node(1), CONTROL), CommandError::NodeExists(NodeId(1))),
        (controller.add_node(now, taken, CONTROL), shared(spec_of_node(1).endpoint)),
        (controller.add_node(now, on_switch, CONTROL), shared(endpoint(0, wire::PORT))),
    ];
    for (result, refusal) in refusals {
        assert!(!refusal.to_string().is_empty());
        assert_eq!(result, Err(refusal));
    }
    let portless = NodeSpec { shards: 0, ..spec_of_node(9) };
    let unsound = controller.add_node(now, portless, CONTROL);
    assert!(matches!(unsound, Err(CommandError::Unsound(_))), "{unsound:?}");
    assert_eq!(world.map(), before);
    assert_eq!(world.controller.poll_save(), None);

    world.member(Member::Switch(0)).claims = Some(Revision::new(u64::MAX));
    world.live();
    let now = world.now;
    let refused = world.controller.add_node(now, spec_of_node(9), CONTROL);
    assert_eq!(refused, Err(CommandError::Foreign(Member::Switch(0))));
}

#[test]
fn commands_are_durable_and_what_is_so_already_is_no_change() {
    let mut world = World::with_keyspace(3, 1, 6, 2);
    let now = world.now;
    world.controller.keep_node(now, NodeId(0)).unwrap();
    world.controller.resume_copies(now);
    assert_eq!(world.controller.poll_save(), None);
    world.controller.drain_node(now, NodeId(0)).unwrap();
    let revision = world.map().revision;
    world.controller.drain_node(now, NodeId(0)).unwrap();
    assert_eq!(world.map().revision, revision);
    assert!(world.controller.durable_revision() < revision);
    world.save();
    assert_eq!(world.controller.durable_revision(), revision);
    world.add_node(3);
    world.save();
    world.restart(world.config.clone());
    assert!(world.controller.controls().contains_key(&NodeId(3)));
    assert!(world.map().nodes.iter().any(|n| n.id == NodeId(3)));
    // Nothing is placed before it has been heard of.
    let now = world.now;
    let refused = world.controller.create_keyspace(now, hash("b", 1, 1));
    assert_eq!(refused, Err(CreateError::NodesUnknown(vec![NodeId(3)])));
}

#[test]
fn an_empty_node_stays_while_others_cannot_leave_without_it() {
    let mut world = World::with_keyspace(4, 1, 1, 2);
    let (now, chain) = (world.now, world.partition(0).chain);
    let [one, other] = chain[..] else { panic!("{chain:?}") };
    let empty = (0..4).map(NodeId).find(|node| !chain.contains(node)).unwrap();
    for gone in [one, other] {
        world.controller.drain_node(now, gone).unwrap();
    }
    let keyspace = "a".to_owned();
    let too_few = CommandError::TooFewNodes { keyspace, replicas: 2, left: 1 };
    assert_eq!(world.controller.remove_node(now, empty), Err(too_few));
    world.controller.keep_node(now, other).unwrap();
    world.controller.remove_node(now, empty).unwrap();
}

#[test]
fn numbers_of_passes_are_given_once_whatever_becomes_of_the_controller() {
    let mut world = World::with_keyspace(3, 1, 4, 3);
    let reserve = |world: &mut World| {
        let now = world.now;
        let numbers = world.controller.reserve_passes(now);
        world.live_for(Duration::from_secs(1));
        numbers
    };
    let old = world.now;
    let first = reserve(&mut world);
    let second = reserve(&mut world);
    assert!(!first.is_empty() && first.end <= second.start);
    world.restart(world.config.clone());
    world.live_for(Duration::from_secs(1));
    let third = reserve(&mut world);
    assert!(second.end <= third.start);
    // Also if it has forgotten all, some minutes later: numbers go on with time.
    let later = old + Duration::from_secs(600);
    let mut fresh = World::with_keyspace(3, 1, 4, 3);
    fresh.live_for(later.since(fresh.now));
    let fourth = reserve(&mut fresh);
    assert!(third.end <= fourth.start, "{third:?} {fourth:?}");
}

#[test]
fn a_name_keeps_its_class_of_rights_and_no_other_gets_it() {
    let mut world = World::with_keyspace(3, 1, 4, 3);
    let name = |world: &mut World, names: &[&str]| {
        let now = world.now;
        world.controller.name_classes(now, names.iter().copied());
        world.live_for(Duration::from_secs(1));
        let known = world.controller.classes();
        names.iter().map(|name| known.get(*name).copied()).collect::<Vec<_>>()
    };
    assert_eq!(name(&mut world, &["client/a", "client/*"]), [Some(1), Some(2)]);
    let before = world.controller.map().revision;
    assert_eq!(name(&mut world, &["client/*", "client/a"]), [Some(2), Some(1)]);
    assert_eq!(world.controller.map().revision, before, "nothing is new");
    world.restart(world.config.clone());
    world.live_for(Duration::from_secs(1));
    let others = ["client/b", "client/a", "client/c"];
    assert_eq!(name(&mut world, &others), [Some(3), Some(1), Some(4)]);
}
