//! How large keys and values may be. Redis takes any up to 512 MB, and the empty key. Here keys
//! have less, and a value that is read to be changed, as by APPEND, has to have room in the
//! gateway. This is the one place that says so to clients.

use super::errors::Answer;
use crate::Reply;
use wire::big::BIG_KEY_MAX;
use wire::{BATCH_BYTES_MAX, BATCH_STEPS_MAX, ENTRY_MAX, KEY_MAX};

/// Bytes of a value in Redis (`proto-max-bulk-len`); commands that make values longer say so.
const STRING_MAX: usize = wire::VALUE_MAX;

/// Bytes of a value that is read and written again by one command; SET takes longer ones.
pub(super) const CHANGED_MAX: usize = 64 << 20;

/// KiB of all such values together, of all connections: four of the longest. More have to wait.
pub(super) const CHANGED_KIB_MAX: u32 = 256 << 10;

/// KiB of all replies together, of all connections, that are put together out of many values or
/// keys: two of the longest.
pub(super) const GATHERED_KIB_MAX: u32 = 512 << 10;

/// There is no room for one.
pub(super) const NO_ROOM: Reply = Reply::error(
    "ERR replies to other clients take all the room that there is for long ones; ask for less at \
     once, or later",
);

/// Bytes of all values that one MGET replies.
pub(super) const MANY_MAX: usize = 256 << 20;

/// There are more.
pub(super) fn too_many_bytes() -> Reply {
    let text = format!("ERR the values have more than {MANY_MAX} bytes; ask for fewer at once");
    Reply::Error(text.into())
}

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
    if len + value_len <= ENTRY_MAX || (len <= BIG_KEY_MAX && value_len <= STRING_MAX) {
        return Ok(());
    }
    Err(Reply::Error(
        format!(
            "ERR values have at most {STRING_MAX} bytes here, and keys of values that are long \
             {BIG_KEY_MAX}; these have {value_len} and {len}"
        )
        .into(),
    ))
}

/// Whether the key can be set to the value.
pub(crate) fn can_be_set(key: &[u8], value: &[u8]) -> bool {
    entry(key, value.len()).is_ok()
}

/// Whether a value of so many bytes can be read and written again by one command.
pub(super) fn changed(key: &[u8], value_len: usize) -> Answer<()> {
    entry(key, value_len)?;
    if value_len <= CHANGED_MAX {
        return Ok(());
    }
    let text = format!(
        "ERR commands that change a part of a value take values of at most {CHANGED_MAX} bytes \
         here; GET it and SET it anew"
    );
    Err(Reply::Error(text.into()))
}

/// What so many keys and bytes are that a batch has no room for.
pub(super) fn too_large_together(steps: usize, len: usize) -> Reply {
    Reply::Error(
        format!(
            "ERR this would take {steps} keys and {len} bytes at once; at most {BATCH_STEPS_MAX} \
             keys and {BATCH_BYTES_MAX} bytes (22 for each key, keys, and up to 30 of each value \
             written) take effect together"
        )
        .into(),
    )
}

/// What so many bytes are that a transaction or a script has read or written.
pub(super) fn too_much_held(bytes: usize) -> Reply {
    let text = format!(
        "ERR what changes together is read and written as {CHANGED_MAX} bytes at most, and this is \
         {bytes}"
    );
    Reply::Error(text.into())
}

/// Why a long value is no part of the reply of a transaction: that is put together in memory.
pub(super) fn too_long_to_tell() -> Reply {
    let text = format!(
        "ERR the reply of a transaction has values of at most {CHANGED_MAX} bytes; GET it by itself"
    );
    Reply::Error(text.into())
}

/// The bytes of a value ended early.
pub(super) fn cut_short() -> Reply {
    Reply::error("ERR not read: the value was replaced, or the cluster did not answer")
}

/// Whether a value may become so long, by Redis' rule. `None` stands for a length beyond counting.
pub(super) fn string(len: Option<usize>) -> Answer<usize> {
    len.filter(|len| *len <= STRING_MAX)
        .ok_or(Reply::error("ERR string exceeds maximum allowed size (proto-max-bulk-len)"))
}
