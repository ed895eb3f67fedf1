//! Syncs that go on apart.

use super::crash::copy;
use super::*;
use crate::disk::MinFreeDisk;
use wire::Room;

fn open_always(dir: &Path) -> FjallEngine {
    FjallEngine::open(dir, SHARD, StoreId(7), SyncPolicy::Always).unwrap()
}

/// Waits for the sync under way.
fn end(engine: &mut FjallEngine) {
    let job = engine.sync_job().unwrap();
    engine.end_sync(job()).unwrap();
}

const KEY: KeyRef<'_> = KeyRef {
    keyspace: KeyspaceId(9),
    partition: PartitionId(1),
    ordered: false,
    match_value: cluster::Match(5),
    keyhash: 5,
    key: b"first",
};

const LATER: KeyRef<'_> = KeyRef { key: b"later", ..KEY };

const RECORD: Record<'_> =
    Record { version: wire::Version::new(1), expiry_ms: 0, tombstone: false, value: b"v" };

#[test]
fn does_what_every_engine_must_while_it_syncs_apart() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open_always(dir.path());
    let mut model = Model::new(Notes::Kept);
    let steps = steps(5, 2_000);
    for (batch, steps) in steps.chunks(20).enumerate() {
        steps.iter().for_each(|step| model.step(&mut engine, step));
        match batch % 3 {
            0 => assert!(engine.begin_sync().unwrap()),
            1 => end(&mut engine),
            _ => {}
        }
    }
    if engine.apart.is_under_way() {
        end(&mut engine);
    }
    engine.sync().unwrap();
    drop(engine);
    model.check(&open(dir.path()), &steps);
}

#[test]
fn what_comes_after_its_beginning_is_for_the_next() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut engine = open_always(dir.path());
    engine.write(&KEY, &RECORD);
    assert!(engine.begin_sync().unwrap());
    engine.write(&LATER, &RECORD);
    assert!(!engine.is_durable(&KEY) && !engine.is_durable(&LATER) && !engine.is_all_durable());
    end(&mut engine);
    assert!(engine.is_durable(&KEY) && !engine.is_durable(&LATER) && !engine.is_all_durable());
    // What the process would leave if it ended now.
    copy(dir.path(), other.path());
    let left = open(other.path());
    assert!(left.read(&KEY, |record| record.is_some()));
    assert!(left.read(&LATER, |record| record.is_none()));
    assert!(engine.begin_sync().unwrap());
    end(&mut engine);
    assert!(engine.is_all_durable());
    assert!(!engine.begin_sync().unwrap(), "there is nothing to do");
}

#[test]
fn one_that_fails_fails_the_engine() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open_always(dir.path());
    engine.write(&KEY, &RECORD);
    assert!(engine.begin_sync().unwrap());
    let why = Err(EngineError("the disk is gone".into()));
    let failed = engine.end_sync(why).unwrap_err();
    assert!(failed.0.ends_with("the disk is gone"), "{failed}");
    assert_eq!(engine.begin_sync(), Err(failed));
}

#[test]
fn only_an_engine_that_waits_for_its_disk_syncs_apart() {
    let dir = tempfile::tempdir().unwrap();
    for policy in [SyncPolicy::Interval, SyncPolicy::Never, SyncPolicy::Always] {
        let mut engine = FjallEngine::open(dir.path(), SHARD, StoreId(7), policy).unwrap();
        engine.write(&KEY, &RECORD);
        let apart = policy == SyncPolicy::Always;
        assert_eq!((engine.syncs_apart(), engine.begin_sync()), (apart, Ok(apart)), "{policy}");
    }
}

/// What is being written is seen, in order, under what was changed since.
#[test]
fn reads_see_what_is_not_written_yet() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open_always(dir.path());
    let here = PartitionId(1);
    engine.write(&KEY, &RECORD);
    engine.write(&LATER, &RECORD);
    engine.note(here, b"a", Some(b"one"));
    engine.note(here, b"b", Some(b"one"));
    assert!(engine.begin_sync().unwrap());
    engine.remove(&KEY);
    engine.note(here, b"b", None);
    let seen = |engine: &FjallEngine| {
        let (mut keys, mut notes) = (Vec::new(), Vec::new());
        let area = Area {
            keyspace: KEY.keyspace,
            partition: here,
            ordered: false,
            first: cluster::Match::MIN,
            last: cluster::Match::MAX,
        };
        let flow = engine.walk_on(&area, &mut engine.walk(&area), |key, _| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        engine.notes(here, |name, _| notes.push(name.to_vec()));
        (keys, notes)
    };
    let expected = (vec![b"later".to_vec()], vec![b"a".to_vec()]);
    assert_eq!(seen(&engine), expected);
    end(&mut engine);
    assert_eq!(seen(&engine), expected);
    engine.sync().unwrap();
    drop(engine);
    assert_eq!(seen(&open(dir.path())), expected);
}

/// A batch that comes while another waits to be written is behind it in the journal.
#[test]
fn batches_are_written_in_order_whoever_writes_them() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut engine = open_always(dir.path());
    let here = PartitionId(1);
    engine.note(here, b"first", Some(b"note"));
    assert!(engine.begin_sync().unwrap());
    engine.note(here, b"second", Some(b"note"));
    engine.sync().unwrap();
    copy(dir.path(), other.path());
    let mut names = Vec::new();
    open(other.path()).notes(here, |name, _| names.push(name.to_vec()));
    assert_eq!(names, [b"first".to_vec(), b"second".to_vec()]);
    end(&mut engine);
    assert!(engine.is_all_durable());
}

/// What was written is flushed and merged when nothing more is: then there is room again, although
/// no sync says so.
#[test]
fn what_the_disk_needs_room_for_is_looked_at_when_no_sync_has_said_it() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::open(dir.path(), MinFreeDisk::Bytes(0)).unwrap();
    let mut engine = open_always(&dir.path().join("shard"));
    engine.watch(&disk);
    let room =
        |engine: &mut FjallEngine, ms| engine.disk_room(Instant::from_unix_ms(ms)).unwrap().room;
    assert_eq!(room(&mut engine, 1_000), Room::Plenty);
    engine.write(&KEY, &RECORD);
    assert!(engine.begin_sync().unwrap());
    end(&mut engine);
    // As if much had been in memory then.
    engine.set_needs(u64::MAX / 2);
    assert_eq!(room(&mut engine, 2_000), Room::Shut, "a sync has just said so");
    assert_eq!(room(&mut engine, 2_019), Room::Shut);
    assert_eq!(room(&mut engine, 2_020), Room::Plenty);
}
