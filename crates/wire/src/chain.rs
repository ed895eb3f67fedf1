//! Bodies of what the members of a chain say to each other.

use crate::batch::ChainSteps;
use crate::layout::{ChainStableBody, ChainWriteBody, ENTRY_MAX, Effect, RecallBody};

/// A write: what is fixed, key and value. The key of a batch is that of its first step, and the
/// value is all of them.
pub(crate) fn parse_chain_write(
    key_len: usize,
    payload: &[u8],
) -> Option<(ChainWriteBody, &[u8], &[u8])> {
    let (fixed, rest) = ChainWriteBody::split(payload)?;
    if fixed.effect == Effect::Batch as u8 {
        return Some((fixed, ChainSteps::parse(key_len, rest)?.first_key(), rest));
    }
    let (key, value) = rest.split_at_checked(key_len)?;
    let recalls = fixed.effect == Effect::Recall as u8;
    let most = if recalls { ENTRY_MAX + RecallBody::LEN } else { ENTRY_MAX };
    (!key.is_empty() && rest.len() <= most).then_some((fixed, key, value))
}

/// The sum over what is stable.
pub(crate) fn chain_stable(payload: &[u8]) -> Option<u64> {
    let (ChainStableBody { history }, rest) = ChainStableBody::split(payload)?;
    rest.is_empty().then_some(history)
}
