//! Notes, which go to disk turn by turn.

use super::{SHARD, open, open_small, steps};
use crate::store::fjall_engine::notes::RING;
use crate::store::fjall_engine::{FjallEngine, SyncPolicy, codec};
use cluster::{PartitionId, StoreId};
use node::engine::Engine;
use node::engine::conformance::{Model, Notes};
use std::path::Path;

const HERE: PartitionId = PartitionId(1);

fn names(engine: &FjallEngine) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    engine.notes(HERE, |name, _| names.push(name.to_vec()));
    names
}

/// Turns that count are as many as there are slots, and most of the changes are folded.
#[test]
fn does_what_every_engine_must_while_turns_are_folded() {
    let dir = tempfile::tempdir().unwrap();
    let mut model = Model::new(Notes::Kept);
    let steps = steps(3, 5_000);
    for (opened, steps) in steps.chunks(1_250).enumerate() {
        // Folded as late as can be, and as soon as can be.
        let bytes = if opened % 2 == 0 { 4 << 20 } else { 0 };
        let mut engine = open_small(dir.path(), bytes, SyncPolicy::Never);
        for step in steps {
            model.step(&mut engine, step);
            engine.sync().unwrap();
        }
    }
    model.check(&open(dir.path()), &steps);
}

#[test]
fn a_note_that_soon_goes_again_is_not_an_entry_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let turns = 3 * RING;
    engine.note(HERE, b"stays", Some(b"note"));
    for turn in 0..turns {
        engine.note(HERE, &turn.to_be_bytes(), Some(&[7; 100]));
        if let Some(before) = turn.checked_sub(2) {
            engine.note(HERE, &before.to_be_bytes(), None);
        }
        engine.sync().unwrap();
    }
    let [folded, records] = engine.notes.trees_mut();
    let kept: Vec<_> = folded.on_disk().iter().map(|it| it.key().unwrap().to_vec()).collect();
    assert_eq!(kept, [codec::note_key(HERE, b"stays")]);
    assert_eq!(folded.on_disk().approximate_len(), 1, "there is no mark of a removed one either");
    assert_eq!(records.on_disk().iter().count() as u64, RING - 1, "as many as count");
    drop(engine);
    let left = [turns - 2, turns - 1].map(|turn| turn.to_be_bytes().to_vec());
    assert_eq!(names(&open(dir.path())), [&left[..], &[b"stays".to_vec()]].concat());
}

/// Who has many notes has few of them in memory, but for their names.
#[test]
fn notes_that_stay_are_folded() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let empty = engine.notes.usage();
    for number in 0..40_000_u32 {
        engine.note(HERE, &number.to_be_bytes(), Some(&[7; 100]));
        if number % 100 == 99 {
            engine.sync().unwrap();
        }
    }
    assert_eq!((empty, names(&engine).len()), (0, 40_000));
    assert!(engine.notes.usage() < 3 << 20, "{} bytes", engine.notes.usage());
    (0..40_000_u32).for_each(|number| engine.note(HERE, &number.to_be_bytes(), None));
    for _ in 0..RING {
        engine.note(HERE, b"one more turn", None);
        engine.sync().unwrap();
    }
    assert!(engine.notes.usage() < 1 << 20, "{} bytes", engine.notes.usage());
    drop(engine);
    assert!(names(&open(dir.path())).is_empty());
}

/// What an earlier incarnation has folded is known to be there.
#[test]
fn a_note_that_was_folded_before_a_restart_can_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    let fold = |engine: &mut FjallEngine| {
        for turn in 0..=RING {
            engine.note(PartitionId(2), &turn.to_be_bytes(), Some(b"note"));
            engine.sync().unwrap();
        }
    };
    let mut engine = open(dir.path());
    engine.note(HERE, b"a", Some(b"note"));
    engine.note(HERE, b"b", Some(b"note"));
    fold(&mut engine);
    drop(engine);
    let mut engine = open(dir.path());
    engine.note(HERE, b"a", None);
    fold(&mut engine);
    assert_eq!(names(&engine), [b"b"]);
    drop(engine);
    assert_eq!(names(&open(dir.path())), [b"b"]);
}

/// Opens the store below the engine and does something to the records of turns.
fn tamper(dir: &Path, how: impl FnOnce(&fjall::Keyspace)) -> String {
    let database = fjall::Database::builder(dir.join("store/fjall")).open().unwrap();
    let turns = database.keyspace("turns", fjall::KeyspaceCreateOptions::default).unwrap();
    how(&turns);
    drop((turns, database));
    let opened = FjallEngine::open(dir, SHARD, StoreId(7), SyncPolicy::Never);
    opened.err().expect("it is noticed").to_string()
}

#[test]
fn a_turn_that_is_missing_or_makes_no_sense_is_damage() {
    let left = |turns: u32| {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = open(dir.path());
        for number in 0..turns {
            engine.note(HERE, &number.to_be_bytes(), Some(b"note"));
            engine.sync().unwrap();
        }
        dir
    };
    let dir = left(5);
    let missing = tamper(dir.path(), |turns| turns.remove(codec::turn_slot(2)).unwrap());
    assert!(missing.contains("turn 2 is missing"), "{missing}");
    let dir = left(5);
    let moved = tamper(dir.path(), |turns| {
        let record = turns.get(codec::turn_slot(4)).unwrap().unwrap();
        turns.insert(codec::turn_slot(9), record).unwrap();
    });
    assert!(moved.contains("holds no record of a turn"), "{moved}");
    let dir = left(1);
    let cut = tamper(dir.path(), |turns| {
        let record = turns.get(codec::turn_slot(0)).unwrap().unwrap();
        turns.insert(codec::turn_slot(0), &record[..record.len() - 1]).unwrap();
    });
    assert!(cut.contains("holds no record of a turn"), "{cut}");
}

/// Of a clear that is committed by itself nothing else is durable before its time.
#[test]
fn the_turn_of_a_partition_leaves_the_others_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let other = PartitionId(2);
    engine.note(HERE, b"n", Some(b"note"));
    engine.note(other, b"n", Some(b"note"));
    let mut batch = engine.database.batch();
    engine.notes.move_changes_of(HERE, 0, &mut batch);
    batch.commit().unwrap();
    assert!(engine.notes.is_changed(), "that of the other partition is to be kept");
    drop(engine);
    let engine = open(dir.path());
    assert_eq!(names(&engine), [b"n"]);
    engine.notes(other, |name, _| panic!("{name:?} was not synced"));
}
