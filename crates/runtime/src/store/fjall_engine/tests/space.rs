//! What a store takes of its disk and of memory: whatever is written and removed, that comes to
//! rest.

use super::open_small;
use crate::clock::Clock;
use crate::store::fjall_engine::{FjallEngine, Memtables, SyncPolicy};
use cluster::{KeyspaceId, Match, PartitionId};
use machine::Rng;
use node::engine::{Engine, KeyRef, Record};
use std::time::Duration;
use wire::Version;

/// Memtables so small that many are flushed.
const SMALL: u64 = 64 << 10;

/// How long the thread of fjall may take to do what is left: it shares its processor.
const REST_WAIT_MAX: Duration = Duration::from_secs(60);

/// The key of a number, in the order of the numbers.
fn at(number: &[u8; 8]) -> KeyRef<'_> {
    KeyRef {
        keyspace: KeyspaceId(2),
        partition: PartitionId(1),
        ordered: true,
        match_value: Match(u128::from(u64::from_be_bytes(*number)) << 64),
        keyhash: 0,
        key: number,
    }
}

fn record(version: u64, expiry_ms: u64, value: &[u8]) -> Record<'_> {
    Record { version: Version::new(version), expiry_ms, tombstone: false, value }
}

/// Goes on writing a little, as a node does, until this is so.
fn come_to_rest(engine: &mut FjallEngine, what: &str, is_so: impl Fn(&FjallEngine) -> bool) {
    let mut clock = Clock::new();
    let began = clock.now();
    let mut rounds = 0_u64;
    while !is_so(engine) {
        let buffer = engine.database.fjall().write_buffer_size();
        let journals = engine.database.fjall().journal_count();
        let tables = engine.trees_mut().map(|tree| tree.table_count());
        assert!(
            clock.now().since(began) < REST_WAIT_MAX,
            "{what}: {buffer} bytes in memory, {journals} journals, {tables:?} tables"
        );
        engine.note(PartitionId(1), b"n", Some(&rounds.to_be_bytes()));
        engine.sync().unwrap();
        rounds += 1;
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Each batch that meets a full memtable asks the thread of fjall to flush it. That waited for ever
/// once a thousand had, and everything stayed in memory and in the journal.
#[test]
fn memory_comes_to_rest_however_many_batches_fill_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open_small(dir.path(), SMALL, SyncPolicy::Never);
    for number in 0..40_000_u64 {
        engine.write(&at(&(number % 500).to_be_bytes()), &record(number + 1, 0, &[7; 100]));
        engine.sync().unwrap();
    }
    come_to_rest(&mut engine, "written", |it| it.database.fjall().write_buffer_size() < 8 * SMALL);
}

/// Of what is only in journals for the sake of what was hardly written nothing is kept, so that two
/// journals are the most.
#[test]
fn journals_come_to_rest_whatever_is_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open_small(dir.path(), Memtables::USUAL.small, SyncPolicy::Never);
    let mut rng = Rng::new(5);
    let mut value: Vec<u8> = std::iter::repeat_with(|| rng.below(256) as u8).take(60_000).collect();
    for number in 0..3_000_u64 {
        value[..8].copy_from_slice(&number.to_be_bytes());
        engine.write(&at(&(number % 50).to_be_bytes()), &record(number + 1, 0, &value));
        engine.sync().unwrap();
        if number % 250 == 0 {
            come_to_rest(&mut engine, "journals", |it| it.database.fjall().journal_count() == 1);
        }
    }
    let used = engine.disk_used().unwrap();
    // The journal is made 64 MiB long, and may be as much longer as memtables take.
    let bound = (64 << 20) + 8 * Memtables::USUAL.small;
    assert!(used < bound, "{used} bytes for 3 MB");
}

/// Whoever removes what he has just written, always further on, as a queue does: the tables of each
/// time lie apart from all others.
#[test]
fn tables_come_to_rest_when_what_was_written_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open_small(dir.path(), SMALL, SyncPolicy::Never);
    for number in 0..60_000_u64 {
        let key = number.to_be_bytes();
        engine.write(&at(&key), &record(number + 1, number + 1, &[7; 100]));
        engine.remove(&at(&key));
        engine.sync().unwrap();
    }
    assert!(engine.is_empty());
    come_to_rest(&mut engine, "removed", |it| {
        let trees = [it.records.tree(), it.due.tree()];
        // Four wait to be merged, with what they touch; the last was written after that.
        trees.iter().all(|tree| tree.table_count() <= 8 && tree.disk_space() < 8 * SMALL)
    });
}
