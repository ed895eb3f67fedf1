//! The memory engine, by the check for all engines and by what is its own.

use super::index::{CROWD_MIN, LOOKS};
use super::table::{ALIKE_MAX, SLICES};
use super::*;
use crate::engine::conformance::{Draw, Model, Notes, Step};
use cluster::{HotPolicy, Keyspace, KeyspaceKind};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Bound;
use wire::{PartKey, UploadBody, Version};

/// A key whose match value is spread evenly, as those of a hash keyspace are.
fn key(ordered: bool, index: u64, bytes: &[u8]) -> KeyRef<'_> {
    let hash = machine::mix(index);
    let match_value = Match(u128::from(hash) << 64);
    KeyRef {
        keyspace: KeyspaceId(1),
        partition: PartitionId(1 + u32::try_from(hash >> 60).unwrap()),
        ordered,
        match_value,
        keyhash: hash.rotate_left(32),
        key: bytes,
    }
}

fn value(bytes: &[u8]) -> Record<'_> {
    Record { version: Version::new(7), expiry_ms: 0, tombstone: false, value: bytes }
}

fn filled(ordered: bool, count: u64) -> MemoryEngine {
    let mut engine = MemoryEngine::new(StoreId(1));
    for index in 0..count {
        let bytes = format!("{:016x}", machine::mix(index));
        engine.write(&key(ordered, index, bytes.as_bytes()), &value(&[1; 128]));
    }
    engine
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn does_what_every_engine_must(
        draws in proptest::collection::vec(any::<Draw>(), 0..400),
        at_most in 1..20_usize,
    ) {
        let mut engine = MemoryEngine::new(StoreId(1));
        let mut model = Model::new(Notes::Forgotten);
        let steps: Vec<Step> = draws.into_iter().map(Step::from_draw).collect();
        for step in &steps {
            model.step(&mut engine, step);
        }
        model.check(&engine, &steps);
        model.clear_in_pieces(&mut engine, at_most, &steps);
    }
}

#[test]
fn a_value_is_overwritten_in_place_while_its_block_is_neither_too_small_nor_mostly_empty() {
    let mut block = Block::new(b"key", &value(&[1; 100]));
    let place = |block: &Block| block.record().value.as_ptr();
    let first = place(&block);
    for size in [100, 111, 60, 111] {
        block.replace(&value(&vec![2; size]));
        assert_eq!((block.key(), block.record()), (&b"key"[..], value(&vec![2; size])));
        assert_eq!(place(&block), first, "{size} bytes");
    }
    for size in [112, 1_000, 0, 1] {
        let before = block.allocated_bytes();
        block.replace(&value(&vec![3; size]));
        assert_eq!((block.key(), block.record()), (&b"key"[..], value(&vec![3; size])));
        assert_eq!(block.allocated_bytes() == before, size == 1, "{size} bytes");
    }
}

#[test]
fn a_partition_that_runs_empty_gives_its_memory_back() {
    for ordered in [false, true] {
        let mut engine = filled(ordered, 1_000);
        assert_eq!((engine.hashed.is_empty(), engine.ordered.is_empty()), (ordered, !ordered));
        for index in 0..1_000 {
            let bytes = format!("{:016x}", machine::mix(index));
            engine.remove(&key(ordered, index, bytes.as_bytes()));
        }
        assert!(engine.is_empty() && engine.hashed.is_empty() && engine.ordered.is_empty());
    }
}

