//! What was changed of the notes in turns that are not folded, in memory.
//!
//! A change is looked for by its name once, when it is made. Turns know it by its slot.

use super::codec;
use cluster::PartitionId;
use fjall::Slice;
use hashbrown::HashTable;
use slab::Slab;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

/// What became of a note last.
pub(super) struct NoteChange {
    pub(super) partition: PartitionId,
    /// Of the note in the tree.
    pub(super) key: Slice,
    /// `None` if it was removed.
    pub(super) note: Option<Slice>,
    /// The turn that has it on record.
    turn: Option<u64>,
}

/// Changes by their slots, and what finds them.
#[derive(Default)]
pub(super) struct Unfolded {
    changes: Slab<NoteChange>,
    /// By partition, and then by name.
    slots: BTreeMap<PartitionId, HashTable<usize>>,
    /// Clients choose parts of names, so the hash is one that they cannot know.
    hasher: RandomState,
}

impl NoteChange {
    fn name(&self) -> &[u8] {
        codec::note_name(&self.key)
    }
}

impl Unfolded {
    /// A note becomes this, or is removed. Gives the slot of the change, which is to be recorded,
    /// unless an earlier change in that slot still is.
    pub(super) fn change(
        &mut self,
        partition: PartitionId,
        name: &[u8],
        note: Option<Slice>,
    ) -> Option<usize> {
        let Self { changes, slots, hasher } = self;
        let of_partition = slots.entry(partition).or_default();
        let hash = hasher.hash_one(name);
        let is_it = |slot: &usize| changes.get(*slot).is_some_and(|change| change.name() == name);
        if let Some(slot) = of_partition.find(hash, is_it).copied() {
            let change = changes.get_mut(slot)?;
            change.note = note;
            return change.turn.take().map(|_| slot);
        }
        let key = codec::note_key(partition, name).into();
        let slot = changes.insert(NoteChange { partition, key, note, turn: None });
        let hash_of = |slot: &usize| changes.get(*slot).map_or(0, |it| hasher.hash_one(it.name()));
        of_partition.insert_unique(hash, slot, hash_of);
        Some(slot)
    }

    /// The change in a slot that is in use.
    pub(super) fn get(&self, slot: usize) -> &NoteChange {
        self.changes.get(slot).expect("it was changed, and is not folded")
    }

    /// This turn has the change on record.
    pub(super) fn record(&mut self, slot: usize, turn: u64) {
        if let Some(change) = self.changes.get_mut(slot) {
            change.turn = Some(turn);
        }
    }

    /// Takes a change that has not changed again since this turn.
    pub(super) fn take_if_of(&mut self, turn: u64, slot: usize) -> Option<NoteChange> {
        let change = self.changes.get(slot).filter(|change| change.turn == Some(turn))?;
        let (partition, hash) = (change.partition, self.hasher.hash_one(change.name()));
        if let Some(of_partition) = self.slots.get_mut(&partition) {
            if let Ok(entry) = of_partition.find_entry(hash, |of| *of == slot) {
                entry.remove();
            }
            if of_partition.is_empty() {
                self.slots.remove(&partition);
            }
        }
        self.changes.try_remove(slot)
    }

    /// Changes of a partition with names from this one on, in any order.
    pub(super) fn of_partition<'a>(
        &'a self,
        partition: PartitionId,
        from: &'a [u8],
    ) -> impl Iterator<Item = &'a NoteChange> {
        let slots = self.slots.get(&partition).into_iter().flatten();
        let changes = slots.filter_map(|slot| self.changes.get(*slot));
        changes.filter(move |change| change.name() >= from)
    }
}
