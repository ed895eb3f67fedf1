//! The durable engine, by the check for all engines; who may open what; when it fails.

mod apart;
mod clear;
mod crash;
mod damage;
mod due;
mod notes;
mod records;
mod space;

use super::*;
use cluster::NodeId;
use node::engine::conformance::{Draw, Model, Notes, Step};
use proptest::prelude::*;
use std::time::Duration;

const SHARD: ShardIdentity = ShardIdentity { node: NodeId(3), shard: 1, shards: 2 };

fn open(dir: &Path) -> FjallEngine {
    FjallEngine::open(dir, SHARD, StoreId(7), SyncPolicy::Never).unwrap()
}

/// With memtables that are soon full.
fn open_small(dir: &Path, bytes: u64, policy: SyncPolicy) -> FjallEngine {
    let memtables = Memtables { records: bytes, small: bytes };
    FjallEngine::open_with(dir, SHARD, StoreId(7), (policy, memtables)).unwrap()
}

fn refusal(dir: &Path, shard: ShardIdentity) -> StoreError {
    FjallEngine::open(dir, shard, StoreId(8), SyncPolicy::Never).err().unwrap()
}

/// Enough of them to change something.
fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut rng = machine::Rng::new(seed);
    let mut number = || u16::try_from(rng.below(1 << 16)).unwrap();
    let draws = std::iter::repeat_with(|| std::array::from_fn(|_| number()));
    draws.map(Step::from_draw).filter(|step| *step != Step::Sync).take(count).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn does_what_every_engine_must_also_after_a_restart(
        draws in proptest::collection::vec(any::<Draw>(), 0..300),
        restart_at in 0..300usize,
        at_most in 1..20_usize,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = open(dir.path());
        let mut model = Model::new(Notes::Kept);
        let steps: Vec<Step> = draws.into_iter().map(Step::from_draw).collect();
        for (index, step) in steps.iter().enumerate() {
            if index == restart_at {
                engine.sync().unwrap();
                drop(engine);
                engine = open(dir.path());
            }
            model.step(&mut engine, step);
        }
        model.check(&engine, &steps);
        engine.sync().unwrap();
        drop(engine);
        let mut engine = open(dir.path());
        model.check(&engine, &steps);
        model.clear_in_pieces(&mut engine, at_most, &steps);
    }
}

/// Also where memory is too small to hold it all, and background work moves it to other files.
#[test]
fn does_what_every_engine_must_while_memtables_are_flushed() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open_small(dir.path(), 16 << 10, SyncPolicy::Never);
    let mut model = Model::new(Notes::Kept);
    let steps = steps(1, 4_000);
    for batch in steps.chunks(40) {
        batch.iter().for_each(|step| model.step(&mut engine, step));
        engine.sync().unwrap();
    }
    assert!(engine.records.tree().table_count() > 0, "something was flushed");
    model.check(&engine, &steps);
    drop(engine);
    model.check(&open(dir.path()), &steps);
}

#[test]
fn a_store_keeps_the_identity_it_was_created_with() {
    let dir = tempfile::tempdir().unwrap();
    let first = FjallEngine::open(dir.path(), SHARD, StoreId(7), SyncPolicy::Always).unwrap();
    assert_eq!(first.store_id(), StoreId(7));
    drop(first);
    let again = FjallEngine::open(dir.path(), SHARD, StoreId(8), SyncPolicy::Always).unwrap();
    assert_eq!(again.store_id(), StoreId(7));
}

#[test]
fn a_creation_that_was_cut_short_is_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let unfinished = dir.path().join("store.unfinished/fjall");
    std::fs::create_dir_all(&unfinished).unwrap();
    std::fs::write(unfinished.join("0.jnl"), b"half").unwrap();
    assert!(open(dir.path()).is_empty());
}

#[test]
fn the_store_of_another_shard_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let others = [
        ShardIdentity { node: NodeId(4), ..SHARD },
        ShardIdentity { shard: 0, ..SHARD },
        ShardIdentity { shards: 4, ..SHARD },
    ];
    for other in others {
        let error = refusal(dir.path(), other);
        assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("created for node 3, shard 1 of 2"), "{text}");
        assert!(text.contains(&format!("this is {other}; start it as")), "{text}");
    }
    drop(open(dir.path()));
}

