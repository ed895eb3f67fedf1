//! The end-to-end check: CRC32C over everything that no switch writes.
//!
//! The switch rewrites the hop part of the header and zeroes or ignores the UDP checksum, so that
//! damage between client and node must be found by the two of them. The tag starts at
//! [`END_TO_END_AT`] and leaves out the slots of an MGET. What the switch may write is checked
//! otherwise: a node recomputes match value and keyhash from the key, and the chain is its own.

use crate::layout::{END_TO_END_AT, Fields, HEADER_LEN, MgetSlotBody, Op};

/// Writes the tag of a complete datagram. Bytes too few for a header are left alone.
pub fn seal(datagram: &mut [u8]) {
    let Some((header, payload)) = datagram.split_first_chunk_mut::<HEADER_LEN>() else { return };
    let tag = compute(header, payload);
    header.set_tag(tag);
}

/// Whether the tag is that of the bytes.
#[must_use]
pub fn tag_is_right(header: &[u8; HEADER_LEN], payload: &[u8]) -> bool {
    header.tag() == compute(header, payload)
}

fn compute(header: &[u8; HEADER_LEN], payload: &[u8]) -> u32 {
    let (_, end_to_end) = header.split_at(END_TO_END_AT);
    let slots = if header.op() == Op::Mget as u8 {
        usize::from(header.count()) * MgetSlotBody::LEN
    } else {
        0
    };
    let rest = payload.get(slots..).unwrap_or_default();
    crc32c::crc32c_append(crc32c::crc32c(end_to_end), rest)
}
