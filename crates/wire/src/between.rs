//! Payloads that only nodes send to each other: about trips, and about what they hold.

use crate::body::{Body, key_and_value, whole_key};
use crate::layout::{
    ChainMendBody, ChainVerifiedBody, ChainVerifyBody, KEY_MAX, Op, RoamCommitBody, RoamEndBody,
    RoamFetchBody, RoamFoundBody,
};

/// What a node holds of a key from a trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// A write, with its value; its version is the header's `object_version`.
    Value(&'a [u8]),
    /// None, and there never was any.
    Nothing,
    /// None, but its store has not seen the whole trip.
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

    /// Kind and value, as they are written into a ROAM_FOUND.
    #[must_use]
    pub fn parts(self) -> (u8, &'a [u8]) {
        match self {
            Self::Value(value) => (0, value),
            Self::Nothing => (1, &[]),
            Self::Young => (2, &[]),
        }
    }
}

impl<'a> Body<'a> {
    /// ROAM_FETCH, ROAM_FOUND, ROAM_END and ROAM_COMMIT.
    pub(crate) fn parse_roam(op: Op, key_len: usize, payload: &'a [u8]) -> Option<Self> {
        Some(match op {
            Op::RoamFetch => {
                let (fixed, rest) = RoamFetchBody::split(payload)?;
                Self::RoamFetch { fixed, key: whole_key(rest, key_len)? }
            }
            Op::RoamFound => {
                let (RoamFoundBody { trip, kind }, rest) = RoamFoundBody::split(payload)?;
                let (key, value) = key_and_value(rest, key_len)?;
                Self::RoamFound { trip, found: Found::parse(kind, value)?, key }
            }
            Op::RoamEnd => {
                let (RoamEndBody { trip }, rest) = RoamEndBody::split(payload)?;
                Self::RoamEnd { trip, key: whole_key(rest, key_len)? }
            }
            Op::RoamCommit => {
                let (RoamCommitBody { trip }, rest) = RoamCommitBody::split(payload)?;
                Self::RoamCommit { trip, key: whole_key(rest, key_len)? }
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
