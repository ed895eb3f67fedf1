//! What commands that fail are answered with: Redis' own words where Redis has the same error.

use crate::Reply;
use crate::command::Keyed;
use client::{NotDone, Refusal};

/// The reply of a command, or the error that ends it early.
pub(super) type Answer<T = Reply> = Result<T, Reply>;

/// An option that the command does not have, or has not together with the others.
pub(super) const SYNTAX: Reply = Reply::error("ERR syntax error");

/// An argument, or a value, that is no decimal 64-bit number.
pub(super) const NOT_AN_INTEGER: Reply =
    Reply::error("ERR value is not an integer or out of range");

/// An argument, or a value, that is no number with a fraction either.
pub(super) const NOT_A_FLOAT: Reply = Reply::error("ERR value is not a valid float");

/// A write for which some node has no room: the words that clients of Redis know it by.
pub(super) const FULL: Reply =
    Reply::error("OOM command not allowed when used memory > 'maxmemory'.");

/// More arguments than were checked already: an odd one out, or too many of a subcommand.
pub(super) fn arity(command: Keyed) -> Reply {
    Reply::Error(format!("ERR wrong number of arguments for '{}' command", command.name()).into())
}

/// A time that is not after 1970, or out of range.
pub(super) fn expire_time(command: Keyed) -> Reply {
    Reply::Error(format!("ERR invalid expire time in '{}' command", command.name()).into())
}

/// Why a write has no result: it had no effect, or nobody knows.
pub(super) fn not_written(why: NotDone) -> Reply {
    if why == NotDone::Refused(Refusal::Full) {
        return FULL;
    }
    Reply::Error(format!("ERR {why}").into())
}

/// Why a read has no result. Whatever the command would have done after it was not done.
pub(super) fn not_read(why: NotDone) -> Reply {
    match why {
        NotDone::Refused(why) => Reply::Error(format!("ERR refused: {why}").into()),
        NotDone::Unknown(why) => {
            Reply::Error(format!("ERR not read, and nothing was changed: {why}").into())
        }
    }
}

/// Text from a client as an error repeats it: as in C it ends at a zero byte, and a line break
/// would end the reply.
pub(super) fn shown(bytes: &[u8], len_max: usize) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text.get(..len_max).unwrap_or(text));
    text.trim_end_matches(['\r', '\n']).replace(['\r', '\n'], " ")
}
