//! Partitions too large to be cleared at once, and crashes in the middle of it.

use super::crash::{copy, journal, used};
use super::open;
use crate::clock::Clock;
use crate::store::fjall_engine::FjallEngine;
use crate::store::fjall_engine::clearing::{CLEARED_MAX, NextPiece};
use cluster::{KeyspaceId, Match, PartitionId};
use node::engine::{Area, Engine, KeyRef, Record};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use wire::Version;

const LARGE: Area = Area {
    keyspace: KeyspaceId(2),
    partition: PartitionId(5),
    ordered: false,
    first: Match(1 << 96),
    last: Match((2 << 96) - 1),
};

/// Next to it in every way there is.
const NEIGHBOURS: [Area; 4] = [
    Area { partition: PartitionId(4), first: Match::MIN, last: Match(LARGE.first.0 - 1), ..LARGE },
    Area { partition: PartitionId(6), first: Match(LARGE.last.0 + 1), last: Match::MAX, ..LARGE },
    Area { partition: PartitionId(7), keyspace: KeyspaceId(1), ..LARGE },
    Area { partition: PartitionId(8), keyspace: KeyspaceId(3), ..LARGE },
];

/// Two pieces that are committed at once, and one with the next sync.
const RECORDS: u32 = CLEARED_MAX as u32 * 2 + 300;

fn write(engine: &mut FjallEngine, area: &Area, index: u32, version: u64) {
    let key = index.to_be_bytes();
    let spread = (area.last.0 - area.first.0) / u128::from(RECORDS);
    let at = KeyRef {
        keyspace: area.keyspace,
        partition: area.partition,
        ordered: area.ordered,
        match_value: Match(area.last.0 - u128::from(index) * spread),
        keyhash: 0,
        key: &key,
    };
    let expiry_ms = (u64::from(index) + version) % 3;
    let value = index.to_le_bytes();
    let record =
        Record { version: Version::new(version), expiry_ms, tombstone: false, value: &value };
    if version == 0 { engine.remove(&at) } else { engine.write(&at, &record) }
}

