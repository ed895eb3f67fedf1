//! What a record is worth to who reads it.

use crate::engine::Record;
use machine::UnixMs;
use wire::big::time_of;
use wire::{Code, ENTRY_MAX, Entry};

/// What a read of one key is told about its record.
pub(crate) fn judge(key: &[u8], record: Option<&Record<'_>>, now: UnixMs) -> Code {
    match record {
        None => Code::NotFound,
        Some(record) if record.tombstone => Code::NotFound,
        Some(record) if is_too_large(key, record) => Code::TooLarge,
        // Only the tombstone that the head will write can say that it is gone: an update that was
        // computed from the value may still be on its way here.
        Some(record) if is_over(record, now) => Code::Expiring,
        Some(_) => Code::Ok,
    }
}

/// Whether it fits no datagram: no node wrote it, but somebody else into the store below.
pub(crate) fn is_too_large(key: &[u8], record: &Record<'_>) -> bool {
    key.len() + record.value.len() > ENTRY_MAX
}

/// Whether the time of a value has come.
pub(crate) fn is_over(record: &Record<'_>, now: UnixMs) -> bool {
    (1..=now.0).contains(&time_of(record.expiry_ms))
}

pub(crate) fn entry<'a>(record: &Record<'a>) -> Entry<'a> {
    let Record { version, expiry_ms, value, .. } = *record;
    Entry { version, expiry_ms, value, ..Entry::default() }
}
