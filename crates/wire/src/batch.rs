//! Batches: several keys that are written, deleted or checked at once, as a client asks for it and
//! as it goes down the chain.

use crate::layout::{
    BATCH_BYTES_MAX, BATCH_STEPS_MAX, BatchStepBody, ChainStepBody, ChainWriteBody, ENTRY_MAX,
    Effect, HEADER_LEN, KEY_MAX, PACKET_MAX,
};
use crate::number::Version;
use alloc::vec::Vec;

/// What a key must hold for a batch to take effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Anything.
    #[default]
    Any,
    /// No value.
    Absent,
    /// A value.
    Present,
    /// The value of this version, which is not 0.
    Version(Version),
}

/// What a batch leaves of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Change<'a> {
    /// What is there.
    #[default]
    None,
    /// This value.
    Put {
        /// The bytes.
        value: &'a [u8],
        /// Absolute expiry in Unix milliseconds, 0 for never; or a [span](crate::expiry::span).
        expiry_ms: u64,
    },
    /// No value.
    Delete,
}

/// What a batch does with one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// The key.
    pub key: &'a [u8],
    /// What must be there.
    pub condition: Condition,
    /// What is there afterwards.
    pub change: Change<'a>,
}

/// The steps of a BATCH: 1 to [`BATCH_STEPS_MAX`], each of another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps<'a> {
    bytes: &'a [u8],
}

impl<'a> Steps<'a> {
    /// The steps of a payload whose first key is `key_len` bytes long.
    pub(crate) fn parse(key_len: usize, bytes: &'a [u8]) -> Option<Self> {
        let mut keys: [&[u8]; BATCH_STEPS_MAX] = [&[]; BATCH_STEPS_MAX];
        let (mut rest, mut count) = (bytes, 0);
        while !rest.is_empty() {
            let (step, after) = Step::split(rest)?;
            if keys.iter().take(count).any(|key| *key == step.key) {
                return None;
            }
            *keys.get_mut(count)? = step.key;
            (rest, count) = (after, count + 1);
        }
        let [first, ..] = keys;
        let fits = bytes.len() <= BATCH_BYTES_MAX && count > 0;
        (fits && first.len() == key_len).then_some(Self { bytes })
    }

    /// The steps, in the order of the request.
    pub fn iter(&self) -> impl Iterator<Item = Step<'a>> + use<'a> {
        let mut rest = self.bytes;
        core::iter::from_fn(move || {
            let (step, after) = Step::split(rest)?;
            rest = after;
            Some(step)
        })
    }

    /// The key that the header is about.
    #[must_use]
    pub fn first_key(&self) -> &'a [u8] {
        self.iter().next().map_or(&[], |step| step.key)
    }
}

impl<'a> Step<'a> {
    /// Bytes that it takes in a BATCH.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let Change::Put { value, .. } = self.change else {
            return BatchStepBody::LEN + self.key.len();
        };
        BatchStepBody::LEN + self.key.len() + value.len()
    }

    fn split(from: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (fixed, rest) = BatchStepBody::split(from)?;
        let (key, value, rest) = key_and_value(rest, fixed.key_len, fixed.value_len)?;
        let condition = match (fixed.condition, fixed.version) {
            (0, Version::NONE) => Condition::Any,
            (1, Version::NONE) => Condition::Absent,
            (2, Version::NONE) => Condition::Present,
            (3, version) if !version.is_none() => Condition::Version(version),
            _ => return None,
        };
        let change = match (Effect::from_wire(fixed.effect)?, fixed.expiry_ms, value) {
            (Effect::Put, expiry_ms, value) => Change::Put { value, expiry_ms },
            (Effect::None, 0, []) => Change::None,
            (Effect::Delete, 0, []) => Change::Delete,
            _ => return None,
        };
        Some((Self { key, condition, change }, rest))
    }
}

/// Appends one step to the payload of a BATCH.
pub fn push_step(out: &mut Vec<u8>, step: &Step<'_>) {
    let (condition, version) = match step.condition {
        Condition::Any => (0, Version::NONE),
        Condition::Absent => (1, Version::NONE),
        Condition::Present => (2, Version::NONE),
        Condition::Version(version) => (3, version),
    };
    let (effect, expiry_ms, value) = match step.change {
        Change::None => (Effect::None, 0, &[][..]),
        Change::Put { value, expiry_ms } => (Effect::Put, expiry_ms, value),
        Change::Delete => (Effect::Delete, 0, &[][..]),
    };
    let fixed = BatchStepBody {
        condition,
        effect: effect as u8,
        version,
        expiry_ms,
        key_len: short(step.key.len()),
        value_len: short(value.len()),
    };
    out.extend_from_slice(&fixed.to_bytes());
    out.extend_from_slice(step.key);
    out.extend_from_slice(value);
}

/// What a batch does with one key, as its head has decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainStep<'a> {
    /// The key.
    pub key: &'a [u8],
    /// [`Effect::None`], [`Effect::Put`] or [`Effect::Delete`].
    pub effect: Effect,
    /// A version that must have arrived before; of a key that is only checked the one found.
    pub base: Version,
    /// As in a chain write of this key alone.
    pub expiry_ms: u64,
    /// The bytes that a PUT leaves.
    pub value: &'a [u8],
}

/// The value of a chain write with [`Effect::Batch`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainSteps<'a> {
    bytes: &'a [u8],
}

