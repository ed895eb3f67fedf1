//! How requests end: done, refused, or unknown, and types that keep the last two apart.

use crate::StartError;
use cluster::Keyspace;
use std::fmt;
use wire::big::{is_big, time_of};
use wire::{Code, STORE_WORDS_MAX, Version};

/// Which request: dense numbers, in the order of their start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a write may be refused, or its outcome unknown"]
pub enum Outcome<T> {
    /// It took place, exactly once.
    Done(T),
    /// It had no effect and never will.
    Refused(Refusal),
    /// It may have taken place, may yet, or may never: nobody answered in time. Only reading will
    /// tell. A read that ends so had no effect, of course.
    Unknown(UnknownReason),
}

/// Why a request had no effect and never will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The client did not send it.
    NotSent(StartError),
    /// The client was closed before it sent it.
    Closed,
    /// The time of the request for many keys that it is part of was up before it was sent.
    NotInTime,
    /// The result is over `result_bytes_max`.
    ResultTooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// A node could not read the body.
    BadRequest,
    /// A node found key or value over the limit.
    TooLarge,
    /// A node computed another match value or keyhash for the key: the keyspace is not what the
    /// client believes.
    BadMatch,
    /// There is no such keyspace.
    UnknownKeyspace,
    /// The keys of a batch are not all in one partition.
    NotTogether,
    /// The key is over `wire::big::BIG_KEY_MAX`, and its value does not fit a datagram.
    KeyTooLongForBig,
    /// A big value is longer than may be.
    ValueTooLong {
        /// The limit.
        bytes_max: u64,
    },
    /// Parts of a big value were not answered for before the deadline, so it was not written.
    PartsUnanswered,
    /// A big value was replaced while it was read, and what had been there is gone.
    Replaced,
    /// The parts of a big value are not those that were written.
    Damaged,
    /// Not all parts of a big value were there when it was to become the value of its key: too long
    /// a time had passed since the last one was written.
    PartsMissing,
    /// A node of the key's chain has no room for more: its memory or its disk is full.
    Full,
}

/// Why nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownReason {
    /// No node answered before the deadline, however often it was asked.
    NoAnswer,
    /// Nodes had no room for it as long as there was time. An earlier copy may have found some.
    Overloaded,
    /// The store below a node takes no changes for now, and this is why. An earlier copy may have
    /// been taken, or may be yet.
    StoreRefuses(StoreWords),
    /// Whoever knew whether an earlier copy was taken has forgotten it: the key's writes went
    /// anywhere and the switch that knew where is another one now, or the head of the key's
    /// partition had to make room for other clients.
    Uncertain,
    /// The client was closed while the request was on its way.
    Closed,
}

/// What a store said that refuses changes, in its own words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StoreWords {
    bytes: [u8; STORE_WORDS_MAX],
    len: u8,
}

impl StoreWords {
    /// The words in the body of a reply.
    pub(crate) fn new(words: &[u8]) -> Self {
        let mut bytes = [0; STORE_WORDS_MAX];
        bytes.iter_mut().zip(words).for_each(|(to, byte)| *to = *byte);
        let len = words.len().min(STORE_WORDS_MAX);
        Self { bytes, len: u8::try_from(len).expect("STORE_WORDS_MAX fits a byte") }
    }
}

impl fmt::Display for StoreWords {
    /// On one line, whatever bytes came.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = String::from_utf8_lossy(self.bytes.get(..self.len.into()).unwrap_or_default());
        f.write_str(&words.replace(char::is_control, " "))
    }
}

impl fmt::Debug for StoreWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// A request that is not known to be done, as an error for `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// It had no effect and never will.
    Refused(Refusal),
    /// It may have taken place.
    Unknown(UnknownReason),
}

