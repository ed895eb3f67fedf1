//! Commands about keys, which the store carries out.

mod generic;
mod keyspace;
mod strings;

use super::{Keys, Run, Spec};

/// What the store can do: the commands by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyed {
    /// APPEND.
    Append,
    /// COPY.
    Copy,
    /// DBSIZE.
    DbSize,
    /// DECR.
    Decr,
    /// DECRBY.
    DecrBy,
    /// DEL.
    Del,
    /// DELIFEQ.
    DelIfEq,
    /// EXISTS.
    Exists,
    /// EXPIRE.
    Expire,
    /// EXPIREAT.
    ExpireAt,
    /// EXPIRETIME.
    ExpireTime,
    /// FLUSHALL.
    FlushAll,
    /// FLUSHDB.
    FlushDb,
    /// GET.
    Get,
    /// GETDEL.
    GetDel,
    /// GETEX.
    GetEx,
    /// GETRANGE.
    GetRange,
    /// GETSET.
    GetSet,
    /// INCR.
    Incr,
    /// INCRBY.
    IncrBy,
    /// INCRBYFLOAT.
    IncrByFloat,
    /// KEYS.
    Keys,
    /// MEMORY.
    Memory,
    /// MGET.
    MGet,
    /// MSET.
    MSet,
    /// MSETNX.
    MSetNx,
    /// OBJECT.
    Object,
    /// PERSIST.
    Persist,
    /// PEXPIRE.
    PExpire,
    /// PEXPIREAT.
    PExpireAt,
    /// PEXPIRETIME.
    PExpireTime,
    /// PSETEX.
    PSetEx,
    /// PTTL.
    PTtl,
    /// RANDOMKEY.
    RandomKey,
    /// RENAME.
    Rename,
    /// RENAMENX.
    RenameNx,
    /// SCAN.
    Scan,
    /// SET.
    Set,
    /// SETEX.
    SetEx,
    /// SETNX.
    SetNx,
    /// SETRANGE.
    SetRange,
    /// STRLEN.
    StrLen,
    /// SUBSTR.
    SubStr,
    /// TOUCH.
    Touch,
    /// TTL.
    Ttl,
    /// TYPE.
    Type,
    /// UNLINK.
    Unlink,
}

impl Keyed {
    /// Its name, as the table has it.
    pub(crate) fn name(self) -> &'static str {
        self.spec().name
    }

    /// What the table says of it.
    pub(crate) fn spec(self) -> &'static Spec {
        let named = all().find(|spec| spec.run == Run::Keyed(self));
        named.expect("every command is in the table")
    }
}

/// The one key of most commands.
const ONE: Keys = Keys::Range { first: 1, last: 1, step: 1 };
/// The one key after a subcommand.
const SECOND: Keys = Keys::Range { first: 2, last: 2, step: 1 };
/// From one key to another.
const TWO: Keys = Keys::Range { first: 1, last: 2, step: 1 };
/// Nothing but keys.
const ALL: Keys = Keys::Range { first: 1, last: -1, step: 1 };
/// Keys, each with a value behind it.
const PAIRS: Keys = Keys::Range { first: 1, last: -1, step: 2 };

/// Commands about keys.
pub(super) fn all() -> impl Iterator<Item = &'static Spec> {
    strings::TABLE.iter().chain(generic::TABLE).chain(keyspace::TABLE)
}