impl<'a> ChainSteps<'a> {
    /// The steps in these bytes, which a [`Body`](crate::Body) or [`push`](Self::push) made. Where
    /// bytes make no sense, the steps end.
    #[must_use]
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn parse(key_len: usize, bytes: &'a [u8]) -> Option<Self> {
        let (mut rest, mut count) = (bytes, 0);
        while !rest.is_empty() {
            (_, rest) = ChainStep::split(rest)?;
            count += 1;
        }
        let steps = Self { bytes };
        let fits = bytes.len() <= BATCH_BYTES_MAX && (1..=BATCH_STEPS_MAX).contains(&count);
        (fits && steps.first_key().len() == key_len).then_some(steps)
    }

    /// The steps, in the order of the request.
    pub fn iter(&self) -> impl Iterator<Item = ChainStep<'a>> + use<'a> {
        let mut rest = self.bytes;
        core::iter::from_fn(move || {
            let (step, after) = ChainStep::split(rest)?;
            rest = after;
            Some(step)
        })
    }

    /// The key of the chain write.
    #[must_use]
    pub fn first_key(&self) -> &'a [u8] {
        self.iter().next().map_or(&[], |step| step.key)
    }

    /// Appends one step.
    pub fn push(out: &mut Vec<u8>, step: &ChainStep<'_>) {
        let fixed = ChainStepBody {
            effect: step.effect as u8,
            base: step.base,
            expiry_ms: step.expiry_ms,
            key_len: short(step.key.len()),
            value_len: short(step.value.len()),
        };
        out.extend_from_slice(&fixed.to_bytes());
        out.extend_from_slice(step.key);
        out.extend_from_slice(step.value);
    }
}

impl<'a> ChainStep<'a> {
    fn split(from: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (fixed, rest) = ChainStepBody::split(from)?;
        let (key, value, rest) = key_and_value(rest, fixed.key_len, fixed.value_len)?;
        let effect = Effect::from_wire(fixed.effect)?;
        let sound = match effect {
            Effect::Put => true,
            Effect::None | Effect::Delete => value.is_empty(),
            _ => false,
        };
        let ChainStepBody { base, expiry_ms, .. } = fixed;
        sound.then_some((Self { key, effect, base, expiry_ms, value }, rest))
    }
}

fn key_and_value(from: &[u8], key_len: u16, value_len: u16) -> Option<(&[u8], &[u8], &[u8])> {
    let (key, rest) = from.split_at_checked(key_len.into())?;
    let (value, rest) = rest.split_at_checked(value_len.into())?;
    let fits = (1..=KEY_MAX).contains(&key.len()) && key.len() + value.len() <= ENTRY_MAX;
    fits.then_some((key, value, rest))
}

fn short(len: usize) -> u16 {
    u16::try_from(len).expect("keys and values are shorter than datagrams")
}

// What a client may ask for goes down the chain in one datagram.
const _: () = {
    assert!(ChainStepBody::LEN <= BatchStepBody::LEN);
    assert!(HEADER_LEN + ChainWriteBody::LEN + BATCH_BYTES_MAX <= PACKET_MAX);
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn steps() -> Vec<Step<'static>> {
        let put = Change::Put { value: b"value", expiry_ms: 9 };
        vec![
            Step { key: b"a", condition: Condition::Version(Version::new(7)), change: put },
            Step { key: b"bb", condition: Condition::Absent, change: Change::None },
            Step { key: b"c", condition: Condition::Present, change: Change::Delete },
            Step { key: b"d", condition: Condition::Any, change: Change::Delete },
        ]
    }

    fn encoded(steps: &[Step<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        steps.iter().for_each(|step| push_step(&mut out, step));
        assert_eq!(out.len(), steps.iter().map(Step::encoded_len).sum::<usize>());
        out
    }

    #[test]
    fn steps_round_trip() {
        let bytes = encoded(&steps());
        let parsed = Steps::parse(1, &bytes).unwrap();
        assert_eq!(parsed.iter().collect::<Vec<_>>(), steps());
        assert_eq!(parsed.first_key(), b"a");
        assert_eq!(Steps::parse(2, &bytes), None, "the header is about another key");
        assert_eq!(Steps::parse(1, &bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn no_steps_too_many_or_a_key_twice_are_refused() {
        assert_eq!(Steps::parse(0, &[]), None);
        let twice = [steps(), steps()].concat();
        assert_eq!(Steps::parse(1, &encoded(&twice)), None);
        let keys: Vec<[u8; 1]> =
            (0..=u8::try_from(BATCH_STEPS_MAX).unwrap()).map(|n| [n]).collect();
        let check = |key| Step { key, condition: Condition::Any, change: Change::None };
        let many: Vec<Step<'_>> = keys.iter().map(|key| check(&key[..])).collect();
        assert_eq!(Steps::parse(1, &encoded(&many)), None);
        assert!(Steps::parse(1, &encoded(&many[1..])).is_some());
    }

    #[test]
    fn chain_steps_round_trip() {
        let put = ChainStep {
            key: b"a",
            effect: Effect::Put,
            base: Version::new(3),
            expiry_ms: 4,
            value: b"v",
        };
        let check = ChainStep {
            key: b"b",
            effect: Effect::None,
            base: Version::new(9),
            expiry_ms: 0,
            value: b"",
        };
        let mut out = Vec::new();
        ChainSteps::push(&mut out, &put);
        ChainSteps::push(&mut out, &check);
        let parsed = ChainSteps::parse(1, &out).unwrap();
        assert_eq!(parsed.iter().collect::<Vec<_>>(), [put, check]);
        let marks = ChainStep { effect: Effect::Register, ..check };
        ChainSteps::push(&mut out, &marks);
        assert_eq!(ChainSteps::parse(1, &out), None);
    }
}
