//! The memory engine, by the check for all engines and by what is its own.

use super::*;
use crate::engine::conformance::{Draw, Model, Notes, Step};
use proptest::prelude::*;

fn key(ordered: bool, index: u64, bytes: &[u8]) -> KeyRef<'_> {
    let hash = machine::mix(index);
    KeyRef {
        keyspace: KeyspaceId(1),
        partition: PartitionId(1 + u32::try_from(hash >> 60).unwrap()),
        ordered,
        match_value: Match(u128::from_be_bytes(*bytes.first_chunk().unwrap())),
        keyhash: hash.rotate_left(32),
        key: bytes,
    }
}

fn value(bytes: &[u8]) -> Record<'_> {
    Record { version: 7, expiry_ms: 0, tombstone: false, value: bytes }
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

#[test]
fn a_walk_through_what_does_not_change_takes_each_record_once_and_says_how_far_it_is() {
    for ordered in [false, true] {
        let engine = filled(ordered, 16_000);
        let mut all = BTreeSet::new();
        for area in (1..=16).map(|partition| whole(ordered, partition)) {
            let mut cursor = engine.walk(&area);
            let (mut taken, mut walked) = (0u32, vec![engine.walked(&area, &cursor)]);
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
                walked.push(engine.walked(&area, &cursor));
                if flow.is_continue() {
                    break;
                }
            }
            let pieces = (0..taken).step_by(100).map(|count| count * 1_000 / taken);
            let expected: Vec<_> = pieces.chain([1_000]).collect();
            assert_eq!(walked.iter().copied().map(u32::from).collect::<Vec<_>>(), expected);
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
            let area = whole(ordered, partition);
            let mut left = engine.walk_all(&area);
            while engine.clear_on(&area, 10).is_break() {
                assert_eq!(engine.walk_all(&area), 0, "it is out of sight at once");
                left -= 10;
                assert_eq!(engine.detached[&area.partition].len(), left, "ten at a time");
            }
            assert!((1..=10).contains(&left), "{left} records in the last piece");
            assert!(engine.len() < len && engine.due.len() < due, "partition {partition}");
            (len, due) = (engine.len(), engine.due.len());
        }
        assert!(engine.detached.is_empty());
        assert!(engine.is_empty() && engine.hashed.is_empty() && engine.ordered.is_empty());
        assert!(engine.due.is_empty());
    }
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

/// Averaged over a doubling of the table: one that has just doubled is half empty.
#[test]
fn a_hashed_record_costs_about_75_bytes_beyond_key_and_value() {
    let counts = [40_000, 46_000, 53_000, 61_000, 70_000];
    let mut overhead = 0.0;
    for count in counts {
        let engine = filled(false, count);
        let mut bytes = engine.hashed.allocation_size();
        for table in &engine.hashed {
            bytes += table.slots.allocation_size();
            bytes += table.slots.iter().map(|s| s.block.allocated_bytes()).sum::<usize>();
        }
        overhead += bytes as f64 / count as f64 - 144.0;
    }
    let mean = overhead / counts.len() as f64;
    assert!((70.0..80.0).contains(&mean), "{mean} bytes");
}
