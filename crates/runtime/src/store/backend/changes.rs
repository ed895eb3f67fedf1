//! What a sync has to change in a backend, and how records and notes are written down there.
//! Changing how means raising the format that a backend checks.
//!
//! | what | name | content |
//! |---|---|---|
//! | record | keyspace 2, zeros 4, key | flags 1, version 8, expiry 8, match 16, keyhash 8 |
//! | note | partition 4, name | note |
//!
//! Integers are big-endian. A value is not part of its record: it is under its own name. In format
//! 1 a record had its partition in place of the zeros; such a one is written down anew.

use super::{Kept, Spaces};
use cluster::{KeyspaceId, Match, PartitionId};
use node::engine::memory::MemoryEngine;
use node::engine::{Engine, KeyRef, Record};
use std::collections::BTreeMap;
use wire::Version;

/// Changes since the last sync; `None` is something removed. Of each thing the last state counts,
/// so that the order among them does not.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Values by their names in the backend.
    pub(super) values: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    pub(super) records: BTreeMap<Vec<u8>, Option<Mark>>,
    pub(super) notes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// What is known of keyspaces and partitions.
    pub(super) about: BTreeMap<String, String>,
    /// Whether all of it is of partitions that are being cleared: that may be carried out early.
    pub(super) only_cleared: bool,
}

/// What makes a value a record, written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(pub(super) [u8; MARK_LEN]);

const MARK_LEN: usize = 1 + 8 + 8 + 16 + 8;
const TOMBSTONE: u8 = 1;
const ORDERED: u8 = 2;

/// What the names of keyspaces and of hidden partitions begin with among what is known.
const KEYSPACE: &str = "keyspace:";
const HIDDEN: &str = "hidden:";

/// And what those of partitions begin with of which not all is listed, while they say so.
const UNLISTED: &str = "unlisted:";
const YES: &str = "yes";
const NO: &str = "no";

impl Mark {
    pub(super) fn new(key: &KeyRef<'_>, record: &Record<'_>) -> Self {
        let tombstone = if record.tombstone { TOMBSTONE } else { 0 };
        let ordered = if key.ordered { ORDERED } else { 0 };
        let mut bytes = [0; MARK_LEN];
        let parts: [&[u8]; 5] = [
            &[tombstone | ordered],
            &record.version.get().to_be_bytes(),
            &record.expiry_ms.to_be_bytes(),
            &key.match_value.0.to_be_bytes(),
            &key.keyhash.to_be_bytes(),
        ];
        for (to, byte) in bytes.iter_mut().zip(parts.concat()) {
            *to = byte;
        }
        Self(bytes)
    }
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        let Self { values, records, notes, about, .. } = self;
        values.is_empty() && records.is_empty() && notes.is_empty() && about.is_empty()
    }

    pub(super) fn write(&mut self, key: &KeyRef<'_>, name: Vec<u8>, record: &Record<'_>) {
        self.values.insert(name, (!record.tombstone).then(|| record.value.to_vec()));
        self.adopt(key, record);
    }

    /// Makes a record of a value that is there.
    pub(super) fn adopt(&mut self, key: &KeyRef<'_>, record: &Record<'_>) {
        let place = place(key.keyspace, key.key);
        self.records.insert(place, Some(Mark::new(key, record)));
        self.only_cleared = false;
    }

    pub(super) fn remove(&mut self, keyspace: KeyspaceId, key: &[u8], name: Vec<u8>) {
        self.values.insert(name, None);
        self.records.insert(place(keyspace, key), None);
    }

    /// A record is where format 1 had it: it goes to its place, unless there is a newer one.
    pub(super) fn move_old(&mut self, old: Old, index: &MemoryEngine) {
        let Some((key, record)) = parse(&old.place, &old.mark) else { return };
        if index.version_written(&key) == Some(record.version) {
            self.records.insert(place(key.keyspace, key.key), Some(Mark::new(&key, &record)));
        }
        self.records.insert(old.place, None);
    }

    pub(super) fn note(&mut self, partition: PartitionId, name: &[u8], note: Option<&[u8]>) {
        let at = [&partition.0.to_be_bytes(), name].concat();
        self.notes.insert(at, note.map(<[u8]>::to_vec));
    }

    pub(super) fn name_keyspace(&mut self, keyspace: KeyspaceId, name: &str) {
        self.about.insert(format!("{KEYSPACE}{}", keyspace.0), name.to_owned());
        self.only_cleared = false;
    }

    /// Whether what was there before is still to be listed for a partition.
    pub(super) fn list(&mut self, partition: PartitionId, is_to_be: bool) {
        let content = if is_to_be { YES } else { NO };
        self.about.insert(format!("{UNLISTED}{}", partition.0), content.to_owned());
        self.only_cleared = false;
    }

    pub(super) fn hide(&mut self, partition: PartitionId) {
        self.about.insert(format!("{HIDDEN}{}", partition.0), String::new());
        self.only_cleared = false;
    }
}

