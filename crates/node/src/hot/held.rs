//! What a shard holds of other nodes' keys, whoever put it there: copies of hot keys, and writes of
//! keys that are delegated.
//!
//! A copy is not kept on record, and goes if there is little room: its key has a home. A write of a
//! delegation is on record, and stays until that is over: its home may not know of it.

#[cfg(test)]
mod tests;

use crate::engine::{Engine, Record};
use crate::hot::delegation::disks::{Disks, Recorded};
use crate::replica::judge::{entry, judge};
use arrayvec::ArrayVec;
use cluster::{KeyspaceId, PartitionId, is_plausible_revision};
use machine::{Instant, UnixMs};
use std::collections::BTreeMap;
use std::ops::{Bound, RangeInclusive};
use wire::{Code, DelegationId, Entry, Version};

/// The keys of a shard of which a copy or a write is held.
#[derive(Debug, Default)]
pub(crate) struct HeldCopies {
    table: BTreeMap<KeyspaceId, BTreeMap<Box<[u8]>, HeldKey>>,
    /// How many copies there are, and the bytes that they take.
    copies: usize,
    copy_bytes: usize,
    /// Whether there is little room, so that few copies are held.
    few: bool,
    /// Where the search for a copy that nobody reads goes on.
    hand: Option<(KeyspaceId, Box<[u8]>)>,
}

/// What is held of one key: a copy, a write, or both.
#[derive(Debug, Default)]
struct HeldKey {
    copy: Option<HeldCopy>,
    write: Option<HeldWrite>,
    disks: Option<Box<Disks>>,
}

/// A copy.
#[derive(Debug)]
struct HeldCopy {
    version: Version,
    expiry_ms: u64,
    /// `None`: the key has no value.
    value: Option<Box<[u8]>>,
    /// Whether it was read since the hand last came by.
    read: bool,
}

/// The newest write of a delegated key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldWrite {
    pub(crate) delegation: DelegationId,
    pub(crate) version: Version,
    /// Whether this node committed it as the last of its chain, or has been told.
    pub(crate) committed: bool,
    pub(crate) value: Box<[u8]>,
    /// The newest version of the delegation that is known to be on disk, and stands for older ones.
    pub(crate) on_disk: Version,
    /// Older ones of the delegation that may not be committed yet. Not on record.
    overtaken: Overtaken,
}

/// What became of a write that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// It is on record since now.
    pub(crate) recorded: bool,
    /// Its value is news as a copy.
    pub(crate) news: bool,
}

/// Writes of one key by version, the oldest first: reads use them until the next commit.
type Overtaken = ArrayVec<(Version, Box<[u8]>), OVERTAKEN_MAX>;

/// More than are ever on their way to one node, if nothing is lost.
const OVERTAKEN_MAX: usize = 4;
/// What a write takes beside key and value, about.
const WRITE_BYTES: usize = 200;

/// Notes of delegated writes: no partition has this id.
pub(crate) const DELEGATED: PartitionId = PartitionId(u32::MAX);
/// First letter of the names of those of keys.
const KEY: u8 = b'k';

impl HeldCopies {
    /// The writes that the engine has on record.
    pub(crate) fn restore<E: Engine>(now: Instant, engine: &E) -> Self {
        let mut found = Self::default();
        engine.notes(DELEGATED, |name, note| {
            if let Some((&KEY, place)) = name.split_first()
                && let Some((id, key)) = place.split_first_chunk::<2>()
                && let Some(write) = HeldWrite::from_note(note)
                && is_plausible_revision(now, write.delegation.order())
                && write.version.is_plausible()
            {
                let id = KeyspaceId(u16::from_be_bytes(*id));
                found.entry(id, key).write = Some(write);
            }
        });
        found
    }

    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Option<&HeldKey> {
        self.table.get(&keyspace)?.get(key)
    }

