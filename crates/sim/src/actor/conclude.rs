//! What a simulated user makes of the outcome of a request: operations on single keys.

use super::{Actor, Answered, Asked, What};
use crate::check::{History, Key, Op, OpKind};
use client::{CasReply, IncrReply, Outcome, Reply, Value};
use cluster::Plant;
use machine::Instant;
use std::collections::BTreeMap;

/// A scan as it was asked for.
struct Scan {
    first: u64,
    last: u64,
    limit: Option<usize>,
    reverse: bool,
}

impl Actor {
    pub(super) fn conclude(
        &mut self,
        now: Instant,
        asked: Asked,
        outcome: Outcome<Reply>,
        history: &mut History,
    ) {
        let reply = match outcome {
            Outcome::Done(reply) => Some(reply),
            Outcome::Unknown(_) => None,
            // Of a refused write nothing must ever be seen; that is how this bug shows.
            Outcome::Refused(_) if self.plant == Some(Plant::StaleIsFinal) => return,
            Outcome::Refused(why) => {
                history.violation(format!("client {}: refused: {why}", self.index));
                return;
            }
        };
        if reply.is_some() {
            self.done += 1;
        } else {
            self.unknown += 1;
            if asked.sure {
                history.violation(format!("client {}: unknown in a healed world", self.index));
            }
        }
        let returned = reply.is_some().then_some(now);
        let op =
            |kind, version| Op { client: self.index, called: asked.at, returned, kind, version };
        match asked.what {
            What::One(key, kind) => {
                let (kind, version) = match reply {
                    Some(reply) => complete(kind, &reply, history),
                    None if matches!(kind, OpKind::Read(_)) => return,
                    None => (kind, 0),
                };
                history.record(&key, op(kind, version));
                if let (Some(answers), Some(at)) = (&mut self.answers, returned) {
                    let write = !matches!(kind, OpKind::Read(_));
                    answers.push(Answered { key: key.clone(), write, at });
                }
                match kind {
                    OpKind::Read(Some(value)) => self.seen.insert(key.key, (value, version)),
                    OpKind::Read(None) => self.seen.remove(&key.key),
                    _ => None,
                };
            }
            What::Many(keys) => {
                let Some(Reply::Mget(values)) = reply else { return };
                for (key, outcome) in keys.iter().zip(values) {
                    if let Outcome::Done(value) = outcome {
                        let (kind, version) = read(value.as_ref(), history);
                        history.record(key, op(kind, version));
                    } else if asked.sure {
                        let what = "a key of a multiget not read in a healed world";
                        history.violation(format!("client {}: {what}", self.index));
                    }
                }
            }
            What::Scan { first, last, limit, reverse } => {
                let Some(Reply::Range(entries)) = reply else { return };
                let scan = Scan { first, last, limit, reverse };
                for (key, kind, version) in scan.reads(entries, history) {
                    history.record(&key, op(kind, version));
                }
            }
        }
    }
}

impl Scan {
    /// A scan reads every key of its interval, those that it does not return as well.
    fn reads(
        &self,
        entries: Vec<(Vec<u8>, Value)>,
        history: &mut History,
    ) -> Vec<(Key, OpKind, u64)> {
        let Self { first, last, limit, reverse } = *self;
        let in_order = entries.is_sorted_by(|(a, _), (b, _)| if reverse { a > b } else { a < b });
        if !in_order || limit.is_some_and(|limit| entries.len() > limit) {
            history.violation(format!("scan out of order or over its limit: {entries:?}"));
        }
        let cut = limit.is_some_and(|limit| entries.len() == limit);
        let reached = entries.last().filter(|_| cut).map(|(key, _)| key.clone());
        let mut found: BTreeMap<Vec<u8>, Value> = entries.into_iter().collect();
        let mut reads = Vec::new();
        for n in first..=last {
            let key = format!("k{n}").into_bytes();
            let beyond = |end: &Vec<u8>| if reverse { key < *end } else { key > *end };
            let value = found.remove(&key);
            if reached.as_ref().is_some_and(beyond) {
                continue;
            }
            let (kind, version) = read(value.as_ref(), history);
            reads.push((Key { ordered: true, key }, kind, version));
        }
        if !found.is_empty() {
            history.violation(format!("a scan gave keys outside its interval: {found:?}"));
        }
        reads
    }
}

/// Fills in what the reply says was seen, and at which version.
fn complete(kind: OpKind, reply: &Reply, history: &mut History) -> (OpKind, u64) {
    match (kind, reply) {
        (OpKind::Read(_), Reply::Get(value)) => read(value.as_ref(), history),
        (OpKind::Put { .. }, Reply::Put { version }) => (kind, *version),
        (OpKind::Del { .. }, Reply::Del(del)) => {
            let version = if del.existed { del.version } else { 0 };
            (OpKind::Del { existed: Some(del.existed) }, version)
        }
        (OpKind::Cas { expect, value, .. }, Reply::Cas(CasReply::Written { version })) => {
            (OpKind::Cas { expect, value, written: Some(true) }, *version)
        }
        (OpKind::Cas { expect, value, .. }, Reply::Cas(CasReply::Mismatch { .. })) => {
            (OpKind::Cas { expect, value, written: Some(false) }, 0)
        }
        (OpKind::Incr { delta, .. }, Reply::Incr(IncrReply::Sum { sum, version })) => {
            (OpKind::Incr { delta, sum: Some(*sum) }, *version)
        }
        (kind, reply) => {
            history.violation(format!("{kind:?} answered by {reply:?}"));
            (kind, 0)
        }
    }
}

fn read(value: Option<&Value>, history: &mut History) -> (OpKind, u64) {
    let seen = value.map(|value| number(value, history));
    (OpKind::Read(seen), value.map_or(0, |value| value.version))
}

fn number(value: &Value, history: &mut History) -> i64 {
    let text = String::from_utf8_lossy(&value.value);
    text.parse().unwrap_or_else(|_| {
        history.violation(format!("a value that nobody wrote: {text:?}"));
        -1
    })
}
