//! What SET, GET and their kin demand, and what they tell.

use super::errors::{Answer, SYNTAX};
use super::times::When;
use crate::Reply;
use crate::command::Keyed;
use bytes::Bytes;
use client::{Expiry, Value};
use smallvec::SmallVec;
use wire::Version;

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
pub(super) enum Life<'a> {
    Keep,
    Persist,
    Until(When, &'a Bytes),
}

/// The options of SET and GETEX.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetOptions<'a> {
    pub(super) condition: Condition<'a>,
    pub(super) get: bool,
    pub(super) life: Option<Life<'a>>,
}

impl<'a> SetOptions<'a> {
    /// Reads them. SET and GETEX share those about time, but each has one that the other lacks.
    pub(super) fn parse(command: Keyed, arguments: &'a [Bytes]) -> Answer<Self> {
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

/// What the reply of a GET tells of its key, or that of an MGET of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing: it is an error, or the command was no GET.
    Nothing,
    /// That it has no value.
    Absent,
    /// Its value of that version.
    Version(Version),
    /// Nothing yet: the value is one that streams, and that was not wanted. The reply is none.
    Unread,
}

/// What a reply tells of each key of its command, in their order; nothing of those beyond.
pub(crate) type Sights = SmallVec<[Seen; 1]>;

/// What a read tells of a key, given what it found.
pub(super) fn sight(found: Option<&Value>) -> Seen {
    found.map_or(Seen::Absent, |found| Seen::Version(found.version))
}

/// What the options of SET say: on what condition, whether to reply what was there, and until when.
pub(super) fn set_terms(options: &[Bytes]) -> Answer<(Condition<'_>, bool, Expiry)> {
    let SetOptions { condition, get, life } = SetOptions::parse(Keyed::Set, options)?;
    let expiry = match life {
        None | Some(Life::Persist) => Expiry::Never,
        Some(Life::Keep) => Expiry::Keep,
        Some(Life::Until(when, time)) => when.of_value(Keyed::Set, time)?,
    };
    Ok((condition, get, expiry))
}

/// What a read of the key replies.
pub(super) fn value_or_null(found: Option<&Value>) -> Reply {
    found.map_or(Reply::Null, |found| Reply::bulk(&found.value))
}
