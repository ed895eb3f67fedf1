//! Keys and values as they are on disk. Changing anything here means raising
//! [`FORMAT`](super::directory::FORMAT).
//!
//! | tree | key | value |
//! |---|---|---|
//! | records | keyspace 2, match value 16, key | layout 1, flags 1, version 8, expiry 8, value |
//! | due | expiry 8, key of the record | empty |
//! | notes | partition 4, name | note |
//! | turns | slot 2 | layout 1, number 8, oldest that counts 8, records 8, changes of notes |
//!
//! A change of a note is the length of its key (2), the key, the length of the note and one more
//! (4), and the note; a length of 0 says that it is removed.
//!
//! Integers are big-endian, so that a partition is one contiguous range and, in an ordered
//! keyspace, its keys are in order.

use cluster::{KeyspaceId, Match, PartitionId};
use node::engine::{Area, Interval, KeyRef, Record};
use std::ops::Bound;
use wire::Version;

/// First byte of every record, so that records of another layout can one day stand beside these.
const RECORD_LAYOUT: u8 = 1;
const TOMBSTONE: u8 = 1;

pub(super) fn record_key(key: &KeyRef<'_>) -> Vec<u8> {
    place(key.keyspace, key.match_value, key.key)
}

fn place(keyspace: KeyspaceId, at: Match, key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(18 + key.len());
    bytes.extend_from_slice(&keyspace.0.to_be_bytes());
    bytes.extend_from_slice(&at.0.to_be_bytes());
    bytes.extend_from_slice(key);
    bytes
}

/// A key of a record, taken apart.
pub(super) struct RecordKey<'a> {
    pub(super) keyspace: KeyspaceId,
    pub(super) match_value: Match,
    pub(super) key: &'a [u8],
}

pub(super) fn parse_record_key(bytes: &[u8]) -> Option<RecordKey<'_>> {
    let (keyspace, rest) = bytes.split_first_chunk()?;
    let (match_value, key) = rest.split_first_chunk()?;
    Some(RecordKey {
        keyspace: KeyspaceId(u16::from_be_bytes(*keyspace)),
        match_value: Match(u128::from_be_bytes(*match_value)),
        key,
    })
}

pub(super) fn encode_record(record: &Record<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(18 + record.value.len());
    bytes.push(RECORD_LAYOUT);
    bytes.push(if record.tombstone { TOMBSTONE } else { 0 });
    bytes.extend_from_slice(&record.version.get().to_be_bytes());
    bytes.extend_from_slice(&record.expiry_ms.to_be_bytes());
    bytes.extend_from_slice(record.value);
    bytes
}

pub(super) fn decode_record(bytes: &[u8]) -> Option<Record<'_>> {
    let ([RECORD_LAYOUT, flags @ (0 | TOMBSTONE)], rest) = bytes.split_first_chunk()? else {
        return None;
    };
    let (version, rest) = rest.split_first_chunk()?;
    let (expiry_ms, value) = rest.split_first_chunk()?;
    Some(Record {
        version: Version::new(u64::from_be_bytes(*version)),
        expiry_ms: u64::from_be_bytes(*expiry_ms),
        tombstone: *flags == TOMBSTONE,
        value,
    })
}

/// A key of the due index, taken apart.
pub(super) struct DueKey<'a> {
    /// Key of the record in its tree.
    pub(super) at: &'a [u8],
    pub(super) keyspace: KeyspaceId,
    pub(super) key: &'a [u8],
}

pub(super) fn due_key(expiry_ms: u64, at: &[u8]) -> Vec<u8> {
    [&expiry_ms.to_be_bytes(), at].concat()
}

pub(super) fn parse_due_key(bytes: &[u8]) -> Option<DueKey<'_>> {
    let (_expiry_ms, at) = bytes.split_first_chunk::<8>()?;
    let RecordKey { keyspace, key, .. } = parse_record_key(at)?;
    Some(DueKey { at, keyspace, key })
}

/// The end of all entries due by then.
pub(super) fn due_until(until_ms: u64) -> Bound<Vec<u8>> {
    match until_ms.checked_add(1) {
        Some(next) => Bound::Excluded(next.to_be_bytes().to_vec()),
        None => Bound::Unbounded,
    }
}

pub(super) fn note_key(partition: PartitionId, name: &[u8]) -> Vec<u8> {
    [&partition.0.to_be_bytes(), name].concat()
}

/// The partition of a note.
pub(super) fn note_partition(bytes: &[u8]) -> Option<PartitionId> {
    let (partition, _name) = bytes.split_first_chunk()?;
    Some(PartitionId(u32::from_be_bytes(*partition)))
}

pub(super) fn note_name(bytes: &[u8]) -> &[u8] {
    bytes.split_first_chunk::<4>().map_or(&[], |(_partition, name)| name)
}

