//! An engine that keeps notes, so that a node can be started anew on it.

use crate::engine::memory::MemoryEngine;
use crate::engine::{Area, Engine, EngineError, Interval, KeyRef, Record};
use cluster::{KeyspaceId, PartitionId, StoreId};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The memory engine with notes, so that a node can be started anew on it.
pub(super) struct Noted {
    pub(super) memory: MemoryEngine,
    notes: BTreeMap<(PartitionId, Vec<u8>), Vec<u8>>,
    /// How much was to be cleared at most, each time.
    pub(super) pieces: Vec<usize>,
}

impl Noted {
    pub(super) fn new(id: u16) -> Self {
        let memory = MemoryEngine::new(StoreId(id.into()));
        Self { memory, notes: BTreeMap::new(), pieces: Vec::new() }
    }

    /// The notes of a partition whose names begin with this letter.
    pub(super) fn notes_named(&self, partition: PartitionId, letter: u8) -> usize {
        let mut found = 0;
        self.notes(partition, |name, _| found += usize::from(name.first() == Some(&letter)));
        found
    }
}

impl Engine for Noted {
    type Cursor = <MemoryEngine as Engine>::Cursor;

    fn read<R>(&self, key: &KeyRef<'_>, with: impl FnOnce(Option<Record<'_>>) -> R) -> R {
        self.memory.read(key, with)
    }

    fn write(&mut self, key: &KeyRef<'_>, record: &Record<'_>) {
        self.memory.write(key, record);
    }

    fn remove(&mut self, key: &KeyRef<'_>) {
        self.memory.remove(key);
    }

    fn scan(
        &self,
        interval: &Interval<'_>,
        visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        self.memory.scan(interval, visit);
    }

    fn due(
        &self,
        until_ms: u64,
        visit: impl FnMut(KeyspaceId, &[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        self.memory.due(until_ms, visit);
    }

    fn walk(&self, area: &Area) -> Self::Cursor {
        self.memory.walk(area)
    }

    fn walk_on(
        &self,
        area: &Area,
        cursor: &mut Self::Cursor,
        visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.memory.walk_on(area, cursor, visit)
    }

    fn walked(&self, area: &Area, cursor: &Self::Cursor) -> u16 {
        self.memory.walked(area, cursor)
    }

    fn clear_on(&mut self, area: &Area, at_most: usize) -> ControlFlow<()> {
        self.pieces.push(at_most);
        self.notes.retain(|(partition, _), _| *partition != area.partition);
        self.memory.clear_on(area, at_most)
    }

    fn note(&mut self, partition: PartitionId, name: &[u8], note: Option<&[u8]>) {
        let at = (partition, name.to_vec());
        match note {
            Some(note) => self.notes.insert(at, note.to_vec()),
            None => self.notes.remove(&at),
        };
    }

    fn notes_from(
        &self,
        partition: PartitionId,
        from: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) {
        let notes = self.notes.range((partition, from.to_vec())..);
        let mut notes = notes.take_while(|((of, _), _)| *of == partition);
        let _ = notes.try_for_each(|((_, name), note)| visit(name, note));
    }

    fn sync(&mut self) -> Result<(), EngineError> {
        self.memory.sync()
    }

    fn store_id(&self) -> StoreId {
        self.memory.store_id()
    }

    fn usage(&self) -> u64 {
        self.memory.usage()
    }

    fn len(&self) -> usize {
        self.memory.len()
    }
}
