//! An engine as plain as can be: maps in memory.

use super::step::{self, Change, Key, Scan, Step};
use crate::engine::{Area, Engine, Interval, KeyRef, Record, Written};
use cluster::{KeyspaceId, PartitionId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::ops::ControlFlow;
use wire::{Version, big::time_of};

/// Whether the engine under test keeps notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notes {
    /// It survives crashes, and so do they.
    Kept,
    /// It loses everything in a crash.
    Forgotten,
}

/// What an engine should hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    records: BTreeMap<Key, Owned>,
    notes: BTreeMap<(PartitionId, Vec<u8>), Vec<u8>>,
    keeps: Notes,
}

/// A record of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Owned {
    version: Version,
    expiry_ms: u64,
    tombstone: bool,
    value: Vec<u8>,
}

impl Owned {
    fn new(record: Record<'_>) -> Self {
        let Record { version, expiry_ms, tombstone, value } = record;
        Self { version, expiry_ms, tombstone, value: value.to_vec() }
    }

    fn as_record(&self) -> Record<'_> {
        let Self { version, expiry_ms, tombstone, value } = self;
        Record { version: *version, expiry_ms: *expiry_ms, tombstone: *tombstone, value }
    }
}

impl Key {
    fn as_ref(&self) -> KeyRef<'_> {
        KeyRef {
            keyspace: self.keyspace,
            partition: self.partition,
            ordered: self.ordered,
            match_value: self.match_value,
            keyhash: self.keyhash,
            key: &self.bytes,
        }
    }
}

impl Model {
    /// An empty one.
    #[must_use]
    pub fn new(keeps: Notes) -> Self {
        Self { records: BTreeMap::new(), notes: BTreeMap::new(), keeps }
    }

    /// Carries a step out on the engine and here, and checks what the engine shows of it.
    ///
    /// # Panics
    ///
    /// If the engine does not do what it should.
    pub fn step(&mut self, engine: &mut impl Engine, step: &Step) {
        match step {
            Step::Change(change) => self.change(engine, change),
            Step::Read(key) => self.check_read(engine, key),
            Step::Scan(scan) => self.check_scan(engine, scan),
            Step::Due { until_ms, visits } => self.check_due(engine, *until_ms, *visits),
            Step::Notes(partition) => self.check_notes(engine, *partition),
            Step::Walk(walk) => self.walk(engine, walk),
            Step::Sync => assert_eq!(engine.sync(), Ok(()), "nothing fails here"),
        }
    }

    /// Carries a change out on the engine and here, and checks that it shows.
    pub(super) fn change(&mut self, engine: &mut impl Engine, change: &Change) {
        self.apply_change(change);
        match change {
            Change::Write { key, version, expiry_ms, tombstone, value } => {
                let (version, expiry_ms, tombstone) = (*version, *expiry_ms, *tombstone);
                engine.write(&key.as_ref(), &Record { version, expiry_ms, tombstone, value });
            }
            Change::Remove(key) => engine.remove(&key.as_ref()),
            Change::Note { partition, name, note } => {
                engine.note(*partition, name, note.as_deref());
            }
            Change::Clear(area) => {
                while engine.clear_on(area, usize::MAX).is_break() {}
                self.check_due(engine, u64::MAX, usize::MAX);
            }
        }
        self.check_change(engine, change);
    }

    /// Carries a step out here alone.
    pub fn apply(&mut self, step: &Step) {
        step.changes().for_each(|change| self.apply_change(change));
    }

    pub(super) fn apply_change(&mut self, change: &Change) {
        match change {
            Change::Write { key, version, expiry_ms, tombstone, value } => {
                let (version, expiry_ms, tombstone) = (*version, *expiry_ms, *tombstone);
                let record = Record { version, expiry_ms, tombstone, value };
                self.records.insert(key.clone(), Owned::new(record));
            }
            Change::Remove(key) => {
                self.records.remove(key);
            }
            Change::Note { partition, name, note } => {
                let at = (*partition, name.clone());
                match note {
                    Some(note) => self.notes.insert(at, note.clone()),
                    None => self.notes.remove(&at),
                };
            }
            Change::Clear(area) => {
                self.records.retain(|key, _| key.partition != area.partition);
                self.notes.retain(|(partition, _), _| *partition != area.partition);
            }
        }
    }

