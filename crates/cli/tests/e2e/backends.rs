//! Keyway in front of Redis processes that hold data: old values are read, new ones are plain
//! strings, and a node that is killed comes back with everything.

use crate::config::{Cluster, Shape};
use crate::processes::{Processes, node};
use client::blocking::Space;
use client::{IncrReply, Outcome, PutOptions, Refusal};
use std::cell::Cell;
use testkit::program::run;
use testkit::server::Server;
use testkit::skip;

const KEYS: u32 = 40;

/// So many Redis processes with the same old data, unless there is no Redis here.
pub(crate) fn servers(what: &str, count: u16) -> Option<Vec<Server>> {
    let servers: Option<Vec<Server>> = (0..count).map(|_| Server::redis(&[])).collect();
    let Some(servers) = servers else {
        skip::report(what, "there is no redis-server: apt-get install redis-server");
        return None;
    };
    for server in &servers {
        for key in 0..KEYS {
            server.redis_cli(&["SET", &format!("key-{key}"), "old"]);
        }
        server.redis_cli(&["SET", "counter", "41"]);
        server.redis_cli(&["SET", "large", &"x".repeat(2_000)]);
    }
    Some(servers)
}

/// A node before each of them.
pub(crate) fn start(servers: &[Server], replicas: usize) -> Processes {
    let nodes = u16::try_from(servers.len()).expect("few");
    let mut cluster = Cluster::with(Shape { nodes, switches: 1, standby: false });
    for (id, server) in (1u16..).zip(servers) {
        let line = format!("[[node]]\nid = {id}\n");
        let engine = format!("engine = \"redis\"\nbackend = \"{}\"\n", server.url());
        assert!(cluster.text.contains(&line));
        cluster.text = cluster.text.replace(&line, &format!("{line}{engine}"));
    }
    for partitions in ["partitions = 16\n", "partitions = 8\n"] {
        let with = format!("{partitions}replicas = {replicas}\n");
        cluster.text = cluster.text.replace(partitions, &with);
    }
    let ids: Vec<u16> = (1..=nodes).collect();
    Processes::start(cluster, &ids)
}

fn put(space: &Space, key: &str, value: &str) {
    space.put(key.as_bytes(), value.as_bytes(), PutOptions::default()).into_result().unwrap();
}

fn get(space: &Space, key: &str) -> Option<String> {
    let found = space.get(key.as_bytes()).into_result().unwrap();
    found.map(|it| String::from_utf8(it.value).unwrap())
}

/// Reads every key: of these the value is new.
fn check(space: &Space, is_new: impl Fn(u32) -> bool) {
    for key in 0..KEYS {
        let value = if is_new(key) { "new" } else { "old" };
        assert_eq!(get(space, &format!("key-{key}")).as_deref(), Some(value), "key-{key}");
    }
}

#[test]
fn one_node_before_one_redis_serves_what_is_there_and_survives_kill_9() {
    let Some(servers) = servers("a node before a Redis with data", 1) else { return };
    let server = &servers[0];
    let mut processes = start(&servers, 1);
    let space = processes.space();
    check(&space, |_| false);
    let large = processes.ask("get large");
    assert!(large.stderr.contains("over the limit"), "{large:?}");
    for key in (0..KEYS).step_by(2) {
        put(&space, &format!("key-{key}"), "new");
    }
    let sum = space.incr(b"counter", 1).into_result().unwrap();
    assert!(matches!(sum, IncrReply::Sum { sum: 42, .. }), "{sum:?}");
    put(&space, "fresh", "plain");
    for (key, value) in [("key-0", "new"), ("key-1", "old"), ("counter", "42"), ("fresh", "plain")]
    {
        assert_eq!(server.redis_cli(&["GET", key]), value, "{key}");
    }
    assert!(space.del(b"key-1").into_result().is_ok());
    assert_eq!(server.redis_cli(&["EXISTS", "key-1"]), "0");
    put(&space, "key-1", "old");

    processes.kill(&node(1));
    processes.run(&node(1));
    check(&space, |key| key % 2 == 0);
    assert_eq!(get(&space, "counter").as_deref(), Some("42"));
    let sum = space.incr(b"counter", 1).into_result().unwrap();
    assert!(matches!(sum, IncrReply::Sum { sum: 43, .. }), "{sum:?}");
    assert_eq!(get(&space, "fresh").as_deref(), Some("plain"));
}