#[test]
fn another_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let about = dir.path().join("store/about.json");
    let ours = std::fs::read_to_string(&about).unwrap();
    // A later format may say other things than this one.
    std::fs::write(&about, r#"{"format": 4, "shards": []}"#).unwrap();
    let text = refusal(dir.path(), SHARD).to_string();
    assert!(
        text.contains("has format 4, and this version of keyway knows format 3 only"),
        "{text}"
    );

    std::fs::write(&about, ours).unwrap();
    let version = dir.path().join("store/fjall/version");
    std::fs::write(&version, b"FJL\x02").unwrap();
    let text = refusal(dir.path(), SHARD).to_string();
    assert!(text.contains("has format fjall 2"), "{text}");
}

#[test]
fn a_store_in_use_is_refused_until_it_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let held = open(dir.path());
    let error = refusal(dir.path(), SHARD);
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    drop(held);
    drop(open(dir.path()));
}

#[test]
fn a_store_with_a_part_missing_is_damaged() {
    for part in ["about.json", "fjall/version"] {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path()));
        std::fs::remove_file(dir.path().join("store").join(part)).unwrap();
        let error = refusal(dir.path(), SHARD);
        assert!(matches!(error, StoreError::Damaged { .. }), "{part}: {error}");
    }
}

/// A changed digit would pass for another memory, which is emptied.
#[test]
fn a_store_whose_identity_was_changed_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let about = dir.path().join("store/about.json");
    let ours = std::fs::read_to_string(&about).unwrap();
    let changed = ours.replace("0000000000000007", "0000000000000006");
    assert_ne!(changed, ours);
    std::fs::write(&about, changed).unwrap();
    let error = refusal(dir.path(), SHARD);
    assert!(error.to_string().contains("its checksum is wrong"), "{error}");
    std::fs::write(&about, ours).unwrap();
    drop(open(dir.path()));
}

#[test]
fn a_failed_read_makes_every_later_sync_fail() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let mut model = Model::new(Notes::Kept);
    let steps = steps(2, 50);
    steps.iter().for_each(|step| model.step(&mut engine, step));
    engine.sync().unwrap();
    let key = KeyRef {
        keyspace: KeyspaceId(9),
        partition: PartitionId(1),
        ordered: false,
        match_value: cluster::Match(5),
        keyhash: 5,
        key: b"key",
    };
    engine.records.put(&codec::record_key(&key), b"no record".to_vec());
    assert!(engine.read(&key, |record| record.is_none()));
    let store = engine.directory.path().display();
    let failed = Err(EngineError(format!("{store}: a record cannot be decoded")));
    for _ in 0..2 {
        assert_eq!(engine.sync(), failed);
        assert_eq!(engine.persist_due(Instant(1)), failed.clone().map(|()| None));
    }
    drop(engine);
    model.check(&open(dir.path()), &steps);
}

#[test]
fn a_sync_without_changes_commits_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    engine.note(PartitionId(1), b"n", Some(b"note"));
    engine.sync().unwrap();
    let commits = engine.database.fjall().seqno();
    engine.sync().unwrap();
    assert_eq!(engine.database.fjall().seqno(), commits);
    engine.note(PartitionId(1), b"n", None);
    engine.sync().unwrap();
    assert_eq!(engine.database.fjall().seqno(), commits + 1);
}

#[test]
fn an_interval_engine_asks_the_disk_once_an_interval_and_only_after_changes() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine =
        FjallEngine::open(dir.path(), SHARD, StoreId(7), SyncPolicy::Interval).unwrap();
    let start = Instant(1_000);
    assert_eq!(engine.persist_due(start), Ok(None));
    for round in 0..3 {
        let begin = start + PERSIST_INTERVAL * 10 * round;
        for early in [Duration::ZERO, PERSIST_INTERVAL / 2] {
            engine.note(PartitionId(1), &round.to_be_bytes(), Some(b"note"));
            engine.sync().unwrap();
            assert_eq!(engine.persist_due(begin + early), Ok(Some(begin + PERSIST_INTERVAL)));
        }
        assert_eq!(engine.persist_due(begin + PERSIST_INTERVAL), Ok(None));
        assert_eq!(engine.persist_due(begin + PERSIST_INTERVAL * 3), Ok(None));
    }
}
