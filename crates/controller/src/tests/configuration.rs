//! Starting and starting again, with the same configuration and with another.

use super::world::{World, config, endpoint, hash, node, spec_of_node};
use crate::{ConfigError, Controller, ControllerConfig, FORMAT, SWITCHES_MAX, Saved};
use cluster::{Install, Member, NodeId, NodeSpec, Order, PartitionId, StoreId};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::Revision;

fn with_keyspace() -> World {
    // Two partitions, each with one node: node 2 holds none.
    World::with_keyspace(3, 1, 2, 1)
}

fn refusal(config: &ControllerConfig, saved: Option<Saved>) -> ConfigError {
    let refused = Controller::new(config.clone(), saved, Instant(0)).unwrap_err();
    assert!(!refused.to_string().is_empty());
    refused
}

#[test]
fn a_controller_that_comes_back_has_the_same_map_and_disturbs_nobody() {
    let mut world = with_keyspace();
    let (map, before) = (world.map(), world.saved.clone().unwrap());
    world.restart(world.config.clone());
    assert_eq!(world.map(), map);
    let now = world.saved.clone().unwrap();
    assert!(now.term > before.term);
    assert_eq!(now, Saved { term: now.term, ..before }, "nothing but its term is new");
    assert_eq!(world.controller.poll_save(), None);
    world.live();
    assert_eq!(world.full_orders(), []);
    assert!(world.status().ready);
}

#[test]
fn what_was_saved_reads_the_same_from_json() {
    let saved = with_keyspace().saved.unwrap();
    let text = serde_json::to_string_pretty(&saved).unwrap();
    assert_eq!(serde_json::from_str::<Saved>(&text).unwrap(), saved);
}

#[test]
fn a_node_may_move_and_everybody_learns_where() {
    let mut world = with_keyspace();
    let before = world.map();
    let mut moved = world.config.clone();
    moved.nodes[1].endpoint = endpoint(77, 9_000);
    world.restart(moved);
    assert!(world.map().revision > before.revision);
    assert_eq!(world.map().partitions, before.partitions);
    world.live();
    assert_eq!(world.full_orders().len(), 4);
    assert!(world.status().ready);
}

#[test]
fn another_service_address_reaches_every_node() {
    let mut world = with_keyspace();
    let mut changed = world.config.clone();
    changed.switches[0] = endpoint(50, 7_701);
    let (switch, address) = (Member::Switch(0), changed.switches[0]);
    world.full_orders();
    world.restart(changed);
    world.live();
    let active = |(_, order): &&(Member, Order)| match &order.install {
        Some(Install::Tables(tables)) => tables.active,
        Some(Install::Assignment(_) | Install::Cache(_)) | None => false,
    };
    let serves = world.delivered.iter().position(|order| active(&order)).unwrap();
    let told = world
        .delivered
        .iter()
        .take(serves)
        .filter(|(to, order)| *to != switch && order.install.is_some());
    let told: BTreeSet<Member> = told.map(|(to, _)| *to).collect();
    assert_eq!(told.len(), 3, "nodes take nothing from the old address when the new one serves");
    for id in 0..3 {
        let Some(Install::Assignment(it)) = &world.members[&node(id)].installed else { panic!() };
        assert_eq!(it.switch, address);
    }
}

#[test]
fn nodes_of_the_configuration_are_added_and_only_commands_take_them_out() {
    let mut world = with_keyspace();
    let mut changed = world.config.clone();
    changed.nodes.remove(2);
    changed.nodes.push(spec_of_node(3));
    world.restart(changed);
    world.live();
    assert!(world.status().ready);
    let ids: Vec<u16> = world.map().nodes.iter().map(|n| n.id.0).collect();
    assert_eq!(ids, [0, 1, 2, 3]);
    let now = world.now;
    world.controller.remove_node(now, NodeId(2)).unwrap();
    world.settle();
    world.restart(world.config.clone());
    let ids: Vec<u16> = world.map().nodes.iter().map(|n| n.id.0).collect();
    assert_eq!(ids, [0, 1, 3]);
    let known: Vec<NodeId> = world.saved.unwrap().stores.into_keys().collect();
    assert_eq!(known, [NodeId(0), NodeId(1), NodeId(3)]);
}

#[test]
fn where_orders_reach_a_node_outlives_the_configuration_that_says_so() {
    let mut world = with_keyspace();
    let control = std::net::SocketAddr::from(([10, 1, 1, 1], 99));
    let controls = BTreeMap::from([(NodeId(1), control), (NodeId(70), control)]);
    world.restart(ControllerConfig { controls, ..world.config.clone() });
    world.settle();
    world.restart(ControllerConfig { controls: BTreeMap::new(), ..world.config.clone() });
    let known: Vec<_> = world.controller.controls().iter().collect();
    assert_eq!(known, [(&NodeId(1), &control)], "and nothing is kept of a node that is not there");
}

