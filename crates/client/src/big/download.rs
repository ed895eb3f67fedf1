//! What callers see of a value that they read piece by piece.

use super::receiving::Receiving;
use crate::{Outcome, Value};
use std::ops::Range;
use wire::Version;

/// A value that is read piece by piece, over what a face gives for that.
#[derive(Debug)]
pub struct Download<Line> {
    /// Version of the write that made it.
    pub version: Version,
    /// Absolute expiry in Unix milliseconds, by the cluster's clock; 0 for never.
    pub expiry_ms: u64,
    /// What time it was in the cluster, in Unix milliseconds, when a node answered.
    pub now_ms: u64,
    /// Bytes of the whole value.
    pub len: u64,
    /// Bytes that are still to come.
    pub left: u64,
    pub(crate) receiving: Receiving,
    pub(crate) line: Line,
}

impl<Line> Download<Line> {
    /// Begins to read what was found under a key.
    pub(crate) fn begin(
        line: Line,
        key: &[u8],
        found: Outcome<Option<Value>>,
        range: Range<u64>,
    ) -> Outcome<Option<Self>> {
        let found = match found {
            Outcome::Done(Some(found)) => found,
            Outcome::Done(None) => return Outcome::Done(None),
            Outcome::Refused(why) => return Outcome::Refused(why),
            Outcome::Unknown(why) => return Outcome::Unknown(why),
        };
        let Value { version, expiry_ms, now_ms, .. } = found;
        let begun = Receiving::new(key, found, range).map(|receiving| {
            let Receiving { len, left, .. } = receiving;
            Self { version, expiry_ms, now_ms, len, left, receiving, line }
        });
        begun.map_or_else(Outcome::Refused, |download| Outcome::Done(Some(download)))
    }

    /// Whether the value does not fit a datagram: of a short one, everything is here already.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.receiving.is_long()
    }

    /// Of what is left to be read only the bytes of the value that lie in a range. To be said
    /// before the first piece is taken.
    #[must_use]
    pub fn only(self, range: Range<u64>) -> Self {
        let receiving = self.receiving.only(range);
        Self { left: receiving.left, receiving, ..self }
    }
}
