//! What clients get: every operation, through switch and chains, over real sockets.

use crate::setup::{in_memory, on_disk};
use client::blocking::{Client, Space};
use client::{
    CasReply, DelReply, Expect, IncrReply, Options, PageStart, PutOptions, ScanOptions, Value,
};
use runtime::up::{Embedded, HASH_KEYSPACE, RANGE_KEYSPACE, UpOptions};
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;
use tempfile::tempdir;

fn space(cluster: &Embedded, name: &str) -> Space {
    let client = Client::connect(cluster.service(), Options::default()).unwrap();
    client.keyspace(name).unwrap()
}

fn put(space: &Space, key: &str, value: &str) -> u64 {
    let done = space.put(key.as_bytes(), value.as_bytes(), PutOptions::default());
    done.into_result().unwrap().get()
}

fn get(space: &Space, key: &str) -> Option<String> {
    let found = space.get(key.as_bytes()).into_result().unwrap();
    found.map(|it| String::from_utf8(it.value).unwrap())
}

#[test]
fn single_keys_are_written_read_changed_and_deleted() {
    let cluster = Embedded::start(&in_memory()).unwrap();
    let space = space(&cluster, HASH_KEYSPACE);
    assert_eq!(get(&space, "a"), None);
    let version = put(&space, "a", "1");
    assert_eq!(get(&space, "a").as_deref(), Some("1"));
    assert!(put(&space, "a", "2") > version);

    let expect = Expect::Value(b"2");
    let cas = space.cas(b"a", expect, b"30", PutOptions::default()).into_result().unwrap();
    assert!(matches!(cas, CasReply::Written { .. }));
    let cas = space.cas(b"a", expect, b"4", PutOptions::default()).into_result().unwrap();
    assert!(matches!(cas, CasReply::Mismatch { .. }));
    let sum = space.incr(b"a", 12).into_result().unwrap();
    assert!(matches!(sum, IncrReply::Sum { sum: 42, .. }));
    let gone = space.del(b"a").into_result().unwrap();
    assert!(matches!(gone, DelReply { existed: true, .. }));
    assert_eq!(get(&space, "a"), None);
}

/// Uploads that are no values (any more), on all nodes.
fn uploads(cluster: &Embedded) -> usize {
    let nodes = cluster.roles().nodes.iter().map(|node| node.snapshot().unwrap());
    nodes.map(|node| node.shards.iter().map(|shard| shard.uploads).sum::<usize>()).sum()
}

#[test]
fn parts_of_values_that_were_replaced_go_though_their_nodes_are_started_anew() {
    let dir = tempdir().unwrap();
    let options = on_disk(dir.path());
    let first = Embedded::start(&options).unwrap();
    let before = space(&first, HASH_KEYSPACE);
    for letter in 0..10 {
        before.put(b"big", &[letter; 20_000], PutOptions::default()).into_result().unwrap();
    }
    assert_eq!(uploads(&first), 27, "left to those who read them");
    let service = first.service();
    first.stop();
    let second = Embedded::start(&UpOptions { service, ..options }).unwrap();
    // An upload that is under way would be given two minutes.
    let gone = (0..400).any(|_| {
        thread::park_timeout(Duration::from_millis(50));
        uploads(&second) == 0
    });
    assert!(gone, "{} uploads are left", uploads(&second));
    let found = space(&second, HASH_KEYSPACE).get(b"big").into_result().unwrap();
    assert_eq!(found.unwrap().value, [9; 20_000]);
}

/// More than a partition remembers at one time.
const SHORT_LIVED: u64 = 16_600;

#[test]
fn clients_without_number_that_do_one_incr_each_are_counted_exactly_and_lock_nobody_out() {
    let cluster = Embedded::start(&in_memory()).unwrap();
    let cluster = &cluster;
    let incr = || space(cluster, HASH_KEYSPACE).incr(b"visits", 1).into_result().unwrap();
    thread::scope(|scope| {
        for each in 0..8 {
            scope.spawn(move || {
                for _ in (each..SHORT_LIVED).step_by(8) {
                    let _done = incr();
                }
            });
        }
    });
    // And whoever comes next is served at once.
    let soon = Options { deadline: Duration::from_secs(5), ..Options::default() };
    let next = Client::connect(cluster.service(), soon).unwrap().keyspace(HASH_KEYSPACE).unwrap();
    let reply = next.incr(b"visits", 1).into_result().unwrap();
    let wanted = i64::try_from(SHORT_LIVED + 1).unwrap();
    assert!(matches!(reply, IncrReply::Sum { sum, .. } if sum == wanted), "{reply:?}");
}

