//! Commands that are one request to the cluster and one reply to the client, and so need no future:
//! which those are, and what they ask. What takes more than that, because of its arguments or of
//! what is there, is for [`Store::run`](super::Store::run), which can carry out each of these as
//! well.

use super::errors::{Answer, NOT_AN_INTEGER};
use super::integers::{integer, negated};
use super::limits;
use super::terms::{Condition, Sights, set_terms};
use super::times::When;
use crate::Reply;
use crate::command::Keyed;
use bytes::Bytes;
use client::{Expect, Expiry, New, Request, Value};
use wire::Version;

/// How a command is carried out with one request. Its key is the first argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// What is there is read, and shown so.
    Read(Shown),
    /// The argument at `value` is written, whatever is there.
    Put {
        value: usize,
        expiry: Expiry,
    },
    /// It is written if there is nothing; whether it was is said as a number, or by OK.
    PutNew {
        value: usize,
        expiry: Expiry,
        as_number: bool,
    },
    Del,
    Add(i64),
    /// All arguments are read, each as a key of its own.
    ReadAll,
    /// All arguments are written, keys and values in turn, each key for itself.
    PutAll,
}

/// Keys of a command that is one request of the client at most. With values that fit datagrams the
/// reply to an MGET of so many has 160 KiB, for which nobody asks the [room](super::room).
pub(crate) const KEYS_MAX: usize = 4 * wire::MGET_KEYS_MAX;

const _: () = assert!(KEYS_MAX * wire::ENTRY_MAX <= 160 << 10);

/// What a reply shows of a value that was read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown {
    Value,
    Presence,
    Len,
    Type,
    TimeLeft(When),
}

/// What becomes of a command whose request has ended.
pub(crate) enum Settled {
    /// This is the reply, and what it tells of the keys.
    Reply(Reply, Sights),
    /// A GET has found a value that is not whole: [`Store::tell`](super::Store::tell) goes on from
    /// there.
    Found(Value),
    /// Nothing was done, and [`Store::run`](super::Store::run) has to do it.
    Again,
    /// Of the rest nothing was done: it has to do that, as a command with these arguments.
    Rest(Vec<Bytes>),
}

impl Plan {
    /// The plan for a command whose arguments (the name first) are as many as its table entry says;
    /// `None` if it takes more than one request.
    ///
    /// # Errors
    ///
    /// The reply, if the command is wrong.
    pub(crate) fn of(command: Keyed, args: &[Bytes]) -> Answer<Option<Self>> {
        let plan = match (command, args) {
            (Keyed::Get, [_, key]) => Self::read(key, Shown::Value)?,
            (Keyed::Set, [_, key, value, options @ ..]) => {
                let (condition, get, expiry) = set_terms(options)?;
                limits::entry(key, value.len())?;
                match condition {
                    Condition::None if !get => Self::Put { value: 2, expiry },
                    Condition::Absent if !get => {
                        Self::PutNew { value: 2, expiry, as_number: false }
                    }
                    _ => return Ok(None),
                }
            }
            (Keyed::SetNx, [_, key, value]) => {
                limits::entry(key, value.len())?;
                Self::PutNew { value: 2, expiry: Expiry::Never, as_number: true }
            }
            (Keyed::SetEx | Keyed::PSetEx, [_, key, time, value]) => {
                let when = if command == Keyed::SetEx { When::EX } else { When::PX };
                let expiry = when.of_value(command, time)?;
                limits::entry(key, value.len())?;
                Self::Put { value: 3, expiry }
            }
            (Keyed::Incr, [_, key]) => Self::add(key, 1)?,
            (Keyed::Decr, [_, key]) => Self::add(key, -1)?,
            (Keyed::IncrBy, [_, key, delta]) => {
                Self::add(key, integer(delta).ok_or(NOT_AN_INTEGER)?)?
            }
            (Keyed::DecrBy, [_, key, delta]) => Self::add(key, negated(delta)?)?,
            (Keyed::Del | Keyed::Unlink, [_, key]) => {
                limits::key(key)?;
                Self::Del
            }
            (Keyed::MGet, [_, keys @ ..]) if keys.len() <= KEYS_MAX => {
                keys.iter().try_for_each(|key| limits::key(key))?;
                Self::ReadAll
            }
            (Keyed::MSet, [_, pairs @ ..]) if pairs.len() <= 2 * KEYS_MAX => {
                let (pairs, []) = pairs.as_chunks::<2>() else { return Ok(None) };
                pairs.iter().try_for_each(|[key, value]| limits::entry(key, value.len()))?;
                Self::PutAll
            }
            (Keyed::Exists | Keyed::Touch, [_, key]) => Self::read(key, Shown::Presence)?,
            (Keyed::StrLen, [_, key]) => Self::read(key, Shown::Len)?,
            (Keyed::Type, [_, key]) => Self::read(key, Shown::Type)?,
            (Keyed::Ttl, [_, key]) => Self::read(key, Shown::TimeLeft(When::EX))?,
            (Keyed::PTtl, [_, key]) => Self::read(key, Shown::TimeLeft(When::PX))?,
            (Keyed::ExpireTime, [_, key]) => Self::read(key, Shown::TimeLeft(When::EXAT))?,
            (Keyed::PExpireTime, [_, key]) => Self::read(key, Shown::TimeLeft(When::PXAT))?,
            _ => return Ok(None),
        };
        Ok(Some(plan).filter(|plan| plan.fits(args)))
    }

