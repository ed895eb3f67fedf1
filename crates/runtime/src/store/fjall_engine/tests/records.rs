//! Records in memory, above those on disk.

use super::open;
use crate::store::FjallEngine;
use crate::store::fjall_engine::records::{RECENT_BYTES, RECENT_EACH};
use node::engine::Engine;

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

#[test]
fn what_is_kept_in_memory_is_bounded_and_the_rest_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let count = 3 * RECENT_BYTES / (RECENT_EACH + 1_000);
    for number in 0..count {
        engine.records.put(&key(number), vec![7; 1_000]);
        if number % 1_000 == 0 {
            engine.sync().unwrap();
        }
    }
    engine.sync().unwrap();
    let usage = engine.records.usage();
    assert!((RECENT_BYTES / 2..=RECENT_BYTES).contains(&usage), "{usage}");
    let found = |number| engine.records.get(&key(number)).unwrap().map(|it| it.len());
    assert!((0..count).all(|number| found(number) == Some(1_000)));
    assert!((count..2 * count).all(|number| found(number).is_none()));
    assert!(engine.records.usage() <= RECENT_BYTES);
}

#[test]
fn what_was_found_is_forgotten_when_it_changes() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let get = |engine: &FjallEngine| engine.records.get(b"key").unwrap().map(|it| it.to_vec());
    assert_eq!(get(&engine), None);
    engine.records.put(b"key", b"one".to_vec());
    assert_eq!(get(&engine), Some(b"one".to_vec()));
    engine.sync().unwrap();
    assert_eq!(get(&engine), Some(b"one".to_vec()));
    let mut batch = engine.database.batch();
    engine.records.remove_on_disk(b"key".to_vec(), &mut batch);
    batch.commit().unwrap();
    assert_eq!(get(&engine), None, "another batch has removed it");
    engine.records.put(b"key", b"two".to_vec());
    engine.records.remove(b"key");
    assert_eq!(get(&engine), None);
}
