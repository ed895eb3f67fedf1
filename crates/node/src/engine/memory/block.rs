//! One record in one piece of memory: a fixed header, the key, the value, and room to grow.

use crate::engine::Record;
use wire::Version;

/// version 8, expiry 8, value length 4 (its top bit marks a tombstone), key length 2.
pub(super) const HEADER_BYTES: usize = 22;

const TOMBSTONE: u32 = 1 << 31;

/// Allocators hand out multiples of 16 bytes and keep 8 for themselves (glibc, and near enough
/// elsewhere): a block takes what it would be given anyway, so that a value may grow a little in
/// place.
const GRAIN_BYTES: usize = 16;
const GRAIN_KEPT_BYTES: usize = 8;

/// A record, with its key unless the owner keeps that elsewhere and gives an empty one.
pub(super) struct Block(Box<[u8]>);

/// The fields at the front of a block.
struct Header {
    version: Version,
    expiry_ms: u64,
    value_len: usize,
    tombstone: bool,
    key_len: usize,
}

impl Block {
    pub(super) fn new(key: &[u8], record: &Record<'_>) -> Self {
        let size = block_bytes(HEADER_BYTES + key.len() + record.value.len());
        let mut bytes = Vec::with_capacity(size);
        bytes.extend_from_slice(&header_bytes(key.len(), record));
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(record.value);
        bytes.resize(size, 0);
        Self(bytes.into_boxed_slice())
    }

    /// Replaces the record and keeps the key: in place if it fits and would fill at least half of
    /// the block.
    pub(super) fn replace(&mut self, record: &Record<'_>) {
        let key_len = self.header().key_len;
        let value_at = HEADER_BYTES + key_len;
        let end = value_at + record.value.len();
        let size = self.0.len();
        if end > size || block_bytes(end) * 2 < size {
            *self = Self::new(self.key(), record);
            return;
        }
        let (front, rest) = self.0.split_at_mut(value_at);
        let (header, _key) = front.split_at_mut(HEADER_BYTES);
        header.copy_from_slice(&header_bytes(key_len, record));
        let (value, _room) = rest.split_at_mut(record.value.len());
        value.copy_from_slice(record.value);
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        let key_len = self.header().key_len;
        self.0.get(HEADER_BYTES..HEADER_BYTES + key_len).expect("blocks hold their key")
    }

    #[inline]
    pub(super) fn record(&self) -> Record<'_> {
        let Header { version, expiry_ms, value_len, tombstone, key_len } = self.header();
        let value_at = HEADER_BYTES + key_len;
        let value = self.0.get(value_at..value_at + value_len).expect("blocks hold their value");
        Record { version, expiry_ms, tombstone, value }
    }

    #[inline]
    pub(super) fn expiry_ms(&self) -> u64 {
        self.header().expiry_ms
    }

    /// What it takes from the allocator's point of view.
    pub(super) fn allocated_bytes(&self) -> usize {
        allocated(self.0.len())
    }

    #[inline]
    fn header(&self) -> Header {
        let header: &[u8; HEADER_BYTES] = self.0.first_chunk().expect("blocks have a header");
        let [v0, v1, v2, v3, v4, v5, v6, v7, e0, e1, e2, e3, e4, e5, e6, e7, rest @ ..] = *header;
        let [l0, l1, l2, l3, k0, k1] = rest;
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        Header {
            version: Version::new(u64::from_le_bytes([v0, v1, v2, v3, v4, v5, v6, v7])),
            expiry_ms: u64::from_le_bytes([e0, e1, e2, e3, e4, e5, e6, e7]),
            value_len: (length & !TOMBSTONE) as usize,
            tombstone: length & TOMBSTONE != 0,
            key_len: usize::from(u16::from_le_bytes([k0, k1])),
        }
    }
}

#[inline]
fn header_bytes(key_len: usize, record: &Record<'_>) -> [u8; HEADER_BYTES] {
    let key_len = u16::try_from(key_len).expect("keys are at most KEY_MAX bytes");
    let value_len = u32::try_from(record.value.len()).expect("values are far below 2 GiB");
    assert!(value_len < TOMBSTONE, "values are far below 2 GiB");
    let length = if record.tombstone { value_len | TOMBSTONE } else { value_len };
    let mut header = [0; HEADER_BYTES];
    let (version_at, rest) = header.split_at_mut(8);
    let (expiry_at, rest) = rest.split_at_mut(8);
    let (length_at, key_len_at) = rest.split_at_mut(4);
    version_at.copy_from_slice(&record.version.get().to_le_bytes());
    expiry_at.copy_from_slice(&record.expiry_ms.to_le_bytes());
    length_at.copy_from_slice(&length.to_le_bytes());
    key_len_at.copy_from_slice(&key_len.to_le_bytes());
    header
}

fn block_bytes(used: usize) -> usize {
    allocated(used) - GRAIN_KEPT_BYTES
}

/// What the allocator takes for so many bytes.
pub(super) fn allocated(bytes: usize) -> usize {
    (bytes + GRAIN_KEPT_BYTES).next_multiple_of(GRAIN_BYTES)
}
