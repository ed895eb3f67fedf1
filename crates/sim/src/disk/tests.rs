//! A disk against the check for all engines, and what crashes take of it.

use super::*;
use machine::Rng;
use node::engine::conformance::{Draw, Model, Notes, Step};

fn steps(rng: &mut Rng) -> Vec<Step> {
    let count = rng.below(300);
    let mut number = || u16::try_from(rng.below(1 << 16)).unwrap();
    let draws = (0..count).map(|_| -> Draw { std::array::from_fn(|_| number()) });
    draws.map(Step::from_draw).collect()
}

#[test]
fn does_what_every_engine_must_and_a_crash_takes_what_was_not_synced_and_nothing_else() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let steps = steps(&mut rng);
        let crash_at = rng.below(300);
        let mut disk = Disk::new(StoreId(1));
        let mut model = Model::new(Notes::Kept);
        let mut synced = model.clone();
        for (index, step) in (0..).zip(&steps) {
            if index == crash_at {
                disk.crash(false);
                model = synced.clone();
                model.check(&disk, &steps);
            }
            model.step(&mut disk, step);
            if *step == Step::Sync {
                synced = model.clone();
            }
        }
        model.check(&disk, &steps);
        model.clear_in_pieces(&mut disk, 20, &steps);
    }
}

#[test]
fn what_a_sync_apart_has_survives_its_end_or_all_of_it_by_chance() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let steps = steps(&mut rng);
        let (end_at, crash_at) = (rng.below(300), rng.below(300));
        let mut disk = Disk::new(StoreId(1));
        disk.sync_apart();
        let mut model = Model::new(Notes::Kept);
        let (mut synced, mut syncing) = (model.clone(), None);
        for (index, step) in (0..).zip(&steps) {
            if index == end_at {
                assert_eq!(disk.end_sync(Ok(())), Ok(()));
                synced = syncing.take().unwrap_or(synced);
            }
            if index == crash_at {
                let kept = rng.chance(1, 2);
                disk.crash(kept);
                model = syncing.take().filter(|_| kept).unwrap_or(synced.clone());
                synced = model.clone();
                model.check(&disk, &steps);
                assert!(disk.is_all_durable());
            }
            if *step == Step::Sync && syncing.is_none() {
                syncing = disk.begin_sync().unwrap().then(|| model.clone());
                synced = if syncing.is_none() { model.clone() } else { synced };
            } else if *step != Step::Sync {
                model.step(&mut disk, step);
            }
        }
        model.check(&disk, &steps);
    }
}

#[test]
fn values_are_those_of_keys_that_are_there() {
    let mut disk = Disk::new(StoreId(1));
    let at = |key| KeyRef {
        keyspace: KeyspaceId(1),
        partition: PartitionId(1),
        ordered: true,
        match_value: Match(1),
        keyhash: 1,
        key,
    };
    let record = Record { version: Version::new(1), expiry_ms: 0, tombstone: false, value: b"v" };
    disk.write(&at(b"there"), &record);
    disk.write(&at(b"deleted"), &Record { tombstone: true, value: b"", ..record });
    disk.write(&at(b"removed"), &record);
    disk.remove(&at(b"removed"));
    let values: Vec<_> = disk.values().map(|((.., key), ..)| key.clone()).collect();
    assert_eq!(values, [b"there"]);
}
