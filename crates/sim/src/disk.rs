//! A storage engine that loses in a crash what it had not synced, and nothing else. Where syncs
//! take time they go on apart, and a crash meanwhile leaves all of one or nothing of it.

#[cfg(test)]
mod tests;

use cluster::{KeyspaceId, Match, Partition, PartitionId, StoreId};
use node::engine::{Area, Engine, EngineError, Interval, KeyRef, Record};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use wire::big::{is_big, time_of};
use wire::{PartKey, Version};

/// The store of one shard, on a disk of the simulated world.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    store_id: StoreId,
    /// What the node sees.
    live: Contents,
    /// What a crash leaves.
    synced: Contents,
    /// What the sync under way makes durable.
    syncing: Vec<Change>,
    /// What makes `live` of `synced` once it has.
    unsynced: Vec<Change>,
    /// Keys whose changes a crash does not take back.
    backed: BTreeSet<RecordKey>,
    /// Whether syncs go on apart.
    apart: bool,
    /// What takes the last syncs back, the latest last.
    undo: VecDeque<Vec<Change>>,
    /// An older copy of what was synced, for somebody to put back.
    copy: Option<Contents>,
}

/// Syncs that can be taken back.
const UNDO_MAX: usize = 8;

/// Of what is left of a partition, one part in so many is cleared at a time: small worlds see many
/// pieces, and large ones not thousands.
const CLEARED_PART: usize = 8;

/// What a record takes beside key and value.
const ENTRY_BYTES: usize = 17;

pub(crate) type RecordKey = (KeyspaceId, u128, Vec<u8>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Contents {
    records: BTreeMap<RecordKey, Stored>,
    notes: BTreeMap<(PartitionId, Vec<u8>), Vec<u8>>,
    /// What all of that takes.
    bytes: u64,
}

/// The committed state of a key, as the disk holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    version: Version,
    expiry_ms: u64,
    tombstone: bool,
    value: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Change {
    Record(RecordKey, Option<Stored>),
    Note((PartitionId, Vec<u8>), Option<Vec<u8>>),
}

impl Disk {
    /// An empty disk.
    #[must_use]
    pub(crate) fn new(store_id: StoreId) -> Self {
        Self {
            store_id,
            live: Contents::default(),
            synced: Contents::default(),
            syncing: Vec::new(),
            unsynced: Vec::new(),
            backed: BTreeSet::new(),
            apart: false,
            undo: VecDeque::new(),
            copy: None,
        }
    }

    /// From now on syncs go on apart.
    pub(crate) fn sync_apart(&mut self) {
        self.apart = true;
    }

    /// Keeps a copy of what is synced.
    pub(crate) fn keep_copy(&mut self) {
        self.copy = Some(self.synced.clone());
    }

    /// Puts the copy back, if there is one that differs; only after a crash.
    pub(crate) fn put_back(&mut self) -> bool {
        let Some(copy) = self.copy.clone().filter(|copy| *copy != self.synced) else {
            return false;
        };
        self.undo.clear();
        (self.live, self.synced) = (copy.clone(), copy);
        true
    }

    /// Loses the last syncs, as a disk does that had not kept what it said to have; only after a
    /// crash. Says whether there were any.
    pub(crate) fn lose_syncs(&mut self, most: usize) -> bool {
        let kept = self.undo.len().saturating_sub(most);
        let lost = self.undo.split_off(kept);
        let any = !lost.is_empty();
        for change in lost.into_iter().rev().flat_map(|changes| changes.into_iter().rev()) {
            self.synced.apply(&change);
        }
        self.live = self.synced.clone();
        any
    }

    /// The counters of each partition say that the last version that there can be was given out;
    /// only after a crash. Says whether there were any.
    pub(crate) fn spend_versions(&mut self) -> bool {
        self.undo.clear();
        let counters = self.synced.notes.iter_mut().filter(|((_, name), _)| name == b"c");
        let newest = counters.filter_map(|(_, note)| note.first_chunk_mut::<8>());
        let spent = newest.map(|newest| *newest = Version::MAX.get().to_be_bytes()).count();
        self.live = self.synced.clone();
        spent > 0
    }

    /// Makes changes durable, which can be taken back for a while.
    fn make_durable(&mut self, changes: impl Iterator<Item = Change>) {
        let undo = changes.map(|change| self.synced.apply(&change)).collect();
        self.undo.push_back(undo);
        if self.undo.len() > UNDO_MAX {
            self.undo.pop_front();
        }
    }

    /// Loses what was not synced, all of it: a batch is never torn ([`Engine::sync`]). What was
    /// being synced may have come to the disk.
    pub(crate) fn crash(&mut self, keeps_syncing: bool) {
        let syncing = std::mem::take(&mut self.syncing);
        if keeps_syncing {
            self.make_durable(syncing.into_iter());
        }
        self.unsynced.clear();
        self.backed.clear();
        self.live = self.synced.clone();
    }

    /// Version and value of every key that has one, in key order.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&RecordKey, Version, &[u8])> {
        let values = self.live.records.iter().filter(|(_, stored)| !stored.tombstone);
        values.map(|(key, stored)| (key, stored.version, stored.value.as_slice()))
    }

    /// A record of a partition goes wrong, if it is the first time that this one does: it is lost,
    /// or its bytes are others, or it is one from before, or a deleted one is there again. Parts of
    /// big values, and what expires, are left alone. Gives the record that a client would now see
    /// wrong.
    pub(crate) fn rot(
        &mut self,
        partition: &Partition,
        which: u64,
        how: u64,
        first: impl FnOnce(&RecordKey) -> bool,
    ) -> Option<RecordKey> {
        let inside = |((keyspace, at, key), stored): &(&RecordKey, &Stored)| {
            let mine = *keyspace == partition.keyspace && partition.holds(Match(*at));
            // What expires meanwhile would not be found.
            let plain = PartKey::parse(key).is_none();
            mine && plain && (stored.tombstone || stored.expiry_ms == 0)
        };
        let records: Vec<_> = self.live.records.iter().filter(inside).collect();
        let place = which.checked_rem(records.len() as u64)?;
        let place = usize::try_from(place).expect("below a length");
        let (key, stored) = records.get(place)?;
        let (key, stored) = ((*key).clone(), (*stored).clone());
        if !first(&key) {
            return None;
        }
        let wrong = match how % 3 {
            _ if stored.tombstone => {
                let version = stored.version.before();
                Some(Stored { version, expiry_ms: 0, tombstone: false, value: b"7".to_vec() })
            }
            0 => None,
            1 => Some(Stored { value: [&stored.value[..], b"0"].concat(), ..stored }),
            _ => Some(Stored { version: stored.version.before(), value: b"8".to_vec(), ..stored }),
        };
        self.change(Change::Record(key.clone(), wrong));
        Some(key)
    }

    /// Manifests and parts of big values.
    pub(crate) fn big_values(&self) -> impl Iterator<Item = (&RecordKey, &[u8])> {
        let big = |stored: &Stored| !stored.tombstone && is_big(stored.expiry_ms);
        let values = self.live.records.iter().filter(move |(_, stored)| big(stored));
        values.map(|(key, stored)| (key, stored.value.as_slice()))
    }

    /// The records of a keyspace from this key to this match value.
    fn records_between(
        &self,
        from: RecordKey,
        last: Match,
    ) -> impl Iterator<Item = (&RecordKey, &Stored)> {
        let (keyspace, ..) = from;
        let records = self.live.records.range(from..);
        records.take_while(move |((of, at, _), _)| *of == keyspace && *at <= last.0)
    }

    /// Records that a crash may take back.
    fn not_durable(&self) -> impl Iterator<Item = &RecordKey> {
        let changes = self.syncing.iter().chain(&self.unsynced);
        changes.filter_map(|change| match change {
            Change::Record(key, _) => Some(key).filter(|key| !self.backed.contains(*key)),
            Change::Note(..) => None,
        })
    }

    fn change(&mut self, change: Change) {
        if let Change::Record(key, _) = &change {
            self.backed.remove(key);
        }
        self.live.apply(&change);
        self.unsynced.push(change);
    }
}

