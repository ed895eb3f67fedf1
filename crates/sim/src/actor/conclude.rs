//! What a simulated user makes of the outcome of a request: operations on single keys.

use super::big::BigStep;
use super::many::Asking;
use super::{Actor, Answered, Asked, What};
use crate::check::{History, Op, OpKind, complete};
use client::{Outcome, Refusal, Reply, UnknownReason};
use cluster::Mutant;
use machine::Instant;
use wire::Version;

impl What {
    /// Whether it may be refused for lack of room.
    fn takes_room(&self) -> bool {
        match self {
            Self::One(_, OpKind::Del { .. } | OpKind::Read(_))
            | Self::One(_, OpKind::Cas { value: None, .. })
            | Self::Many(_)
            | Self::Scan { .. }
            | Self::Count { .. } => false,
            Self::One(..) | Self::Big(_) | Self::Lock(_) => true,
            Self::Writes(_) | Self::Batch(_) => true,
        }
    }

    /// What it was if it was the last step of it: only a client that went away does not go on, and
    /// what became of its manifests is unknown.
    fn into_whole(self) -> Self {
        match self {
            Self::Big(BigStep::Seal { key, kind, .. }) => Self::One(key, kind),
            Self::Big(BigStep::SealAll { planned, .. }) => Self::Batch(planned),
            other => other,
        }
    }
}

impl Actor {
    /// Whether nobody can know how this write ended, and that may be: it was first sent before the
    /// client heard of the last change of switches, and may have been stamped by the one before.
    fn may_be_uncertain(&mut self, now: Instant, asked: &Asked) -> bool {
        let unaware = self.aware_at.is_none_or(|at| asked.at <= at);
        if asked.sure {
            self.aware_at.get_or_insert(now);
        }
        unaware
    }

    /// Of a refused write nothing must ever be seen.
    fn take_refusal(&mut self, what: &What, why: Refusal, history: &mut History) {
        match why {
            // That is how this bug shows.
            _ if self.mutant == Some(Mutant::StaleIsFinal) => {}
            // Deletes always find room.
            Refusal::Full if what.takes_room() => self.refused += 1,
            why => history.violation(format!("client {}: refused: {why}", self.index)),
        }
    }

    pub(super) fn conclude(
        &mut self,
        now: Instant,
        asked: Asked,
        outcome: Outcome<Reply>,
        history: &mut History,
    ) {
        let unaware = self.may_be_uncertain(now, &asked);
        // Who waited for room longer than anybody is remembered cannot be told either.
        let may_be = unaware || self.forgotten_soon;
        let honest = may_be && outcome == Outcome::Unknown(UnknownReason::Uncertain);
        let (reply, why) = match outcome {
            Outcome::Done(reply) => (Some(reply), None),
            Outcome::Unknown(why) => (None, Some(why)),
            Outcome::Refused(why) => return self.take_refusal(&asked.what, why, history),
        };
        if reply.is_some() {
            self.done += 1;
        } else {
            self.unknown += 1;
            if asked.sure && !honest {
                let index = self.index;
                history.violation(format!("client {index}: unknown in a healed world: {why:?}"));
            }
        }
        let returned = reply.is_some().then_some(now);
        let (client, called, sure) = (self.index, asked.at, asked.sure);
        let told = Asking { client, called, now, sure, unaware };
        let op =
            |kind, version| Op { client: self.index, called: asked.at, returned, kind, version };
        match asked.what.into_whole() {
            What::One(key, kind) => {
                let (kind, version) = match reply {
                    Some(reply) => complete(kind, &reply, history),
                    None if matches!(kind, OpKind::Read(_)) => return,
                    None => (kind, Version::NONE),
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
                reply.into_iter().for_each(|reply| told.reads(&keys, reply, history));
            }
            What::Writes(writes) => match reply {
                Some(reply) => told.writes(&writes, reply, history),
                None => told.unknown(&writes, history),
            },
            What::Batch(parts) => told.batch(&parts, reply, history),
            // How many keys there are the nodes are asked in the end, beside their disks.
            What::Big(_) | What::Count | What::Lock(_) => {}
            What::Scan(scan) => {
                let Some(Reply::Range(entries)) = reply else { return };
                for (key, kind, version) in scan.reads(entries, history) {
                    history.record(&key, op(kind, version));
                }
            }
        }
    }
}