impl<T> Outcome<T> {
    /// What was done, if it was.
    #[must_use]
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(it) => Some(it),
            Self::Refused(_) | Self::Unknown(_) => None,
        }
    }

    /// Whether it took place.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    /// Whether it certainly had no effect.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// Whether it may have taken place or not.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    /// Whether it says that the keyspace may not be what the client believes. Nothing was done
    /// then.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        matches!(self, Self::Refused(Refusal::BadMatch | Refusal::UnknownKeyspace))
    }

    /// The same outcome of something derived from what was done.
    pub fn map<U>(self, with: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Done(it) => Outcome::Done(with(it)),
            Self::Refused(why) => Outcome::Refused(why),
            Self::Unknown(why) => Outcome::Unknown(why),
        }
    }

    /// For `?`: the two ways not to be done stay apart in the error.
    ///
    /// # Errors
    ///
    /// Whatever is not [`Done`](Self::Done).
    pub fn into_result(self) -> Result<T, NotDone> {
        match self {
            Self::Done(it) => Ok(it),
            Self::Refused(why) => Err(NotDone::Refused(why)),
            Self::Unknown(why) => Err(NotDone::Unknown(why)),
        }
    }
}

impl<T> From<NotDone> for Outcome<T> {
    fn from(not_done: NotDone) -> Self {
        match not_done {
            NotDone::Refused(why) => Self::Refused(why),
            NotDone::Unknown(why) => Self::Unknown(why),
        }
    }
}

impl Refusal {
    /// The refusal that a node's code stands for; `None` if it is no refusal.
    pub(crate) fn from_code(code: Code) -> Option<Self> {
        Some(match code {
            Code::BadRequest => Self::BadRequest,
            Code::TooLarge => Self::TooLarge,
            Code::BadMatch => Self::BadMatch,
            Code::UnknownKeyspace => Self::UnknownKeyspace,
            Code::NotTogether => Self::NotTogether,
            Code::Ok
            | Code::NotFound
            | Code::CasMismatch
            | Code::NotANumber
            | Code::Overflow
            | Code::StaleEpoch
            | Code::NotOwner
            | Code::Overloaded
            | Code::NotServing
            | Code::Expiring
            | Code::Closed
            | Code::NotHere
            | Code::Delegated
            | Code::Uncertain
            | Code::Settling
            | Code::StoreRefuses
            | Code::NoSession
            | Code::PartsMissing
            | Code::Full => return None,
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(why) => why.fmt(f),
            Self::Closed => f.write_str("the client is closed; connect a new one"),
            Self::NotInTime => f.write_str("the time was up before it was sent; try again"),
            Self::ResultTooLarge { bytes_max } => write!(
                f,
                "the result is over {bytes_max} bytes; scan with a limit and go on after the \
                 last key, or ask for fewer keys at once"
            ),
            Self::BadRequest => f.write_str("a node could not read the request's body"),
            Self::TooLarge => f.write_str("a node found key or value over the limit"),
            Self::BadMatch => f.write_str(
                "a node places this key elsewhere: the keyspace has changed, look it up again",
            ),
            Self::UnknownKeyspace => f.write_str("there is no such keyspace"),
            Self::NotTogether => f.write_str(
                "the keys of the batch are not all in one partition; give them the same {tag}",
            ),
            Self::KeyTooLongForBig => write!(
                f,
                "the value does not fit a datagram, and keys of such values have at most {} bytes",
                wire::big::BIG_KEY_MAX
            ),
            Self::ValueTooLong { bytes_max } => {
                write!(f, "the value is over {bytes_max} bytes; spread it over several keys")
            }
            Self::PartsUnanswered => f.write_str(
                "no answer before the deadline to parts of the value, so it was not written",
            ),
            Self::Replaced => {
                f.write_str("the value was replaced while it was read; read it again")
            }
            Self::Damaged => f.write_str("what was read is not the value that was written"),
            Self::Full => f.write_str(
                "a node that holds the key is full; delete something, let values expire, or add \
                 nodes (see `keyway status`)",
            ),
            Self::PartsMissing => f.write_str(
                "parts of the value were given up because nothing came for too long; send it again",
            ),
        }
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for UnknownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StoreRefuses(words) => {
                return write!(f, "the store of a node takes no changes for now: {words}");
            }
            Self::NoAnswer => "no answer before the deadline",
            Self::Overloaded => "overloaded: no node had room for it before the deadline",
            Self::Uncertain => {
                "whoever knew whether it was written before has forgotten it, or is another switch"
            }
            Self::Closed => "the client was closed before the answer came",
        })
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "refused, without effect: {why}"),
            Self::Unknown(why) => write!(f, "outcome unknown, a write may have happened: {why}"),
        }
    }
}

