//! A value that was looked at.

use super::errors::{Answer, not_read};
use client::Value;
use client::asynchronous::Download;
use wire::Version;

/// Replies of more bytes than this leave piece by piece, as the client takes them.
pub(super) const WHOLE_MAX: u64 = 256 << 10;

/// A key's value that was looked at, and not read if it is long.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and not for long")]
pub(super) enum Looked {
    /// What the cluster has.
    Stored(Download),
    /// What a transaction has read or written, whole.
    Noted(Value),
}

impl Looked {
    /// Bytes of the value.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Stored(found) => found.len,
            Self::Noted(found) => found.value.len() as u64,
        }
    }

    pub(super) fn version(&self) -> Version {
        match self {
            Self::Stored(found) => found.version,
            Self::Noted(found) => found.version,
        }
    }

    /// Whether most of it is still to be read.
    pub(super) fn is_long(&self) -> bool {
        matches!(self, Self::Stored(found) if found.is_long())
    }

    /// The value, without its bytes if they are still to be read.
    pub(super) async fn at_once(self) -> Answer<Value> {
        let mut found = match self {
            Self::Stored(found) => found,
            Self::Noted(found) => return Ok(found),
        };
        let Download { version, expiry_ms, now_ms, .. } = found;
        let big = found.is_long();
        let piece = if big { None } else { found.piece().await.into_result().map_err(not_read)? };
        Ok(Value { value: piece.unwrap_or_default(), version, expiry_ms, now_ms, big })
    }
}