    /// Checks that the engine holds exactly this, as far as it can be asked. `touched` are all the
    /// steps that may have left something in it.
    ///
    /// # Panics
    ///
    /// If it holds anything else.
    pub fn check(&self, engine: &impl Engine, touched: &[Step]) {
        for change in touched.iter().flat_map(Step::changes) {
            self.check_change(engine, change);
        }
        for area in step::areas() {
            self.check_area(engine, &area);
        }
        self.check_due(engine, u64::MAX, usize::MAX);
        assert_eq!(engine.len(), self.records.len(), "the number of records");
    }

    /// Whether the engine reads as this model does, for all that the steps touched.
    #[must_use]
    pub fn is_held_by(&self, engine: &impl Engine, touched: &[Step]) -> bool {
        touched.iter().flat_map(Step::changes).all(|change| match change {
            Change::Write { key, .. } | Change::Remove(key) => {
                read(engine, key) == self.records.get(key).cloned()
            }
            Change::Note { partition, .. } => {
                notes(engine, *partition) == self.notes_of(*partition)
            }
            // What it removed was written by others of these steps.
            Change::Clear(_) => true,
        })
    }

    fn check_change(&self, engine: &impl Engine, change: &Change) {
        match change {
            Change::Write { key, .. } | Change::Remove(key) => self.check_read(engine, key),
            Change::Note { partition, .. } => self.check_notes(engine, *partition),
            Change::Clear(area) => self.check_area(engine, area),
        }
    }

    /// Checks all that the engine holds of a partition.
    pub(super) fn check_area(&self, engine: &impl Engine, area: &Area) {
        self.check_whole_walk(engine, area);
        self.check_scan(engine, &Scan::whole(area));
        self.check_notes(engine, area.partition);
    }

    /// The records of a partition by their keys.
    pub(super) fn records_of(
        &self,
        partition: PartitionId,
    ) -> impl Iterator<Item = (&[u8], Record<'_>)> {
        let records = self.records.iter().filter(move |(key, _)| key.partition == partition);
        records.map(|(key, record)| (key.bytes.as_slice(), record.as_record()))
    }

    /// The records that have an expiry, with their versions.
    pub(super) fn due(&self) -> impl Iterator<Item = ((KeyspaceId, Vec<u8>), Version)> {
        let due = self.records.iter().filter(|(_, record)| time_of(record.expiry_ms) != 0);
        due.map(|(key, record)| ((key.keyspace, key.bytes.clone()), record.version))
    }

    fn check_read(&self, engine: &impl Engine, key: &Key) {
        let expected = self.records.get(key);
        assert_same(read(engine, key), expected.cloned(), key);
        let written = expected.map(|it| Written { version: it.version, tombstone: it.tombstone });
        assert_same(engine.written(&key.as_ref()), written, key);
    }

