//! The lines of an export: each is a JSON object, and all bytes in it are base64.

use data_encoding::{BASE64, HEXLOWER};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// Version of the format; raised when a reader of the present one would misunderstand it.
pub(super) const FORMAT: u32 = 1;

/// Bytes of a line, with its end: far more than a piece of a long value takes.
pub(super) const LINE_BYTES_MAX: usize = 1 << 20;

/// A line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Record {
    /// The first: what follows, and where it comes from.
    Export {
        format: u32,
        keyspace: String,
        /// `hash` or `range`.
        kind: String,
    },
    /// A key with its value.
    Key {
        key: Bytes,
        value: Bytes,
        /// Unix time in milliseconds; nothing for never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at_ms: Option<u64>,
        crc32c: Hex,
    },
    /// A key whose value follows in pieces.
    Long {
        key: Bytes,
        bytes: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at_ms: Option<u64>,
    },
    /// The next piece of it.
    Piece { value: Bytes },
    /// That was all of it.
    Whole { crc32c: Hex },
    /// It was replaced while it was read: what came of it is void.
    Void,
    /// The last.
    End {
        keys: u64,
        bytes: u64,
        /// Of all lines before this one, with their ends.
        sha256: Hex,
    },
}

/// Bytes as base64.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = BASE64.decode(text.as_bytes());
        bytes.map(Self).map_err(|_| serde::de::Error::custom("what is to be base64 is none"))
    }
}

/// A checksum in hexadecimal digits.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hex(pub(super) String);

/// The checksum of a key with all that belongs to it.
#[derive(Debug)]
pub(super) struct Sum(u32);

impl Sum {
    /// Of a key and its expiry, to which the value is added.
    pub(super) fn new(key: &[u8], expires_at_ms: Option<u64>) -> Self {
        let len = u32::try_from(key.len()).unwrap_or(u32::MAX);
        let mut sum = Self(0);
        sum.add(&len.to_be_bytes());
        sum.add(key);
        sum.add(&expires_at_ms.unwrap_or(0).to_be_bytes());
        sum
    }

    /// Adds some of the value.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0 = crc32c::crc32c_append(self.0, bytes);
    }

    pub(super) fn hex(&self) -> Hex {
        Hex(format!("{:08x}", self.0))
    }
}

/// What an export has in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) keys: u64,
    /// Of all keys and values.
    pub(crate) bytes: u64,
}

impl Totals {
    pub(super) fn count(&mut self, key: &[u8], value_len: u64) {
        self.keys += 1;
        self.bytes = self.bytes.saturating_add(key.len() as u64).saturating_add(value_len);
    }
}

/// The checksum of all lines so far.
pub(super) fn digest(lines: &Sha256) -> Hex {
    Hex(HEXLOWER.encode(&lines.clone().finalize()))
}
