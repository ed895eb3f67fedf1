//! Keyspaces whose hot keys caches hold or nodes copy: when a key is which.

use super::world::{World, config, endpoint, hash, node};
use crate::{ControllerConfig, HotAction, KeyspaceSpec, WhyCopied};
use cluster::{CacheId, CacheSpec, HotKey, HotPolicy, KeyName, KeyspaceId, Member};
use std::time::Duration;

const SWITCH: Member = Member::Switch(0);
const CACHE: Member = Member::Cache(CacheId(2));
const SPACE: KeyspaceId = KeyspaceId(1);
const MS: Duration = Duration::from_millis(1);
/// More than until nodes are asked, and an order is given.
const SOON: Duration = Duration::from_millis(300);

/// Four nodes, a cache, and a keyspace of both.
fn world() -> World {
    let cache = CacheSpec { id: CacheId(2), endpoint: endpoint(8, 9_000), shards: 1 };
    let mut world = World::of(ControllerConfig { caches: vec![cache], ..config(4, 1) });
    world.settle();
    let spec = KeyspaceSpec { hot: HotPolicy::Either, ..hash("a", 8, 2) };
    let now = world.now;
    world.controller.create_keyspace(now, spec).unwrap();
    world.live_for(Duration::from_secs(3));
    world.member(SWITCH).delegates = true;
    world
}

fn asked(reads: u64, writes: u64) -> Vec<HotKey> {
    vec![HotKey { keyspace: SPACE, key: b"k".to_vec(), reads, writes, ..HotKey::default() }]
}

/// What the tail of the key and its cache say of it.
fn tell(world: &mut World, [reads, writes]: [u64; 2], cached: u64) {
    world.member(node(1)).told = asked(reads, writes);
    world.member(CACHE).told = if cached > 0 { asked(cached, 0) } else { Vec::new() };
}

fn is_copied(world: &World) -> bool {
    world.members[&SWITCH].hot.keys.iter().any(|it| it.key == b"k")
}

fn why(world: &World) -> Option<WhyCopied> {
    let list = world.status().hot;
    list.into_iter().find(|it| it.key.key == b"k").and_then(|it| it.generation?.why)
}

/// Lives until the key is copied no more.
fn lives_until_back(world: &mut World) -> Duration {
    let begin = world.now;
    while is_copied(world) {
        world.live_for(50 * MS);
        assert!(world.now < begin + Duration::from_secs(30), "it never held");
    }
    world.now.since(begin)
}

#[test]
fn a_key_that_a_cache_holds_is_not_copied_however_much_it_is_read() {
    let mut world = world();
    tell(&mut world, [20, 100], 50_000);
    world.live_for(Duration::from_secs(5));
    assert!(!is_copied(&world));
    let listed = world.status().hot;
    assert_eq!((listed[0].key.reads, listed[0].key.writes), (50_020, 100), "of all");
}

#[test]
fn a_key_that_is_written_too_often_is_copied_until_it_is_rarely_for_ten_seconds() {
    let mut world = world();
    tell(&mut world, [200, 800], 599);
    world.live_for(SOON);
    assert!(is_copied(&world));
    assert_eq!(why(&world), Some(WhyCopied::Written { reads: 799, writes: 800 }));
    // Between what keeps it away and what took it there it stays.
    tell(&mut world, [12_000, 1_000], 0);
    world.live_for(Duration::from_secs(13));
    assert!(is_copied(&world));
    tell(&mut world, [17_000, 1_000], 0);
    let took = lives_until_back(&mut world);
    assert!(took >= Duration::from_secs(10) && took < Duration::from_secs(12), "{took:?}");
    // It is nothing for copies now.
    tell(&mut world, [0, 1_000], 17_000);
    world.live_for(Duration::from_secs(5));
    assert!(!is_copied(&world));
}

#[test]
fn a_key_that_is_too_hot_for_one_cache_is_copied_until_it_is_half_as_hot() {
    let mut world = world();
    tell(&mut world, [0, 10], 80_000);
    world.live_for(SOON);
    assert!(!is_copied(&world));
    world.member(CACHE).crowding = vec![KeyName { keyspace: SPACE, key: b"k".to_vec() }];
    world.live_for(SOON);
    assert_eq!(why(&world), Some(WhyCopied::Crowding { reads: 80_000 }));
    world.member(CACHE).crowding.clear();
    tell(&mut world, [41_000, 10], 0);
    world.live_for(Duration::from_secs(13));
    assert!(is_copied(&world));
    tell(&mut world, [39_000, 10], 0);
    assert!(lives_until_back(&mut world) >= Duration::from_secs(10));
}

#[test]
fn a_key_that_no_cache_takes_is_copied_after_two_seconds_until_it_is_cold() {
    let mut world = world();
    tell(&mut world, [1_000, 10], 0);
    world.live_for(Duration::from_secs(2) - 100 * MS);
    assert!(!is_copied(&world), "a cache might take it yet");
    world.live_for(Duration::from_secs(1));
    assert_eq!(why(&world), Some(WhyCopied::Unhelped { reads: 1_000 }));
    world.live_for(Duration::from_secs(13));
    assert!(is_copied(&world), "no cache would take it this time");
    tell(&mut world, [5, 0], 0);
    assert!(lives_until_back(&mut world) < Duration::from_secs(5));
}

#[test]
fn where_no_cache_answers_keys_are_copied_at_once_until_one_does() {
    let mut world = world();
    world.kill(CACHE);
    world.live_for(Duration::from_secs(5));
    tell(&mut world, [1_000, 10], 0);
    world.live_for(SOON);
    assert_eq!(why(&world), Some(WhyCopied::NoCache));
    world.revive(CACHE);
    let took = lives_until_back(&mut world);
    assert!(took >= Duration::from_secs(10) && took < Duration::from_secs(14), "{took:?}");
}

#[test]
fn a_key_that_an_operator_has_pinned_is_copied_and_no_longer_than_that() {
    let mut world = world();
    tell(&mut world, [0, 10], 5_000);
    let now = world.now;
    world.controller.pin(now, "a", b"k").unwrap();
    world.live_for(SOON);
    assert!(is_copied(&world));
    assert_eq!(why(&world), None);
    tell(&mut world, [5_000, 10], 0);
    world.live_for(Duration::from_secs(13));
    assert!(is_copied(&world));
    let now = world.now;
    world.controller.unpin(now, "a", b"k").unwrap();
    assert!(lives_until_back(&mut world) < SOON);
    let did: Vec<HotAction> = world.status().hot_decisions.iter().map(|it| it.did).collect();
    assert_eq!(did.last(), Some(&HotAction::Removed));
}