/// Version and expiry of all records of a partition.
fn records(engine: &FjallEngine, area: &Area) -> BTreeMap<Vec<u8>, (Version, u64)> {
    let mut found = BTreeMap::new();
    let flow = engine.walk_on(area, &mut engine.walk(area), |key, record| {
        found.insert(key.to_vec(), (record.version, record.expiry_ms));
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    found
}

fn notes(engine: &FjallEngine, area: &Area) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    engine.notes(area.partition, |name, _| found.push(name.to_vec()));
    found
}

/// Checks that length and due index are those of what there is.
fn check_consistent(engine: &mut FjallEngine) {
    let areas = NEIGHBOURS.iter().chain([&LARGE]);
    let records: Vec<_> = areas.flat_map(|area| records(engine, area).into_values()).collect();
    assert_eq!(engine.len(), records.len());
    let mut due = 0;
    engine.due(u64::MAX, |_, _, _| {
        due += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(due, records.iter().filter(|(_, expiry_ms)| *expiry_ms != 0).count());
    engine.sync().unwrap();
}

/// A store with a large partition, and changes here and there that are not synced.
fn filled(dir: &std::path::Path) -> FjallEngine {
    let mut engine = open(dir);
    for index in 0..RECORDS {
        write(&mut engine, &LARGE, index, 1);
    }
    for area in NEIGHBOURS {
        write(&mut engine, &area, 0, 1);
        write(&mut engine, &area, RECORDS, 1);
    }
    for area in NEIGHBOURS.iter().chain([&LARGE]) {
        for name in [b"a", b"b"] {
            engine.note(area.partition, name, Some(b"note"));
        }
    }
    engine.sync().unwrap();
    for area in NEIGHBOURS.iter().chain([&LARGE]) {
        write(&mut engine, area, 0, 2);
        write(&mut engine, area, RECORDS, 0);
        write(&mut engine, area, 7, 3);
        engine.note(area.partition, b"a", None);
        engine.note(area.partition, b"c", Some(b"note"));
    }
    // Among what is cleared at once: changed, changed back, removed, removed and made anew.
    for (index, versions) in [(900, &[2][..]), (901, &[2, 1]), (902, &[0]), (903, &[0, 3])] {
        versions.iter().for_each(|version| write(&mut engine, &LARGE, index, *version));
    }
    engine
}

#[test]
fn a_large_partition_is_cleared_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = filled(dir.path());
    let others = NEIGHBOURS.map(|area| (records(&engine, &area), notes(&engine, &area)));
    let commits = engine.database.fjall().seqno();
    while engine.clear_on(&LARGE, usize::MAX).is_break() {}
    assert_eq!(engine.database.fjall().seqno() - commits, 2, "all but the last piece");
    for reopened in [false, true] {
        if reopened {
            drop(engine);
            engine = open(dir.path());
        }
        assert_eq!((records(&engine, &LARGE).len(), notes(&engine, &LARGE).len()), (0, 0));
        let left = NEIGHBOURS.map(|area| (records(&engine, &area), notes(&engine, &area)));
        assert_eq!(left, others);
        check_consistent(&mut engine);
    }
}

#[test]
fn a_clear_cut_short_anywhere_has_taken_the_notes_first_and_can_be_done_again() {
    let dir = tempfile::tempdir().unwrap();
    let live = dir.path().join("live");
    let mut engine = filled(&live);
    let synced = dir.path().join("synced");
    copy(&live, &synced);
    let before = open(&synced);
    let others = NEIGHBOURS.map(|area| (records(&before, &area), notes(&before, &area)));
    let whole = (records(&before, &LARGE), notes(&before, &LARGE));
    assert_eq!((whole.0.len(), whole.1.len()), (RECORDS as usize, 2));

    let start = used(&std::fs::read(journal(&live)).unwrap());
    while engine.clear_on(&LARGE, usize::MAX).is_break() {}
    let end = used(&std::fs::read(journal(&live)).unwrap());
    let mut lengths = Vec::new();
    for cut in (0..=8).map(|eighths| start + (end - start) * eighths / 8) {
        let torn = dir.path().join(format!("torn{cut}"));
        copy(&live, &torn);
        let file = std::fs::File::options().write(true).open(journal(&torn)).unwrap();
        file.set_len(cut as u64).unwrap();
        for cleared_again in [false, true] {
            let mut engine = open(&torn);
            let left = NEIGHBOURS.map(|area| (records(&engine, &area), notes(&engine, &area)));
            assert_eq!(left, others, "cut off at {cut}: what was not synced is lost");
            let large = (records(&engine, &LARGE), notes(&engine, &LARGE));
            assert!(large == whole || large.1.is_empty(), "cut off at {cut}: there are notes");
            assert!(!cleared_again || large.0.is_empty());
            lengths.push(large.0.len());
            check_consistent(&mut engine);
            while engine.clear_on(&LARGE, usize::MAX).is_break() {}
            engine.sync().unwrap();
        }
    }
    lengths.retain(|len| *len != 0);
    lengths.dedup();
    // Changed ones are not on disk as they were seen, and wait for the sync.
    assert_eq!(lengths.len(), 3, "whole, and after each piece: {lengths:?}");
}

/// Where a piece ends, the next one begins, and does not look again at what is removed: there a
/// large partition would take time by the square of its size.
#[test]
fn no_piece_of_a_very_large_partition_takes_more_than_it_may() {
    const RECORDS: u32 = 100_000;
    const AT_MOST: usize = 256;
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let (record, notes) = ([b'v'; 128], 1_000);
    for index in 0..RECORDS {
        let key = index.to_be_bytes();
        let at = KeyRef {
            keyspace: LARGE.keyspace,
            partition: LARGE.partition,
            ordered: LARGE.ordered,
            match_value: Match(LARGE.first.0 + u128::from(index)),
            keyhash: 0,
            key: &key,
        };
        let expiry_ms = u64::from(index % 2);
        engine.write(
            &at,
            &Record { version: Version::new(1), expiry_ms, tombstone: false, value: &record },
        );
        if index % 1_000 == 0 {
            engine.sync().unwrap();
        }
    }
    for index in 0..notes {
        engine.note(LARGE.partition, &u32::to_be_bytes(index), Some(b"note"));
    }
    engine.sync().unwrap();

    let (mut clock, mut took) = (Clock::new(), Vec::new());
    loop {
        let before = (engine.len(), self::notes(&engine, &LARGE).len());
        let began = clock.now();
        let flow = engine.clear_on(&LARGE, AT_MOST);
        engine.sync().unwrap();
        took.push(clock.now().since(began));
        let after = (engine.len(), self::notes(&engine, &LARGE).len());
        let removed = before.0 + before.1 - after.0 - after.1;
        if flow.is_continue() {
            assert!(removed <= AT_MOST, "{removed} in the last piece");
            break;
        }
        assert_eq!(removed, AT_MOST);
        assert!(after.0 == RECORDS as usize || after.1 == 0, "notes go first: {after:?}");
    }
    assert_eq!((engine.len(), took.len()), (0, (RECORDS + notes).div_ceil(256) as usize));
    check_consistent(&mut engine);
    took.sort();
    let all: std::time::Duration = took.iter().sum();
    let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
    println!("{} pieces in {all:?}: median {median:?}, longest {longest:?}", took.len());
}

#[test]
fn notes_that_are_cleared_are_not_looked_at_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    for number in 0..1_000_u32 {
        engine.note(LARGE.partition, &number.to_be_bytes(), Some(b"note"));
    }
    engine.sync().unwrap();
    for pieces in 1..10_u32 {
        assert!(engine.clear_on(&LARGE, 100).is_break());
        let Some(NextPiece::Note(next)) = engine.clearing.get(&LARGE.partition) else {
            panic!("there are more notes");
        };
        assert_eq!(*next, (pieces * 100).to_be_bytes());
    }
    assert!(engine.clear_on(&LARGE, 100).is_continue());
    assert!(notes(&engine, &LARGE).is_empty() && engine.clearing.is_empty());
}
