//! How large keys and values may be. Redis takes any up to 512 MB, and the empty key; one datagram
//! holds less. This is the one place that says so to clients.

use super::errors::Answer;
use crate::Reply;
use wire::{ENTRY_MAX, KEY_MAX};

/// Bytes of a value in Redis (`proto-max-bulk-len`); commands that make values longer say so.
const STRING_MAX: usize = 512 << 20;

/// Whether there can be such a key.
pub(super) fn key(key: &[u8]) -> Answer<()> {
    if (1..=KEY_MAX).contains(&key.len()) {
        return Ok(());
    }
    let len = key.len();
    let text = format!("ERR keys have 1 to {KEY_MAX} bytes here, and this one has {len}");
    Err(Reply::Error(text.into()))
}

/// Whether the key can have a value of so many bytes.
pub(super) fn entry(key: &[u8], value_len: usize) -> Answer<()> {
    self::key(key)?;
    let len = key.len();
    if len + value_len <= ENTRY_MAX {
        return Ok(());
    }
    Err(Reply::Error(
        format!(
            "ERR key and value have at most {ENTRY_MAX} bytes together here, and these have \
             {len} and {value_len}"
        )
        .into(),
    ))
}

/// Whether a value may become so long, by Redis' rule. `None` stands for a length beyond counting.
pub(super) fn string(len: Option<usize>) -> Answer<usize> {
    len.filter(|len| *len <= STRING_MAX)
        .ok_or(Reply::error("ERR string exceeds maximum allowed size (proto-max-bulk-len)"))
}
