//! Caches: told addresses, heard of, and waited for by nobody.

use super::member::content_on;
use super::world::{POLL, World, config, endpoint, hash, node, spec_of_node};
use crate::{CacheStatus, CommandError, ConfigError, Controller, ControllerConfig, MemberState};
use cluster::{
    CacheId, CacheSpec, CacheTables, Capabilities, HotKey, HotPolicy, Install, KeyspaceId, Member,
    TableSizes,
};
use machine::Instant;
use std::time::Duration;
use wire::Revision;

const SPACE: KeyspaceId = KeyspaceId(1);

fn cache(id: u16) -> Member {
    Member::Cache(CacheId(id))
}

fn spec(id: u16) -> CacheSpec {
    CacheSpec { id: CacheId(id), endpoint: endpoint(8, 9_000 + id), shards: 1 }
}

fn configured(switches: u8, caches: &[u16]) -> ControllerConfig {
    ControllerConfig { caches: caches.iter().map(|id| spec(*id)).collect(), ..config(3, switches) }
}

/// A cluster with these caches, in which everybody has been up for a while.
fn world(switches: u8, caches: &[u16]) -> World {
    let mut world = World::of(configured(switches, caches));
    world.settle();
    let now = world.now;
    world.controller.create_keyspace(now, hash("a", 3, 3)).unwrap();
    world.live_for(Duration::from_secs(3));
    assert!(world.status().ready && world.status().covered, "{:?}", world.status());
    world.full_orders();
    world
}

fn tables(world: &World, id: u16) -> CacheTables {
    let Some(Install::Cache(tables)) = &world.members[&cache(id)].installed else { panic!() };
    tables.clone()
}

/// The caches that each node and each switch was told of.
fn told(world: &World) -> Vec<Vec<u16>> {
    let told = world.members.values().filter_map(|it| match it.installed.as_ref()? {
        Install::Tables(it) => Some(&it.caches),
        Install::Assignment(it) => Some(&it.caches),
        Install::Cache(_) => None,
    });
    told.map(|caches| caches.iter().map(|it| it.id.0).collect()).collect()
}

#[test]
fn caches_are_told_where_the_others_are_and_the_others_where_they_are() {
    let world = world(1, &[5, 2]);
    let map = world.map();
    assert_eq!(map.caches, [spec(2), spec(5)], "by id");
    assert_eq!(told(&world), vec![vec![2, 5]; 4]);
    for id in [2, 5] {
        let CacheTables { revision, cluster, cache, switch, standbys, nodes, keyspaces } =
            tables(&world, id);
        assert_eq!((revision, cluster, cache), (map.revision, map.cluster, CacheId(id)));
        assert_eq!((switch, nodes.len()), (world.config.switches[0], 3));
        assert_eq!(standbys, world.config.switches[1..]);
        assert_eq!(keyspaces, map.keyspaces);
    }
    let mut to_caches = world.delivered.iter().filter(|(to, _)| matches!(to, Member::Cache(_)));
    assert!(to_caches.all(|(_, order)| order.lease.is_none() && order.hot.is_none()));
}

#[test]
fn caches_share_the_room_that_the_smallest_table_of_a_switch_has_for_rules() {
    let mut world = world(1, &[5, 2]);
    let told = |world: &World| {
        let last = world.delivered.iter().rev().find(|(to, _)| *to == cache(2)).expect("an order");
        last.1.rules_max
    };
    let program = Capabilities::PROGRAM.sizes.rules.unwrap();
    world.live();
    assert_eq!(told(&world), Some(program / 2));
    let sizes = |rules| TableSizes { rules, ..TableSizes::default() };
    let content =
        |rules| content_on(Capabilities { sizes: sizes(rules), ..Capabilities::ADDRESSES });
    for (of_routes, expected) in [(Some(1_000), 500), (None, program / 2), (Some(0), 0)] {
        world.member(Member::Switch(0)).content = Some(content(of_routes));
        world.live();
        assert_eq!(told(&world), Some(expected));
    }
    let to_others = world.delivered.iter().filter(|(to, _)| !matches!(to, Member::Cache(_)));
    assert!(to_others.into_iter().all(|(_, order)| order.rules_max.is_none()));
}

#[test]
fn a_cache_is_given_no_lease_and_told_the_term() {
    let mut world = world(1, &[2]);
    world.live();
    let given: Vec<_> = world.delivered.iter().filter(|(to, _)| *to == cache(2)).collect();
    assert!(!given.is_empty());
    for (_, order) in given {
        assert_eq!((&order.lease, &order.direct, &order.clock), (&None, &None, &None));
        assert_eq!(order.leader.unwrap().term, world.controller.term());
    }
    assert_eq!(world.status().members.last().unwrap().lease_ms_left, 0);
}