impl std::error::Error for NotDone {}

/// A value and what is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// The bytes.
    pub value: Vec<u8>,
    /// Version of the write that made it.
    pub version: Version,
    /// Absolute expiry in Unix milliseconds, by the cluster's clock; 0 for never.
    pub expiry_ms: u64,
    /// What time it was in the cluster, in Unix milliseconds, when a node answered; 0 where only
    /// the key was asked for among others, and nobody said.
    pub now_ms: u64,
    /// Whether the value does not fit a datagram. What scans and multigets find then is not the
    /// value in `value`, but what the client reads it by: see `Space::get` and `Space::download`.
    pub big: bool,
}

impl Value {
    /// How many milliseconds it had left when a node answered; `None` if it stays, or nobody said.
    #[must_use]
    pub fn ttl_ms(&self) -> Option<u64> {
        let said = self.expiry_ms != 0 && self.now_ms != 0;
        said.then(|| self.expiry_ms.saturating_sub(self.now_ms))
    }

    /// Bytes of the whole value of this key, also if it fits no datagram and they are not here;
    /// `None` if nobody can tell: what was found is not how such a value is kept.
    #[must_use]
    pub fn whole_len(&self, key: &[u8]) -> Option<u64> {
        if !self.big {
            return u64::try_from(self.value.len()).ok();
        }
        wire::ManifestBody::parse(key, &self.value).map(|manifest| manifest.len)
    }
}

impl From<wire::Entry<'_>> for Value {
    fn from(entry: wire::Entry<'_>) -> Self {
        let wire::Entry { version, expiry_ms, now_ms, value } = entry;
        let (big, expiry_ms) = (is_big(expiry_ms), time_of(expiry_ms));
        Self { value: value.to_vec(), version, expiry_ms, now_ms, big }
    }
}

/// What a request that is done gives back; the variant is that of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The value, if there is one.
    Get(Option<Value>),
    /// What was written.
    Put {
        /// Version of the new value.
        version: Version,
    },
    /// Whether there was a value.
    Del(DelReply),
    /// Whether the value was the expected one.
    Cas(CasReply),
    /// The sum.
    Incr(IncrReply),
    /// Whether everything was as expected.
    Batch(BatchReply),
    /// One outcome for each key, in the order of the request.
    Mget(Vec<Outcome<Option<Value>>>),
    /// One outcome for each key, in the order of the request, with the version of its new value.
    Mset(Vec<Outcome<Version>>),
    /// One outcome for each key, in the order of the request.
    Mdel(Vec<Outcome<DelReply>>),
    /// All entries of the interval (or the first `limit` of them), in the order of the scan.
    Range(Vec<(Vec<u8>, Value)>),
    /// How many keys there are.
    Count(KeyCount),
    /// What the name means.
    Describe(Keyspace),
}

/// How many keys of a keyspace have a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyCount {
    /// All of them.
    pub keys: u64,
    /// Those whose value goes by itself some day.
    pub expiring: u64,
}

impl KeyCount {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            keys: self.keys.saturating_add(other.keys),
            expiring: self.expiring.saturating_add(other.expiring),
        }
    }
}

/// How a DEL was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelReply {
    /// Whether there was a value to delete.
    pub existed: bool,
    /// Version of the deletion.
    pub version: Version,
}

/// How a CAS was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CasReply {
    /// The expected one was there and has been replaced.
    Written {
        /// Version of the new value.
        version: Version,
    },
    /// Something else was there and has been left alone.
    Mismatch {
        /// Version of the value found; 0 if there was none.
        version: Version,
    },
}

/// How a batch was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchReply {
    /// Everything was as expected, and all of it was done.
    Applied {
        /// Version of all that was written.
        version: Version,
    },
    /// Nothing was done.
    Failed {
        /// The first step whose condition did not hold. Of the others nothing is said.
        step: usize,
    },
}

/// How an INCR was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncrReply {
    /// Added.
    Sum {
        /// The new value.
        sum: i64,
        /// Its version.
        version: Version,
    },
    /// Left alone: the value is not a decimal 64-bit number.
    NotANumber,
    /// Left alone: the sum leaves the 64-bit range.
    Overflow,
}
