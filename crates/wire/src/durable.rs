//! The versions in a CHAIN_DURABLE.

use crate::layout::{ChainDurableBody, FILL_MAX, HEADER_LEN};
use crate::number::Version;
use alloc::vec::Vec;

/// Versions of writes that are on a member's disk; one at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableVersions<'a> {
    bytes: &'a [u8],
}

/// Versions that one CHAIN_DURABLE can name.
pub const DURABLE_MAX: usize = (FILL_MAX - HEADER_LEN) / ChainDurableBody::LEN;

impl<'a> DurableVersions<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let whole = !bytes.is_empty() && bytes.len().is_multiple_of(ChainDurableBody::LEN);
        whole.then_some(Self { bytes })
    }

    /// The versions, in the order of the packet.
    pub fn iter(&self) -> impl Iterator<Item = Version> + use<'a> {
        let mut rest = self.bytes;
        core::iter::from_fn(move || {
            let (ChainDurableBody { version }, after) = ChainDurableBody::split(rest)?;
            rest = after;
            Some(version)
        })
    }

    /// Appends a version to a payload.
    pub fn push(out: &mut Vec<u8>, version: Version) {
        out.extend_from_slice(&ChainDurableBody { version }.to_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_is_found_and_nothing_else_is_taken() {
        let mut payload = Vec::new();
        assert_eq!(DurableVersions::parse(&payload), None);
        let versions = [7, 3].map(Version::new);
        versions.iter().for_each(|version| DurableVersions::push(&mut payload, *version));
        let parsed = DurableVersions::parse(&payload).unwrap();
        assert!(parsed.iter().eq(versions));
        payload.pop();
        assert_eq!(DurableVersions::parse(&payload), None);
    }
}