#[test]
fn a_node_before_an_empty_redis_serves_too() {
    let Some(server) = Server::redis(&[]) else {
        let what = "a node before an empty Redis";
        skip::report(what, "there is no redis-server: apt-get install redis-server");
        return;
    };
    let servers = [server];
    let processes = start(&servers, 1);
    let space = processes.space();
    assert_eq!(get(&space, "key"), None);
    put(&space, "key", "value");
    assert_eq!(get(&space, "key").as_deref(), Some("value"));
}

#[test]
fn two_nodes_before_two_redis_with_the_same_data_stand_in_for_each_other() {
    let Some(servers) = servers("two nodes before two Redis with data", 2) else { return };
    let mut processes = start(&servers, 2);
    let space = processes.space();
    check(&space, |_| false);
    for key in (0..KEYS).step_by(2) {
        put(&space, &format!("key-{key}"), "new");
    }
    for server in &servers {
        assert_eq!(server.redis_cli(&["GET", "key-0"]), "new", "a write is in both");
        assert_eq!(server.redis_cli(&["GET", "key-1"]), "old");
    }
    processes.kill(&node(1));
    check(&space, |key| key % 2 == 0);
    for key in (1..KEYS).step_by(4) {
        put(&space, &format!("key-{key}"), "new");
    }
    let is_new = |key| key % 2 == 0 || key % 4 == 1;
    processes.run(&node(1));
    processes.wait_replicated();
    // The rest is old data that nobody has written through Keyway: it was copied too.
    processes.kill(&node(2));
    check(&space, is_new);
    for key in 0..KEYS {
        let value = if is_new(key) { "new" } else { "old" };
        assert_eq!(servers[0].redis_cli(&["GET", &format!("key-{key}")]), value, "key-{key}");
    }
}

#[test]
fn an_mget_is_one_mget_at_each_redis() {
    let Some(servers) = servers("an MGET over two Redis", 2) else { return };
    let processes = start(&servers, 1);
    let keys: Vec<String> = (0..20).map(|key| format!("key-{key}")).collect();
    let ask = format!("mget {}", keys.join(" "));
    // A busy machine may make a client ask twice: of several times one is undisturbed.
    let asked = (0..5).map(|_| {
        let before: Vec<u64> = servers.iter().map(|server| server.calls("mget")).collect();
        let ran = processes.ask(&ask).expect(0);
        assert_eq!(ran.stdout.matches("old").count(), keys.len(), "{ran:?}");
        let after = servers.iter().map(|server| server.calls("mget"));
        after.zip(before).map(|(after, before)| after - before).collect::<Vec<u64>>()
    });
    let asked: Vec<Vec<u64>> = asked.collect();
    assert!(asked.contains(&vec![1, 1]), "{asked:?}");
}

#[test]
fn the_doctor_finds_a_memcached_that_throws_values_away() {
    let servers = [&[][..], &["-M"], &["-M"]].map(Server::memcached_with);
    let [Some(evicts), Some(keeps), Some(third)] = servers else {
        return skip::report("a memcached that evicts", "there is none: apt-get install memcached");
    };
    let mut cluster = Cluster::with(Shape { nodes: 3, switches: 1, standby: false });
    for (id, server) in (1..).zip([&evicts, &keeps, &third]) {
        let line = format!("[[node]]\nid = {id}\n");
        let with = format!("{line}engine = \"memcached\"\nbackend = \"{}\"\n", server.url());
        cluster.text = cluster.text.replace(&line, &with);
    }
    let config = cluster.file(&cluster.text);
    let doctor = || run(&["--json", "doctor", "--config", &config.display().to_string()]).expect(1);
    let said = doctor().json();
    assert_eq!(said["problems"], 1, "{said:#}");
    assert_eq!(said["backends"][0]["backend"], evicts.url());
    let remedy = &said["backends"][0]["checks"][0]["remedy"];
    assert!(remedy.as_str().unwrap().contains("start it with -M"), "{said:#}");
    drop(keeps);
    assert_eq!(doctor().json()["problems"], 2, "one is gone");
}

