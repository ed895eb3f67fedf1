//! What can be asked, and why a question may not even be sent.

use cluster::Match;
use std::fmt;
use std::ops::Bound;
use std::time::Duration;
use wire::{
    BATCH_BYTES_MAX, BATCH_STEPS_MAX, ENTRY_MAX, FILL_MAX, KEY_MAX, ManifestBody, NAME_MAX,
    PartKey, UploadBody,
};

pub use wire::{Change, Condition, Expect, New, Step};

/// One request, lent for the time of the call that starts it.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// Read one key.
    Get {
        /// The key.
        key: &'a [u8],
    },
    /// Write one key.
    Put {
        /// The key.
        key: &'a [u8],
        /// Its new value.
        value: &'a [u8],
        /// When it goes away by itself.
        expiry: Expiry,
    },
    /// Delete one key.
    Del {
        /// The key.
        key: &'a [u8],
    },
    /// Write or delete one key if what is there is what is expected.
    Cas {
        /// The key.
        key: &'a [u8],
        /// What must be there; a value, unless `new` is one.
        expect: Expect<'a>,
        /// What is to be there then.
        new: New<'a>,
        /// When that goes away by itself.
        expiry: Expiry,
    },
    /// Add to a decimal number; a missing value counts as 0.
    Incr {
        /// The key.
        key: &'a [u8],
        /// What to add; negative to subtract.
        delta: i64,
    },
    /// Write, delete or only check several keys of one partition at once, if each holds what its
    /// step expects: all of it takes effect, and is seen, at one instant, or nothing. In a hash
    /// keyspace keys are together for certain if they have the same tag
    /// ([`Keyspace::match_value`](cluster::Keyspace::match_value)).
    Batch {
        /// One for each key, 1 to `wire::BATCH_STEPS_MAX`, of at most `wire::BATCH_BYTES_MAX` bytes
        /// together.
        steps: &'a [Step<'a>],
    },
    /// Read many keys at once, at most [`MANY_KEYS_MAX`](crate::MANY_KEYS_MAX). Each is read on its
    /// own: together they are no snapshot.
    Mget {
        /// The keys; outcomes come in this order. One that is there twice is asked for once.
        keys: &'a [&'a [u8]],
        /// Ends after this time with what there is, whatever progress it makes.
        within: Option<Duration>,
    },
    /// Write many keys, at most [`MANY_KEYS_MAX`](crate::MANY_KEYS_MAX), each on its own: together
    /// they are not atomic.
    Mset {
        /// Keys and their new values; outcomes come in this order. Of a key that is there more than
        /// once only the last value is written.
        entries: &'a [(&'a [u8], &'a [u8])],
        /// When they go away by themselves, counted from the start of the request.
        expiry: Expiry,
        /// Ends after this time with what there is, whatever progress it makes.
        within: Option<Duration>,
    },
    /// Delete many keys, at most [`MANY_KEYS_MAX`](crate::MANY_KEYS_MAX), each on its own.
    Mdel {
        /// The keys; outcomes come in this order. One that is there twice is deleted once.
        keys: &'a [&'a [u8]],
        /// Ends after this time with what there is, whatever progress it makes.
        within: Option<Duration>,
    },
    /// Write parts of a big value, each on its own; the reply is that of [`Mset`](Self::Mset).
    PutParts {
        /// The key of the big value.
        key: &'a [u8],
        /// The upload, which must never be another's.
        upload: UploadBody,
        /// Index of the first of these parts.
        first: u32,
        /// Bytes of each part; the last may have fewer.
        part_len: usize,
        /// The parts, one behind the other.
        bytes: &'a [u8],
    },
    /// Read parts of a big value, each on its own; the reply is that of [`Mget`](Self::Mget).
    GetParts {
        /// The key of the big value.
        key: &'a [u8],
        /// The upload.
        upload: UploadBody,
        /// Index of the first of these parts.
        first: u32,
        /// How many they are.
        count: u32,
    },
    /// Make a value of parts that have all been written: a write of the key like any other.
    Seal {
        /// The key.
        key: &'a [u8],
        /// What the parts are.
        manifest: ManifestBody,
        /// What must be there; the reply is then that of [`Cas`](Self::Cas), else of
        /// [`Put`](Self::Put).
        expect: Option<Expect<'a>>,
        /// When the value goes away by itself.
        expiry: Expiry,
    },
    /// Read the keys of an interval in order; for range keyspaces only.
    Range {
        /// Bound from below.
        start: Bound<&'a [u8]>,
        /// Bound from above.
        end: Bound<&'a [u8]>,
        /// From the end to the start.
        reverse: bool,
        /// Most entries wanted.
        limit: Option<usize>,
        /// Leave the values out: they come back empty.
        keys_only: bool,
    },
    /// Read the keys of an interval of match values, in the order of (match value, key): the way to
    /// enumerate a hash keyspace. Every key that has a value all the time is among them.
    Scan {
        /// First match value.
        first: Match,
        /// Last match value, inclusive.
        last: Match,
        /// A key of the first match value: only keys behind it.
        after: Option<&'a [u8]>,
        /// Most entries wanted.
        limit: Option<usize>,
        /// Leave the values out: they come back empty.
        keys_only: bool,
    },
    /// Count the keys that have a value, each as it was at some time meanwhile. Nodes
    /// count, and send no keys.
    Count,
}

