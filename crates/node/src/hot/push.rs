//! HOT_COPY: a copy of a key's committed state, on its way to a node that is to answer reads.

use crate::engine::Record;
use crate::replica::judge::is_too_large;
use machine::Outbox;
use wire::{Endpoint, Header, HotCopy, HotCopyBody, Op, Version};

/// Sends copies of a key's committed state, of the version in the header; `None` if it has none.
pub(crate) fn push_copies(
    out: &mut Outbox,
    to: &[Endpoint],
    header: &Header,
    (key, version): (&[u8], Version),
    record: Option<&Record<'_>>,
) {
    // What fits no datagram the tail refuses by itself.
    if record.is_some_and(|record| is_too_large(key, record)) {
        return;
    }
    let value = record.filter(|record| !record.tombstone);
    let fixed = HotCopyBody {
        kind: u8::from(value.is_none()),
        expiry_ms: value.map_or(0, |record| record.expiry_ms),
    };
    let mut header = Header {
        op: Op::HotCopy as u8,
        key_len: u16::try_from(key.len()).expect("keys are at most KEY_MAX long"),
        ..*header
    };
    HotCopy { version }.put(&mut header);
    let value = value.map_or(&[][..], |record| record.value);
    for to in to {
        out.push(*to, |out| {
            wire::emit(out, &header, &[&fixed.to_bytes(), key, value]);
        });
    }
}