    fn get_mut(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Option<&mut HeldKey> {
        self.table.get_mut(&keyspace)?.get_mut(key)
    }

    fn entry(&mut self, keyspace: KeyspaceId, key: &[u8]) -> &mut HeldKey {
        self.table.entry(keyspace).or_default().entry(key.into()).or_default()
    }

    /// What this node answers a read that may be told these versions. A copy whose time has come
    /// answers nothing: the tail has to see to it.
    pub(crate) fn answer(
        &mut self,
        now: UnixMs,
        (keyspace, key): (KeyspaceId, &[u8]),
        versions: RangeInclusive<Version>,
    ) -> Option<(Code, Entry<'_>)> {
        let HeldKey { copy, write, .. } = self.table.get_mut(&keyspace)?.get_mut(key)?;
        if let Some(copy) = copy {
            copy.read = true;
            let record = copy.record();
            let code = judge(key, Some(&record), now);
            if code.is_decided() && versions.contains(&copy.version) {
                return Some((code, entry(&record)));
            }
        }
        let write = write.as_ref().filter(|it| it.committed && versions.contains(&it.version))?;
        Some((Code::Ok, entry(&write.record())))
    }

    /// Keeps a copy, unless a newer one of the key is held. Gives the version held then. One of the
    /// same version takes the place of the other: it may be what has been made right since.
    pub(crate) fn keep(
        &mut self,
        keyspace: KeyspaceId,
        key: &[u8],
        record: &Record<'_>,
    ) -> Version {
        let known = self.get(keyspace, key).and_then(|held| held.copy.as_ref());
        if let Some(known) = known.filter(|known| known.version > record.version) {
            return known.version;
        }
        let copy = HeldCopy {
            version: record.version,
            expiry_ms: record.expiry_ms,
            value: (!record.tombstone).then(|| record.value.into()),
            read: false,
        };
        self.copies += 1;
        self.copy_bytes += copy.bytes(key);
        let old = self.entry(keyspace, key).copy.replace(copy);
        self.has_gone(key, old);
        while self.copies > COPIES_MAX || self.copy_bytes > self.copy_bytes_max() {
            self.drop_one(Some((keyspace, key)));
        }
        record.version
    }

    fn has_gone(&mut self, key: &[u8], copy: Option<HeldCopy>) {
        if let Some(copy) = copy {
            self.copies -= 1;
            self.copy_bytes -= copy.bytes(key);
        }
    }

    /// How many copies there are.
    pub(crate) fn copies(&self) -> usize {
        self.copies
    }

    /// How many keys it holds writes of. A controller delegates few keys.
    pub(crate) fn writes(&self) -> usize {
        self.all_writes().count()
    }

    fn all_writes(&self) -> impl Iterator<Item = (&[u8], &HeldWrite)> {
        let held = self.table.values().flatten();
        held.filter_map(|(key, held)| Some((&**key, held.write.as_ref()?)))
    }

    /// Bytes that all of it takes, about.
    pub(crate) fn bytes(&self) -> u64 {
        let writes: usize = self.all_writes().map(|(key, write)| key.len() + write.bytes()).sum();
        let disks =
            self.table.values().flat_map(BTreeMap::values).filter_map(|it| it.disks.as_ref());
        (self.copy_bytes + writes + disks.map(|it| it.bytes()).sum::<usize>()) as u64
    }

    /// Says whether there is room for many copies.
    pub(crate) fn limit(&mut self, many: bool) {
        self.few = !many;
        while self.copy_bytes > self.copy_bytes_max() {
            self.drop_one(None);
        }
    }

    fn copy_bytes_max(&self) -> usize {
        if self.few { FEW_BYTES_MAX } else { BYTES_MAX }
    }

    /// Drops a copy that was not read since the hand last came by; not the newcomer.
    fn drop_one(&mut self, newcomer: Option<(KeyspaceId, &[u8])>) {
        while !self.move_hand(newcomer) {}
        let Some((keyspace, key)) = self.hand.clone() else { return };
        let Some(held) = self.get_mut(keyspace, &key) else { return };
        let old = held.copy.take();
        self.has_gone(&key, old);
        self.tidy(keyspace, &key);
    }

    /// Moves the hand to the next copy; says whether that may go.
    fn move_hand(&mut self, newcomer: Option<(KeyspaceId, &[u8])>) -> bool {
        let Self { table, hand, .. } = self;
        let from = hand.as_ref().map_or(KeyspaceId(0), |(keyspace, _)| *keyspace);
        let next = table.range_mut(from..).find_map(|(keyspace, keys)| {
            let here = hand.as_ref().filter(|(at, _)| at == keyspace);
            let after = here.map_or(Bound::Unbounded, |(_, key)| Bound::Excluded(&**key));
            let mut behind = keys.range_mut::<[u8], _>((after, Bound::Unbounded));
            behind.find_map(|(key, held)| Some((*keyspace, key, held.copy.as_mut()?)))
        });
        let Some((keyspace, key, copy)) = next else {
            *hand = None;
            return false;
        };
        let may_go = Some((keyspace, &**key)) != newcomer && !std::mem::take(&mut copy.read);
        *hand = Some((keyspace, key.clone()));
        may_go
    }

    /// Takes a key out of which nothing is held any more.
    fn tidy(&mut self, keyspace: KeyspaceId, key: &[u8]) {
        let nothing =
            |held: &HeldKey| held.copy.is_none() && held.write.is_none() && held.disks.is_none();
        if let Some(keys) = self.table.get_mut(&keyspace)
            && keys.get(key).is_some_and(nothing)
        {
            keys.remove(key);
        }
    }

    /// The newest write of a delegated key.
    pub(crate) fn write(&self, keyspace: KeyspaceId, key: &[u8]) -> Option<&HeldWrite> {
        self.get(keyspace, key)?.write.as_ref()
    }

    /// Takes a write of a delegation, unless a newer one of it is held. `commits` says whether this
    /// node commits it.
    pub(crate) fn take_write<E: Engine>(
        &mut self,
        engine: &mut E,
        (keyspace, key): (KeyspaceId, &[u8]),
        (delegation, version): (DelegationId, Version),
        value: &[u8],
        commits: bool,
    ) -> Taken {
        let held = &mut self.entry(keyspace, key).write;
        let known = held.as_mut().filter(|held| held.delegation == delegation);
        if let Some(known) = known.filter(|known| known.version >= version) {
            // A doubled packet brings nothing; one that was overtaken may be the newest committed.
            let overtaken = known.version != version;
            if overtaken && !commits {
                known.overtake(version, value.into());
            }
            let is_committed = !overtaken && commits && !known.committed;
            if is_committed {
                known.committed = true;
                engine.note(DELEGATED, &name(keyspace, key), Some(&known.to_note()));
            }
            return Taken { recorded: false, news: overtaken && commits || is_committed };
        }
        let (committed, value) = (commits, value.into());
        let (on_disk, overtaken) = (Version::NONE, Overtaken::default());
        let mut write = HeldWrite { delegation, version, committed, value, on_disk, overtaken };
        engine.note(DELEGATED, &name(keyspace, key), Some(&write.to_note()));
        if let Some(old) = held.take().filter(|old| old.delegation == delegation) {
            write.on_disk = old.on_disk;
            write.overtaken = old.overtaken;
            if !old.committed {
                write.overtake(old.version, old.value);
            }
        }
        *held = Some(write);
        Taken { recorded: true, news: true }
    }

    /// The newest delegation of a key that this node knows writes of, or was told of.
    pub(crate) fn newest_delegation(&self, (keyspace, key): (KeyspaceId, &[u8])) -> DelegationId {
        let held = self.get(keyspace, key);
        let write = held.and_then(|held| Some(held.write.as_ref()?.delegation));
        let disks = held.and_then(|held| Some(held.disks.as_ref()?.delegation));
        write.max(disks).unwrap_or_default()
    }

    /// The disk has a write: says up to which version it has the delegation's.
    pub(crate) fn see_on_disk(&mut self, recorded: &Recorded) -> Option<Version> {
        let held = self.get_mut(recorded.keyspace, &recorded.key)?.write.as_mut();
        let held = held.filter(|held| held.delegation == recorded.delegation)?;
        held.on_disk = held.on_disk.max(recorded.version);
        Some(held.on_disk)
    }

    /// What is not known to be on all disks of a delegation's writes of a key, if anything is.
    pub(crate) fn disks(
        &mut self,
        (keyspace, key): (KeyspaceId, &[u8]),
        delegation: DelegationId,
    ) -> Option<&mut Disks> {
        let disks = self.get_mut(keyspace, key)?.disks.as_deref_mut();
        disks.filter(|disks| disks.delegation == delegation)
    }

    /// The same, to note something. What was noted of an older delegation goes.
    pub(crate) fn disks_to_note(
        &mut self,
        (keyspace, key): (KeyspaceId, &[u8]),
        delegation: DelegationId,
    ) -> &mut Disks {
        let disks = &mut self.entry(keyspace, key).disks;
        disks.take_if(|disks| disks.delegation != delegation);
        disks.get_or_insert_with(|| Box::new(Disks::new(delegation)))
    }

    /// A write that came through here is committed: gives its value, if it is still held.
    pub(crate) fn commit(
        &mut self,
        (keyspace, key): (KeyspaceId, &[u8]),
        delegation: DelegationId,
        version: Version,
    ) -> Option<Box<[u8]>> {
        let held = self.get_mut(keyspace, key)?.write.as_mut();
        let held = held.filter(|held| held.delegation == delegation)?;
        held.committed |= held.version == version;
        let overtaken = held.overtaken.iter().find(|(it, _)| *it == version);
        let newest = (held.version == version).then_some(&held.value);
        let value = overtaken.map(|(_, value)| value).or(newest).cloned();
        held.overtaken.retain(|(it, _)| *it > version);
        value
    }

    /// A delegation is over, and what came of it is at home: its write is of no use any more.
    pub(crate) fn end<E: Engine>(
        &mut self,
        engine: &mut E,
        (keyspace, key): (KeyspaceId, &[u8]),
        delegation: DelegationId,
    ) {
        let Some(held) = self.get_mut(keyspace, key) else { return };
        held.disks.take_if(|disks| disks.delegation <= delegation);
        if held.write.take_if(|write| write.delegation <= delegation).is_some() {
            engine.note(DELEGATED, &name(keyspace, key), None);
        }
        self.tidy(keyspace, key);
    }
}

impl HeldCopy {
    fn bytes(&self, key: &[u8]) -> usize {
        ENTRY_BYTES + key.len() + self.value.as_ref().map_or(0, |value| value.len())
    }

