//! Commands that are one request to the cluster and one reply to the client, without a future: what
//! they ask, and what the answer makes of it. What takes more than that, because of its arguments
//! or of what is there, is for [`Store::run`], which can carry out each of these as well.

use super::errors::{Answer, NOT_AN_INTEGER, not_read, not_written};
use super::integers::integer;
use super::terms::{Condition, Seen, set_terms};
use super::times::When;
use super::{Store, limits, numbers};
use crate::Reply;
use crate::command::Keyed;
use bytes::Bytes;
use client::{CasReply, Expect, Expiry, New, Outcome, Request, Value};
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
}

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
    /// This is the reply, and what it tells of the key.
    Reply(Reply, Seen),
    /// A GET has found a value that is not whole: [`Store::tell`] goes on from there.
    Found(Value),
    /// Nothing was done, and [`Store::run`] has to do it.
    Again,
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
            (Keyed::DecrBy, [_, key, delta]) => Self::add(key, numbers::negated(delta)?)?,
            (Keyed::Del | Keyed::Unlink, [_, key]) => {
                limits::key(key)?;
                Self::Del
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

    /// Whether what is written fits a datagram.
    fn fits(self, args: &[Bytes]) -> bool {
        let (Self::Put { value, .. } | Self::PutNew { value, .. }) = self else { return true };
        let len = |at: usize| args.get(at).map_or(0, Bytes::len);
        len(1) + len(value) <= wire::ENTRY_MAX
    }

    /// What is asked, given the arguments that the plan was made for.
    pub(crate) fn request(self, args: &[Bytes]) -> Request<'_> {
        let arg = |at: usize| args.get(at).map(Bytes::as_ref).unwrap_or_default();
        let key = arg(1);
        match self {
            Self::Read(_) => Request::Get { key },
            Self::Put { value, expiry } => Request::Put { key, value: arg(value), expiry },
            Self::PutNew { value, expiry, .. } => {
                let (expect, new) = (Expect::Version(Version::NONE), New::Value(arg(value)));
                Request::Cas { key, expect, new, expiry }
            }
            Self::Del => Request::Del { key },
            Self::Add(delta) => Request::Incr { key, delta },
        }
    }
}

impl Store {
    /// What becomes of a command whose request ended so.
    pub(crate) fn take_outcome(&self, plan: Plan, outcome: Outcome<client::Reply>) -> Settled {
        if outcome.is_outdated() {
            return Settled::Again;
        }
        let reply = match outcome.into_result() {
            Ok(reply) => reply,
            Err(why) => {
                let says = if matches!(plan, Plan::Read(_)) { not_read } else { not_written };
                return Settled::Reply(says(why), Seen::Nothing);
            }
        };
        let told = match (plan, reply) {
            (Plan::Read(shown), client::Reply::Get(found)) => return self.show(shown, found),
            (Plan::Put { .. }, client::Reply::Put { .. }) => Reply::OK,
            (Plan::PutNew { as_number, .. }, client::Reply::Cas(swapped)) => {
                let written = matches!(swapped, CasReply::Written { .. });
                match (as_number, written) {
                    (true, _) => Reply::Integer(written.into()),
                    (false, true) => Reply::OK,
                    (false, false) => Reply::Null,
                }
            }
            (Plan::Del, client::Reply::Del(deleted)) => Reply::Integer(deleted.existed.into()),
            (Plan::Add(_), client::Reply::Incr(added)) => {
                numbers::summed(added).unwrap_or_else(|error| error)
            }
            (_, other) => {
                unreachable!("the variant of a reply is that of its request, but here is {other:?}")
            }
        };
        Settled::Reply(told, Seen::Nothing)
    }

    fn show(&self, shown: Shown, found: Option<Value>) -> Settled {
        let reply = match (shown, found) {
            (Shown::Value, None) => return Settled::Reply(Reply::Null, Seen::Absent),
            (Shown::Value, Some(found)) if found.big => return Settled::Found(found),
            (Shown::Value, Some(found)) => {
                let seen = Seen::Version(found.version);
                return Settled::Reply(Reply::Bulk(found.value.into()), seen);
            }
            (Shown::Presence, found) => Reply::Integer(found.is_some().into()),
            (Shown::Type, found) => super::keys::type_name(found.is_some()),
            // What is said of it is not with the key.
            (Shown::Len | Shown::TimeLeft(_), Some(found)) if found.big => return Settled::Again,
            (Shown::Len, found) => {
                super::ranges::length(found.map_or(0, |found| found.value.len()))
            }
            (Shown::TimeLeft(when), found) => self.show_time_left(found.as_ref(), when),
        };
        Settled::Reply(reply, Seen::Nothing)
    }
}
