//! A store with numbers in it that cannot be: the cluster comes back, loses nothing, and mends it.

use crate::setup::{get, on_disk, post};
use client::Options;
use client::blocking::{Client, Space};
use cluster::{Map, NodeId, PartitionId, StoreId};
use node::engine::Engine as _;
use runtime::store::{FjallEngine, ShardIdentity, SyncPolicy};
use runtime::up::{Embedded, HASH_KEYSPACE};
use std::path::Path;
use std::thread;
use std::time::Duration;
use tempfile::tempdir;

const KEYS: u32 = 200;
const BAD: NodeId = NodeId(2);

fn space(cluster: &Embedded) -> Space {
    let client = Client::connect(cluster.service(), Options::default()).unwrap();
    client.keyspace(HASH_KEYSPACE).unwrap()
}

fn write(space: &Space, value: &str) {
    for key in 0..KEYS {
        let key = format!("key{key}");
        space.put(key.as_bytes(), value.as_bytes(), Default::default()).into_result().unwrap();
    }
}

fn assert_holds(space: &Space, value: &str) {
    for key in 0..KEYS {
        let key = format!("key{key}");
        let found = space.get(key.as_bytes()).into_result().unwrap();
        assert_eq!(found.unwrap().value, value.as_bytes(), "{key}");
    }
}

/// Counters of every partition say what can never be, and so do other notes.
fn poison(data: &Path, map: &Map, shards: u16) {
    for shard in 0..shards {
        let dir = data.join(format!("node-{BAD}")).join(format!("shard-{shard}"));
        let identity = ShardIdentity { node: BAD, shard, shards };
        let mut engine = FjallEngine::open(&dir, identity, StoreId(0), SyncPolicy::Always).unwrap();
        let counters = [u64::MAX.to_be_bytes(); 5].concat();
        for partition in map.partitions.iter().filter(|it| it.chain.contains(&BAD)) {
            if keeps_notes(&engine, partition.id) {
                engine.note(partition.id, b"c", Some(&counters));
                engine.note(partition.id, b"mkey", Some(&counters));
                engine.note(partition.id, b"tkey", Some(b"nonsense"));
            }
        }
        engine.sync().unwrap();
    }
}

/// Whether this shard keeps notes of a partition.
fn keeps_notes(engine: &FjallEngine, partition: PartitionId) -> bool {
    let mut any = false;
    engine.notes(partition, |_, _| any = true);
    any
}

fn ignored(cluster: &Embedded, node: NodeId) -> u64 {
    let nodes = &cluster.roles().nodes;
    let shards = nodes[usize::from(node.0) - 1].snapshot().unwrap().shards;
    shards.iter().map(|shard| shard.counters.notes_ignored).sum()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "replicas are compared in real time")]
fn a_poisoned_store_is_found_out_and_made_right() {
    let dir = tempdir().unwrap();
    let options = on_disk(dir.path());
    let first = Embedded::start(&options).unwrap();
    write(&space(&first), "before");
    let map = first.roles().controller.as_ref().unwrap().map().unwrap();
    first.stop();
    poison(dir.path(), &map, options.shards);

    let second = Embedded::start(&options).unwrap();
    assert!(ignored(&second, BAD) > 0, "what makes no sense is counted");
    assert_eq!(ignored(&second, NodeId(1)), 0);
    let space = space(&second);
    assert_holds(&space, "before");
    // Who believed those counters could give no write a version any more.
    write(&space, "after");
    assert_holds(&space, "after");

    // The bad store is emptied, copied to and compared.
    let mut last = String::new();
    for _ in 0..200 {
        let status = get(second.admin(), "/v1/status").json();
        last = format!("{status:#}");
        let verify = &status["verify"];
        if status["replicated"] == true {
            if verify.is_null() {
                assert_eq!(post(second.admin(), "/v1/verify", "{}").status, 200);
            } else if verify["done"] == verify["partitions"] {
                assert_eq!(verify["different"], 0, "{verify:#}");
                assert_eq!(verify["absurd"], 0, "{verify:#}");
                return;
            }
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("not replicated and compared: {last}");
}