    fn check_scan(&self, engine: &impl Engine, scan: &Scan) {
        let interval = Interval {
            keyspace: &scan.keyspace,
            partition: scan.partition,
            first: scan.first,
            last: scan.last,
            start: scan.start.as_ref().map(Vec::as_slice),
            end: scan.end.as_ref().map(Vec::as_slice),
            reverse: scan.reverse,
        };
        let mut found = Vec::new();
        engine.scan(&interval, |key, record| {
            found.push((key.to_vec(), Owned::new(record)));
            until(found.len() >= scan.visits)
        });
        let mut expected: Vec<_> = self
            .records
            .iter()
            .filter(|(key, _)| (key.keyspace, key.partition) == (scan.keyspace.id, scan.partition))
            .filter(|(key, _)| interval.holds(key.match_value, &key.bytes))
            .map(|(key, record)| (key.match_value, key.bytes.clone(), record.clone()))
            .collect();
        expected.sort();
        if scan.reverse {
            expected.reverse();
        }
        expected.truncate(scan.visits);
        let expected: Vec<_> =
            expected.into_iter().map(|(_, bytes, record)| (bytes, record)).collect();
        let mut keys = Vec::new();
        engine.scan_keys(&interval, |key, record| {
            keys.push((key.to_vec(), Owned::new(Record { value: &[], ..record })));
            until(keys.len() >= scan.visits)
        });
        let valueless = |(key, record): &(Vec<u8>, Owned)| {
            (key.clone(), Owned { value: Vec::new(), ..*record })
        };
        assert_same(keys, expected.iter().map(valueless).collect(), scan);
        assert_same(found, expected, scan);
    }

    fn check_due(&self, engine: &impl Engine, until_ms: u64, visits: usize) {
        let mut found = Vec::new();
        engine.due(until_ms, |keyspace, key, record| {
            // An engine may leave values out here.
            let record = Owned::new(Record { value: &[], ..record });
            found.push((time_of(record.expiry_ms), keyspace, key.to_vec(), record));
            until(found.len() >= visits)
        });
        let mut due: Vec<_> = self
            .records
            .iter()
            .filter(|(_, record)| (1..=until_ms).contains(&time_of(record.expiry_ms)))
            .map(|(key, record)| {
                let record = Owned { value: Vec::new(), ..*record };
                (time_of(record.expiry_ms), key.keyspace, key.bytes.clone(), record)
            })
            .collect();
        due.sort();
        // Among records of one expiry the order is free.
        assert_same(
            found.iter().map(|(expiry_ms, ..)| *expiry_ms).collect::<Vec<_>>(),
            due.iter().map(|(expiry_ms, ..)| *expiry_ms).take(visits).collect(),
            &(until_ms, visits),
        );
        let distinct: BTreeSet<_> = found.iter().collect();
        assert_eq!(distinct.len(), found.len(), "each is visited once");
        for one in &found {
            assert!(due.binary_search(one).is_ok(), "{one:?} is not due");
        }
    }

    fn check_notes(&self, engine: &impl Engine, partition: PartitionId) {
        assert_same(notes(engine, partition), self.notes_of(partition), &partition);
    }

    pub(super) fn notes_of(&self, partition: PartitionId) -> Vec<(Vec<u8>, Vec<u8>)> {
        match self.keeps {
            Notes::Forgotten => Vec::new(),
            Notes::Kept => self
                .notes
                .iter()
                .filter(|((of, _), _)| *of == partition)
                .map(|((_, name), note)| (name.clone(), note.clone()))
                .collect(),
        }
    }
}

fn read(engine: &impl Engine, key: &Key) -> Option<Owned> {
    engine.read(&key.as_ref(), |record| record.map(Owned::new))
}

fn notes(engine: &impl Engine, partition: PartitionId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    engine.notes(partition, |name, note| found.push((name.to_vec(), note.to_vec())));
    let mut bit_by_bit: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut from = Some(Vec::new());
    while let Some(name) = from.take() {
        engine.notes_from(partition, &name, |name, note| {
            bit_by_bit.push((name.to_vec(), note.to_vec()));
            from = Some([name, &[0]].concat());
            until(bit_by_bit.len().is_multiple_of(3))
        });
    }
    assert_same(&bit_by_bit, &found, &"notes from one on");
    found
}

fn until(enough: bool) -> ControlFlow<()> {
    if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

fn assert_same<T: PartialEq + Debug>(found: T, expected: T, asked: &impl Debug) {
    assert!(found == expected, "asked for {asked:?}\nfound {found:?}\nexpected {expected:?}");
}
