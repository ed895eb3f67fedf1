//! What a simulated user makes of the outcome of a request: operations on single keys.

use super::{Actor, Answered, Asked, What};
use crate::check::{History, Op, OpKind, Scan, complete, read};
use client::{Outcome, Reply, UnknownReason};
use cluster::Plant;
use machine::Instant;

impl Actor {
    /// Whether nobody can know how this write ended, and that may be: it was first sent before the
    /// client heard of the last change of switches, and may have been stamped by the one before.
    fn is_uncertain(&mut self, now: Instant, asked: &Asked, outcome: &Outcome<Reply>) -> bool {
        let unaware = self.aware_at.is_none_or(|at| asked.at <= at);
        if asked.sure {
            self.aware_at.get_or_insert(now);
        }
        unaware && matches!(outcome, Outcome::Unknown(UnknownReason::Uncertain))
    }

    pub(super) fn conclude(
        &mut self,
        now: Instant,
        asked: Asked,
        outcome: Outcome<Reply>,
        history: &mut History,
    ) {
        let honest = self.is_uncertain(now, &asked, &outcome);
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
            if asked.sure && !honest {
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