    fn record(&self) -> Record<'_> {
        Record {
            version: self.version,
            expiry_ms: self.expiry_ms,
            tombstone: self.value.is_none(),
            value: self.value.as_deref().unwrap_or_default(),
        }
    }
}

impl HeldWrite {
    fn record(&self) -> Record<'_> {
        Record { version: self.version, expiry_ms: 0, tombstone: false, value: &self.value }
    }

    fn bytes(&self) -> usize {
        let overtaken: usize = self.overtaken.iter().map(|(_, value)| value.len()).sum();
        WRITE_BYTES + self.value.len() + overtaken
    }

    /// Holds an older write until it is known to be committed; of too many the newest.
    fn overtake(&mut self, version: Version, value: Box<[u8]>) {
        let Err(place) = self.overtaken.binary_search_by_key(&version, |(it, _)| *it) else {
            return;
        };
        match (self.overtaken.is_full(), place) {
            (true, 0) => {}
            (true, place) => {
                self.overtaken.remove(0);
                self.overtaken.insert(place - 1, (version, value));
            }
            (false, place) => self.overtaken.insert(place, (version, value)),
        }
    }

    fn to_note(&self) -> Vec<u8> {
        let words =
            [self.delegation.get().to_be_bytes(), self.version.get().to_be_bytes()].concat();
        [&words[..], &[u8::from(self.committed)], &self.value].concat()
    }

    fn from_note(note: &[u8]) -> Option<Self> {
        let (delegation, rest) = note.split_first_chunk::<8>()?;
        let (version, rest) = rest.split_first_chunk::<8>()?;
        let (committed, value) = rest.split_first()?;
        let version = Version::new(u64::from_be_bytes(*version));
        Some(Self {
            delegation: DelegationId::new(u64::from_be_bytes(*delegation)),
            version,
            committed: *committed != 0,
            value: value.into(),
            on_disk: version,
            overtaken: Overtaken::default(),
        })
    }
}

pub(crate) fn name(keyspace: KeyspaceId, key: &[u8]) -> Vec<u8> {
    [&[KEY][..], &keyspace.0.to_be_bytes(), key].concat()
}

/// Copies per shard. Keys are hot because few get most of the requests: a controller orders no more
/// of them than pay.
const COPIES_MAX: usize = 4_096;
/// Bytes that they take at most: as many with values of 2 KB, so that the count is what bounds.
const BYTES_MAX: usize = 8 << 20;
/// The same when there is little room: a few of the largest.
const FEW_BYTES_MAX: usize = 64 << 10;
/// What a copy takes beside key and value, about.
const ENTRY_BYTES: usize = 128;
