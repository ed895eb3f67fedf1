//! Whole values: GET, SET with all its options, and the commands that are SET by other names.

use super::access::Change;
use super::big::WHOLE_MAX;
use super::errors::{Answer, SYNTAX, not_read};
use super::expiry::When;
use super::{Store, limits};
use crate::Reply;
use crate::command::Keyed;
use bytes::Bytes;
use client::{Expiry, Value};

/// What SET demands of the value that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition<'a> {
    /// Nothing.
    None,
    /// That there is none.
    Absent,
    /// That there is one.
    Present,
    /// That it is this one.
    Equal(&'a Bytes),
}

/// What an argument says about the expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life<'a> {
    Keep,
    Persist,
    Until(When, &'a Bytes),
}

/// The options of SET and GETEX.
#[derive(Clone, Copy, Debug)]
struct Options<'a> {
    condition: Condition<'a>,
    get: bool,
    life: Option<Life<'a>>,
}

impl<'a> Options<'a> {
    /// Reads them. SET and GETEX share those about time, but each has one that the other lacks.
    fn parse(command: Keyed, arguments: &'a [Bytes]) -> Answer<Self> {
        let of_set = command == Keyed::Set;
        let mut options = Self { condition: Condition::None, get: false, life: None };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let name = argument.to_ascii_lowercase();
            match name.as_slice() {
                b"nx" if of_set => options.demand(Condition::Absent)?,
                b"xx" if of_set => options.demand(Condition::Present)?,
                b"ifeq" if of_set && options.condition == Condition::None => {
                    options.demand(Condition::Equal(rest.next().ok_or(SYNTAX)?))?;
                }
                b"get" if of_set => options.get = true,
                b"keepttl" if of_set => options.live(Life::Keep)?,
                b"persist" if !of_set => options.live(Life::Persist)?,
                other => {
                    let when = match other {
                        b"ex" => When::EX,
                        b"px" => When::PX,
                        b"exat" => When::EXAT,
                        b"pxat" => When::PXAT,
                        _ => return Err(SYNTAX),
                    };
                    options.live(Life::Until(when, rest.next().ok_or(SYNTAX)?))?;
                }
            }
        }
        Ok(options)
    }

    /// An option may be said again, but not together with another of its kind.
    fn demand(&mut self, condition: Condition<'a>) -> Answer<()> {
        if self.condition != Condition::None && self.condition != condition {
            return Err(SYNTAX);
        }
        self.condition = condition;
        Ok(())
    }

    /// The same about time, where the last one counts.
    fn live(&mut self, life: Life<'a>) -> Answer<()> {
        let again = match (self.life, life) {
            (None, _) => true,
            (Some(Life::Until(before, _)), Life::Until(when, _)) => before == when,
            (Some(before), _) => before == life,
        };
        if !again {
            return Err(SYNTAX);
        }
        self.life = Some(life);
        Ok(())
    }
}

impl Condition<'_> {
    /// Whether SET may write over what was found, and what it replies, with GET or without.
    pub(super) fn judge(self, get: bool, found: Option<&Value>) -> (bool, Reply) {
        let holds = match self {
            Self::None => true,
            Self::Absent => found.is_none(),
            Self::Present => found.is_some(),
            Self::Equal(expected) => found.is_some_and(|it| it.value == *expected),
        };
        let reply = match (get, holds) {
            (true, _) => value_or_null(found),
            (false, true) => Reply::OK,
            (false, false) => Reply::Null,
        };
        (holds, reply)
    }
}

/// What the reply of a GET tells of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing: it is an error, or the command was no GET.
    Nothing,
    /// That it has no value.
    Absent,
    /// Its value of that version.
    Version(u64),
    /// Nothing yet: the value is one that streams, and that was not wanted. The reply is none.
    Unread,
}

/// What the options of SET say: on what condition, whether to reply what was there, and until when.
pub(super) fn set_terms(options: &[Bytes]) -> Answer<(Condition<'_>, bool, Expiry)> {
    let Options { condition, get, life } = Options::parse(Keyed::Set, options)?;
    let expiry = match life {
        None | Some(Life::Persist) => Expiry::Never,
        Some(Life::Keep) => Expiry::Keep,
        Some(Life::Until(when, time)) => when.of_value(Keyed::Set, time)?,
    };
    Ok((condition, get, expiry))
}

impl Store {
    /// GET.
    pub(super) async fn get_value(&self, key: &[u8]) -> Answer {
        self.find(key, true).await.map(|(reply, _)| reply)
    }

