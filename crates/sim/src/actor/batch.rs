//! Requests for keys that lie together: batches, and single reads and writes between them.

use super::many::Asking;
use super::{Actor, Ask, What};
use crate::check::{Batch, History, Key, OpKind, Part};
use client::{BatchReply, Change, Condition, Reply, Request, Step};
use wire::Version;

/// Keys of the hash keyspace that share a tag, and how many such groups there are.
const GROUP: u64 = 3;
const GROUPS: u64 = 2;

/// The names of those.
pub(super) fn grouped_keys() -> impl Iterator<Item = String> {
    (0..GROUPS).flat_map(|group| (0..GROUP).map(move |n| format!("{{g{group}}}{n}")))
}

/// What a batch expects of one key and does with it.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    key: Key,
    expect: Expected,
    /// `None` to leave it as it is, `Some(None)` to delete it.
    leave: Option<Option<i64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Anything,
    Nothing,
    Something,
    /// This value, of this version.
    Seen(i64, Version),
}

impl Actor {
    /// A batch of keys that lie together, or something about one of them.
    pub(super) fn together(&mut self, ask: &Ask<'_>) {
        let group = self.rng.below(GROUPS);
        let names = (0..GROUP).map(|n| format!("{{g{group}}}{n}").into_bytes());
        let mut keys: Vec<Key> = names.map(|key| Key { ordered: false, key }).collect();
        if self.rng.chance(self.batch_percent, 100) {
            // Whichever comes first is what the switch sees of it.
            let turn = usize::try_from(self.rng.below(GROUP)).expect("small");
            keys.rotate_left(turn);
            return self.batch(ask, keys);
        }
        let place = usize::try_from(self.rng.below(GROUP)).expect("small");
        let key = keys.swap_remove(place);
        if self.rng.chance(3, 5) {
            return self.get(ask, key);
        }
        if self.big_percent > 0 && self.rng.chance(self.big_percent, 100) {
            return self.put_big(ask, key);
        }
        let value = self.value();
        self.put(ask, key, value, OpKind::Put { value, expiry_ms: 0 });
    }

    fn batch(&mut self, ask: &Ask<'_>, keys: Vec<Key>) {
        let value = self.value();
        let kind = self.rng.below(10);
        let one = self.rng.below(GROUP);
        let planned: Vec<Planned> = (0..GROUP)
            .zip(keys)
            .map(|(place, key)| {
                let seen = self.seen.get(&key.key).copied();
                let as_seen = seen.map_or(Expected::Nothing, |(v, at)| Expected::Seen(v, at));
                let (expect, leave) = match kind {
                    // All of them, whatever there is.
                    0..4 => (Expected::Anything, Some(Some(value))),
                    // One is as it was: then the others change, or it as well.
                    4 | 5 if place == one => (as_seen, None),
                    6 if place == one => (as_seen, Some(Some(value))),
                    4..7 => (Expected::Anything, Some(Some(value))),
                    7 if place == one && seen.is_some() => (as_seen, Some(None)),
                    7 if place == one => (Expected::Something, Some(None)),
                    7 => (Expected::Anything, Some(Some(value))),
                    // All of them are as they were, at one instant.
                    _ => (as_seen, None),
                };
                Planned { key, expect, leave }
            })
            .collect();
        if self.big_percent > 0 && self.rng.chance(self.big_percent, 100) {
            return self.batch_big(ask, planned);
        }
        let text = value.to_string();
        let steps: Vec<Step<'_>> = planned.iter().map(|it| it.step(text.as_bytes(), 0)).collect();
        let what = What::Batch(planned.clone());
        self.submit(ask, Request::Batch { steps: &steps }, what);
    }
}

impl Planned {
    /// The key, and what is left of it.
    pub(super) fn leaves(&self) -> (&Key, Option<Option<i64>>) {
        (&self.key, self.leave)
    }

    /// What is asked for, with what is there of the value.
    pub(super) fn step<'a>(&'a self, value: &'a [u8], expiry_ms: u64) -> Step<'a> {
        let condition = match self.expect {
            Expected::Anything => Condition::Any,
            Expected::Nothing => Condition::Absent,
            Expected::Something => Condition::Present,
            Expected::Seen(_, version) => Condition::Version(version),
        };
        let change = match self.leave {
            None => Change::None,
            Some(None) => Change::Delete,
            Some(Some(_)) => Change::Put { value, expiry_ms },
        };
        Step { key: &self.key.key, condition, change }
    }

    /// What it was to this key; `written` as far as that is known.
    fn kind(&self, written: Option<bool>) -> Option<OpKind> {
        let (expect, at) = match self.expect {
            Expected::Seen(value, version) => (Some(value), Some(version)),
            Expected::Nothing => (None, Some(Version::NONE)),
            Expected::Anything | Expected::Something => (None, None),
        };
        Some(match (self.expect, self.leave) {
            (Expected::Anything, Some(Some(value))) => OpKind::Put { value, expiry_ms: 0 },
            (Expected::Something, Some(None)) => OpKind::Del { existed: written },
            (_, Some(value)) => OpKind::Cas { expect, at, value, expiry_ms: 0, written },
            (Expected::Seen(..) | Expected::Nothing, None) => {
                written.is_some().then_some(OpKind::Read(expect))?
            }
            (Expected::Anything | Expected::Something, None) => return None,
        })
    }

    /// Of a step that failed: that the key was not as expected.
    fn failed(&self) -> Option<OpKind> {
        let expect = match self.expect {
            Expected::Anything => return None,
            Expected::Something => return Some(OpKind::Read(None)),
            Expected::Nothing => None,
            Expected::Seen(value, _) => Some(value),
        };
        // Values are written once: another version is another value.
        let (at, written) = (None, Some(false));
        Some(OpKind::Cas { expect, at, value: None, expiry_ms: 0, written })
    }
}

impl Asking {
    /// A batch: an operation on each of its keys, and something about all of them.
    pub(super) fn batch(&self, parts: &[Planned], reply: Option<Reply>, history: &mut History) {
        let version = match reply {
            Some(Reply::Batch(BatchReply::Applied { version })) => version,
            Some(Reply::Batch(BatchReply::Failed { step })) => {
                match parts.get(step).and_then(|part| Some((part, part.failed()?))) {
                    Some((part, kind)) => {
                        history.record(&part.key, self.op(true, kind, Version::NONE))
                    }
                    None => history.violation(format!("a batch failed at step {step}: {parts:?}")),
                }
                return;
            }
            Some(other) => {
                history.violation(format!("a batch answered by {other:?}"));
                return;
            }
            None => Version::NONE,
        };
        let answered = !version.is_none();
        for part in parts {
            let Some(kind) = part.kind(answered.then_some(true)) else { continue };
            let version = match (part.leave, part.expect) {
                (None, Expected::Seen(_, seen)) => seen,
                (None, _) => Version::NONE,
                (Some(_), _) => version,
            };
            history.record(&part.key, self.op(answered, kind, version));
        }
        let part = |it: &Planned| {
            let expected = match it.expect {
                Expected::Seen(_, version) => Some(version),
                _ => None,
            };
            Part { key: it.key.clone(), expected, left: it.leave }
        };
        let returned = answered.then_some(self.now);
        let parts = parts.iter().map(part).collect();
        history.batch(Batch { client: self.client, returned, version, parts });
    }
}