    fn read(key: &[u8], shown: Shown) -> Answer<Self> {
        limits::key(key).map(|()| Self::Read(shown))
    }

    fn add(key: &[u8], delta: i64) -> Answer<Self> {
        limits::key(key).map(|()| Self::Add(delta))
    }

    /// Whether each key that is written fits a datagram, with its value.
    fn fits(self, args: &[Bytes]) -> bool {
        let len = |at: usize| args.get(at).map_or(0, Bytes::len);
        match self {
            Self::Put { value, .. } | Self::PutNew { value, .. } => {
                len(1) + len(value) <= wire::ENTRY_MAX
            }
            Self::PutAll => {
                pairs(args).all(|(key, value)| key.len() + value.len() <= wire::ENTRY_MAX)
            }
            Self::Read(_) | Self::Del | Self::Add(_) | Self::ReadAll => true,
        }
    }

    /// Lends what is asked, given the arguments that the plan was made for.
    pub(crate) fn lend<T>(self, args: &[Bytes], take: impl FnOnce(Request<'_>) -> T) -> T {
        let arg = |at: usize| args.get(at).map(Bytes::as_ref).unwrap_or_default();
        let key = arg(1);
        let request = match self {
            Self::ReadAll => {
                let keys: Vec<&[u8]> = args.iter().skip(1).map(Bytes::as_ref).collect();
                return take(Request::Mget { keys: &keys, within: None });
            }
            Self::PutAll => {
                let entries: Vec<(&[u8], &[u8])> = pairs(args).collect();
                let (entries, expiry) = (&*entries, Expiry::Never);
                return take(Request::Mset { entries, expiry, within: None });
            }
            Self::Read(_) => Request::Get { key },
            Self::Put { value, expiry } => Request::Put { key, value: arg(value), expiry },
            Self::PutNew { value, expiry, .. } => {
                let (expect, new) = (Expect::Version(Version::NONE), New::Value(arg(value)));
                Request::Cas { key, expect, new, expiry }
            }
            Self::Del => Request::Del { key },
            Self::Add(delta) => Request::Incr { key, delta },
        };
        take(request)
    }
}

/// Keys and values of an MSET with these arguments.
fn pairs(args: &[Bytes]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let (pairs, _) = args.get(1..).unwrap_or_default().as_chunks::<2>();
    pairs.iter().map(|[key, value]| (&key[..], &value[..]))
}