    /// GET, and what its reply tells of the key. Values that stream are read if `streams`.
    pub(crate) async fn get_and_tell(&self, key: &[u8], streams: bool) -> (Reply, Seen) {
        self.find(key, streams).await.unwrap_or_else(|error| (error, Seen::Nothing))
    }

    async fn find(&self, key: &[u8], streams: bool) -> Answer<(Reply, Seen)> {
        if self.view.is_none() {
            limits::key(key)?;
            let Some(found) = self.space.peek(key).await.into_result().map_err(not_read)? else {
                return Ok((Reply::Null, Seen::Absent));
            };
            if !found.big {
                return Ok((Reply::Bulk(found.value.into()), Seen::Version(found.version)));
            }
            if !streams && found.whole_len(key).is_some_and(|len| len > WHOLE_MAX) {
                return Ok((Reply::Null, Seen::Unread));
            }
        }
        let found = Box::pin(self.bytes(key, |len| 0..len)).await?;
        let absent = (Reply::Null, Seen::Absent);
        Ok(found.map_or(absent, |(reply, version)| (reply, Seen::Version(version))))
    }

    /// SET with its options.
    pub(super) async fn set(&self, key: &[u8], value: &[u8], arguments: &[Bytes]) -> Answer {
        let (condition, get, expiry) = set_terms(arguments)?;
        if !get {
            match condition {
                Condition::None => return self.put(key, value, expiry).await.map(|()| Reply::OK),
                Condition::Absent => {
                    let written = Box::pin(self.put_new(key, value, expiry)).await?;
                    return Ok(if written { Reply::OK } else { Reply::Null });
                }
                Condition::Present | Condition::Equal(_) => {}
            }
        }
        Box::pin(self.update(key, |found| {
            let (holds, reply) = condition.judge(get, found);
            let change = if holds { Change::Write(value.into(), expiry) } else { Change::None };
            Ok((change, reply))
        }))
        .await
    }

    /// SETNX.
    pub(super) async fn set_new(&self, key: &[u8], value: &[u8]) -> Answer {
        let written = self.put_new(key, value, Expiry::Never).await?;
        Ok(Reply::Integer(written.into()))
    }

    /// SETEX and PSETEX.
    pub(super) async fn set_for(
        &self,
        command: Keyed,
        when: When,
        key: &[u8],
        time: &[u8],
        value: &[u8],
    ) -> Answer {
        let expiry = when.of_value(command, time)?;
        self.put(key, value, expiry).await.map(|()| Reply::OK)
    }

    /// GETSET.
    pub(super) async fn get_and_set(&self, key: &[u8], value: &[u8]) -> Answer {
        self.update(key, |found| {
            Ok((Change::Write(value.into(), Expiry::Never), value_or_null(found)))
        })
        .await
    }

    /// GETEX.
    pub(super) async fn get_and_expire(&self, key: &[u8], arguments: &[Bytes]) -> Answer {
        let Some(life) = Options::parse(Keyed::GetEx, arguments)?.life else {
            return self.get_value(key).await;
        };
        self.update(key, |found| {
            let until = match life {
                // Of a time that is wrong, Redis says nothing where there is no value.
                Life::Until(when, time) if found.is_some() => {
                    Some(when.of_value(Keyed::GetEx, time)?)
                }
                Life::Keep | Life::Persist | Life::Until(..) => None,
            };
            let now_ms = found.and_then(|found| self.now_ms(found));
            let now_ms = now_ms.and_then(|now| u64::try_from(now).ok()).unwrap_or(0);
            let change = match (found, until) {
                (None, _) | (Some(Value { expiry_ms: 0, .. }), None) => Change::None,
                (Some(_), None) => Change::Expire(Expiry::Never),
                (Some(_), Some(Expiry::AtMs(at_ms))) if at_ms <= now_ms => Change::Delete,
                (Some(_), Some(until)) => Change::Expire(until),
            };
            Ok((change, value_or_null(found)))
        })
        .await
    }

    /// GETDEL.
    pub(super) async fn get_and_delete(&self, key: &[u8]) -> Answer {
        self.update(key, |found| {
            let change = found.map_or(Change::None, |_| Change::Delete);
            Ok((change, value_or_null(found)))
        })
        .await
    }

    /// DELIFEQ.
    pub(super) async fn delete_if(&self, key: &[u8], expected: &[u8]) -> Answer {
        self.update(key, |found| {
            Ok(if found.is_some_and(|found| found.value == expected) {
                (Change::Delete, Reply::Integer(1))
            } else {
                (Change::None, Reply::Integer(0))
            })
        })
        .await
    }
}

/// What a read of the key replies.
fn value_or_null(found: Option<&Value>) -> Reply {
    found.map_or(Reply::Null, |found| Reply::bulk(&found.value))
}