fn place(keyspace: KeyspaceId, key: &[u8]) -> Vec<u8> {
    [&keyspace.0.to_be_bytes(), &[0; 4][..], key].concat()
}

/// A record where format 1 had it.
#[derive(Debug)]
pub(super) struct Old {
    place: Vec<u8>,
    mark: Vec<u8>,
}

/// A record as it is written down, and its key.
fn parse<'a>(place: &'a [u8], mark: &[u8]) -> Option<(KeyRef<'a>, Record<'static>)> {
    let (keyspace, rest) = place.split_first_chunk()?;
    let (_, key) = rest.split_first_chunk::<4>()?;
    let ([flags], mark) = mark.split_first_chunk()?;
    let (version, mark) = mark.split_first_chunk()?;
    let (expiry_ms, mark) = mark.split_first_chunk()?;
    let (match_value, keyhash) = mark.split_first_chunk()?;
    let key = KeyRef {
        keyspace: KeyspaceId(u16::from_be_bytes(*keyspace)),
        partition: PartitionId(0),
        ordered: flags & ORDERED != 0,
        match_value: Match(u128::from_be_bytes(*match_value)),
        keyhash: u64::from_be_bytes(keyhash.try_into().ok()?),
        key,
    };
    let record = Record {
        version: Version::new(u64::from_be_bytes(*version)),
        expiry_ms: u64::from_be_bytes(*expiry_ms),
        tombstone: flags & TOMBSTONE != 0,
        value: &[],
    };
    Some((key, record))
}

/// The name under which the value of a record lies, if this is one.
pub(super) fn value_name(spaces: &Spaces, place: &[u8]) -> Option<Vec<u8>> {
    let (keyspace, rest) = place.split_first_chunk()?;
    let (_, key) = rest.split_first_chunk::<4>()?;
    Some(spaces.name(KeyspaceId(u16::from_be_bytes(*keyspace)), key))
}

impl Kept {
    /// Takes a record in; `None` if it is none.
    pub(super) fn take_record(&mut self, place: &[u8], mark: &[u8]) -> Option<()> {
        let (key, record) = parse(place, mark)?;
        if place.get(2..6) != Some(&[0; 4]) {
            self.old.push(Old { place: place.to_vec(), mark: mark.to_vec() });
        }
        if self.index.version_written(&key) < Some(record.version) {
            self.index.write(&key, &record);
        }
        Some(())
    }

    /// Takes a note in; `None` if it is none.
    pub(super) fn take_note(&mut self, at: &[u8], note: &[u8]) -> Option<()> {
        let (partition, name) = at.split_first_chunk()?;
        let partition = PartitionId(u32::from_be_bytes(*partition));
        self.notes.entry(partition).or_default().insert(name.into(), note.into());
        Some(())
    }

    /// Takes in what is known of a keyspace or a partition; anything else is not for here.
    pub(super) fn take_about(&mut self, field: &str, content: &str) {
        if let Some(id) = field.strip_prefix(KEYSPACE).and_then(|id| id.parse().ok()) {
            self.spaces.learn(KeyspaceId(id), content);
        } else if let Some(id) = field.strip_prefix(HIDDEN).and_then(|id| id.parse().ok()) {
            self.hidden.insert(PartitionId(id));
        } else if let Some(id) = field.strip_prefix(UNLISTED).and_then(|id| id.parse().ok())
            && content == YES
        {
            self.unlisted.insert(PartitionId(id));
        }
    }
}