impl Contents {
    /// Makes a change and gives back the one that undoes it.
    fn apply(&mut self, change: &Change) -> Change {
        let undo = match change {
            Change::Record(key, Some(stored)) => {
                Change::Record(key.clone(), self.records.insert(key.clone(), stored.clone()))
            }
            Change::Record(key, None) => Change::Record(key.clone(), self.records.remove(key)),
            Change::Note(name, Some(note)) => {
                Change::Note(name.clone(), self.notes.insert(name.clone(), note.clone()))
            }
            Change::Note(name, None) => Change::Note(name.clone(), self.notes.remove(name)),
        };
        self.bytes = self.bytes + change.bytes() - undo.bytes();
        undo
    }
}

impl Change {
    /// What there is of it afterwards.
    fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Record((.., key), Some(stored)) => key.len() + stored.value.len() + ENTRY_BYTES,
            Self::Note((_, name), Some(note)) => name.len() + note.len(),
            Self::Record(_, None) | Self::Note(_, None) => 0,
        };
        bytes as u64
    }
}

impl Stored {
    fn as_record(&self) -> Record<'_> {
        Record {
            version: self.version,
            expiry_ms: self.expiry_ms,
            tombstone: self.tombstone,
            value: &self.value,
        }
    }
}

/// Before all records of a partition.
fn start_of(area: &Area) -> RecordKey {
    (area.keyspace, area.first.0, Vec::new())
}

fn record_key(key: &KeyRef<'_>) -> RecordKey {
    (key.keyspace, key.match_value.0, key.key.to_vec())
}

impl Engine for Disk {
    /// The key to go on with; `None` when the walk is over.
    type Cursor = Option<RecordKey>;

