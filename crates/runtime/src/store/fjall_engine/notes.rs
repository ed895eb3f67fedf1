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
use super::folded::FoldedNotes;
use super::tree::{Direction, Tree, merge};
use super::unfolded::{NoteChange, Unfolded};
use crate::store::StoreError;
use cluster::PartitionId;
use fjall::{OwnedWriteBatch, Slice};
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;

/// Records lie in a ring of so many slots, each where one was that does not count any more.
pub(super) const RING: u64 = 1_024;

/// What a change takes in memory besides key and value.
const CHANGE_BYTES: usize = 96;

/// The tree of notes, and above it what was changed in turns that are not folded.
pub(super) struct Notes {
    folded: FoldedNotes,
    records: Tree,
    changed: Unfolded,
    /// Slots of changes that no record has yet.
    unrecorded: Vec<usize>,
    /// Turns whose records count, the oldest first.
    turns: VecDeque<Turn>,
    /// Bytes of these in memory, and from how many on they are folded.
    bytes: usize,
    fold_from: usize,
    /// Number of the next turn.
    next: u64,
}

/// A turn on record.
struct Turn {
    number: u64,
    /// Slots of its changes.
    slots: Vec<usize>,
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
            folded: FoldedNotes::open(folded).map_err(|error| directory.error(error))?,
            records,
            changed: Unfolded::default(),
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
            self.change(partition, codec::note_name(key), value.map(Slice::from));
        }
        let slots = std::mem::take(&mut self.unrecorded);
        self.count(record.number, slots);
    }

    pub(super) fn put(&mut self, partition: PartitionId, name: &[u8], note: &[u8]) {
        self.change(partition, name, Some(note.into()));
    }

    pub(super) fn remove(&mut self, partition: PartitionId, name: &[u8]) {
        self.change(partition, name, None);
    }

    fn change(&mut self, partition: PartitionId, name: &[u8], note: Option<Slice>) {
        self.unrecorded.extend(self.changed.change(partition, name, note));
    }

    pub(super) fn is_changed(&self) -> bool {
        !self.unrecorded.is_empty()
    }

    /// Bytes of memory that turns take which are not folded, and the keys of what is.
    pub(super) fn usage(&self) -> u64 {
        self.bytes as u64 + self.folded.usage()
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
        let folded = self.folded.tree();
        let mut above: BTreeMap<_, _> = folded.above(range, Direction::Forward).collect();
        let changed = self.changed.of_partition(partition, from);
        above.extend(changed.map(|NoteChange { key, note, .. }| (key, note)));
        let visit = |at: &[u8], note: &[u8]| visit(codec::note_name(at), note);
        merge(
            folded.on_disk().range::<&[u8], _>(range),
            above.into_iter(),
            Direction::Forward,
            visit,
        )
    }

    /// Makes what was changed part of the batch, as the record of a turn that also says how many
    /// keys there are.
    pub(super) fn move_changes(&mut self, len: u64, batch: &mut OwnedWriteBatch) {
        let slots = std::mem::take(&mut self.unrecorded);
        self.record(slots, len, batch);
    }

    /// The same with nothing but what was changed of a partition.
    pub(super) fn move_changes_of(
        &mut self,
        partition: PartitionId,
        len: u64,
        batch: &mut OwnedWriteBatch,
    ) {
        let Self { unrecorded, changed, .. } = self;
        let slots = unrecorded.extract_if(.., |slot| changed.get(*slot).partition == partition);
        let slots = slots.collect();
        self.record(slots, len, batch);
    }

    fn record(&mut self, slots: Vec<usize>, len: u64, batch: &mut OwnedWriteBatch) {
        let number = self.next;
        self.next += 1;
        while self.turns.len() as u64 >= RING - 1 || self.bytes > self.fold_from {
            self.fold();
        }
        let oldest = self.turns.front().map_or(number, |turn| turn.number);
        let changes = slots.iter().map(|slot| self.changed.get(*slot));
        let changes = changes.map(|change| (&*change.key, change.note.as_deref()));
        let record = codec::encode_turn((number, oldest, len), changes);
        self.count(number, slots);
        self.records.put(codec::turn_slot(number), record);
        self.records.move_changes(batch);
        self.folded.tree_mut().move_changes(batch);
    }

    /// These changes are on record as this turn.
    fn count(&mut self, number: u64, slots: Vec<usize>) {
        let mut bytes = 0;
        for slot in &slots {
            self.changed.record(*slot, number);
            let NoteChange { key, note, .. } = self.changed.get(*slot);
            bytes += CHANGE_BYTES + key.len() + note.as_ref().map_or(0, |it| it.len());
        }
        self.bytes += bytes;
        self.turns.push_back(Turn { number, slots, bytes });
    }

    /// Takes the oldest turn to the tree, and its record from the ring: what is flushed to tables
    /// later is what counts then. A note that came and went since is not in the tree.
    fn fold(&mut self) {
        let Some(Turn { number, slots, bytes }) = self.turns.pop_front() else { return };
        self.bytes -= bytes;
        for slot in slots {
            let Some(change) = self.changed.take_if_of(number, slot) else { continue };
            match change.note {
                Some(note) => self.folded.put(change.key, note),
                None => self.folded.remove(change.key),
            }
        }
        self.records.remove(codec::turn_slot(number));
    }

    /// Its trees on disk.
    pub(super) fn trees_mut(&mut self) -> [&mut Tree; 2] {
        [self.folded.tree_mut(), &mut self.records]
    }
}