/// The range of the notes of a partition, from this name on.
pub(super) fn notes_of(partition: PartitionId, from: &[u8]) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let end = match partition.0.checked_add(1) {
        Some(next) => Bound::Excluded(note_key(PartitionId(next), &[])),
        None => Bound::Unbounded,
    };
    (Bound::Included(note_key(partition, from)), end)
}

/// Before all records of a partition.
pub(super) fn start_of(area: &Area) -> Vec<u8> {
    place(area.keyspace, area.first, &[])
}

/// After all records of a partition.
pub(super) fn end_of(area: &Area) -> Bound<Vec<u8>> {
    after(area.keyspace, area.last)
}

/// After all records of a keyspace up to this match value.
fn after(keyspace: KeyspaceId, last: Match) -> Bound<Vec<u8>> {
    match (last.0.checked_add(1), keyspace.0.checked_add(1)) {
        (Some(next), _) => Bound::Excluded(place(keyspace, Match(next), &[])),
        (None, Some(next)) => Bound::Excluded(place(KeyspaceId(next), Match::MIN, &[])),
        (None, None) => Bound::Unbounded,
    }
}

/// The range of an interval.
pub(super) fn interval(interval: &Interval<'_>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let Interval { first, last, start, end, .. } = *interval;
    let keyspace = interval.keyspace.id;
    let start = match start {
        Bound::Included(key) => Bound::Included(place(keyspace, first, key)),
        Bound::Excluded(key) => Bound::Excluded(place(keyspace, first, key)),
        Bound::Unbounded => Bound::Included(place(keyspace, first, &[])),
    };
    let end = match end {
        Bound::Included(key) => Bound::Included(place(keyspace, last, key)),
        Bound::Excluded(key) => Bound::Excluded(place(keyspace, last, key)),
        Bound::Unbounded => after(keyspace, last),
    };
    (start, end)
}

/// First byte of the record of a turn.
const TURN_LAYOUT: u8 = 1;

/// What a turn has changed of the notes.
pub(super) struct TurnRecord<'a> {
    /// Its number, one above that of the turn before.
    pub(super) number: u64,
    /// The oldest turn that is to be gone through, too.
    pub(super) oldest: u64,
    /// How many records there are.
    pub(super) len: u64,
    /// Keys of notes, and the notes; `None` if they are removed.
    pub(super) changes: Vec<(&'a [u8], Option<&'a [u8]>)>,
}

/// The slot of a turn's record.
pub(super) fn turn_slot(number: u64) -> [u8; 2] {
    let slot = number % super::notes::RING;
    u16::try_from(slot).expect("there are fewer").to_be_bytes()
}

/// The record of a turn with these numbers, as [`TurnRecord`] has them, and changes.
pub(super) fn encode_turn<'a>(
    (number, oldest, len): (u64, u64, u64),
    changes: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + Clone,
) -> Vec<u8> {
    const EACH: usize = 2 + 4;
    let sizes = changes.clone().map(|(key, note)| EACH + key.len() + note.map_or(0, <[u8]>::len));
    let mut bytes = Vec::with_capacity(1 + 3 * 8 + sizes.sum::<usize>());
    bytes.push(TURN_LAYOUT);
    for number in [number, oldest, len] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    for (key, note) in changes {
        let key_len = u16::try_from(key.len()).expect("names of notes are shorter than keys");
        let note_len = note.map_or(0, |note| note.len() + 1);
        let note_len = u32::try_from(note_len).expect("notes are shorter than packets");
        bytes.extend_from_slice(&key_len.to_be_bytes());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(&note_len.to_be_bytes());
        bytes.extend_from_slice(note.unwrap_or(&[]));
    }
    bytes
}

pub(super) fn decode_turn(bytes: &[u8]) -> Option<TurnRecord<'_>> {
    let (&TURN_LAYOUT, mut rest) = bytes.split_first()? else { return None };
    let mut numbers = [0; 3];
    for number in &mut numbers {
        let (bytes, after) = rest.split_first_chunk()?;
        (*number, rest) = (u64::from_be_bytes(*bytes), after);
    }
    let [number, oldest, len] = numbers;
    let mut changes = Vec::new();
    while !rest.is_empty() {
        let (key_len, after) = rest.split_first_chunk()?;
        let (key, after) = after.split_at_checked(u16::from_be_bytes(*key_len).into())?;
        let (note_len, after) = after.split_first_chunk()?;
        let note_len = usize::try_from(u32::from_be_bytes(*note_len)).ok()?;
        let (note, after) = after.split_at_checked(note_len.saturating_sub(1))?;
        note_partition(key)?;
        changes.push((key, (note_len > 0).then_some(note)));
        rest = after;
    }
    Some(TurnRecord { number, oldest, len, changes })
}
