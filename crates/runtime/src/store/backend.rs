//! The engine of a shard whose values lie in a store that is there already: Redis or memcached.
//!
//! A value is under its own key there, as anybody else would have written it. What makes it a
//! record (version, expiry, whether it is a tombstone) is in memory here, in an index that is a
//! memory engine without values; a backend that can keep things keeps a copy of it, and of the
//! notes, from which the index is made at the start.
//!
//! Writes wait here, where reads see them, until [`sync`](Engine::sync) sends all of them at once
//! and waits for the answers. Reads fetch values; what was announced by
//! [`fetch_ahead`](Engine::fetch_ahead) comes with one round trip. Nothing fetched outlives a sync.
//!
//! A backend that goes away is waited for, as long as [`TRIES_MAX`] says; nobody is told anything
//! meanwhile. After that the engine has failed for good, as after an I/O error. One that answers
//! and refuses changes is another thing: they stay here and are sent again with the next sync, and
//! reads of all else go on ([`refusal`](BackendEngine::refusal)).

mod changes;
mod fitness;
mod interface;
mod listing;
mod memcached;
mod names;
mod redis;
mod scan;
mod sight;
mod sync;
mod undo;
mod url;

pub use changes::Changes;
pub use fitness::{Fitness, inspect};
pub use interface::{Backend, FoundValue, Kept, ListedValue, NoteMap, Trouble, WantedValue};
pub use memcached::MemcachedBackend;
pub use names::Spaces;
pub use redis::RedisBackend;
pub use sight::{TRIES_MAX, TRY_EVERY};
pub use url::{BackendUrl, NoBackendUrl};

use cluster::{ClockAhead, Keyspace, KeyspaceId, Match, PartitionId, StoreId};
use listing::Listing;
use node::engine::memory::{Cursor, MemoryEngine};
use node::engine::{Area, Engine, EngineError, Interval, KeyRef, Record, Written};
use scan::Seen;
use sight::Sight;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use undo::Undo;
use wire::Version;

/// The store of one shard, with its values in a backend.
pub struct BackendEngine<B> {
    index: MemoryEngine,
    notes: NoteMap,
    spaces: Spaces,
    hidden: BTreeSet<PartitionId>,
    /// Partitions that are being cleared: they show nothing.
    clearing: BTreeSet<PartitionId>,
    /// What was in the backend before, and is not among the records yet.
    listing: Listing,
    changes: Changes,
    /// What was in the index before them; while they are refused, what they make of it.
    undo: Undo,
    /// What the backend said when it refused the last changes.
    refused: Option<String>,
    /// Reads fetch too.
    sight: RefCell<Sight<B>>,
}

/// Records whose values a walk fetches at once: more than it takes before it breaks off to send
/// them, mostly, and few enough for the rest to be fetched again.
const WALKED_AT_ONCE: usize = 32;

/// Records and notes that are cleared at once, whatever is asked for: their removal is one command
/// of the backend, which others wait for.
const CLEARED_MAX: usize = 1_024;

impl<B: Backend> BackendEngine<B> {
    /// An engine over a backend that has kept this.
    #[must_use]
    pub fn new(backend: B, kept: Kept) -> Self {
        let Kept { index, notes, spaces, hidden, unlisted, old } = kept;
        let sight = Sight::new(backend);
        let (clearing, mut changes, refused) = (BTreeSet::new(), Changes::default(), None);
        old.into_iter().for_each(|old| changes.move_old(old, &index));
        let (sight, undo) = (RefCell::new(sight), Undo::default());
        let listing = Listing::of(unlisted);
        Self { index, notes, spaces, hidden, clearing, listing, changes, undo, refused, sight }
    }

    /// Whether this partition shows what nobody here has written. Scans could not: what is not in
    /// the index has no place in the order of keys.
    fn shows_found(&self, key: &KeyRef<'_>) -> bool {
        let goes = self.clearing.contains(&key.partition);
        !key.ordered && !goes && !self.hidden.contains(&key.partition)
    }

