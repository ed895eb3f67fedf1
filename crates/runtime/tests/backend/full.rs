//! Stores of others that are full, that cannot save, or that would throw values away: what is to be
//! taken is taken, room is told, and nothing that was acknowledged is lost.

use super::*;
use machine::Instant;
use runtime::store::Backend;
use std::fs;
use std::path::Path;
use std::time::Duration;
use wire::{Room, Version};

/// The room that an engine tells when it has just looked.
fn room<B: Backend>(engine: &mut BackendEngine<B>, looks: &mut u64) -> Room {
    *looks += 1;
    engine.room(Instant(0) + Duration::from_secs(10 * *looks))
}

fn tombstone(version: u64) -> Record<'static> {
    Record { tombstone: true, ..value(version, b"") }
}

#[test]
fn a_full_redis_takes_deletes_and_what_is_on_its_way_and_says_that_it_is_full() {
    let Some(server) = redis("a full Redis", &[]) else { return };
    let (mut engine, mut looks) = (open(&server), 0);
    name(&mut engine);
    for name in [b"a", b"b", b"c"] {
        engine.write(&key(name), &value(2, b"first"));
    }
    engine.sync().unwrap();
    assert_eq!(room(&mut engine, &mut looks), Room::Plenty);
    assert_eq!(server.redis_cli(&["CONFIG", "SET", "maxmemory", "1"]), "OK");
    // Nobody has looked yet: this was on its way.
    engine.write(&key(b"a"), &value(3, b"second"));
    engine.note(PartitionId(1), b"n", Some(b"a"));
    engine.sync().unwrap();
    assert_eq!(engine.room(Instant(0)), Room::Full, "it is known at once");
    assert_eq!(room(&mut engine, &mut looks), Room::Full);
    engine.write(&key(b"b"), &tombstone(3));
    engine.note(PartitionId(1), b"n", Some(b"b"));
    engine.sync().unwrap();
    assert_eq!(engine.refusal(), None);
    assert_eq!(server.redis_cli(&["EXISTS", "b"]), "0");
    assert_eq!(server.redis_cli(&["GET", "a"]), "second");
    // More than one command takes.
    let many: Vec<String> = (0..3_000).map(|index| format!("key-{index}")).collect();
    many.iter().for_each(|name| engine.write(&key(name.as_bytes()), &value(4, b"x")));
    engine.sync().unwrap();
    let mut again = open_full(&server);
    assert_eq!(read(&again, b"a"), found(3, "second"));
    assert_eq!(read(&again, b"b"), Some((Version::new(3), None)));
    assert_eq!(read(&again, b"key-2999"), found(4, "x"));
    let mut notes = Vec::new();
    again.notes(PartitionId(1), |_, note| notes.extend_from_slice(note));
    assert_eq!(notes, b"b");
    assert_eq!(server.redis_cli(&["CONFIG", "SET", "maxmemory", "100mb"]), "OK");
    assert_eq!(room(&mut again, &mut looks), Room::Plenty);
    again.write(&key(b"c"), &value(3, b"second"));
    again.sync().unwrap();
    assert_eq!(server.redis_cli(&["GET", "c"]), "second");
}

/// A node can be started before a full Redis.
fn open_full(server: &Server) -> BackendEngine<RedisBackend> {
    let engine = open(server);
    assert_eq!(server.redis_cli(&["CONFIG", "GET", "maxmemory"]), "maxmemory\n1");
    engine
}

#[test]
fn a_full_redis_that_forbids_scripts_refuses_and_nothing_of_it_is_done() {
    let Some(server) = redis("a full Redis without scripts", &[]) else { return };
    let mut engine = open(&server);
    name(&mut engine);
    engine.write(&key(b"a"), &value(2, b"first"));
    engine.sync().unwrap();
    assert_eq!(server.redis_cli(&["ACL", "SETUSER", "default", "-eval"]), "OK");
    assert_eq!(server.redis_cli(&["CONFIG", "SET", "maxmemory", "1"]), "OK");
    engine.write(&key(b"a"), &tombstone(3));
    let error = engine.sync().unwrap_err().to_string();
    assert!(error.contains("OOM") && error.contains("NOPERM"), "{error}");
    assert!(engine.refusal().is_some());
    assert_eq!(read(&engine, b"a"), found(2, "first"));
    assert_eq!(server.redis_cli(&["ACL", "SETUSER", "default", "+eval"]), "OK");
    engine.sync().unwrap();
    assert_eq!(server.redis_cli(&["EXISTS", "a"]), "0");
}

#[test]
fn a_redis_that_cannot_save_refuses_and_takes_everything_when_it_can() {
    let options = ["--save", "3600 1000000", "--dbfilename", "not-there.rdb"];
    let Some(server) = redis("a Redis that cannot save", &options) else { return };
    let mut engine = open(&server);
    name(&mut engine);
    engine.write(&key(b"a"), &value(2, b"first"));
    engine.sync().unwrap();
    // Where its file is to be there is a directory that is not empty.
    let told = server.redis_cli(&["CONFIG", "GET", "dir"]);
    let at = Path::new(told.lines().last().unwrap()).join("not-there.rdb");
    fs::create_dir_all(at.join("in the way")).unwrap();
    assert!(server.redis_cli(&["SAVE"]).contains("ERR"), "{at:?}");
    for full in [false, true] {
        let max = if full { "1" } else { "0" };
        assert_eq!(server.redis_cli(&["CONFIG", "SET", "maxmemory", max]), "OK");
        saves_until(&server, "bgsave_status:err");
        if !full {
            engine.write(&key(b"a"), &value(3, b"second"));
        }
        let error = engine.sync().unwrap_err().to_string();
        assert!(error.contains("MISCONF"), "{error}");
        assert_eq!(read(&engine, b"a"), found(2, "first"));
    }
    fs::remove_dir_all(&at).unwrap();
    saves_until(&server, "bgsave_status:ok");
    engine.sync().unwrap();
    assert_eq!(server.redis_cli(&["GET", "a"]), "second");
}