#[test]
fn new_nodes_and_another_switch_are_news_for_caches() {
    let mut world = world(2, &[2]);
    world.add_node(7);
    world.live();
    assert!(tables(&world, 2).nodes.contains(&spec_of_node(7)));
    assert_eq!(tables(&world, 2).switch, world.config.switches[0]);
    world.kill(Member::Switch(0));
    world.live_for(POLL * 5);
    assert_eq!(world.map().active_switch, 1);
    assert_eq!(tables(&world, 2).switch, world.config.switches[1]);
    // One that was started anew has forgotten all.
    world.member(cache(2)).restart();
    world.live();
    assert_eq!(tables(&world, 2).revision, world.map().revision);
}

#[test]
fn a_dead_cache_delays_no_takeover_and_no_keyspace() {
    let took = |world: &mut World| {
        world.member(node(2)).cut_off = true;
        let without = world.live_until(|world| {
            world.controller.map().partitions.iter().all(|it| it.open && it.chain.len() == 2)
        });
        let now = world.now;
        let spec = crate::KeyspaceSpec { replicas: 2, ..hash("b", 2, 2) };
        world.controller.create_keyspace(now, spec).unwrap();
        (without, world.live_until(|world| world.status().covered))
    };
    let alone = took(&mut world(1, &[]));
    let mut with = world(1, &[2, 5]);
    with.kill(cache(2));
    assert_eq!(took(&mut with), alone);

    let mut late = world(1, &[2]);
    late.member(cache(2)).stuck = true;
    assert_eq!(took(&mut late), alone);
}

#[test]
fn a_cluster_is_ready_without_its_caches_from_the_beginning_on() {
    let mut world = World::of(configured(2, &[2]));
    world.kill(cache(2));
    world.settle();
    let now = world.now;
    world.controller.create_keyspace(now, hash("a", 3, 3)).unwrap();
    world.live();
    let status = world.status();
    assert!(status.ready && status.covered, "{status:?}");
    assert_eq!(status.late().next(), None);
    assert_eq!(world.state_of(cache(2)), MemberState::Silent);
    // Nor does anybody wait for it after a controller has begun again.
    world.restart(world.config.clone());
    world.live();
    assert!(world.status().ready);
    world.kill(Member::Switch(0));
    world.live_for(POLL * 5);
    assert_eq!(world.map().active_switch, 1);
}

#[test]
fn the_status_says_how_full_and_how_good_a_cache_is() {
    let world = world(1, &[2]);
    let status = world.status();
    let it = status.members.last().unwrap();
    assert_eq!((it.member, it.state), (cache(2), MemberState::Ready));
    assert_eq!(it.endpoint, spec(2).endpoint.into());
    let CacheStatus { entries, room_entries, hits, misses, rules, rules_wanted, .. } =
        it.cache.unwrap();
    assert_eq!((entries, room_entries, hits, misses, rules, rules_wanted), (3, 10, 7, 2, 3, 4));
    let others = status.members.iter().filter(|it| it.member != cache(2));
    assert!(others.clone().count() == 4 && others.clone().all(|it| it.cache.is_none()));
}

#[test]
fn what_the_configuration_has_is_in_the_map_and_nothing_else() {
    let mut world = world(1, &[2, 5]);
    let before = world.map();
    world.restart(world.config.clone());
    assert_eq!(world.map(), before);
    world.restart(configured(1, &[5, 6]));
    assert!(world.map().revision > before.revision);
    assert_eq!(world.map().caches, [spec(5), spec(6)]);
    assert_eq!(world.map().partitions, before.partitions);
    world.live();
    assert_eq!(told(&world), vec![vec![5, 6]; 4]);
    let members: Vec<Member> = world.status().members.iter().map(|it| it.member).collect();
    assert_eq!(members[4..], [cache(5), cache(6)]);
    // One that moves is another one.
    let mut moved = world.config.clone();
    moved.caches[0].endpoint = endpoint(8, 99);
    world.restart(moved);
    assert_eq!(world.map().caches[0].endpoint, endpoint(8, 99));
    world.restart(configured(1, &[]));
    world.live();
    assert_eq!(
        told(&world),
        vec![Vec::<u16>::new(); 4],
        "a store from before there were any is like that"
    );
}

#[test]
fn caches_that_nobody_could_reach_are_refused() {
    let refused = |change: fn(&mut ControllerConfig)| {
        let mut config = configured(1, &[2, 5]);
        change(&mut config);
        Controller::new(config, None, Instant(0)).unwrap_err()
    };
    let twice = refused(|it| it.caches.push(spec(2)));
    assert!(twice.to_string().contains("cache 2 is there twice"), "{twice}");
    let crowd = refused(|it| it.caches = (0..17).map(spec).collect());
    assert!(crowd.to_string().contains("over 16 caches"), "{crowd}");
    let on_node = refused(|it| it.caches[0].endpoint = it.nodes[1].endpoint);
    assert!(on_node.to_string().contains("has a port of a node"), "{on_node}");
    let on_switch = refused(|it| it.caches[0].endpoint = it.switches[0]);
    assert_eq!(on_switch, ConfigError::SharedEndpoint(config(1, 1).switches[0]));

    let mut world = world(1, &[2]);
    let now = world.now;
    let at = std::net::SocketAddr::from(([10, 0, 1, 0], 9_000));
    let taken = cluster::NodeSpec { endpoint: spec(2).endpoint, ..spec_of_node(9) };
    let error = world.controller.add_node(now, taken, at).unwrap_err();
    assert!(matches!(error, CommandError::Unsound(_)), "{error}");
}