#[test]
fn a_multiget_reaches_keys_on_all_nodes() {
    let cluster = Embedded::start(&in_memory()).unwrap();
    let space = space(&cluster, HASH_KEYSPACE);
    let keys: Vec<String> = (0..32).map(|i| format!("key-{i}")).collect();
    keys.iter().step_by(2).for_each(|key| {
        put(&space, key, key);
    });
    for (index, (key, outcome)) in keys.iter().zip(space.mget(&keys)).enumerate() {
        let found = outcome.into_result().unwrap().map(|it| it.value);
        assert_eq!(found, (index % 2 == 0).then(|| key.clone().into_bytes()), "{key}");
    }
}

#[test]
fn a_scan_over_all_partitions_is_sorted_and_complete() {
    let cluster = Embedded::start(&in_memory()).unwrap();
    let space = space(&cluster, RANGE_KEYSPACE);
    // Keys whose first bytes are spread evenly, so that every partition has some.
    let keys: Vec<Vec<u8>> =
        (0..=255u8).flat_map(|byte| (0..4u8).map(move |i| vec![byte, i])).collect();
    for key in &keys {
        space.put(key, key, PutOptions::default()).into_result().unwrap();
    }
    let found = space.scan(ScanOptions::default()).into_result().unwrap();
    let found: Vec<Vec<u8>> = found.into_iter().map(|(key, _)| key).collect();
    assert_eq!(found, keys);
}

#[test]
fn many_clients_at_once_each_read_what_they_wrote() {
    let cluster = Embedded::start(&in_memory()).unwrap();
    thread::scope(|scope| {
        for writer in 0..8 {
            let space = space(&cluster, HASH_KEYSPACE);
            scope.spawn(move || {
                for i in 0..50 {
                    let key = format!("{writer}-{i}");
                    put(&space, &key, &key);
                    assert_eq!(get(&space, &key), Some(key));
                }
            });
        }
    });
    let switch = cluster.roles().switch.as_ref().unwrap().snapshot().unwrap();
    // A request and its reply each pass the switch; retries may add some.
    assert!(switch.counters.datagrams() >= 8 * 50 * 2 * 2);
}

#[test]
fn counters_add_up_exactly_under_concurrency() {
    let cluster = Embedded::start(&in_memory()).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            let space = space(&cluster, HASH_KEYSPACE);
            scope.spawn(move || {
                for _ in 0..100 {
                    space.incr(b"sum", 1).into_result().unwrap();
                }
            });
        }
    });
    assert_eq!(get(&space(&cluster, HASH_KEYSPACE), "sum").as_deref(), Some("400"));
}

#[test]
fn what_was_written_is_there_after_a_restart() {
    let dir = tempdir().unwrap();
    let options = UpOptions { shards: 1, ..on_disk(dir.path()) };
    let cluster = Embedded::start(&options).unwrap();
    let written: BTreeMap<String, String> =
        (0..64).map(|i| (format!("key-{i}"), format!("value-{i}"))).collect();
    let spaces = [HASH_KEYSPACE, RANGE_KEYSPACE].map(|name| space(&cluster, name));
    for space in &spaces {
        written.iter().for_each(|(key, value)| {
            put(space, key, value);
        });
    }
    cluster.stop();

    let cluster = Embedded::start(&options).unwrap();
    let [hash, range] = [HASH_KEYSPACE, RANGE_KEYSPACE].map(|name| space(&cluster, name));
    for (key, value) in &written {
        assert_eq!(get(&hash, key).as_ref(), Some(value));
    }
    let found = range.scan(ScanOptions::default()).into_result().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let texts = |(key, value): (Vec<u8>, Value)| (text(key), text(value.value));
    let found: BTreeMap<String, String> = found.into_iter().map(texts).collect();
    assert_eq!(found, written);

    let (mut paged, mut cursor) = (BTreeMap::new(), Some(PageStart::FIRST));
    while let Some(from) = cursor {
        let page = hash.page(&from, 10, false).into_result().unwrap();
        assert!(page.entries.len() <= 10 && page.next != Some(from));
        cursor = page.next;
        paged.extend(page.entries.into_iter().map(texts));
    }
    assert_eq!(paged, written);
}
