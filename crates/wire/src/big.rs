//! Big values: a manifest under the key, and parts under keys that nothing else may have.
//!
//! What a part belongs to is read from its key alone, so that whoever keeps, copies or routes it
//! need not know more: `key · PART_ZEROS zeros · PART_MARK · upload · index`. That a value is a
//! manifest is a bit of its expiry, which goes wherever the value goes.

use crate::layout::{
    ENTRY_MAX, EXPIRY_BIG_BIT, KEY_MAX, ManifestBody, PART_MARK, PART_ZEROS, PartBody, UploadBody,
    VALUE_MAX,
};
use alloc::vec::Vec;

/// The bit of an expiry that says that the value is a manifest or a part.
pub const EXPIRY_BIG: u64 = 1 << EXPIRY_BIG_BIT;

/// Bytes that the key of a part has more than the key of its big value.
pub const PART_KEY_MORE: usize = PART_ZEROS + PartBody::LEN;

/// Bytes of the key of a big value.
pub const BIG_KEY_MAX: usize = KEY_MAX - PART_KEY_MORE;

/// The time in an expiry, in Unix milliseconds; 0 for never.
#[must_use]
pub const fn time_of(expiry: u64) -> u64 {
    expiry & !EXPIRY_BIG
}

/// Whether an expiry is that of a manifest or a part.
#[must_use]
pub const fn is_big(expiry: u64) -> bool {
    expiry & EXPIRY_BIG != 0
}

/// A key that is that of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartKey<'a> {
    /// The key of the big value.
    pub key: &'a [u8],
    /// The upload that the part belongs to.
    pub upload: UploadBody,
    /// Which part, from 0.
    pub index: u32,
}

impl<'a> PartKey<'a> {
    /// Takes a key apart; `None` if it is that of no part.
    #[must_use]
    pub fn parse(whole: &'a [u8]) -> Option<Self> {
        let (key, rest) = whole.split_at_checked(whole.len().checked_sub(PART_KEY_MORE)?)?;
        let (zeros, rest) = rest.split_at_checked(PART_ZEROS)?;
        let (PartBody { mark, client, number, index }, _) = PartBody::split(rest)?;
        let is_part = mark == PART_MARK as u64 && zeros.iter().all(|byte| *byte == 0);
        let upload = UploadBody { client, number };
        (is_part && !key.is_empty()).then_some(Self { key, upload, index })
    }

    /// The key as it goes over the wire and into engines.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let UploadBody { client, number } = self.upload;
        let rest = PartBody { mark: PART_MARK as u64, client, number, index: self.index };
        let mut bytes = Vec::with_capacity(self.key.len() + PART_KEY_MORE);
        bytes.extend_from_slice(self.key);
        bytes.resize(self.key.len() + PART_ZEROS, 0);
        bytes.extend_from_slice(&rest.to_bytes());
        bytes
    }
}

impl ManifestBody {
    /// Reads the value of a key whose expiry has the bit; `None` if it is no manifest of a value
    /// of that key.
    #[must_use]
    pub fn parse(key: &[u8], value: &[u8]) -> Option<Self> {
        let (manifest, rest) = Self::split(value)?;
        let part_len = usize::from(manifest.part_len);
        let sound = rest.is_empty()
            && (1..=VALUE_MAX as u64).contains(&manifest.len)
            && part_len > 0
            && part_len_max(key).is_some_and(|most| part_len <= most);
        sound.then_some(manifest)
    }

    /// How many parts there are.
    #[must_use]
    pub fn parts(&self) -> u32 {
        let parts = self.len.div_ceil(u64::from(self.part_len.max(1)));
        u32::try_from(parts).unwrap_or(u32::MAX)
    }

    /// The upload that the parts belong to.
    #[must_use]
    pub const fn upload(&self) -> UploadBody {
        UploadBody { client: self.client, number: self.number }
    }

    /// Bytes of a part.
    #[must_use]
    pub fn len_of(&self, index: u32) -> usize {
        let before = u64::from(index) * u64::from(self.part_len);
        let left = self.len.saturating_sub(before).min(u64::from(self.part_len));
        usize::try_from(left).unwrap_or_default()
    }
}

/// Bytes of the longest parts that a big value of this key can have; `None` if it can have none.
#[must_use]
pub fn part_len_max(key: &[u8]) -> Option<usize> {
    let len = key.len();
    (1..=BIG_KEY_MAX).contains(&len).then(|| ENTRY_MAX - PART_KEY_MORE - len)
}

/// The checksum of a value that comes piece by piece: that of all before, or 0, and the next piece.
#[must_use]
pub fn checksum(before: u32, piece: &[u8]) -> u32 {
    crc32c::crc32c_append(before, piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_s_key_round_trips_and_other_keys_are_none() {
        let upload = UploadBody { client: 7, number: 9 };
        let part = PartKey { key: b"k", upload, index: 3 };
        let bytes = part.to_bytes();
        assert_eq!(bytes.len(), 1 + PART_KEY_MORE);
        assert_eq!(PartKey::parse(&bytes), Some(part));
        assert_eq!(PartKey::parse(&bytes[1..]), None, "every key has at least one byte");
        let mut other = bytes.clone();
        other[5] = 1;
        assert_eq!(PartKey::parse(&other), None);
        assert_eq!(PartKey::parse(b"k"), None);
        assert!(PartKey { index: u32::MAX, ..part }.to_bytes() > bytes);
    }

    #[test]
    fn a_manifest_says_how_long_each_part_is() {
        let manifest = ManifestBody { len: 10, part_len: 4, checksum: 0, client: 1, number: 1 };
        assert_eq!(manifest.parts(), 3);
        assert_eq!([0, 1, 2, 3].map(|index| manifest.len_of(index)), [4, 4, 2, 0]);
        let bytes = manifest.to_bytes();
        assert_eq!(ManifestBody::parse(b"k", &bytes), Some(manifest));
        assert_eq!(ManifestBody::parse(b"k", &bytes[1..]), None);
        let empty = ManifestBody { len: 0, ..manifest };
        assert_eq!(ManifestBody::parse(b"k", &empty.to_bytes()), None);
        let long_key = vec![b'k'; BIG_KEY_MAX + 1];
        assert_eq!(ManifestBody::parse(&long_key, &bytes), None);
    }

    #[test]
    fn the_checksum_of_pieces_is_that_of_the_whole() {
        assert_eq!(checksum(checksum(0, b"ab"), b"c"), checksum(0, b"abc"));
    }

    use std::vec;
}
