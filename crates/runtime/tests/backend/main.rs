//! Engines over stores of others, with real ones: what every engine must do, and what is theirs.

mod busy;
mod full;

use cluster::{HotPolicy, Keyspace, KeyspaceId, KeyspaceKind, Match, NodeId, PartitionId, StoreId};
use node::engine::conformance::{Change, Draw, Model, Notes, Step, keyspaces};
use node::engine::{Engine, Interval, KeyRef, Record};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use runtime::store::{
    BackendEngine, BackendUrl, MemcachedBackend, RedisBackend, ShardIdentity, StoreError,
    SyncPolicy,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::{Bound, ControlFlow};
use testkit::server::Server;
use testkit::skip;
use wire::Version;

const SHARD: ShardIdentity = ShardIdentity { node: NodeId(3), shard: 1, shards: 2 };
const AOF: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// Redis with these options, unless there is none here.
fn redis(what: &str, options: &[&str]) -> Option<Server> {
    let server = Server::redis(options);
    if server.is_none() {
        skip::report(what, "there is no redis-server: apt-get install redis-server");
    }
    server
}

fn url(server: &Server) -> BackendUrl {
    server.url().parse().expect("a URL")
}

fn try_open(
    server: &Server,
    shard: ShardIdentity,
    fresh_id: u64,
    policy: SyncPolicy,
) -> Result<BackendEngine<RedisBackend>, StoreError> {
    RedisBackend::open(&url(server), shard, StoreId(fresh_id), policy)
}

fn open(server: &Server) -> BackendEngine<RedisBackend> {
    try_open(server, SHARD, 7, SyncPolicy::Interval).expect("it is there")
}

/// Names the keyspaces of the world that engines are checked in.
fn name(engine: &mut impl Engine) {
    for (keyspace, name) in keyspaces().zip(["default", "words", "other"]) {
        engine.meet_keyspace(&Keyspace { name: name.to_owned(), ..keyspace });
    }
}

fn keyspace() -> Keyspace {
    let (id, hot) = (KeyspaceId(1), HotPolicy::Off);
    let (name, kind) = ("default".into(), KeyspaceKind::Hash);
    Keyspace { id, name, kind, seed: 0, replicas: 1, hot, content: None }
}

fn key(bytes: &[u8]) -> KeyRef<'_> {
    KeyRef {
        keyspace: KeyspaceId(1),
        partition: PartitionId(1),
        ordered: false,
        match_value: keyspace().match_value(bytes),
        keyhash: bytes.iter().map(|byte| u64::from(*byte)).sum(),
        key: bytes,
    }
}

fn value(version: u64, bytes: &[u8]) -> Record<'_> {
    Record { version: Version::new(version), expiry_ms: 0, tombstone: false, value: bytes }
}

/// Version and value of what is read, a tombstone without one.
fn read(engine: &impl Engine, bytes: &[u8]) -> Option<(Version, Option<String>)> {
    engine.read(&key(bytes), |record| {
        let record = record?;
        let value = String::from_utf8_lossy(record.value).into_owned();
        Some((record.version, (!record.tombstone).then_some(value)))
    })
}

fn found(version: u64, value: &str) -> Option<(Version, Option<String>)> {
    Some((Version::new(version), Some(value.to_owned())))
}

/// A few worlds: each step is a round trip or more.
fn runner(cases: u32) -> TestRunner {
    TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    })
}