    fn read<R>(&self, key: &KeyRef<'_>, with: impl FnOnce(Option<Record<'_>>) -> R) -> R {
        with(self.live.records.get(&record_key(key)).map(Stored::as_record))
    }

    fn write(&mut self, key: &KeyRef<'_>, record: &Record<'_>) {
        let Record { version, expiry_ms, tombstone, value } = *record;
        let stored = Stored { version, expiry_ms, tombstone, value: value.to_vec() };
        self.change(Change::Record(record_key(key), Some(stored)));
    }

    fn remove(&mut self, key: &KeyRef<'_>) {
        self.change(Change::Record(record_key(key), None));
    }

    fn scan(
        &self,
        interval: &Interval<'_>,
        mut visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        if interval.first > interval.last {
            return;
        }
        let first = (interval.keyspace.id, interval.first.0, Vec::new());
        let found = self.records_between(first, interval.last);
        let inside = |(_, at, key): &(_, u128, Vec<u8>)| interval.holds(Match(*at), key);
        let mut found: Vec<_> = found.filter(|(at, _)| inside(at)).collect();
        if interval.reverse {
            found.reverse();
        }
        for ((.., key), stored) in found {
            if visit(key, stored.as_record()).is_break() {
                return;
            }
        }
    }

    fn due(
        &self,
        until_ms: u64,
        mut visit: impl FnMut(KeyspaceId, &[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        let is_due = |stored: &Stored| (1..=until_ms).contains(&time_of(stored.expiry_ms));
        let mut due: Vec<_> = self.live.records.iter().filter(|(_, s)| is_due(s)).collect();
        due.sort_by_key(|(_, stored)| time_of(stored.expiry_ms));
        for ((keyspace, _, key), stored) in due {
            if visit(*keyspace, key, stored.as_record()).is_break() {
                return;
            }
        }
    }

    fn walk(&self, area: &Area) -> Self::Cursor {
        Some(start_of(area))
    }

    fn walk_on(
        &self,
        area: &Area,
        cursor: &mut Self::Cursor,
        mut visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(from) = cursor.take() else { return ControlFlow::Continue(()) };
        for (at, stored) in self.records_between(from, area.last) {
            let (.., key) = at;
            if visit(key, stored.as_record()).is_break() {
                *cursor = Some(at.clone());
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn walked(&self, area: &Area, cursor: &Self::Cursor) -> u16 {
        cursor.as_ref().map_or(1_000, |(_, at, _)| area.thousandths_before(Match(*at)))
    }

    /// A bounded piece is smaller than it might be, and gone for good as soon as it may be; without
    /// a bound all goes at once, like any other change.
    fn clear_on(&mut self, area: &Area, at_most: usize) -> ControlFlow<()> {
        let records = self.records_between(start_of(area), area.last);
        let records = records.map(|(at, _)| Change::Record(at.clone(), None));
        let notes = self.live.notes.range((area.partition, Vec::new())..);
        let notes = notes.take_while(|((of, _), _)| *of == area.partition);
        let notes = notes.map(|(at, _)| Change::Note(at.clone(), None));
        let mut changes: Vec<_> = notes.chain(records).collect();
        let piece = match at_most {
            usize::MAX => changes.len(),
            _ => (changes.len() / CLEARED_PART).clamp(1, at_most),
        };
        let more = changes.len() > piece;
        changes.truncate(piece);
        if more {
            self.make_durable(changes.iter().cloned());
        }
        for change in changes {
            self.change(change);
        }
        if more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn note(&mut self, partition: PartitionId, name: &[u8], note: Option<&[u8]>) {
        self.change(Change::Note((partition, name.to_vec()), note.map(<[u8]>::to_vec)));
    }

    fn notes_from(
        &self,
        partition: PartitionId,
        from: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) {
        let notes = self.live.notes.range((partition, from.to_vec())..);
        let mut notes = notes.take_while(|((p, _), _)| *p == partition);
        let _ = notes.try_for_each(|((_, name), note)| visit(name, note));
    }

    fn sync(&mut self) -> Result<(), EngineError> {
        let mut changes = std::mem::take(&mut self.syncing);
        changes.append(&mut self.unsynced);
        if !changes.is_empty() {
            self.make_durable(changes.into_iter());
        }
        Ok(())
    }

    fn syncs_apart(&self) -> bool {
        self.apart
    }

    fn begin_sync(&mut self) -> Result<bool, EngineError> {
        if !self.apart {
            return self.sync().map(|()| false);
        }
        assert!(self.syncing.is_empty(), "there is one sync at a time");
        self.syncing = std::mem::take(&mut self.unsynced);
        Ok(!self.syncing.is_empty())
    }

    fn end_sync(&mut self, how: Result<(), EngineError>) -> Result<(), EngineError> {
        let changes = std::mem::take(&mut self.syncing);
        if !changes.is_empty() {
            self.make_durable(changes.into_iter());
        }
        how
    }

    fn see_backed(&mut self, key: &KeyRef<'_>) {
        self.backed.insert(record_key(key));
    }

    fn is_durable(&self, key: &KeyRef<'_>) -> bool {
        let at = record_key(key);
        !self.not_durable().any(|changed| *changed == at)
    }

    fn is_all_durable(&self) -> bool {
        self.not_durable().next().is_none()
    }

    fn store_id(&self) -> StoreId {
        self.store_id
    }

    fn usage(&self) -> u64 {
        self.live.bytes
    }

    fn len(&self) -> usize {
        self.live.records.len()
    }
}
