//! Replies as operations on single keys.

use super::{History, Key, OpKind};
use client::{CasReply, IncrReply, Reply, Value};
use std::collections::BTreeMap;
use wire::Version;

/// A scan of the keys k0, k1, ... of an ordered keyspace, or of keys of one tag, as it was asked
/// for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Whether it is one of the keys of one tag in the hash keyspace.
    pub crowd: bool,
    /// Number of the first key of the interval.
    pub first: u64,
    /// Number of the last, inclusive, and of as many digits as the first.
    pub last: u64,
    /// Most entries wanted.
    pub limit: Option<usize>,
    /// From the last to the first.
    pub reverse: bool,
}

/// The key with this number of those of one tag: in the order of their numbers, which have two
/// digits.
#[must_use]
pub fn crowded(n: u64) -> Vec<u8> {
    format!("{{t}}{n:02}").into_bytes()
}

impl Scan {
    /// The keys that it has read, with what it saw and at which version: those of its interval that
    /// it did not return were not there. Entries that no such scan could return are violations.
    #[must_use]
    pub fn reads(
        &self,
        entries: Vec<(Vec<u8>, Value)>,
        history: &mut History,
    ) -> Vec<(Key, OpKind, Version)> {
        let Self { crowd, first, last, limit, reverse } = *self;
        let in_order = entries.is_sorted_by(|(a, _), (b, _)| if reverse { a > b } else { a < b });
        if !in_order || limit.is_some_and(|limit| entries.len() > limit) {
            history.violation(format!("scan out of order or over its limit: {entries:?}"));
        }
        let cut = limit.is_some_and(|limit| entries.len() == limit);
        let reached = entries.last().filter(|_| cut).map(|(key, _)| key.clone());
        let mut found: BTreeMap<Vec<u8>, Value> = entries.into_iter().collect();
        let mut reads = Vec::new();
        for n in first..=last {
            let key = if crowd { crowded(n) } else { format!("k{n}").into_bytes() };
            let beyond = |end: &Vec<u8>| if reverse { key < *end } else { key > *end };
            let value = found.remove(&key);
            if reached.as_ref().is_some_and(beyond) {
                continue;
            }
            // What its parts are, a scan does not say.
            if value.as_ref().is_some_and(|value| value.big) {
                continue;
            }
            let (kind, version) = read(value.as_ref(), history);
            reads.push((Key { ordered: !crowd, key }, kind, version));
        }
        if !found.is_empty() {
            history.violation(format!("a scan gave keys outside its interval: {found:?}"));
        }
        reads
    }
}

/// Fills in what the reply says was seen, and at which version. A reply to something else is a
/// violation.
#[must_use]
pub fn complete(kind: OpKind, reply: &Reply, history: &mut History) -> (OpKind, Version) {
    match (kind, reply) {
        (OpKind::Read(_), Reply::Get(value)) => read(value.as_ref(), history),
        (OpKind::Put { .. }, Reply::Put { version }) => (kind, *version),
        (OpKind::Del { .. }, Reply::Del(del)) => {
            let version = if del.existed { del.version } else { Version::NONE };
            (OpKind::Del { existed: Some(del.existed) }, version)
        }
        (OpKind::Cas { expect, at, value, expiry_ms, .. }, Reply::Cas(cas)) => {
            let (written, version) = match cas {
                CasReply::Written { version } => (Some(true), *version),
                CasReply::Mismatch { version } => {
                    if at == Some(*version) {
                        history.violation(format!("{kind} found version {version}"));
                    }
                    (Some(false), at.map_or(Version::NONE, |_| *version))
                }
            };
            (OpKind::Cas { expect, at, value, expiry_ms, written }, version)
        }
        (OpKind::Incr { delta, .. }, Reply::Incr(IncrReply::Sum { sum, version })) => {
            (OpKind::Incr { delta, sum: Some(*sum) }, *version)
        }
        (kind, reply) => {
            history.violation(format!("{kind:?} answered by {reply:?}"));
            (kind, Version::NONE)
        }
    }
}

/// The read that saw this, and at which version. A value that is no number is a violation: all that
/// is written are numbers.
#[must_use]
pub fn read(value: Option<&Value>, history: &mut History) -> (OpKind, Version) {
    let seen = value.map(|value| number(value, history));
    (OpKind::Read(seen), value.map_or(Version::NONE, |value| value.version))
}

fn number(value: &Value, history: &mut History) -> i64 {
    let text = String::from_utf8_lossy(&value.value);
    text.parse().unwrap_or_else(|_| {
        history.violation(format!("a value that nobody wrote: {text:?}"));
        -1
    })
}