    /// What has to be fetched to read this key, if anything has.
    fn wanted(&self, key: &KeyRef<'_>) -> Option<WantedValue> {
        let known = self.index.read(key, |record| record.map(|record| record.tombstone));
        let with_expiry = match known {
            Some(true) => return None,
            Some(false) => false,
            None if self.shows_found(key) => true,
            None => return None,
        };
        let name = self.spaces.name(key.keyspace, key.key);
        self.changed(&name).is_none().then_some(WantedValue { name, with_expiry })
    }

    fn fetch(&self, wanted: Vec<WantedValue>) {
        self.sight.borrow_mut().fetch(wanted);
    }

    /// Calls back with the value under a name, which is in hand.
    fn with_found<R>(&self, name: &[u8], with: impl FnOnce(Option<&[u8]>, u64) -> R) -> R {
        if let Some(changed) = self.changed(name) {
            return with(changed.as_deref(), 0);
        }
        let sight = self.sight.borrow();
        let found = sight.found(name);
        let value = found.and_then(|found| found.value.as_deref());
        with(value, found.map_or(0, |found| found.expiry_ms))
    }

    /// Calls back with a record of the index and its value, which is in hand. One whose value is
    /// gone is no longer there, at the version that it had: what was computed from it elsewhere
    /// is still taken here.
    fn with_value<R>(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        record: Record<'_>,
        with: impl FnOnce(Record<'_>) -> R,
    ) -> R {
        if record.tombstone {
            return with(record);
        }
        let name = self.spaces.name(keyspace, key);
        self.with_found(&name, |value, _| match value {
            Some(value) => with(Record { value, ..record }),
            None => with(Record { tombstone: true, expiry_ms: COLLECTABLE, ..record }),
        })
    }

    /// As [`with_value`](Self::with_value), for whoever puts many into one datagram: a value that
    /// somebody else has written and that fits none is not there either.
    fn with_fitting<R>(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        record: Record<'_>,
        with: impl FnOnce(Record<'_>) -> R,
    ) -> R {
        self.with_value(keyspace, key, record, |record| {
            if key.len() + record.value.len() <= wire::ENTRY_MAX {
                return with(record);
            }
            with(Record { tombstone: true, expiry_ms: COLLECTABLE, value: &[], ..record })
        })
    }

    /// What is to be fetched for a record of the index.
    fn wanted_of(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        record: &Record<'_>,
    ) -> Option<WantedValue> {
        let name = self.spaces.name(keyspace, key);
        let elsewhere = !record.tombstone && self.changed(&name).is_none();
        elsewhere.then(|| WantedValue::value(name))
    }

    /// Forgets so many notes of a partition, and says how many.
    fn clear_notes(&mut self, partition: PartitionId, at_most: usize) -> usize {
        let Some(notes) = self.notes.get_mut(&partition) else { return 0 };
        let mut cleared = 0;
        while let Some((name, _)) = (cleared < at_most).then(|| notes.pop_first()).flatten() {
            self.changes.note(partition, &name, None);
            cleared += 1;
        }
        if notes.is_empty() {
            self.notes.remove(&partition);
        }
        cleared
    }
}

/// Expiry of a tombstone that nobody wrote: whoever is given it need not keep it.
const COLLECTABLE: u64 = 1;

impl<B: Backend> Engine for BackendEngine<B> {
    type Cursor = Cursor;

    const FOUND: Version = Version::FIRST;

    const FETCHES: bool = true;

    const OWNS: bool = false;

    /// What others find in the store has to be the value.
    const BIG: bool = false;

    fn read<R>(&self, key: &KeyRef<'_>, with: impl FnOnce(Option<Record<'_>>) -> R) -> R {
        self.fetch(self.wanted(key).into_iter().collect());
        self.index.read(key, |record| match record {
            Some(record) => {
                self.with_value(key.keyspace, key.key, record, |record| with(Some(record)))
            }
            None if !self.shows_found(key) => with(None),
            None => {
                let name = self.spaces.name(key.keyspace, key.key);
                self.with_found(&name, |value, expiry_ms| {
                    let version = Self::FOUND;
                    with(value.map(|value| Record { version, expiry_ms, tombstone: false, value }))
                })
            }
        })
    }

    fn written(&self, key: &KeyRef<'_>) -> Option<Written> {
        self.index.written(key)
    }

    fn fetch_ahead(&mut self, keys: &[KeyRef<'_>]) {
        let wanted = keys.iter().filter_map(|key| self.wanted(key)).collect();
        self.fetch(wanted);
    }

    fn set_clock(&mut self, ahead: ClockAhead) {
        self.sight.get_mut().backend_mut().set_clock(ahead);
    }

    fn meet_keyspace(&mut self, keyspace: &Keyspace) {
        self.index.meet_keyspace(keyspace);
        if self.spaces.learn(keyspace.id, &keyspace.name) {
            self.changes.name_keyspace(keyspace.id, &keyspace.name);
        }
    }

    /// Whether it shows what was there before, and whether all of that is listed.
    fn inherit(&mut self, from: PartitionId, to: PartitionId) {
        if self.hidden.contains(&from) {
            self.hide_found(to);
        }
        if self.listing.concerns(from) {
            self.begin_listing(to);
        }
    }

    fn begin_listing(&mut self, partition: PartitionId) {
        self.listing.begin(partition);
        self.changes.list(partition, true);
    }

    fn is_listed(&self, partition: PartitionId) -> bool {
        !self.listing.concerns(partition)
    }

    fn is_listing(&self) -> bool {
        self.listing.is_under_way()
    }

    /// A page of what the backend lists. What is over the bound of a piece, because a backend lists
    /// more at once than it was asked for, is for the next time.
    fn list_on(
        &mut self,
        keyspaces: &[KeyspaceId],
        place: impl Fn(KeyspaceId, &[u8]) -> Option<(PartitionId, Match, u64)>,
    ) {
        if self.listing.needs_page() {
            let cursor = self.listing.cursor();
            let listed = self.sight.get_mut().attempt(|backend| backend.list(cursor));
            let Some((next, names)) = listed else { return };
            self.listing.take_page(next, names);
        }
        for (name, expiry_ms) in self.listing.piece() {
            let mut keys =
                keyspaces.iter().filter_map(|id| Some((*id, self.spaces.key(*id, &name)?)));
            let fits = |(_, key): &(KeyspaceId, &[u8])| (1..=wire::KEY_MAX).contains(&key.len());
            let Some((keyspace, key)) = keys.find(fits) else { continue };
            let Some((partition, match_value, keyhash)) = place(keyspace, key) else { continue };
            let key = KeyRef { keyspace, partition, ordered: false, match_value, keyhash, key };
            if self.listing.concerns(partition) && self.version_written(&key).is_none() {
                let record =
                    Record { version: Self::FOUND, expiry_ms, tombstone: false, value: &[] };
                self.remember(&key);
                self.index.write(&key, &record);
                self.changes.adopt(&key, &record);
            }
        }
        for partition in self.listing.done() {
            self.changes.list(partition, false);
        }
    }

    fn hide_found(&mut self, partition: PartitionId) {
        if self.hidden.insert(partition) {
            self.changes.hide(partition);
        }
    }

    fn write(&mut self, key: &KeyRef<'_>, record: &Record<'_>) {
        self.remember(key);
        self.index.write(key, &Record { value: &[], ..*record });
        let name = self.spaces.name(key.keyspace, key.key);
        self.changes.write(key, name, record);
    }

    fn remove(&mut self, key: &KeyRef<'_>) {
        if self.version_written(key).is_some() {
            self.remember(key);
            self.index.remove(key);
            let name = self.spaces.name(key.keyspace, key.key);
            self.changes.remove(key.keyspace, key.key, name);
            self.changes.only_cleared = false;
        }
    }

    fn scan(
        &self,
        interval: &Interval<'_>,
        visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        self.scan_for(Seen::Values, interval, visit);
    }

    /// Asks the backend only whether there are values. One that somebody else has written is there
    /// whatever its length.
    fn scan_keys(
        &self,
        interval: &Interval<'_>,
        visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        self.scan_for(Seen::Keys, interval, visit);
    }

    /// Without values.
    fn due(
        &self,
        until_ms: u64,
        visit: impl FnMut(KeyspaceId, &[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        self.index.due(until_ms, visit);
    }

    fn walk(&self, area: &Area) -> Cursor {
        self.index.walk(area)
    }

    /// Looks ahead with a clone of the cursor, fetches, and then goes so far.
    fn walk_on(
        &self,
        area: &Area,
        cursor: &mut Cursor,
        mut visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        loop {
            let (mut wanted, mut ahead) = (Vec::new(), 0);
            let looked = self.index.walk_on(area, &mut cursor.clone(), |key, record| {
                if ahead == WALKED_AT_ONCE {
                    return ControlFlow::Break(());
                }
                ahead += 1;
                wanted.extend(self.wanted_of(area.keyspace, key, &record));
                ControlFlow::Continue(())
            });
            self.fetch(wanted);
            let (mut left, mut broke) = (ahead, false);
            let walked = self.index.walk_on(area, cursor, |key, record| {
                if left == 0 {
                    return ControlFlow::Break(());
                }
                left -= 1;
                let show = |record: Record<'_>| visit(key, record);
                let flow = self.with_fitting(area.keyspace, key, record, show);
                broke = flow.is_break();
                flow
            });
            if broke {
                return ControlFlow::Break(());
            }
            if looked.is_continue() {
                assert!(walked.is_continue(), "what was looked at ahead is all that there is");
                return ControlFlow::Continue(());
            }
        }
    }

    fn walked(&self, area: &Area, cursor: &Cursor) -> u16 {
        self.index.walked(area, cursor)
    }

    fn clear_on(&mut self, area: &Area, at_most: usize) -> ControlFlow<()> {
        let (partition, at_most) = (area.partition, at_most.min(CLEARED_MAX));
        let was_empty = self.changes.is_empty();
        let left = at_most - self.clear_notes(partition, at_most);
        let (changes, spaces) = (&mut self.changes, &self.spaces);
        let cleared = self.index.clear_with(area, left, |key| {
            let name = spaces.name(area.keyspace, key);
            changes.remove(area.keyspace, key, name);
        });
        self.changes.only_cleared |= was_empty;
        if cleared.is_continue() && !self.notes.contains_key(&partition) {
            self.clearing.remove(&partition);
            return ControlFlow::Continue(());
        }
        self.clearing.insert(partition);
        if self.changes.only_cleared {
            // It is said again by the next sync if this fails.
            let _ = self.send();
        }
        ControlFlow::Break(())
    }

    fn note(&mut self, partition: PartitionId, name: &[u8], note: Option<&[u8]>) {
        if !B::KEEPS {
            return;
        }
        self.changes.note(partition, name, note);
        self.changes.only_cleared = false;
        match note {
            Some(note) => {
                self.notes.entry(partition).or_default().insert(name.into(), note.into());
            }
            None => {
                if let Some(notes) = self.notes.get_mut(&partition) {
                    notes.remove(name);
                }
            }
        }
    }

    fn notes_from(
        &self,
        partition: PartitionId,
        from: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) {
        let Some(notes) = self.notes.get(&partition) else { return };
        let mut notes = notes.range::<[u8], _>((Bound::Included(from), Bound::Unbounded));
        let _ = notes.try_for_each(|(name, note)| visit(name, note));
    }

    fn sync(&mut self) -> Result<(), EngineError> {
        self.send()
    }

    fn store_id(&self) -> StoreId {
        self.index.store_id()
    }

    fn usage(&self) -> u64 {
        self.index.usage()
    }

    fn len(&self) -> usize {
        self.index.len()
    }
}
