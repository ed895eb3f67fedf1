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
    /// What was changed since the last sync began, if syncs go on apart.
    changed: Option<Changed>,
    syncing: Changed,
}

/// Changes: keys of records, and whether there are any.
#[derive(Debug, Default)]
struct Changed {
    keys: Vec<Vec<u8>>,
    any: bool,
}

impl Noted {
    pub(super) fn new(id: u16) -> Self {
        let memory = MemoryEngine::new(StoreId(id.into()));
        let (changed, syncing) = (None, Changed::default());
        Self { memory, notes: BTreeMap::new(), pieces: Vec::new(), changed, syncing }
    }

    /// From now on syncs go on apart.
    pub(super) fn sync_apart(&mut self) {
        self.changed = Some(Changed::default());
    }

    fn change(&mut self, key: Option<&[u8]>) {
        if let Some(changed) = &mut self.changed {
            changed.any = true;
            changed.keys.extend(key.map(<[u8]>::to_vec));
        }
    }

    fn not_durable(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.changed.iter().chain([&self.syncing]).flat_map(|changed| &changed.keys)
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
        self.change(Some(key.key));
        self.memory.write(key, record);
    }

    fn remove(&mut self, key: &KeyRef<'_>) {
        self.change(Some(key.key));
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
        self.change(None);
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

    fn syncs_apart(&self) -> bool {
        self.changed.is_some()
    }

    fn begin_sync(&mut self) -> Result<bool, EngineError> {
        assert!(!self.syncing.any, "there is one sync at a time");
        self.syncing = self.changed.as_mut().map(std::mem::take).unwrap_or_default();
        Ok(self.syncing.any)
    }

    fn end_sync(&mut self, how: Result<(), EngineError>) -> Result<(), EngineError> {
        self.syncing = Changed::default();
        how
    }

    fn see_backed(&mut self, key: &KeyRef<'_>) {
        if let Some(changed) = &mut self.changed {
            changed.keys.retain(|changed| changed != key.key);
        }
    }

    fn is_durable(&self, key: &KeyRef<'_>) -> bool {
        !self.not_durable().any(|changed| changed == key.key)
    }

    fn is_all_durable(&self) -> bool {
        self.not_durable().next().is_none()
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
