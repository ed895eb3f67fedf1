//! Requests for many keys: more than one datagram holds, some of them written at once, some of them
//! in little time; and what is made of their outcomes, key by key.

use super::{Actor, Ask, What};
use crate::check::{History, Key, Op, OpKind, complete, read};
use client::{Expiry, NotDone, Outcome, Refusal, Reply, Request, UnknownReason, Value};
use machine::Instant;
use std::time::Duration;
use wire::Version;

/// Keys of the hash keyspace that only such requests are about: more than fit a datagram.
pub(super) const WIDE_KEYS: u64 = 40;

/// The names of those.
pub(super) fn wide_keys() -> impl Iterator<Item = String> {
    (0..WIDE_KEYS).map(|n| format!("m{n}"))
}

/// Who asked, when it was asked and answered, and what may be unknown.
pub(super) struct Asking {
    pub(super) client: usize,
    pub(super) called: Instant,
    pub(super) now: Instant,
    /// It was asked of a healed world, and must be answered.
    pub(super) sure: bool,
    /// A write may be uncertain even so.
    pub(super) unaware: bool,
}

impl Actor {
    /// Reads, writes or deletes many keys.
    pub(super) fn many(&mut self, ask: &Ask<'_>) {
        // In a healed world every key is to be answered, however long that takes.
        let hurries = !self.is_sure() && self.rng.chance(1, 3);
        let within = hurries.then(|| Duration::from_millis(1 + self.rng.below(60)));
        let first = self.rng.below(WIDE_KEYS);
        let count = if self.rng.chance(1, 2) { WIDE_KEYS } else { 1 + self.rng.below(8) };
        let names = (first..first + count).map(|n| format!("m{}", n % WIDE_KEYS));
        let keys: Vec<Key> =
            names.map(|name| Key { ordered: false, key: name.into_bytes() }).collect();
        let mut slices: Vec<&[u8]> = keys.iter().map(|key| key.key.as_slice()).collect();
        match self.rng.below(5) {
            0 => {
                let del = OpKind::Del { existed: None };
                let what = What::Writes(keys.iter().map(|key| (key.clone(), del)).collect());
                self.submit(ask, Request::Mdel { keys: &slices, within }, what);
            }
            1 | 2 => {
                let value = self.value();
                let text = value.to_string();
                let mut entries: Vec<(&[u8], &[u8])> =
                    slices.iter().map(|key| (*key, text.as_bytes())).collect();
                // What the last value of a key hides is never written: nobody may see it.
                let hidden = slices.first().map(|key| (*key, &b"hidden"[..]));
                entries.splice(0..0, hidden);
                let put = OpKind::Put { value, expiry_ms: 0 };
                let writes = keys.first().into_iter().chain(&keys);
                let what = What::Writes(writes.map(|key| (key.clone(), put)).collect());
                let expiry = Expiry::Never;
                self.submit(ask, Request::Mset { entries: &entries, expiry, within }, what);
            }
            _ => {
                // The last one twice.
                slices.extend(slices.last().copied());
                let what = What::Many(keys.iter().chain(keys.last()).cloned().collect());
                self.submit(ask, Request::Mget { keys: &slices, within }, what);
            }
        }
    }
}

impl Asking {
    pub(super) fn op(&self, answered: bool, kind: OpKind, version: Version) -> Op {
        let returned = answered.then_some(self.now);
        Op { client: self.client, called: self.called, returned, kind, version }
    }

    /// A multiget: each key is a read of its own.
    pub(super) fn reads(&self, keys: &[Key], reply: Reply, history: &mut History) {
        let Reply::Mget(values) = reply else { return };
        self.count(keys.len(), values.len(), history);
        for (key, outcome) in keys.iter().zip(values) {
            // What its parts are, a multiget does not say.
            let is_big = |value: &Option<Value>| value.as_ref().is_some_and(|value| value.big);
            if let Outcome::Done(value) = outcome {
                if is_big(&value) {
                    continue;
                }
                let (kind, version) = read(value.as_ref(), history);
                history.record(key, self.op(true, kind, version));
            } else if self.sure {
                let what = "a key of a multiget not read in a healed world";
                history.violation(format!("client {}: {what}: {outcome:?}", self.client));
            }
        }
    }

    /// Many writes: each is one of its own. A key that is there twice was written once.
    pub(super) fn writes(&self, writes: &[(Key, OpKind)], reply: Reply, history: &mut History) {
        let put = |version| Reply::Put { version };
        let outcomes: Vec<Outcome<Reply>> = match reply {
            Reply::Mset(outcomes) => outcomes.into_iter().map(|it| it.map(put)).collect(),
            Reply::Mdel(outcomes) => outcomes.into_iter().map(|it| it.map(Reply::Del)).collect(),
            _ => return,
        };
        self.count(writes.len(), outcomes.len(), history);
        let mut last: Option<(&Key, &Outcome<Reply>)> = None;
        for ((key, kind), outcome) in writes.iter().zip(&outcomes) {
            if let Some((before, said)) = last.replace((key, outcome))
                && before == key
            {
                if said != outcome {
                    history.violation(format!("one write, two outcomes: {said:?}, {outcome:?}"));
                }
                continue;
            }
            self.write(key, *kind, outcome.clone(), history);
        }
    }

    /// Many writes of a client that went away.
    pub(super) fn unknown(&self, writes: &[(Key, OpKind)], history: &mut History) {
        for (key, kind) in writes {
            history.record(key, self.op(false, *kind, Version::NONE));
        }
    }

    fn write(&self, key: &Key, kind: OpKind, outcome: Outcome<Reply>, history: &mut History) {
        let client = self.client;
        let why = match outcome.into_result() {
            Ok(reply) => {
                let (kind, version) = complete(kind, &reply, history);
                history.record(key, self.op(true, kind, version));
                return;
            }
            Err(why) => why,
        };
        match why {
            NotDone::Unknown(_) => history.record(key, self.op(false, kind, Version::NONE)),
            // Of what was not sent nothing must ever be seen.
            NotDone::Refused(Refusal::NotInTime) => {}
            // Nor of what found no room; but deletes always do.
            NotDone::Refused(Refusal::Full) if !matches!(kind, OpKind::Del { .. }) => return,
            NotDone::Refused(why) => {
                history.violation(format!("client {client}: refused: {why}"));
            }
        }
        let honest = self.unaware && why == NotDone::Unknown(UnknownReason::Uncertain);
        if self.sure && !honest {
            let what = "one write of many not done in a healed world";
            history.violation(format!("client {client}: {what}"));
        }
    }

    fn count(&self, asked: usize, answered: usize, history: &mut History) {
        if asked != answered {
            let client = self.client;
            history.violation(format!("client {client}: {asked} keys, {answered} outcomes"));
        }
    }
}