#[test]
fn up_says_what_is_missing_for_a_backend() {
    let ran = run(&["up", "--nodes", "2", "--replicas", "1", "--engine", "redis"]).expect(2);
    assert!(ran.stderr.contains("needs a data directory"), "{ran:?}");
    assert!(ran.stderr.contains("0 backends for 2 nodes"), "{ran:?}");
    let ran = run(&["up", "--engine", "redis", "--backend", "here"]).expect(2);
    assert!(ran.stderr.contains("no address of a backend"), "{ran:?}");
    let ran = run(&["up", "--backend", "redis://127.0.0.1:6379"]).expect(2);
    assert!(ran.stderr.contains("no store for the engine"), "{ran:?}");
}

#[test]
fn a_chain_with_a_full_redis_refuses_what_is_new_takes_deletes_and_comes_back_by_itself() {
    let Some(servers) = servers("a chain with a full Redis", 2) else { return };
    let processes = start(&servers, 2);
    let space = processes.space();
    put(&space, "a", "before");
    assert_eq!(servers[1].redis_cli(&["CONFIG", "SET", "maxmemory", "1"]), "OK");
    // A head has heard of it for a second at a time; then the next write finds out. What was taken
    // grows no more, so that others are asked for each time.
    let next = Cell::new(0);
    processes.wait("it is full", |_| {
        let first = next.replace(next.get() + 16);
        let refused = (first..first + 16).filter(|key| {
            let key = format!("full-{key}");
            let outcome = space.put(key.as_bytes(), b"new", PutOptions::default());
            let full = matches!(outcome, Outcome::Refused(Refusal::Full));
            assert!(full || matches!(outcome, Outcome::Done(_)), "{outcome:?}");
            full
        });
        refused.count() == 16
    });
    assert!(processes.ask("get full-not").stdout.is_empty());
    check(&space, |_| false);
    assert!(space.del(b"key-1").into_result().is_ok());
    assert_eq!(get(&space, "key-1"), None);
    for server in &servers {
        assert_eq!(server.redis_cli(&["EXISTS", "key-1"]), "0");
    }
    processes.wait("status says it", |status| status["load"][1]["resources"]["room"] == "full");
    let status = processes.status().expect("a controller");
    assert_eq!(status["covered"], true, "{status:#}");
    assert_eq!(servers[1].redis_cli(&["CONFIG", "SET", "maxmemory", "0"]), "OK");
    processes.wait("the chain writes", |_| processes.ask("put full-1 after").code == Some(0));
    for server in &servers {
        assert_eq!(server.redis_cli(&["GET", "full-1"]), "after");
    }
}

#[test]
fn a_chain_with_a_redis_that_takes_nothing_tells_clients_why_and_comes_back_by_itself() {
    let Some(servers) = servers("a chain with a Redis that takes nothing", 2) else { return };
    let processes = start(&servers, 2);
    let space = processes.space();
    put(&space, "a", "before");
    let replicas = ["CONFIG", "SET", "min-replicas-to-write"];
    assert_eq!(servers[1].redis_cli(&[&replicas[..], &["1"]].concat()), "OK");
    for key in 0..8 {
        let ran = processes.ask(&format!("put refused-{key} value --timeout 60s")).expect(4);
        assert!(ran.stderr.contains("NOREPLICAS"), "{ran:?}");
    }
    check(&space, |_| false);
    assert_eq!(get(&space, "a").as_deref(), Some("before"));
    assert_eq!(servers[1].redis_cli(&[&replicas[..], &["0"]].concat()), "OK");
    processes.wait("the chain writes", |_| processes.ask("put a after").code == Some(0));
    for server in &servers {
        assert_eq!(server.redis_cli(&["GET", "a"]), "after");
    }
}
