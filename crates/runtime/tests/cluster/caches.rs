//! A cluster with a cache, over real sockets: what is read much the cache answers, and nobody sees
//! an old value.

use crate::setup::{get as ask, in_memory};
use client::blocking::{Client, Space};
use client::{Options, PutOptions};
use cluster::CacheReport;
use runtime::up::{Embedded, HASH_KEYSPACE, UpOptions};
use std::thread;

/// How often fifty reads are repeated until the cache has answered: for half a minute and more.
const READS_MAX: usize = 10_000;

fn space(cluster: &Embedded) -> Space {
    let client = Client::connect(cluster.service(), Options::default()).unwrap();
    client.keyspace(HASH_KEYSPACE).unwrap()
}

fn put(space: &Space, value: u32) {
    let value = value.to_string();
    space.put(b"k", value.as_bytes(), PutOptions::default()).into_result().unwrap();
}

fn get(space: &Space) -> Option<u32> {
    let found = space.get(b"k").into_result().unwrap();
    found.map(|it| String::from_utf8(it.value).unwrap().parse().unwrap())
}

fn report(cluster: &Embedded) -> CacheReport {
    cluster.roles().caches[0].snapshot().unwrap().report
}

/// Reads the key until the cache has answered so often since.
fn read_until_hit(cluster: &Embedded, space: &Space, value: u32) {
    let before = report(cluster).hits;
    let answers = (0..READS_MAX).any(|_| {
        (0..50).for_each(|_| assert_eq!(get(space), Some(value)));
        report(cluster).hits >= before + 100
    });
    assert!(answers, "{:?}", report(cluster));
}

#[test]
fn a_key_that_is_read_much_is_answered_by_the_cache_in_its_newest_version() {
    let cluster = Embedded::start(&UpOptions { caches: 1, ..in_memory() }).unwrap();
    let (space, other) = (space(&cluster), space(&cluster));
    put(&space, 0);
    read_until_hit(&cluster, &space, 0);
    let map = cluster.roles().controller.as_ref().unwrap().map().unwrap();
    let (keyspace, keyhash) = {
        let keyspace = map.keyspace(HASH_KEYSPACE).unwrap();
        (keyspace.id, keyspace.keyhash(b"k"))
    };
    let path = format!("/v1/explain/cached?keyspace={keyspace}&keyhash={keyhash:016x}");
    assert_eq!(ask(cluster.admin(), &path).json(), 1, "the switch sends it to cache 1");
    // Readers that ask through the cache meanwhile never go back.
    let newest = 300;
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = 0;
            while last < newest {
                let seen = get(&other).expect("it is never deleted");
                assert!(seen >= last, "{seen} after {last}");
                last = seen;
            }
        });
        for value in 1..=newest {
            put(&space, value);
            assert_eq!(get(&space), Some(value), "its own write");
        }
    });
    let told = report(&cluster);
    assert!(told.updates > 0 && told.rules == 1, "{told:?}");
    space.del(b"k").into_result().unwrap();
    assert_eq!(get(&space), None);
    put(&space, 7);
    read_until_hit(&cluster, &space, 7);
}

#[test]
fn each_shard_of_a_cache_holds_keys_of_its_own_and_what_they_do_is_summed() {
    let cluster = Embedded::start(&UpOptions { caches: 1, ..in_memory() }).unwrap();
    let space = space(&cluster);
    let map = cluster.roles().controller.as_ref().unwrap().map().unwrap();
    let cache = map.caches[0];
    assert_eq!(cache.shards, 2, "as nodes have");
    let keyspace = map.keyspace(HASH_KEYSPACE).unwrap();
    let key_of = |shard: u16| -> Vec<u8> {
        let mut names = (0..100).map(|it| format!("key-{it}").into_bytes());
        names.find(|it| cache.shard_of(keyspace.keyhash(it)) == shard).unwrap()
    };
    for (held, key) in (1..).zip([0, 1].map(key_of)) {
        space.put(&key, b"v", PutOptions::default()).into_result().unwrap();
        let before = report(&cluster).hits;
        let answers = (0..READS_MAX).any(|_| {
            for _ in 0..50 {
                let found = space.get(&key).into_result().unwrap().expect("it is there");
                assert_eq!(found.value, b"v");
            }
            report(&cluster).hits >= before + 100
        });
        let CacheReport { entries, rules, room_entries, .. } = report(&cluster);
        assert!(answers, "{:?}", report(&cluster));
        assert_eq!((entries, rules, room_entries), (held, held, 10_000));
    }
}
