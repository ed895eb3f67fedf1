//! Payloads that only nodes send to each other: about delegations, and about what they hold.

use crate::body::{Body, key_and_value, whole_key};
use crate::layout::{
    ChainMendBody, ChainVerifiedBody, ChainVerifyBody, DelegationCommitBody, DelegationDurableBody,
    DelegationEndBody, DelegationFetchBody, DelegationFoundBody, DelegationWriteBody, Fields,
    HEADER_LEN, KEY_MAX, Op, PutBody, flag,
};

/// What a node holds of a key from a delegation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// A write, with its value; its version is the header's `object_version`.
    Value(&'a [u8]),
    /// None, and there never was any.
    Nothing,
    /// None, but its store has not seen the whole delegation.
    Young,
}

impl<'a> Found<'a> {
    fn parse(kind: u8, value: &'a [u8]) -> Option<Self> {
        match (kind, value) {
            (0, value) => Some(Self::Value(value)),
            (1, []) => Some(Self::Nothing),
            (2, []) => Some(Self::Young),
            _ => None,
        }
    }

    /// Kind and value, as they are written into a DELEGATION_FOUND.
    #[must_use]
    pub fn parts(self) -> (u8, &'a [u8]) {
        match self {
            Self::Value(value) => (0, value),
            Self::Nothing => (1, &[]),
            Self::Young => (2, &[]),
        }
    }
}

/// Whether this request is a plain write, which may go anywhere while its key is delegated (section
/// 9 of the protocol): a PUT that depends on no earlier state and that no time ends.
#[must_use]
pub fn may_be_delegated(header: &[u8; HEADER_LEN], payload: &[u8]) -> bool {
    header.op() == Op::Put as u8
        && header.flags() & flag::KEEP_EXPIRY == 0
        && PutBody::split(payload).is_some_and(|(fixed, _)| fixed.expiry_ms == 0)
}

impl<'a> Body<'a> {
    /// The messages of delegations.
    pub(crate) fn parse_delegation(op: Op, key_len: usize, payload: &'a [u8]) -> Option<Self> {
        Some(match op {
            Op::DelegationFetch => {
                let (fixed, rest) = DelegationFetchBody::split(payload)?;
                Self::DelegationFetch { fixed, key: whole_key(rest, key_len)? }
            }
            Op::DelegationFound => {
                let (DelegationFoundBody { delegation, kind }, rest) =
                    DelegationFoundBody::split(payload)?;
                let (key, value) = key_and_value(rest, key_len)?;
                Self::DelegationFound { delegation, found: Found::parse(kind, value)?, key }
            }
            Op::DelegationEnd => {
                let (DelegationEndBody { delegation }, rest) = DelegationEndBody::split(payload)?;
                Self::DelegationEnd { delegation, key: whole_key(rest, key_len)? }
            }
            Op::DelegationCommit => {
                let (DelegationCommitBody { delegation }, rest) =
                    DelegationCommitBody::split(payload)?;
                Self::DelegationCommit { delegation, key: whole_key(rest, key_len)? }
            }
            Op::DelegationWrite => {
                let (DelegationWriteBody { unsynced }, rest) = DelegationWriteBody::split(payload)?;
                let (key, value) = key_and_value(rest, key_len)?;
                Self::DelegationWrite { unsynced, key, value }
            }
            Op::DelegationDurable => {
                let (DelegationDurableBody { delegation }, rest) =
                    DelegationDurableBody::split(payload)?;
                Self::DelegationDurable { delegation, key: whole_key(rest, key_len)? }
            }
            _ => return None,
        })
    }

    /// CHAIN_VERIFY, CHAIN_VERIFIED and CHAIN_MEND.
    pub(crate) fn parse_verify(op: Op, key_len: usize, payload: &'a [u8]) -> Option<Self> {
        let any_key = |key: &[u8]| key.len() == key_len && key_len <= KEY_MAX;
        Some(match op {
            Op::ChainVerify => {
                let (fixed, key) = ChainVerifyBody::split(payload)?;
                any_key(key).then_some(Self::ChainVerify { fixed, key })?
            }
            Op::ChainVerified => {
                let (fixed, last) = ChainVerifiedBody::split(payload)?;
                any_key(last).then_some(Self::ChainVerified { fixed, last })?
            }
            Op::ChainMend => {
                let (fixed, rest) = ChainMendBody::split(payload)?;
                let (key, value) = key_and_value(rest, key_len)?;
                Self::ChainMend { fixed, key, value }
            }
            _ => return None,
        })
    }
}
