//! Keys that were looked up: how many were there, and how many not.

use crate::Reply;
use crate::command::Keyed;
use bytes::Bytes;

/// What a reply tells of the keys that its command has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lookups {
    /// Keys that had a value.
    pub(crate) hits: u64,
    /// Keys that had none.
    pub(crate) misses: u64,
}

impl Lookups {
    /// Those of a command that reads, by its reply. An empty one to STRLEN or GETRANGE may be that
    /// of an empty value, or that there is none; it counts as neither.
    pub(crate) fn of(command: Keyed, args: &[Bytes], reply: &Reply) -> Self {
        let one = |hit: bool| Self { hits: hit.into(), misses: (!hit).into() };
        match (command, reply) {
            (
                Keyed::Get | Keyed::GetDel | Keyed::GetEx | Keyed::GetSet | Keyed::Set,
                Reply::Bulk(_) | Reply::Long(_),
            ) => one(true),
            (Keyed::Get | Keyed::GetDel | Keyed::GetEx | Keyed::GetSet, Reply::Null) => one(false),
            (Keyed::Set, Reply::Null) if tells_old(args) => one(false),
            (Keyed::MGet, Reply::Array(values)) => {
                let misses = values.iter().filter(|value| **value == Reply::Null).count() as u64;
                Self { hits: values.len() as u64 - misses, misses }
            }
            (Keyed::Exists | Keyed::Touch, Reply::Integer(found)) => {
                let (hits, keys) = (found.unsigned_abs(), args.len().saturating_sub(1) as u64);
                Self { hits, misses: keys.saturating_sub(hits) }
            }
            (Keyed::Type, Reply::Status(text)) => one(text != "none"),
            (
                Keyed::Ttl | Keyed::PTtl | Keyed::ExpireTime | Keyed::PExpireTime,
                Reply::Integer(time),
            ) => one(*time != -2),
            (Keyed::StrLen, Reply::Integer(1..)) => one(true),
            (Keyed::GetRange | Keyed::SubStr, Reply::Long(_)) => one(true),
            (Keyed::GetRange | Keyed::SubStr, Reply::Bulk(part)) if !part.is_empty() => one(true),
            _ => Self::default(),
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.hits += other.hits;
        self.misses += other.misses;
    }
}

/// Whether a SET has the option GET, and so has read the key.
fn tells_old(args: &[Bytes]) -> bool {
    args.iter().skip(3).any(|option| option.eq_ignore_ascii_case(b"get"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_tell_what_was_there() {
        let of = |command, words: &str, reply| {
            let args: Vec<Bytes> = words.split(' ').map(|it| it.to_owned().into()).collect();
            let Lookups { hits, misses } = Lookups::of(command, &args, &reply);
            (hits, misses)
        };
        let value = || Reply::bulk("v");
        assert_eq!(of(Keyed::Get, "GET a", value()), (1, 0));
        assert_eq!(of(Keyed::Get, "GET a", Reply::Null), (0, 1));
        assert_eq!(of(Keyed::Get, "GET a", Reply::error("ERR not read")), (0, 0));
        let three = Reply::Array(vec![value(), Reply::Null, value()]);
        assert_eq!(of(Keyed::MGet, "MGET a b c", three), (2, 1));
        assert_eq!(of(Keyed::Exists, "EXISTS a a b", Reply::Integer(2)), (2, 1));
        assert_eq!(of(Keyed::Type, "TYPE a", Reply::Status("none".into())), (0, 1));
        assert_eq!(of(Keyed::PTtl, "PTTL a", Reply::Integer(-1)), (1, 0));
        assert_eq!(of(Keyed::Ttl, "TTL a", Reply::Integer(-2)), (0, 1));
        assert_eq!(of(Keyed::StrLen, "STRLEN a", Reply::Integer(0)), (0, 0));
        assert_eq!(of(Keyed::GetRange, "GETRANGE a 0 9", Reply::bulk("")), (0, 0));
        assert_eq!(of(Keyed::Set, "SET a b", Reply::OK), (0, 0), "it has read nothing");
        assert_eq!(of(Keyed::Set, "SET a b NX", Reply::Null), (0, 0));
        assert_eq!(of(Keyed::Set, "SET a b EX 9 Get", Reply::Null), (0, 1));
        assert_eq!(of(Keyed::Incr, "INCR a", Reply::Integer(1)), (0, 0));
    }
}
