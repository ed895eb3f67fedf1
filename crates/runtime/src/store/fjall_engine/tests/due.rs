//! What is due, and goes, is not looked at again.

use super::open;
use crate::store::fjall_engine::{FjallEngine, codec};
use cluster::{KeyspaceId, Match, PartitionId};
use node::engine::{Area, Engine, KeyRef, Record};
use std::ops::ControlFlow;
use wire::Version;

const AREA: Area = Area {
    keyspace: KeyspaceId(1),
    partition: PartitionId(3),
    ordered: true,
    first: Match::MIN,
    last: Match::MAX,
};

fn at(key: &[u8]) -> KeyRef<'_> {
    let (keyspace, partition) = (AREA.keyspace, AREA.partition);
    KeyRef { keyspace, partition, ordered: true, match_value: Match::MIN, keyhash: 0, key }
}

fn write(engine: &mut FjallEngine, key: &[u8], expiry_ms: u64) {
    let version = Version::new(1);
    engine.write(&at(key), &Record { version, expiry_ms, tombstone: false, value: b"" });
}

fn due(engine: &FjallEngine, until_ms: u64) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    engine.due(until_ms, |_, key, _| {
        found.push(key.to_vec());
        ControlFlow::Continue(())
    });
    found
}

#[test]
fn a_visit_begins_behind_what_has_gone() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    for number in 0..100_u64 {
        write(&mut engine, &number.to_be_bytes(), 1_000 + number);
    }
    engine.sync().unwrap();
    assert_eq!(due(&engine, 1_049).len(), 50);
    assert_eq!(due(&engine, 1_049).len(), 50, "they are still there");
    for number in 0..50_u64 {
        engine.remove(&at(&number.to_be_bytes()));
    }
    engine.sync().unwrap();
    assert!(due(&engine, 1_049).is_empty());
    assert_eq!(engine.due.floor(), 1_050_u64.to_be_bytes());
    assert_eq!(due(&engine, 1_050), [50_u64.to_be_bytes()]);
    let first = codec::due_key(1_050, &codec::record_key(&at(&50_u64.to_be_bytes())));
    assert_eq!(engine.due.floor(), first);
    // What comes in with an earlier time is seen, though a visit was over it already.
    write(&mut engine, b"late", 7);
    assert_eq!(due(&engine, 6), [[0; 0]; 0]);
    assert_eq!(due(&engine, 1_050), [&b"late"[..], &50_u64.to_be_bytes()]);
    engine.sync().unwrap();
    assert_eq!(due(&engine, 7), [b"late"]);
    drop(engine);
    assert_eq!(due(&open(dir.path()), u64::MAX).len(), 51);
}
