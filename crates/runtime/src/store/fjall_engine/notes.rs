//! Notes of the protocol: what a turn changes of them goes to disk as one entry, not as one for
//! each.
//!
//! A write leaves some eight changes of notes, most of them undone a few turns later. As entries of
//! a tree they would cost more than the write itself. So a batch takes all of them as the record of
//! its turn, and they stay in memory, where reads see them. The oldest turn is *folded* when there
//! are many: what has not changed since goes to the tree of notes, in the batch whose record says
//! that this turn does not count any more.

use super::codec::{self, TurnRecord};
use super::directory::StoreDirectory;
use super::tree::{Direction, Tree, merge};
use crate::store::StoreError;
use cluster::PartitionId;
use fjall::{OwnedWriteBatch, Slice};
use hashbrown::HashMap;
use std::collections::{BTreeMap, VecDeque};
use std::hash::RandomState;
use std::ops::ControlFlow;

/// Records lie in a ring of so many slots, each over one that does not count any more.
pub(super) const RING: u64 = 1_024;

/// What a change takes in memory besides key and value.
const CHANGE_BYTES: usize = 96;

/// The tree of notes, and above it what was changed in turns that are not folded.
pub(super) struct Notes {
    folded: Tree,
    records: Tree,
    /// By partition, and then by the key in the tree. Clients choose parts of keys, so the hash is
    /// one that they cannot know; whoever visits them sorts them.
    changed: BTreeMap<PartitionId, HashMap<Slice, Change, RandomState>>,
    /// Keys whose change no record has yet.
    unrecorded: Vec<(PartitionId, Slice)>,
    /// Turns whose records count, the oldest first.
    turns: VecDeque<Turn>,
    /// Bytes of these in memory, and from how many on they are folded.
    bytes: usize,
    fold_from: usize,
    /// Number of the next turn.
    next: u64,
}

/// What became of a note last.
struct Change {
    /// `None` if it was removed.
    value: Option<Slice>,
    /// The turn that has it on record.
    turn: Option<u64>,
}

/// A turn on record.
struct Turn {
    number: u64,
    keys: Vec<(PartitionId, Slice)>,
    bytes: usize,
}

impl Notes {
    /// Notes as the trees have them, and the number of keys that the newest record names.
    pub(super) fn open(
        directory: &StoreDirectory,
        folded: Tree,
        records: Tree,
        fold_from: u64,
    ) -> Result<(Self, u64), StoreError> {
        let damaged = |why: String| StoreError::damaged(directory.path(), why);
        let mut found = BTreeMap::new();
        for entry in records.on_disk().iter() {
            let (slot, bytes) = entry.into_inner().map_err(|error| directory.error(error))?;
            let number = codec::decode_turn(&bytes).map(|record| record.number);
            let Some(number) = number.filter(|number| *slot == codec::turn_slot(*number)) else {
                return Err(damaged(format!("slot {slot:?} holds no record of a turn")));
            };
            found.insert(number, bytes);
        }
        let newest = found.values().next_back().and_then(|bytes| codec::decode_turn(bytes));
        let newest = newest.map(|TurnRecord { number, oldest, len, .. }| (number, oldest, len));
        let mut notes = Self {
            folded,
            records,
            changed: BTreeMap::new(),
            unrecorded: Vec::new(),
            turns: VecDeque::new(),
            bytes: 0,
            fold_from: usize::try_from(fold_from).unwrap_or(usize::MAX),
            next: newest.map_or(0, |(number, ..)| number + 1),
        };
        let Some((number, oldest, len)) = newest else { return Ok((notes, 0)) };
        for number in oldest..=number {
            let record = found.get(&number).and_then(|bytes| codec::decode_turn(bytes));
            let record = record.ok_or_else(|| damaged(format!("turn {number} is missing")))?;
            notes.replay(&record);
        }
        Ok((notes, len))
    }

    fn replay(&mut self, record: &TurnRecord<'_>) {
        for (key, value) in &record.changes {
            let Some(partition) = codec::note_partition(key) else { continue };
            self.change(partition, (*key).into(), value.map(Slice::from));
        }
        let keys = std::mem::take(&mut self.unrecorded);
        self.count(record.number, keys, |_, _| {});
    }

    pub(super) fn put(&mut self, partition: PartitionId, name: &[u8], note: &[u8]) {
        self.change(partition, codec::note_key(partition, name).into(), Some(note.into()));
    }

    pub(super) fn remove(&mut self, partition: PartitionId, name: &[u8]) {
        self.change(partition, codec::note_key(partition, name).into(), None);
    }

    fn change(&mut self, partition: PartitionId, key: Slice, value: Option<Slice>) {
        let of_partition = self.changed.entry(partition).or_default();
        let before = of_partition.insert(key.clone(), Change { value, turn: None });
        if before.is_none_or(|before| before.turn.is_some()) {
            self.unrecorded.push((partition, key));
        }
    }

