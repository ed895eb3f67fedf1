//! Operations on one key, as a client saw them.

use machine::Instant;
use std::fmt;
use wire::Version;

/// One operation on one key, as a client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// Which client asked, for the picture.
    pub client: usize,
    /// When it asked.
    pub called: Instant,
    /// When it was answered; `None` if never, and then `kind` says no outcome.
    pub returned: Option<Instant>,
    /// What it asked and saw.
    pub kind: OpKind,
    /// Version of the value read or of the write done; 0 if unknown or none. A key's writes take
    /// effect in the order of their versions, which spares the search most of its choices.
    pub version: Version,
}

/// What was asked and what was seen. `None` in an outcome means that it is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpKind {
    /// Saw this value, or that there is none.
    Read(Option<i64>),
    /// Wrote this value, to expire at this Unix millisecond (0: never).
    Put {
        /// The value.
        value: i64,
        /// Its expiry.
        expiry_ms: u64,
    },
    /// Deleted.
    Del {
        /// Whether there was a value.
        existed: Option<bool>,
    },
    /// Wrote `value`, or deleted the key, if the present one was `expect`.
    Cas {
        /// What had to be there.
        expect: Option<i64>,
        /// Its version, if that is what was compared: it tells two writes of one value apart.
        at: Option<Version>,
        /// What was to be there then; `None` for nothing. May be what was there.
        value: Option<i64>,
        /// The expiry of that (0: never).
        expiry_ms: u64,
        /// Whether it was.
        written: Option<bool>,
    },
    /// Added `delta`, counting a missing value as 0.
    Incr {
        /// What was added.
        delta: i64,
        /// The sum that was seen.
        sum: Option<i64>,
    },
}

impl Op {
    /// Whether it may have changed the key, as far as its author knows.
    #[must_use]
    pub fn may_write(&self) -> bool {
        match self.kind {
            OpKind::Read(_)
            | OpKind::Del { existed: Some(false) }
            | OpKind::Cas { written: Some(false), .. } => false,
            OpKind::Put { .. } | OpKind::Del { .. } | OpKind::Cas { .. } | OpKind::Incr { .. } => {
                true
            }
        }
    }

    /// Whether it changed the key and its author was told so.
    #[must_use]
    pub fn is_acknowledged_write(&self) -> bool {
        self.returned.is_some() && self.may_write()
    }

    /// Whether it may take effect at any time from its call on, or never.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.returned.is_none()
    }

    /// Whether it was answered before the other was asked for.
    #[must_use]
    pub fn precedes(&self, other: &Self) -> bool {
        self.returned.is_some_and(|returned| returned < other.called)
    }

    /// What the key held after it, if that is certain: `Some(None)` for no value.
    #[must_use]
    pub fn leaves(&self) -> Option<Option<i64>> {
        self.returned?;
        match self.kind {
            OpKind::Read(seen) => Some(seen),
            OpKind::Put { value, .. } => Some(Some(value)),
            OpKind::Cas { value, written: Some(true), .. } => Some(value),
            OpKind::Del { .. } => Some(None),
            OpKind::Incr { sum, .. } => sum.map(Some),
            OpKind::Cas { .. } => None,
        }
    }
}

fn shown(value: Option<i64>) -> String {
    value.map_or_else(|| "nothing".into(), |value| value.to_string())
}

/// In a few words, as a label: `put 5`.
impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Read(seen) => write!(f, "read {}", shown(seen)),
            Self::Put { value, expiry_ms: 0 } => write!(f, "put {value}"),
            Self::Put { value, expiry_ms } => write!(f, "put {value} until {expiry_ms} ms"),
            Self::Del { existed: Some(false) } => write!(f, "del, found nothing"),
            Self::Del { .. } => write!(f, "del"),
            Self::Cas { expect, at, value, expiry_ms, written } => {
                write!(f, "cas {}", shown(expect))?;
                if let Some(version) = at {
                    write!(f, " v{version}")?;
                }
                write!(f, " to {}", shown(value))?;
                if expiry_ms != 0 {
                    write!(f, " until {expiry_ms} ms")?;
                }
                f.write_str(if written == Some(false) { ", found another" } else { "" })
            }
            Self::Incr { delta, sum: None } => write!(f, "incr {delta}"),
            Self::Incr { delta, sum: Some(sum) } => write!(f, "incr {delta} = {sum}"),
        }
    }
}

/// As a line of a list: who, when, what, which version.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |at: Instant| at.0 / 1_000;
        let returned = self.returned.map_or_else(|| "never".into(), |at| us(at).to_string());
        write!(f, "client {} [{} .. {returned}] us: {}", self.client, us(self.called), self.kind)?;
        match self.version {
            Version::NONE => Ok(()),
            version => write!(f, " v{version}"),
        }
    }
}