#[test]
fn without_a_cache_no_keyspace_has_its_hot_keys_cached() {
    let mut world = world(1, &[]);
    let now = world.now;
    let spec = crate::KeyspaceSpec { hot: HotPolicy::Cache, ..hash("b", 3, 1) };
    for hot in [HotPolicy::Cache, HotPolicy::Either] {
        let spec = crate::KeyspaceSpec { hot, ..spec.clone() };
        let error = world.controller.create_keyspace(now, spec).unwrap_err();
        assert!(error.to_string().contains("add a [[cache]]"), "{error}");
    }
    let alteration = crate::Alteration { hot: Some(HotPolicy::Cache), ..Default::default() };
    let error = world.controller.alter_keyspace(now, "a", alteration).unwrap_err();
    assert_eq!(error, CommandError::NoCaches("a".into()));
    assert!(error.to_string().contains("add a [[cache]]"), "{error}");
    world.restart(configured(1, &[2]));
    world.settle();
    let now = world.now;
    world.controller.create_keyspace(now, spec).unwrap();
    world.controller.alter_keyspace(now, "a", alteration).unwrap();
    world.live();
    // Whoever takes the last cache away may still alter the rest.
    world.restart(configured(1, &[]));
    world.settle();
    let now = world.now;
    let fewer = crate::Alteration { replicas: Some(2), hot: Some(HotPolicy::Cache) };
    world.controller.alter_keyspace(now, "a", fewer).unwrap();
}

#[test]
fn keys_that_caches_hold_are_never_hot_elsewhere() {
    let mut world = World::of(configured(1, &[2]));
    world.settle();
    let now = world.now;
    for (name, hot) in [("a", HotPolicy::Cache), ("b", HotPolicy::Replicate)] {
        let spec = crate::KeyspaceSpec { hot, ..hash(name, 3, 1) };
        world.controller.create_keyspace(now, spec).unwrap();
        world.settle();
    }
    world.live_for(Duration::from_secs(3));
    world.member(Member::Switch(0)).delegates = true;
    let asked = |keyspace, key: &str| HotKey {
        keyspace,
        key: key.into(),
        reads: 1_000,
        writes: 1_000,
        ..HotKey::default()
    };
    world.member(node(1)).told = vec![asked(SPACE, "cached"), asked(KeyspaceId(2), "hot")];
    world.live_for(Duration::from_secs(3));
    let order = &world.members[&Member::Switch(0)].hot;
    let keys: Vec<&[u8]> = order.keys.iter().map(|it| &it.key[..]).collect();
    assert_eq!(keys, [b"hot"]);
    // What was hot before is taken out.
    let now = world.now;
    let alteration = crate::Alteration { hot: Some(HotPolicy::Cache), ..Default::default() };
    world.controller.alter_keyspace(now, "b", alteration).unwrap();
    world.live_for(Duration::from_secs(1));
    assert!(world.members[&Member::Switch(0)].hot.keys.is_empty());
}

#[test]
fn a_cache_of_another_cluster_is_given_nothing_and_keeps_no_node_out() {
    let mut world = world(1, &[2]);
    world.member(cache(2)).cluster = Some(cluster::ClusterId(9));
    world.live();
    assert_eq!(world.state_of(cache(2)), MemberState::Foreign);
    let detail = world.detail_of(cache(2));
    assert!(detail.contains("this cache follows cluster"), "{detail}");
    world.full_orders();
    world.add_node(7);
    world.live();
    assert!(world.status().ready, "the new node is there");
    assert!(!world.full_orders().contains(&cache(2)));
}

#[test]
fn a_cache_that_is_to_end_may_and_who_speaks_as_one_is_heard_as_one() {
    let mut world = world(1, &[2]);
    world.member(cache(2)).leaving = true;
    world.live();
    let (_, last) = world.delivered.iter().rfind(|(to, _)| *to == cache(2)).unwrap();
    assert!(last.may_end);
    let report = world.report_of(cache(2));
    let now = world.now;
    world.controller.handle_report(now, node(1), report);
    let said = world.status().decisions.pop().unwrap();
    assert!(said.saw.contains("node 1 reports in the form of another role"), "{}", said.saw);
    assert!(world.map().revision > Revision::NONE);
}