#[test]
fn redis_does_what_every_engine_must_also_after_a_restart_of_the_node() {
    let Some(server) = redis("the engine redis", &[]) else { return };
    let draws = proptest::collection::vec(any::<Draw>(), 0..150);
    let world = (draws, 0..150usize, 1..20usize);
    let outcome = runner(12).run(&world, |(draws, restart_at, at_most)| {
        server.redis_cli(&["FLUSHALL"]);
        let mut engine = open(&server);
        name(&mut engine);
        let mut model = Model::new(Notes::Kept);
        let steps: Vec<Step> = draws.into_iter().map(Step::from_draw).collect();
        for (index, step) in steps.iter().enumerate() {
            if index == restart_at {
                engine.sync().unwrap();
                engine = open(&server);
            }
            model.step(&mut engine, step);
        }
        model.check(&engine, &steps);
        engine.sync().unwrap();
        let mut engine = open(&server);
        model.check(&engine, &steps);
        model.clear_in_pieces(&mut engine, at_most, &steps);
        engine.sync().unwrap();
        model.check(&open(&server), &steps);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_crash_leaves_redis_as_it_was_at_the_last_sync() {
    let Some(server) = redis("crashes with the engine redis", &[]) else { return };
    let draws = proptest::collection::vec(any::<Draw>(), 0..150);
    let outcome = runner(12).run(&draws, |draws| {
        server.redis_cli(&["FLUSHALL"]);
        let mut engine = open(&server);
        name(&mut engine);
        engine.sync().unwrap();
        let mut model = Model::new(Notes::Kept);
        let mut synced = model.clone();
        // A clear may be carried out before the sync, in part.
        let clears = |step: &Step| matches!(step, Step::Change(Change::Clear(_)) | Step::Walk(_));
        let steps = draws.into_iter().map(Step::from_draw).filter(|step| !clears(step));
        let steps: Vec<Step> = steps.collect();
        for step in &steps {
            model.step(&mut engine, step);
            if *step == Step::Sync {
                synced = model.clone();
            }
        }
        drop(engine);
        synced.check(&open(&server), &steps);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn memcached_does_what_every_engine_without_a_memory_of_its_own_must() {
    let Some(server) = Server::memcached() else {
        skip::report("the engine memcached", "there is none: apt-get install memcached");
        return;
    };
    let world = (proptest::collection::vec(any::<Draw>(), 0..100), 1..20usize);
    let outcome = runner(6).run(&world, |(draws, at_most)| {
        let mut engine = MemcachedBackend::open(&url(&server), StoreId(7)).unwrap();
        name(&mut engine);
        // Another case's values are as anybody's: none of these is to be shown.
        (0..8).for_each(|id| engine.hide_found(PartitionId(id)));
        let mut model = Model::new(Notes::Forgotten);
        let steps: Vec<Step> = draws.into_iter().map(Step::from_draw).collect();
        steps.iter().for_each(|step| model.step(&mut engine, step));
        model.check(&engine, &steps);
        model.clear_in_pieces(&mut engine, at_most, &steps);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn what_was_in_redis_before_is_read_and_what_is_written_is_plain() {
    let Some(server) = redis("values that were in Redis before", &[]) else { return };
    server.redis_cli(&["SET", "old", "value"]);
    server.redis_cli(&["SET", "brief", "value", "PX", "100000"]);
    server.redis_cli(&["RPUSH", "list", "a"]);
    let mut engine = open(&server);
    name(&mut engine);
    assert_eq!(read(&engine, b"old"), found(1, "value"));
    assert_eq!(engine.version_written(&key(b"old")), None);
    assert_eq!(read(&engine, b"list"), None, "only strings are values");
    let expiry_ms = engine.read(&key(b"brief"), |record| record.map(|it| it.expiry_ms));
    assert!(expiry_ms.is_some_and(|it| it > 0), "{expiry_ms:?}");
    let ordered = KeyRef { ordered: true, ..key(b"old") };
    assert!(engine.read(&ordered, |record| record.is_none()), "a scan would not show it");
    engine.write(&key(b"old"), &value(2, b"new"));
    engine.write(&key(b"other"), &value(3, b"x"));
    assert_eq!(server.redis_cli(&["GET", "old"]), "value", "not before the sync");
    engine.sync().unwrap();
    assert_eq!(server.redis_cli(&["GET", "old"]), "new");
    assert_eq!(server.redis_cli(&["GET", "other"]), "x");
    assert_eq!(read(&engine, b"old"), found(2, "new"));
    engine.write(&key(b"old"), &Record { tombstone: true, ..value(4, b"") });
    engine.sync().unwrap();
    assert_eq!(server.redis_cli(&["GET", "old"]), "");
    // Behind its back.
    server.redis_cli(&["DEL", "other"]);
    server.redis_cli(&["SET", "later", "y"]);
    engine.sync().unwrap();
    assert_eq!(
        read(&engine, b"other"),
        Some((Version::new(3), None)),
        "it is gone, at the version it had"
    );
    assert_eq!(read(&engine, b"later"), found(1, "y"));
    engine.hide_found(PartitionId(1));
    assert_eq!(read(&engine, b"later"), None);
    engine.sync().unwrap();
    assert_eq!(read(&open(&server), b"later"), None, "that is kept");
}

#[test]
fn an_inventory_makes_records_of_what_was_there() {
    let Some(server) = redis("inventories of Redis", &[]) else { return };
    for index in 0..21 {
        server.redis_cli(&["SET", &format!("key-{index}"), "x"]);
    }
    server.redis_cli(&["SET", "keyway:words:key-1", "of another keyspace"]);
    server.redis_cli(&["RPUSH", "list", "a"]);
    server.redis_cli(&["SET", "brief", "x", "PX", "100000"]);
    server.redis_cli(&["SET", "elsewhere", "x"]);
    let mut engine = open(&server);
    name(&mut engine);
    engine.write(&key(b"key-7"), &value(9, b"newer"));
    engine.begin_listing(PartitionId(1));
    assert!(!engine.is_listed(PartitionId(1)) && engine.is_listed(PartitionId(2)));
    engine.sync().unwrap();
    list_all(&mut engine);
    engine.sync().unwrap();
    for is_restarted in [false, true] {
        if is_restarted {
            engine = open(&server);
        }
        assert_eq!(engine.len(), 22);
        assert_eq!(engine.version_written(&key(b"key-3")), Some(Version::new(1)));
        assert_eq!(read(&engine, b"key-3"), found(1, "x"));
        assert_eq!(read(&engine, b"key-7"), found(9, "newer"));
        assert_eq!(engine.version_written(&key(b"elsewhere")), None);
        let mut due = Vec::new();
        engine.due(u64::MAX, |_, key, _| {
            due.push(key.to_vec());
            std::ops::ControlFlow::Continue(())
        });
        assert_eq!(due, [b"brief"]);
    }
}

/// Lists everything; how often it was gone on with.
fn list_all(engine: &mut BackendEngine<RedisBackend>) -> usize {
    let place = |_, bytes: &[u8]| {
        let key = key(bytes);
        (bytes != b"elsewhere").then_some((key.partition, key.match_value, key.keyhash))
    };
    let mut pieces = 0;
    while engine.is_listing() {
        let before = engine.len();
        engine.list_on(&[KeyspaceId(1)], place);
        assert!(engine.len() - before <= 1_000, "a piece is bounded");
        engine.sync().expect("Redis is there");
        pieces += 1;
    }
    pieces
}

#[test]
fn what_was_there_is_listed_in_pieces_and_a_incarnation_that_ends_meanwhile_loses_none_of_it() {
    let Some(server) = redis("long inventories of Redis", &[]) else { return };
    for first in (0..5_000).step_by(500) {
        let names = (first..first + 500).map(|index| format!("key-{index}"));
        let pairs: Vec<String> = names.flat_map(|name| [name, "x".to_owned()]).collect();
        let arguments: Vec<&str> = pairs.iter().map(String::as_str).collect();
        server.redis_cli(&[&["MSET"], &arguments[..]].concat());
    }
    let mut engine = open(&server);
    name(&mut engine);
    engine.begin_listing(PartitionId(1));
    engine.sync().unwrap();
    let place = |_, bytes: &[u8]| {
        let key = key(bytes);
        Some((key.partition, key.match_value, key.keyhash))
    };
    for _ in 0..2 {
        engine.list_on(&[KeyspaceId(1)], place);
        engine.sync().unwrap();
    }
    assert!((1..5_000).contains(&engine.len()) && !engine.is_listed(PartitionId(1)));
    assert_eq!(read(&engine, b"key-4999"), found(1, "x"), "reads need no list");
    // Another incarnation goes on with it, and a partition that begins in the middle waits for all.
    let mut engine = open(&server);
    assert!(!engine.is_listed(PartitionId(1)), "that is kept");
    engine.list_on(&[KeyspaceId(1)], place);
    engine.begin_listing(PartitionId(2));
    assert!(list_all(&mut engine) >= 5);
    assert_eq!(engine.len(), 5_000);
    assert!(engine.is_listed(PartitionId(1)) && engine.is_listed(PartitionId(2)));
    assert!(open(&server).is_listed(PartitionId(1)));
}

#[test]
fn keys_that_were_announced_come_with_one_round_trip() {
    let Some(server) = redis("round trips to Redis", &[]) else { return };
    let mut engine = open(&server);
    name(&mut engine);
    let names: Vec<String> = (0..64).map(|index| format!("key-{index}")).collect();
    for (version, name) in (2..).zip(&names).step_by(2) {
        engine.write(&key(name.as_bytes()), &value(version, name.as_bytes()));
    }
    engine.sync().unwrap();
    let keys: Vec<KeyRef<'_>> = names.iter().map(|name| key(name.as_bytes())).collect();
    let (gets, asked) = (server.calls("mget"), server.calls("pttl"));
    engine.fetch_ahead(&keys);
    for (index, name) in names.iter().enumerate() {
        let expected = (index % 2 == 0).then_some(name.clone());
        let read = read(&engine, name.as_bytes());
        assert_eq!(read.map(|(_, value)| value), expected.map(Some));
    }
    assert_eq!(server.calls("mget") - gets, 1);
    assert_eq!(server.calls("pttl") - asked, 32, "only of what nobody here has written");
    let execs = server.calls("exec");
    for name in &names {
        engine.write(&key(name.as_bytes()), &value(100, b"x"));
    }
    engine.sync().unwrap();
    engine.sync().unwrap();
    assert_eq!(server.calls("exec") - execs, 1);
    assert_eq!(server.calls("mget") - gets, 1, "writes read no values");
}

/// Names and versions that a scan without values shows, tombstones left out.
fn scan_keys(engine: &impl Engine) -> Vec<(String, Version)> {
    let keyspace = keyspace();
    let interval = Interval {
        keyspace: &keyspace,
        partition: PartitionId(1),
        first: Match(0),
        last: Match::MAX,
        start: Bound::Unbounded,
        end: Bound::Unbounded,
        reverse: false,
    };
    let mut found = Vec::new();
    engine.scan_keys(&interval, |key, record| {
        if !record.tombstone {
            found.push((String::from_utf8_lossy(key).into_owned(), record.version));
        }
        ControlFlow::Continue(())
    });
    found.sort();
    found
}

/// Writes keys `key-0` to `key-63`, and says what a scan is to show of them.
fn write_some(engine: &mut impl Engine) -> Vec<(String, Version)> {
    name(engine);
    let names = (0..64).map(|index| format!("key-{index:02}"));
    let all: Vec<(String, Version)> = names.zip((2..).map(Version::new)).collect();
    for (name, version) in &all {
        engine.write(&key(name.as_bytes()), &value((*version).get(), &[b'v'; 1_000]));
    }
    engine.sync().expect("the backend is there");
    all
}

#[test]
fn a_scan_of_keys_asks_redis_for_no_value() {
    let Some(server) = redis("scans of keys in Redis", &[]) else { return };
    let mut engine = open(&server);
    let mut all = write_some(&mut engine);
    let (gets, asked) = (server.calls("mget"), server.calls("exists"));
    assert_eq!(scan_keys(&engine), all);
    assert_eq!(server.calls("mget"), gets);
    assert_eq!(server.calls("exists") - asked, 2, "one for 32 keys, and one for the rest");

    // Somebody else has removed one, and made another one longer than any datagram.
    assert_eq!(server.redis_cli(&["DEL", "key-07"]), "1");
    server.redis_cli(&["SET", "key-08", &"x".repeat(2_000)]);
    engine.sync().unwrap();
    all.remove(7);
    assert_eq!(scan_keys(&engine), all);
    // What waits for the next sync counts, and what is in hand is not asked for.
    engine.write(&key(b"key-07"), &value(100, b""));
    engine.write(&key(b"key-09"), &Record { tombstone: true, ..value(101, b"") });
    all.insert(7, ("key-07".to_owned(), Version::new(100)));
    all.remove(9);
    assert_eq!(scan_keys(&engine), all);
    assert_eq!(server.calls("mget"), gets);
}

#[test]
fn a_scan_of_keys_shows_what_memcached_has_also_under_names_that_it_does_not_take() {
    let Some(server) = Server::memcached() else {
        skip::report("scans of keys in memcached", "there is none: apt-get install memcached");
        return;
    };
    let mut engine = MemcachedBackend::open(&url(&server), StoreId(7)).unwrap();
    let mut all = write_some(&mut engine);
    engine.write(&key(b"with blanks"), &value(100, b"x"));
    engine.sync().unwrap();
    all.push(("with blanks".to_owned(), Version::new(100)));
    // Of the two batches one has such a name among it, and one asks without values.
    assert_eq!(scan_keys(&engine), all);
    // Somebody else has removed one.
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.write_all(b"delete key-07\r\n").unwrap();
    let mut answer = [0; 9];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"DELETED\r\n");
    engine.sync().unwrap();
    all.remove(7);
    assert_eq!(scan_keys(&engine), all);
}

#[test]
fn the_later_of_two_processes_has_the_shard() {
    let Some(server) = redis("two nodes at one Redis", &[]) else { return };
    let mut first = open(&server);
    name(&mut first);
    first.write(&key(b"a"), &value(2, b"first"));
    first.sync().unwrap();
    let mut second = open(&server);
    assert_eq!(second.store_id(), first.store_id());
    first.write(&key(b"a"), &value(3, b"late"));
    let error = first.sync().unwrap_err().to_string();
    assert!(error.contains("another process has taken this shard over"), "{error}");
    assert_eq!(first.sync().unwrap_err().to_string(), error, "for good");
    assert_eq!(read(&second, b"a"), found(2, "first"));
    second.write(&key(b"a"), &value(3, b"second"));
    second.sync().unwrap();
    assert_eq!(server.redis_cli(&["GET", "a"]), "second");
    for other in [ShardIdentity { node: NodeId(4), ..SHARD }, ShardIdentity { shards: 3, ..SHARD }]
    {
        let error = try_open(&server, other, 8, SyncPolicy::Interval).err().unwrap();
        assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    }
}

#[test]
fn a_redis_that_comes_back_with_everything_is_gone_on_with_and_any_other_is_not() {
    let Some(mut server) = redis("restarts of Redis", &AOF) else { return };
    let mut engine = open(&server);
    name(&mut engine);
    engine.write(&key(b"a"), &value(2, b"first"));
    engine.sync().unwrap();
    server.kill();
    std::thread::scope(|scope| {
        scope.spawn(|| server.come_back());
        engine.write(&key(b"a"), &value(3, b"second"));
        engine.sync().unwrap();
    });
    assert_eq!(server.redis_cli(&["GET", "a"]), "second");

    let Some(mut server) = redis("restarts of Redis", &[]) else { return };
    let mut engine = open(&server);
    name(&mut engine);
    engine.write(&key(b"a"), &value(2, b"first"));
    engine.sync().unwrap();
    server.kill();
    std::thread::scope(|scope| {
        scope.spawn(|| server.come_back());
        engine.write(&key(b"a"), &value(3, b"second"));
        let error = engine.sync().unwrap_err().to_string();
        assert!(error.contains("lost writes that it had acknowledged"), "{error}");
    });
}

#[test]
fn a_redis_that_was_restarted_is_a_lost_memory_unless_it_syncs_or_one_takes_what_it_has() {
    let cases = [
        (&[][..], SyncPolicy::Always, false),
        (&[], SyncPolicy::Interval, true),
        (&AOF, SyncPolicy::Always, true),
    ];
    for (options, policy, keeps) in cases {
        let Some(mut server) = redis("a Redis that was restarted", options) else { return };
        let mut engine = try_open(&server, SHARD, 7, policy).unwrap();
        name(&mut engine);
        engine.write(&key(b"a"), &value(2, b"first"));
        engine.sync().unwrap();
        drop(engine);
        let again = try_open(&server, SHARD, 8, policy).unwrap();
        assert_eq!(again.store_id(), StoreId(7), "the node alone was restarted");
        drop(again);
        server.redis_cli(&["SAVE"]);
        server.redis_cli(&["SET", "theirs", "x"]);
        server.redis_cli(&["SAVE"]);
        server.kill();
        server.come_back();
        let mut engine = try_open(&server, SHARD, 9, policy).unwrap();
        name(&mut engine);
        let (id, a) = if keeps { (7, found(2, "first")) } else { (9, None) };
        assert_eq!((engine.store_id(), read(&engine, b"a")), (StoreId(id), a), "{policy}");
        assert_eq!(read(&engine, b"theirs"), found(1, "x"));
    }
}

#[test]
fn a_redis_that_throws_values_away_is_refused() {
    let options = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let Some(server) = redis("eviction", &options) else { return };
    let error = try_open(&server, SHARD, 7, SyncPolicy::Interval).err().unwrap().to_string();
    assert!(error.contains("maxmemory-policy allkeys-lru"), "{error}");
    server.redis_cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    drop(open(&server));
}

#[test]
fn memcached_may_drop_values_and_names_that_it_does_not_take_are_no_hindrance() {
    let Some(mut server) = Server::memcached() else {
        skip::report("a memcached that is restarted", "there is none: apt-get install memcached");
        return;
    };
    let mut engine = MemcachedBackend::open(&url(&server), StoreId(7)).unwrap();
    name(&mut engine);
    let long = vec![b'k'; 1_000];
    let keys: [&[u8]; 4] = [b"plain", b"with blanks\r\n", b"\0\xff", &long];
    for key_bytes in keys {
        engine.write(&key(key_bytes), &value(2, b"a\r\nEND\r\n\0"));
    }
    engine.sync().unwrap();
    for key_bytes in keys {
        assert_eq!(read(&engine, key_bytes), found(2, "a\r\nEND\r\n\0"));
    }
    server.kill();
    server.come_back();
    engine.sync().unwrap();
    assert_eq!(
        read(&engine, b"plain"),
        Some((Version::new(2), None)),
        "gone, at the version it had"
    );
    engine.write(&key(b"plain"), &value(3, b"again"));
    engine.sync().unwrap();
    assert_eq!(read(&engine, b"plain"), found(3, "again"));
}

#[test]
fn a_redis_that_refuses_changes_is_read_on_and_nothing_that_was_kept_is_lost() {
    let Some(server) = redis("a Redis that refuses changes", &[]) else { return };
    let mut engine = open(&server);
    name(&mut engine);
    engine.write(&key(b"a"), &value(2, b"first"));
    engine.write(&key(b"c"), &value(2, b"other"));
    engine.sync().unwrap();
    let cases: [(&[&str], &[&str], &str); 3] = [
        (
            &["CONFIG", "SET", "min-replicas-to-write", "1"],
            &["CONFIG", "SET", "min-replicas-to-write", "0"],
            "NOREPLICAS",
        ),
        (&["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"], "READONLY"),
        (
            &["ACL", "SETUSER", "default", "-mset", "-del", "-hset", "-hdel"],
            &["ACL", "SETUSER", "default", "+@all"],
            "NOPERM",
        ),
    ];
    let notes = |engine: &BackendEngine<RedisBackend>| {
        let mut notes = Vec::new();
        engine.notes(PartitionId(1), |name, note| notes.push((name.to_vec(), note.to_vec())));
        notes
    };
    for (version, (begin, end, word)) in (3..).zip(cases) {
        let before = server.redis_cli(&["GET", "a"]);
        assert_eq!(server.redis_cli(begin), "OK", "{word}");
        engine.write(&key(b"a"), &value(version, word.as_bytes()));
        engine.write(&key(word.as_bytes()), &value(version, b"new"));
        engine.note(PartitionId(1), b"n", Some(word.as_bytes()));
        let error = engine.sync().unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
        assert!(engine.refusal().is_some_and(|words| words.contains(word)));
        assert_eq!(server.redis_cli(&["GET", "a"]), before, "{word}: all of it or nothing");
        assert_eq!(read(&engine, b"c"), found(2, "other"), "{word}");
        assert_eq!(read(&engine, b"a"), found(version - 1, &before), "{word}");
        assert_eq!(read(&engine, word.as_bytes()), None, "{word}: nobody may be told of it yet");
        engine.end_reads().unwrap();
        engine.sync().unwrap_err();
        assert_eq!(server.redis_cli(end), "OK", "{word}");
        engine.sync().unwrap();
        assert_eq!(engine.refusal(), None, "{word}");
        assert_eq!(server.redis_cli(&["GET", "a"]), word);
        assert_eq!(read(&engine, b"a"), found(version, word));
        assert_eq!(read(&engine, word.as_bytes()), found(version, "new"));
    }
    assert_eq!(notes(&engine), [(b"n".to_vec(), b"NOPERM".to_vec())]);
    engine.write(&key(b"a"), &value(9, b"second"));
    engine.sync().unwrap();
    assert_eq!(server.redis_cli(&["GET", "a"]), "second");
    assert_eq!(read(&open(&server), b"a"), found(9, "second"));
}
