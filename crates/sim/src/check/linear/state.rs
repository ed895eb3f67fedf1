//! What one key may hold, and what an operation does to it.

use crate::check::{Op, OpKind};
use machine::{Instant, mix};
use wire::Version;

/// What a key holds at one point of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyState {
    pub(super) held: Option<HeldValue>,
    /// Version of the last write if `exact`, else the least that it can have: versions have caught
    /// up numbers that grow with each write of the key.
    pub(super) version: Version,
    pub(super) exact: bool,
}

/// A value and when it expires (Unix milliseconds; 0: never).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldValue {
    pub(super) value: i64,
    pub(super) expiry_ms: u64,
}

/// What an operation must have found to have seen what it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// It was not told.
    Any,
    /// This value, or none.
    Exactly(Option<i64>),
    /// This number, where no value counts as 0.
    Amount(i64),
    /// Any value.
    Something,
    /// Anything else, which may be nothing.
    Other(Option<i64>),
    /// Any other value.
    OtherValue(Option<i64>),
    /// What no key can hold.
    Impossible,
}

impl HeldValue {
    /// Whether an operation can have found it: not once its time has come.
    fn is_visible_to(self, op: &Op) -> bool {
        self.expiry_ms == 0 || op.called.unix_ms() < self.expiry_ms
    }
}

impl Need {
    pub(super) fn of(op: &Op) -> Self {
        match op.kind {
            OpKind::Read(seen) => Self::Exactly(seen),
            OpKind::Put { .. }
            | OpKind::Del { existed: None }
            | OpKind::Cas { written: None, .. }
            | OpKind::Incr { sum: None, .. } => Self::Any,
            OpKind::Del { existed: Some(true) } => Self::Something,
            OpKind::Del { existed: Some(false) } => Self::Exactly(None),
            OpKind::Cas { expect, written: Some(true), .. } => Self::Exactly(expect),
            // It says what version there was, and that it is another; the value may be the same.
            OpKind::Cas { at: Some(_), written: Some(false), .. } => match op.version {
                Version::NONE => Self::Exactly(None),
                _ => Self::Something,
            },
            OpKind::Cas { expect, written: Some(false), .. } if op.version.is_none() => {
                Self::Other(expect)
            }
            // What it found had a version, so it was there.
            OpKind::Cas { expect, written: Some(false), .. } => Self::OtherValue(expect),
            OpKind::Incr { delta, sum: Some(sum) } => {
                sum.checked_sub(delta).map_or(Self::Impossible, Self::Amount)
            }
        }
    }

    fn admits(self, present: Option<i64>) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(wanted) => present == wanted,
            Self::Amount(amount) => present.unwrap_or(0) == amount,
            Self::Something => present.is_some(),
            Self::Other(unwanted) => present != unwanted,
            Self::OtherValue(unwanted) => present.is_some() && present != unwanted,
            Self::Impossible => false,
        }
    }
}

/// Where a search came no further.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeadEnd {
    /// How many events it had come by.
    pub(super) event: usize,
    /// The operation that was to take effect, and what the key held.
    pub(super) op: usize,
    pub(super) state: KeyState,
    /// What should have taken effect before, but had not even been called.
    pub(super) missing: Option<usize>,
}

impl KeyState {
    pub(super) fn present(self) -> Option<i64> {
        self.held.map(|held| held.value)
    }

    /// The state after an operation of this version that found this one, if what it saw fits.
    /// `written_by_other` says that the version is known to be that of some other operation.
    pub(super) fn take(self, op: &Op, version: Version, written_by_other: bool) -> Option<Self> {
        let hidden = self.held.is_some_and(|held| !held.is_visible_to(op));
        if hidden || !Need::of(op).admits(self.present()) {
            return None;
        }
        match self.written(op.kind)? {
            Some(held) => self.after_write(held, version),
            None => self.after_look(version, written_by_other),
        }
    }

    /// What an operation writes; the inner `None` if it leaves the key as it is, the outer one if
    /// it cannot be.
    fn written(self, kind: OpKind) -> Option<Option<Option<HeldValue>>> {
        let value = |value, expiry_ms| Some(Some(HeldValue { value, expiry_ms }));
        Some(match kind {
            OpKind::Read(_) => None,
            OpKind::Put { value: written, expiry_ms } => value(written, expiry_ms),
            OpKind::Del { .. } => self.held.is_some().then_some(None),
            OpKind::Cas { expect, value, expiry_ms, written, .. } => {
                let writes = written != Some(false) && self.present() == expect;
                writes.then_some(value.map(|value| HeldValue { value, expiry_ms }))
            }
            OpKind::Incr { delta, .. } => {
                let HeldValue { value: old, expiry_ms } =
                    self.held.unwrap_or(HeldValue { value: 0, expiry_ms: 0 });
                value(old.checked_add(delta)?, expiry_ms)
            }
        })
    }

    fn after_write(self, held: Option<HeldValue>, version: Version) -> Option<Self> {
        match version {
            Version::NONE => Some(Self { held, version: self.version.next(), exact: false }),
            _ => (version > self.version).then_some(Self { held, version, exact: true }),
        }
    }

    /// Whoever saw a version saw the write of that version; who saw nothing at a version looked
    /// when the key was no older.
    fn after_look(self, version: Version, written_by_other: bool) -> Option<Self> {
        if version.is_none() || self.exact && version == self.version {
            return Some(self);
        }
        if version < self.version {
            return None;
        }
        match self.held {
            None => Some(Self { version, exact: false, ..self }),
            Some(_) if self.exact || written_by_other => None,
            Some(_) => Some(Self { version, exact: true, ..self }),
        }
    }

    /// A fingerprint of it.
    pub(super) fn print(self) -> u128 {
        let (value, expiry_ms) =
            self.held.map_or((0, 0), |held| (held.value.cast_unsigned(), held.expiry_ms));
        let bits = u64::from(self.exact) | u64::from(self.held.is_some()) << 1;
        fingerprint([value, expiry_ms, self.version.get(), bits])
    }

    /// The state once the value's time has come, if that may be at `now`.
    pub(super) fn expired(self, now: Instant, skew_ms: u64) -> Option<Self> {
        let HeldValue { expiry_ms, .. } = self.held.filter(|held| held.expiry_ms != 0)?;
        let may_be = now.unix_ms() >= expiry_ms.saturating_sub(skew_ms);
        may_be.then_some(Self { held: None, exact: false, ..self })
    }
}

/// 128 bits that differ wherever the words do, as far as anybody will live to see.
pub(super) fn fingerprint<const N: usize>(words: [u64; N]) -> u128 {
    let hash = |seed: u64| words.iter().fold(seed, |hash, word| mix(hash ^ word));
    u128::from(hash(0x51)) << 64 | u128::from(hash(0xa7))
}
