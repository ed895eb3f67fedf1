//! Commands about keys, which the store carries out.

mod generic;
mod keyspace;
mod scripting;
mod strings;
pub(super) mod table;

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
    /// EVAL.
    Eval,
    /// EVAL_RO.
    EvalRo,
    /// EVALSHA.
    EvalSha,
    /// EVALSHA_RO.
    EvalShaRo,
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