/// Has it save until that ends so; one that is under way is not begun anew.
fn saves_until(server: &Server, wanted: &str) {
    for _ in 0..1_000 {
        server.redis_cli(&["BGSAVE"]);
        if server.redis_cli(&["INFO", "persistence"]).contains(wanted) {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("it never says {wanted}");
}

#[test]
fn a_redis_that_begins_to_throw_values_away_is_given_none_and_has_the_reason_told() {
    let Some(server) = redis("eviction that begins", &["--maxmemory", "100mb"]) else { return };
    let (mut engine, mut looks) = (open(&server), 0);
    name(&mut engine);
    engine.write(&key(b"a"), &value(2, b"first"));
    engine.sync().unwrap();
    let policy = ["CONFIG", "SET", "maxmemory-policy"];
    assert_eq!(server.redis_cli(&[&policy[..], &["allkeys-lru"]].concat()), "OK");
    assert_eq!(room(&mut engine, &mut looks), Room::Plenty);
    engine.write(&key(b"a"), &value(3, b"second"));
    let error = engine.sync().unwrap_err().to_string();
    assert!(error.contains("allkeys-lru") && error.contains("noeviction"), "{error}");
    assert!(engine.refusal().is_some());
    assert_eq!(read(&engine, b"a"), found(2, "first"));
    assert_eq!(server.redis_cli(&[&policy[..], &["noeviction"]].concat()), "OK");
    engine.sync().unwrap();
    assert_eq!(read(&engine, b"a"), found(3, "second"));
}

#[test]
fn a_member_of_a_redis_cluster_is_refused_with_advice() {
    let Some(server) = redis("a Redis Cluster", &["--cluster-enabled", "yes"]) else { return };
    let error = try_open(&server, SHARD, 7, SyncPolicy::Interval).err().unwrap().to_string();
    assert!(error.contains("Redis Cluster"), "{error}");
}

/// A memcached of two megabytes that throws nothing away.
fn small_memcached(what: &str, options: &[&str]) -> Option<Server> {
    let server = Server::memcached_with(options);
    if server.is_none() {
        skip::report(what, "there is none: apt-get install memcached");
    }
    server
}

#[test]
fn what_a_full_memcached_does_not_take_is_there_all_the_same_and_room_is_told() {
    let options = ["-M", "-m", "2"];
    let Some(server) = small_memcached("a memcached without room", &options) else { return };
    let mut engine = MemcachedBackend::open(&url(&server), StoreId(7)).unwrap();
    let mut looks = 0;
    name(&mut engine);
    engine.write(&key(b"small"), &value(2, b"first"));
    engine.sync().unwrap();
    let large = "x".repeat(1_200);
    let names: Vec<String> = (0..8_000).map(|index| format!("key-{index}")).collect();
    let mut written = 0;
    for some in names.chunks(20) {
        if room(&mut engine, &mut looks) != Room::Plenty {
            break;
        }
        for name in some {
            engine.write(&key(name.as_bytes()), &value(2, large.as_bytes()));
        }
        written += some.len();
        engine.sync().unwrap();
    }
    assert!((100..8_000).contains(&written), "{written}: it is full some time");
    let (names, late) = names.split_at(written);
    // What is on its way down a chain is taken, and so is a value that is as long as before.
    for name in &late[..20] {
        engine.write(&key(name.as_bytes()), &value(2, large.as_bytes()));
    }
    engine.write(&key(b"small"), &value(3, large.as_bytes()));
    let other = "y".repeat(1_200);
    names.iter().for_each(|name| engine.write(&key(name.as_bytes()), &value(3, other.as_bytes())));
    engine.sync().unwrap();
    assert_eq!(room(&mut engine, &mut looks), Room::Full);
    let all = |engine: &BackendEngine<MemcachedBackend>| {
        assert_eq!(read(engine, b"small"), found(3, &large), "neither dropped nor as before");
        for name in names {
            assert_eq!(read(engine, name.as_bytes()), found(3, &other), "{name}");
        }
        for name in &late[..20] {
            assert_eq!(read(engine, name.as_bytes()), found(2, &large), "{name}");
        }
    };
    all(&engine);
    assert_eq!(scan_keys(&engine).len(), written + 21);
    // Deletes make room, here and there, and what was held goes where it belongs.
    for name in &late[20..40] {
        engine.write(&key(name.as_bytes()), &value(2, large.as_bytes()));
    }
    engine.sync().unwrap();
    late[20..40].iter().for_each(|name| engine.write(&key(name.as_bytes()), &tombstone(3)));
    engine.sync().unwrap();
    all(&engine);
    assert_eq!(read(&engine, late[30].as_bytes()), Some((Version::new(3), None)));
    let (gone, names) = names.split_at(60);
    gone.iter().for_each(|name| engine.write(&key(name.as_bytes()), &tombstone(4)));
    engine.sync().unwrap();
    assert_eq!(room(&mut engine, &mut looks), Room::Plenty);
    assert_eq!(read(&engine, b"small"), found(3, &large));
    assert_eq!(read(&engine, names[0].as_bytes()), found(3, &other));
}

#[test]
fn a_memcached_whose_items_are_too_short_is_refused_with_advice() {
    let options = ["-I", "1k", "-o", "slab_chunk_max=1024"];
    let Some(server) = small_memcached("a memcached of short items", &options) else { return };
    let error = MemcachedBackend::open(&url(&server), StoreId(7)).err().unwrap().to_string();
    assert!(error.contains("-I 4k"), "{error}");
}