impl MemoryEngine {
    fn walk_all(&self, area: &Area) -> usize {
        let mut count = 0;
        let flow = self.walk_on(area, &mut self.walk(area), |_, _| {
            count += 1;
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        count
    }
}

fn whole(ordered: bool, partition: u32) -> Area {
    let (keyspace, partition) = (KeyspaceId(1), PartitionId(partition));
    Area { keyspace, partition, ordered, first: Match::MIN, last: Match::MAX }
}

/// One of the sixteen partitions of [`key`].
fn sixteenth(ordered: bool, partition: u32) -> Area {
    let first = u128::from(partition - 1) << 124;
    let last = Match(first + (u128::MAX >> 4));
    Area { first: Match(first), last, ..whole(ordered, partition) }
}

#[test]
fn a_walk_through_what_does_not_change_takes_each_record_once_and_says_how_far_it_is() {
    for ordered in [false, true] {
        let engine = filled(ordered, 16_000);
        let mut all = BTreeSet::new();
        for area in (1..=16).map(|partition| sixteenth(ordered, partition)) {
            let mut cursor = engine.walk(&area);
            let (count, mut taken) = (engine.walk_all(&area) as i32, 0);
            loop {
                let mut left = 100;
                let flow = engine.walk_on(&area, &mut cursor, |key, record| {
                    if left == 0 {
                        return ControlFlow::Break(());
                    }
                    assert_eq!(record, value(&[1; 128]));
                    assert!(all.insert(key.to_vec()), "{key:?} is taken twice");
                    (left, taken) = (left - 1, taken + 1);
                    ControlFlow::Continue(())
                });
                let walked = i32::from(engine.walked(&area, &cursor));
                assert!((walked - taken * 1_000 / count).abs() < 60, "{walked} of {taken}/{count}");
                if flow.is_continue() {
                    assert_eq!((walked, taken), (1_000, count));
                    break;
                }
            }
        }
        assert_eq!(all.len(), 16_000);
    }
}

#[test]
fn a_cleared_partition_gives_its_memory_back_and_is_due_no_more() {
    for ordered in [false, true] {
        let mut engine = filled(ordered, 1_000);
        for index in 0..1_000 {
            let bytes = format!("{:016x}", machine::mix(index));
            let record = Record { expiry_ms: index % 3, ..value(&[2; 8]) };
            engine.write(&key(ordered, index, bytes.as_bytes()), &record);
        }
        let (mut len, mut due) = (engine.len(), engine.due.len());
        for partition in 1..=16 {
            let area = sixteenth(ordered, partition);
            let mut left = engine.walk_all(&area);
            while engine.clear_on(&area, 10).is_break() {
                left -= 10;
                assert_eq!(engine.walk_all(&area), left, "ten at a time");
            }
            assert!((1..=10).contains(&left), "{left} records in the last piece");
            assert!(engine.len() < len && engine.due.len() < due, "partition {partition}");
            (len, due) = (engine.len(), engine.due.len());
        }
        assert!(engine.is_empty() && engine.hashed.is_empty() && engine.ordered.is_empty());
        assert!(engine.due.is_empty());
    }
}

#[test]
fn of_keys_that_have_the_upper_half_of_a_bound_those_inside_are_walked_through() {
    let keyspace = keyspace(KeyspaceKind::Hash);
    let mut engine = MemoryEngine::new(StoreId(1));
    let at = keyspace.match_value(b"{t}1");
    // All of one match value, some in the table and some in the tree beside it.
    for number in 0..2 * CROWD_MIN {
        put(&mut engine, &keyspace, format!("{{t}}{number}").as_bytes());
    }
    let (below, above) = (Match(at.0 - 1), Match(at.0 + 1));
    for (first, last, inside) in [
        (Match::MIN, below, false),
        (Match::MIN, at, true),
        (at, at, true),
        (at, Match::MAX, true),
        (above, Match::MAX, false),
    ] {
        engine.meet_keyspace(&keyspace);
        let area = Area { first, last, ..whole(false, 1) };
        assert_eq!(engine.walk_all(&area), if inside { 2 * CROWD_MIN } else { 0 }, "{area:?}");
        if !inside {
            assert!(engine.clear_on(&area, 1).is_continue());
            assert_eq!(engine.len(), 2 * CROWD_MIN, "nothing of others is cleared");
        }
    }
    let area = Area { first: at, last: at, ..whole(false, 1) };
    while engine.clear_on(&area, 3).is_break() {}
    assert!(engine.is_empty());
}

#[test]
fn a_record_without_expiry_has_no_entry_in_the_due_index() {
    let mut engine = MemoryEngine::new(StoreId(1));
    let key = key(false, 1, b"0123456789abcdef");
    for (expiry_ms, entries) in [(0, 0), (5, 1), (5, 1), (6, 1), (0, 0), (7, 1)] {
        engine.write(&key, &Record { expiry_ms, ..value(b"v") });
        assert_eq!(engine.due.len(), entries, "expiry {expiry_ms}");
    }
    engine.remove(&key);
    assert_eq!(engine.due.len(), 0);
}

/// Averaged over a doubling of the table: one that has just doubled is half empty. The index is
/// reckoned as the standard library's trees are: nodes of 11 places, 204 bytes, two thirds full.
#[test]
fn a_hashed_record_costs_about_100_bytes_beyond_key_and_value() {
    let counts = [40_000, 46_000, 53_000, 61_000, 70_000];
    let mut overhead = 0.0;
    for count in counts {
        let engine = filled(false, count);
        let mut bytes = engine.hashed.allocation_size();
        for table in &engine.hashed {
            bytes += table.slots.allocation_size();
            bytes += table.slots.iter().map(|s| s.block.allocated_bytes()).sum::<usize>();
            bytes += table.index.len() * 204 * 3 / 2 / 11;
            assert!(table.crowded.is_empty(), "keys without tags do not crowd");
        }
        overhead += bytes as f64 / count as f64 - 144.0;
    }
    let mean = overhead / counts.len() as f64;
    assert!((95.0..110.0).contains(&mean), "{mean} bytes");
    let told = filled(false, 53_000).usage() as f64 / 53_000.0 - 144.0;
    assert!((told - mean).abs() < 8.0, "{told} bytes, not {mean}");
}

fn keyspace(kind: KeyspaceKind) -> Keyspace {
    let (id, name, hot) = (KeyspaceId(1), "k".into(), HotPolicy::default());
    Keyspace { id, name, kind, seed: 0, replicas: 1, hot, content: None }
}

fn put(engine: &mut MemoryEngine, keyspace: &Keyspace, key: &[u8]) {
    let at = KeyRef {
        keyspace: keyspace.id,
        partition: PartitionId(1),
        ordered: keyspace.is_ordered(),
        match_value: keyspace.match_value(key),
        keyhash: keyspace.keyhash(key),
        key,
    };
    engine.write(&at, &value(b"v"));
}

/// All keys, in pieces of at most so many, each of which goes on behind the last key of the one
/// before; and the most places that were looked at for one.
fn in_pieces(
    engine: &MemoryEngine,
    keyspace: &Keyspace,
    at_most: usize,
    reverse: bool,
) -> (Vec<Vec<u8>>, usize) {
    let (mut keys, mut most, mut edge) = (Vec::<Vec<u8>>::new(), 0, None::<Vec<u8>>);
    loop {
        let at = edge.as_ref().map(|key| keyspace.match_value(key));
        let bound = edge.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let (first, last) = (Match::MIN, Match::MAX);
        let mut interval = Interval {
            keyspace,
            partition: PartitionId(1),
            first,
            last,
            start: Bound::Unbounded,
            end: Bound::Unbounded,
            reverse,
        };
        if reverse {
            (interval.last, interval.end) = (at.unwrap_or(last), bound);
        } else {
            (interval.first, interval.start) = (at.unwrap_or(first), bound);
        }
        LOOKS.set(0);
        let before = keys.len();
        engine.scan(&interval, |key, _| {
            keys.push(key.to_vec());
            if keys.len() - before < at_most {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        most = most.max(LOOKS.get());
        if keys.len() - before < at_most {
            return (keys, most);
        }
        edge = keys.last().cloned();
    }
}

#[test]
fn a_piece_of_a_scan_looks_at_what_it_gives_however_many_keys_share_a_match_value() {
    let keyspace = keyspace(KeyspaceKind::Hash);
    let mut engine = MemoryEngine::new(StoreId(1));
    let mut want = BTreeSet::new();
    let upload = UploadBody { client: 7, number: 9 };
    let keys = (0..40_000u32).map(|n| format!("{{t}}:{n}").into_bytes());
    let others = (0..1_000u32).map(|n| format!("k{n}").into_bytes());
    let parts = (0..10_000).map(|index| PartKey { key: b"big", upload, index }.to_bytes());
    for key in keys.chain(others).chain(parts) {
        put(&mut engine, &keyspace, &key);
        want.insert((keyspace.match_value(&key), key));
    }
    let want: Vec<Vec<u8>> = want.into_iter().map(|(_, key)| key).collect();
    for at_most in [10, 512] {
        for reverse in [false, true] {
            let (mut keys, most) = in_pieces(&engine, &keyspace, at_most, reverse);
            if reverse {
                keys.reverse();
            }
            assert!(keys == want, "all keys, in order");
            // Where a table ends it looks for a next place twice.
            let looks = at_most + 2 * CROWD_MIN + 2 * SLICES;
            assert!(most <= looks, "{most} places for {at_most} keys");
        }
    }
    let mut cursor = engine.walk(&whole(false, 1));
    let (mut walked, mut over) = (BTreeSet::new(), false);
    while !over {
        LOOKS.set(0);
        let mut left = 10;
        let flow = engine.walk_on(&whole(false, 1), &mut cursor, |key, _| {
            if left == 0 {
                return ControlFlow::Break(());
            }
            left -= 1;
            assert!(walked.insert(key.to_vec()), "{key:?} is taken twice");
            ControlFlow::Continue(())
        });
        over = flow.is_continue();
        assert!(LOOKS.get() <= 11, "{} places for ten records", LOOKS.get());
    }
    assert_eq!(walked.len(), want.len());
}

#[test]
fn keys_of_one_keyhash_do_not_make_each_other_s_lookups_slow() {
    let mut engine = MemoryEngine::new(StoreId(1));
    let keys: Vec<[u8; 16]> = (0..1_000u64).map(|n| u128::from(n).to_be_bytes()).collect();
    let at = |key| KeyRef { keyhash: 5, partition: PartitionId(1), ..self::key(false, 0, key) };
    for key in &keys {
        engine.write(&at(key), &value(key));
    }
    let slice = Slice::of(KeyspaceId(1), at(&keys[0]).match_value);
    let table = engine.table(slice).unwrap();
    assert_eq!((table.slots.len(), table.crowded.len()), (ALIKE_MAX, keys.len() - ALIKE_MAX));
    for key in &keys {
        assert!(engine.read(&at(key), |found| found == Some(value(key))));
        engine.remove(&at(key));
    }
    assert!(engine.is_empty() && engine.hashed.is_empty());
}

#[test]
fn keys_that_look_alike_in_the_index_are_all_visited_in_order() {
    // Of an ordered keyspace, because its match values are easily made up.
    let keyspace = keyspace(KeyspaceKind::Range { prefix: Vec::new() });
    let key = |half: u64, low: u64, rest: &str| {
        [&half.to_be_bytes()[..], &low.to_be_bytes(), rest.as_bytes()].concat()
    };
    // Two that differ in the lower half only, with keyhashes in the other order; two that differ
    // in nothing but the key; one that has the keyhash of another; and a crowd.
    let mut keys = vec![
        (key(1, 7, "c"), 1),
        (key(1, 5, "b"), 2),
        (key(2, 0, "e"), 3),
        (key(2, 0, "d"), 3),
        (key(3, 0, "f"), 3),
        (key(0, 9, "a"), 9),
    ];
    keys.extend((0..40).map(|n| (key(4, n % 3, &format!("{n:02}")), n * 7 % 40)));
    let mut table = Hashed::new(Slice::of(KeyspaceId(1), Match::MIN));
    for (key, keyhash) in &keys {
        table.insert(keyspace.match_value(key), *keyhash, key, &value(b""));
    }
    assert_eq!(table.crowded.len(), 40 - CROWD_MIN);
    let mut all: Vec<&[u8]> = keys.iter().map(|(key, _)| key.as_slice()).collect();
    all.sort_unstable();
    for reverse in [false, true] {
        for from in &all {
            let last = keyspace.match_value(&key(4, 1, ""));
            let interval = Interval {
                keyspace: &keyspace,
                partition: PartitionId(1),
                first: keyspace.match_value(from),
                last,
                start: Bound::Excluded(*from),
                end: Bound::Unbounded,
                reverse,
            };
            let mut seen: Vec<Vec<u8>> = Vec::new();
            let flow = table.scan(&interval, |key, _| {
                seen.push(key.to_vec());
                ControlFlow::Continue(())
            });
            assert!(flow.is_continue());
            if reverse {
                seen.reverse();
            }
            let inside = |key: &&&[u8]| **key > *from && keyspace.match_value(key) <= last;
            let want: Vec<Vec<u8>> = all.iter().filter(inside).map(|key| key.to_vec()).collect();
            assert_eq!(seen, want);
        }
    }
}

/// The total that the engine keeps against what the allocator gives, for both kinds of keyspaces.
#[test]
fn the_usage_is_that_of_the_records_and_goes_back_to_nothing() {
    let record = |round: u64, index: u64| Record {
        expiry_ms: [0, 77, 99][(index % 3) as usize] * round.min(1),
        ..value(&[1; 300][..(index * 31 % 300) as usize])
    };
    for ordered in [false, true] {
        let mut engine = MemoryEngine::new(StoreId(1));
        for (round, index) in (0..3).flat_map(|round| (0..1_000).map(move |index| (round, index))) {
            let bytes = format!("{:016x}", machine::mix(index));
            let record = Record { value: &[round as u8; 40], ..record(round, index) };
            engine.write(&key(ordered, index, bytes.as_bytes()), &record);
        }
        let per_record = engine.usage() / 1_000;
        assert!((110..320).contains(&per_record), "{per_record}");
        for index in 0..500 {
            let bytes = format!("{:016x}", machine::mix(index));
            engine.remove(&key(ordered, index, bytes.as_bytes()));
        }
        assert!(engine.usage() < 600 * per_record && engine.usage() > 400 * per_record);
        for partition in 1..=16 {
            while engine.clear_on(&sixteenth(ordered, partition), 7).is_break() {}
        }
        assert_eq!(engine.usage(), 0);
    }
}