    pub(super) fn is_changed(&self) -> bool {
        !self.unrecorded.is_empty()
    }

    /// Bytes of memory that turns take which are not folded.
    pub(super) fn usage(&self) -> u64 {
        self.bytes as u64
    }

    /// Visits the notes of a partition in the order of their names, from this one on, until told to
    /// break.
    pub(super) fn scan(
        &self,
        partition: PartitionId,
        from: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> fjall::Result<()> {
        let (start, end) = codec::notes_of(partition, from);
        let range = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
        let folded = self.folded.on_disk().range::<&[u8], _>(range);
        let changed = self.changed.get(&partition).into_iter().flatten();
        let changed = changed.map(|(key, change)| (key, &change.value));
        let mut changed: Vec<_> =
            changed.filter(|(key, _)| codec::note_name(key) >= from).collect();
        changed.sort_unstable_by_key(|(key, _)| *key);
        let visit = |at: &[u8], note: &[u8]| visit(codec::note_name(at), note);
        merge(folded, changed.into_iter(), Direction::Forward, visit)
    }

    /// Makes what was changed part of the batch, as the record of a turn that also says how many
    /// keys there are.
    pub(super) fn move_changes(
        &mut self,
        len: u64,
        batch: &mut OwnedWriteBatch,
    ) -> fjall::Result<()> {
        let keys = std::mem::take(&mut self.unrecorded);
        self.record(keys, len, batch)
    }

    /// The same with nothing but what was changed of a partition.
    pub(super) fn move_changes_of(
        &mut self,
        partition: PartitionId,
        len: u64,
        batch: &mut OwnedWriteBatch,
    ) -> fjall::Result<()> {
        let keys = self.unrecorded.extract_if(.., |(of, _)| *of == partition).collect();
        self.record(keys, len, batch)
    }

    fn record(
        &mut self,
        keys: Vec<(PartitionId, Slice)>,
        len: u64,
        batch: &mut OwnedWriteBatch,
    ) -> fjall::Result<()> {
        let number = self.next;
        self.next += 1;
        while self.turns.len() as u64 >= RING - 1 || self.bytes > self.fold_from {
            self.fold()?;
        }
        let oldest = self.turns.front().map_or(number, |turn| turn.number);
        let mut record = codec::begin_turn(number, oldest, len);
        self.count(number, keys, |key, note| codec::add_to_turn(&mut record, key, note));
        self.records.put(&codec::turn_slot(number), &record);
        self.records.move_changes(batch);
        self.folded.move_changes(batch);
        Ok(())
    }

    /// These changes are on record as this turn; each is visited.
    fn count(
        &mut self,
        number: u64,
        keys: Vec<(PartitionId, Slice)>,
        mut visit: impl FnMut(&[u8], Option<&[u8]>),
    ) {
        let mut bytes = 0;
        for (partition, key) in &keys {
            let of_partition = self.changed.get_mut(partition);
            let change = of_partition.and_then(|it| it.get_mut(key)).expect("it was changed");
            change.turn = Some(number);
            visit(key, change.value.as_deref());
            bytes += CHANGE_BYTES + key.len() + change.value.as_ref().map_or(0, |it| it.len());
        }
        self.bytes += bytes;
        self.turns.push_back(Turn { number, keys, bytes });
    }

    /// Takes the oldest turn to the tree. A note that came and went since is not there.
    fn fold(&mut self) -> fjall::Result<()> {
        let Some(Turn { number, keys, bytes }) = self.turns.pop_front() else { return Ok(()) };
        self.bytes -= bytes;
        for (partition, key) in keys {
            let Some(value) = self.take_if_of(number, partition, &key) else { continue };
            match value {
                Some(value) => self.folded.put(&key, &value),
                None if self.folded.on_disk().contains_key(&key)? => self.folded.remove(&key),
                None => {}
            }
        }
        Ok(())
    }

    /// Takes a change that has not changed again since this turn.
    fn take_if_of(
        &mut self,
        turn: u64,
        partition: PartitionId,
        key: &Slice,
    ) -> Option<Option<Slice>> {
        let of_partition = self.changed.get_mut(&partition)?;
        let change = of_partition.get(key).filter(|change| change.turn == Some(turn))?;
        let value = change.value.clone();
        of_partition.remove(key);
        if of_partition.is_empty() {
            self.changed.remove(&partition);
        }
        Some(value)
    }

    /// Its trees on disk.
    pub(super) fn trees(&self) -> [&Tree; 2] {
        [&self.folded, &self.records]
    }

    pub(super) fn trees_mut(&mut self) -> [&mut Tree; 2] {
        [&mut self.folded, &mut self.records]
    }
}