impl Request<'_> {
    /// Keys of parts are not for everybody.
    pub(crate) fn check_keys(&self) -> Result<(), StartError> {
        let reserved = |key: &[u8]| PartKey::parse(key).is_some();
        let any = match self {
            Self::Get { key }
            | Self::Put { key, .. }
            | Self::Del { key }
            | Self::Cas { key, .. }
            | Self::Incr { key, .. }
            | Self::Seal { key, .. } => reserved(key),
            Self::Mget { keys, .. } | Self::Mdel { keys, .. } => {
                keys.iter().any(|key| reserved(key))
            }
            Self::Mset { entries, .. } => entries.iter().any(|(key, _)| reserved(key)),
            Self::Batch { steps } => steps.iter().any(|step| reserved(step.key)),
            Self::PutParts { .. }
            | Self::GetParts { .. }
            | Self::Range { .. }
            | Self::Scan { .. }
            | Self::Count => false,
        };
        if any { Err(StartError::ReservedKey) } else { Ok(()) }
    }
}

/// When a value goes away by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// Not at all.
    #[default]
    Never,
    /// At this time, in Unix milliseconds, by the cluster's clock.
    AtMs(u64),
    /// This long after the head of the key's partition has taken the request, whatever the client's
    /// clock shows. Copies of the request do not make it longer.
    In(Duration),
    /// When the value that is there now would have; never if there is none.
    Keep,
}

/// Why a request was not started. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// Keys have at least one byte.
    EmptyKey,
    /// A key over `wire::KEY_MAX`.
    KeyTooLong {
        /// Its bytes.
        len: usize,
    },
    /// A key that only a part of a big value may have.
    ReservedKey,
    /// Key and value together over `wire::ENTRY_MAX`.
    EntryTooLarge {
        /// Bytes of the key.
        key_len: usize,
        /// Bytes of the value.
        value_len: usize,
    },
    /// Key, expected value and new value of a compare-and-set do not fit one datagram.
    CasTooLarge {
        /// Bytes the datagram would have.
        len: usize,
    },
    /// A compare-and-set that is to delete or keep a value, and expects that there is none.
    NothingExpected,
    /// A batch without steps, with a key twice, or that expects version 0.
    BadBatch,
    /// A batch of more than `wire::BATCH_STEPS_MAX` steps or `wire::BATCH_BYTES_MAX` bytes.
    BatchTooLarge {
        /// Its steps.
        steps: usize,
        /// The bytes that they take: 22 and key and value each.
        len: usize,
    },
    /// A request for more keys than [`MANY_KEYS_MAX`](crate::MANY_KEYS_MAX).
    TooManyKeys {
        /// How many keys.
        count: usize,
    },
    /// A keyspace name that is empty or over `wire::NAME_MAX`.
    BadName {
        /// Its bytes.
        len: usize,
    },
    /// A scan of a hash keyspace in the order of its keys.
    NotOrdered,
    /// As many requests wait as may.
    Busy,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::EmptyKey => f.write_str("the key is empty; keys have at least one byte"),
            Self::KeyTooLong { len } => {
                write!(f, "the key has {len} bytes; use at most {KEY_MAX}")
            }
            Self::ReservedKey => f.write_str(
                "the key looks like that of a part of a big value, which have to be left alone",
            ),
            Self::EntryTooLarge { key_len, value_len } => write!(
                f,
                "key and value have {key_len} + {value_len} bytes; use at most {ENTRY_MAX} \
                 together, or spread the value over several keys"
            ),
            Self::CasTooLarge { len } => write!(
                f,
                "key, expected value and new value make a datagram of {len} bytes and \
                 {FILL_MAX} is the most; expect the version instead of the value"
            ),
            Self::NothingExpected => f.write_str(
                "only a value that is there can be deleted or kept; expect a version or a value",
            ),
            Self::BadBatch => f.write_str(
                "a batch has at least one step, one for each key, and expects no version 0",
            ),
            Self::BatchTooLarge { steps, len } => write!(
                f,
                "a batch of {steps} steps and {len} bytes; use at most {BATCH_STEPS_MAX} steps of \
                 {BATCH_BYTES_MAX} bytes together"
            ),
            Self::TooManyKeys { count } => write!(
                f,
                "{count} keys in one request; use at most {} and ask for the rest in another",
                crate::MANY_KEYS_MAX
            ),
            Self::BadName { len } => {
                write!(f, "the keyspace name has {len} bytes; use 1 to {NAME_MAX}")
            }
            Self::NotOrdered => {
                f.write_str("a hash keyspace keeps no order to scan; scan a keyspace of kind range")
            }
            Self::Busy => f.write_str(
                "too many requests wait for an answer; take outcomes before starting more",
            ),
        }
    }
}

impl std::error::Error for StartError {}