#[test]
fn the_active_switch_stays_active_wherever_the_configuration_puts_it() {
    let mut world = World::with_keyspace(2, 2, 2, 1);
    let [first, second] = world.config.switches[..] else { panic!("two switches") };
    let turned = ControllerConfig { switches: vec![second, first], ..world.config.clone() };
    world.restart(turned);
    assert_eq!(world.map().active_switch, 1);
    let alone = ControllerConfig { switches: vec![second], ..world.config.clone() };
    world.restart(alone);
    assert_eq!(world.map().active_switch, 0);
}

#[test]
fn a_configuration_that_would_lose_data_is_refused() {
    let world = with_keyspace();
    let saved = || world.saved.clone();
    let mut resharded = world.config.clone();
    resharded.nodes[0].shards = 4;
    let shards = ConfigError::Shards { node: NodeId(0), saved: 2 };
    assert_eq!(refusal(&resharded, saved()), shards);
    let reseeded = ControllerConfig { seed: 8, ..world.config.clone() };
    let seed = ConfigError::Seed { configured: 8, saved: 7 };
    assert_eq!(refusal(&reseeded, saved()), seed);

    // One that holds nothing may change its shards.
    let mut harmless = world.config.clone();
    harmless.nodes[2].shards = 4;
    assert!(Controller::new(harmless, saved(), Instant(0)).is_ok());

    // A node that the configuration no longer names still receives what is sent there.
    let mut replaced = world.config.clone();
    replaced.nodes[1] = NodeSpec { id: NodeId(5), ..replaced.nodes[1] };
    let shared = ConfigError::SharedEndpoint(replaced.nodes[1].endpoint);
    assert_eq!(refusal(&replaced, saved()), shared);
}

#[test]
fn a_configuration_that_makes_no_sense_is_refused() {
    let none = ControllerConfig { switches: Vec::new(), ..config(1, 1) };
    assert_eq!(refusal(&none, None), ConfigError::Switches(0));
    let many = vec![endpoint(200, 1); SWITCHES_MAX + 1];
    let many = ControllerConfig { switches: many, ..config(1, 1) };
    assert_eq!(refusal(&many, None), ConfigError::Switches(SWITCHES_MAX + 1));
    let busy = ControllerConfig { poll_interval: Duration::ZERO, ..config(1, 1) };
    assert_eq!(refusal(&busy, None), ConfigError::PollInterval);
    let brief = ControllerConfig { lease: config(1, 1).poll_interval, ..config(1, 1) };
    assert_eq!(refusal(&brief, None), ConfigError::Lease);
    let standing = ControllerConfig { copy_bytes_per_s: 0, ..config(1, 1) };
    assert_eq!(refusal(&standing, None), ConfigError::CopyRate);
    let mut twice = config(2, 1);
    twice.nodes[1].id = NodeId(0);
    assert!(matches!(refusal(&twice, None), ConfigError::Unsound(_)));
    let mut overlapping = config(2, 1);
    overlapping.nodes[1].endpoint = endpoint(9, 8_001);
    assert_eq!(refusal(&overlapping, None), ConfigError::SharedEndpoint(endpoint(9, 8_001)));
    let mut on_switch = config(1, 1);
    on_switch.nodes[0].endpoint = endpoint(0, wire::PORT - 1);
    assert_eq!(refusal(&on_switch, None), ConfigError::SharedEndpoint(endpoint(0, wire::PORT)));
}

#[test]
fn a_saved_state_that_contradicts_itself_is_refused() {
    let world = with_keyspace();
    let sound = world.saved.clone().unwrap();
    let spoiled = |spoil: fn(&mut Saved)| {
        let mut saved = sound.clone();
        spoil(&mut saved);
        refusal(&world.config, Some(saved))
    };
    assert_eq!(spoiled(|s| s.format = FORMAT + 1), ConfigError::Format(FORMAT + 1));
    assert!(matches!(spoiled(|s| drop(s.map.partitions.pop())), ConfigError::Unsound(_)));
    let damaged: [fn(&mut Saved); 9] = [
        |s| s.next_partition = 0,
        |s| s.next_keyspace = 0,
        |s| s.next_partition = 1,
        |s| s.next_keyspace = 1,
        |s| s.stores.extend([(NodeId(50), StoreId(1))]),
        |s| s.stores.retain(|id, _| *id != NodeId(0)),
        |s| s.departing.extend([NodeId(50)]),
        |s| s.map.active_switch = 1,
        |s| s.map.partitions[0].since[0] = Revision::new(s.map.revision.get() + 1),
    ];
    for spoil in damaged {
        assert!(matches!(spoiled(spoil), ConfigError::Damaged(_)));
    }
}

#[test]
fn ids_are_never_given_out_twice() {
    let mut world = with_keyspace();
    world.restart(world.config.clone());
    world.live();
    let now = world.now;
    let id = world.controller.create_keyspace(now, hash("b", 1, 1)).unwrap();
    assert_eq!(id.0, 2);
    assert_eq!(world.map().partitions.last().unwrap().id, PartitionId(3));
}
