//! What the outcome of its one request makes of a command that needed no more.

use super::Store;
use super::errors::{not_read, not_written};
use super::keys::type_name;
use super::many::{WriteTally, in_array};
use super::numbers::summed;
use super::plan::{Plan, Settled, Shown};
use super::ranges::length;
use super::terms::{Seen, Sights, sight};
use crate::Reply;
use bytes::Bytes;
use client::{CasReply, Outcome, Value};
use smallvec::smallvec;
use wire::Version;

impl Store {
    /// What becomes of a command with these arguments whose request ended so.
    pub(crate) fn take_outcome(
        &self,
        plan: Plan,
        args: &[Bytes],
        outcome: Outcome<client::Reply>,
    ) -> Settled {
        if outcome.is_outdated() {
            return Settled::Again;
        }
        let reply = match outcome.into_result() {
            Ok(reply) => reply,
            Err(why) => {
                let says = if matches!(plan, Plan::Read(_) | Plan::ReadAll) {
                    not_read
                } else {
                    not_written
                };
                return Settled::Reply(says(why), Sights::new());
            }
        };
        let told = match (plan, reply) {
            (Plan::Read(shown), client::Reply::Get(found)) => return self.show(shown, found),
            (Plan::Put { .. }, client::Reply::Put { .. }) => Reply::OK,
            (Plan::PutNew { as_number, .. }, client::Reply::Cas(swapped)) => {
                let written = matches!(swapped, CasReply::Written { .. });
                match (as_number, written) {
                    (true, _) => Reply::Integer(written.into()),
                    (false, true) => Reply::OK,
                    (false, false) => Reply::Null,
                }
            }
            (Plan::Del, client::Reply::Del(deleted)) => Reply::Integer(deleted.existed.into()),
            (Plan::Add(_), client::Reply::Incr(added)) => {
                summed(added).unwrap_or_else(|error| error)
            }
            (Plan::ReadAll, client::Reply::Mget(found)) => return shown(found),
            (Plan::PutAll, client::Reply::Mset(written)) => return told(args, written),
            (_, other) => {
                unreachable!("the variant of a reply is that of its request, but here is {other:?}")
            }
        };
        Settled::Reply(told, Sights::new())
    }

    fn show(&self, shown: Shown, found: Option<Value>) -> Settled {
        let reply = match (shown, found) {
            (Shown::Value, None) => return Settled::Reply(Reply::Null, smallvec![Seen::Absent]),
            (Shown::Value, Some(found)) if found.big => return Settled::Found(found),
            (Shown::Value, Some(found)) => {
                let seen = Seen::Version(found.version);
                return Settled::Reply(Reply::Bulk(found.value.into()), smallvec![seen]);
            }
            (Shown::Presence, found) => Reply::Integer(found.is_some().into()),
            (Shown::Type, found) => type_name(found.is_some()),
            // What is said of it is not with the key.
            (Shown::Len | Shown::TimeLeft(_), Some(found)) if found.big => return Settled::Again,
            (Shown::Len, found) => length(found.map_or(0, |found| found.value.len())),
            (Shown::TimeLeft(when), found) => self.show_time_left(found.as_ref(), when),
        };
        Settled::Reply(reply, Sights::new())
    }
}

/// What an MGET is told.
fn shown(found: Vec<Outcome<Option<Value>>>) -> Settled {
    let is_whole = |outcome: &Outcome<Option<Value>>| match outcome {
        Outcome::Done(Some(found)) => !found.big,
        other => !other.is_outdated(),
    };
    if !found.iter().all(is_whole) {
        return Settled::Again;
    }
    let found: Result<Vec<_>, _> = found.into_iter().map(Outcome::into_result).collect();
    let (reply, sights) = match found {
        Ok(found) => {
            let sights = found.iter().map(|it| sight(it.as_ref())).collect();
            (in_array(found), sights)
        }
        Err(why) => (not_read(why), Sights::new()),
    };
    Settled::Reply(reply, sights)
}

/// What an MSET with these arguments is told. A key that was refused because the keyspace is not
/// what it was is written where it is now, and no other is written twice.
fn told(args: &[Bytes], written: Vec<Outcome<Version>>) -> Settled {
    let outdated = |outcome: &Outcome<Version>| outcome.is_outdated();
    let rest =
        written.iter().any(outdated) && written.iter().all(|it| it.is_done() || outdated(it));
    if rest && let [name, pairs @ ..] = args {
        let (pairs, _) = pairs.as_chunks::<2>();
        let left = pairs.iter().zip(&written).filter(|(_, it)| outdated(it));
        let left = left.flat_map(|(pair, _)| pair).cloned();
        return Settled::Rest(std::iter::once(name.clone()).chain(left).collect());
    }
    let done = WriteTally::new(written.len()).take(written);
    Settled::Reply(done.map_or_else(|error| error, |_| Reply::OK), Sights::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::{Refusal, UnknownReason};

    const OUTDATED: Refusal = Refusal::BadMatch;

    fn words(words: &[&'static str]) -> Vec<Bytes> {
        words.iter().map(|word| Bytes::from_static(word.as_bytes())).collect()
    }

    #[test]
    fn of_an_mset_only_what_was_refused_as_outdated_is_written_again() {
        let args = words(&["MSET", "a", "1", "b", "2", "c", "3"]);
        let done = || Outcome::Done(Version::new(1));
        let Settled::Rest(rest) =
            told(&args, vec![done(), Outcome::Refused(OUTDATED), Outcome::Refused(OUTDATED)])
        else {
            panic!("it is outdated")
        };
        assert_eq!(rest, words(&["MSET", "b", "2", "c", "3"]));
        let Settled::Reply(reply, _) = told(&args, vec![done(), done(), done()]) else {
            panic!("all are done")
        };
        assert_eq!(reply, Reply::OK);
        let unknown = Outcome::Unknown(UnknownReason::NoAnswer);
        let Settled::Reply(reply, _) =
            told(&args, vec![done(), unknown, Outcome::Refused(OUTDATED)])
        else {
            panic!("nobody knows")
        };
        let text = reply.error_text().unwrap();
        assert!(text.starts_with("ERR 2 of 3 writes are not known to be done: "), "{text}");
    }

    #[test]
    fn an_mget_that_meets_a_long_value_or_is_outdated_is_carried_out_anew() {
        let value = |big| Outcome::Done(Some(Value { big, ..Value::default() }));
        assert!(matches!(shown(vec![value(false), value(true)]), Settled::Again));
        assert!(matches!(shown(vec![value(false), Outcome::Refused(OUTDATED)]), Settled::Again));
        let Settled::Reply(reply, _) = shown(vec![value(false), Outcome::Done(None)]) else {
            panic!("all are read")
        };
        assert_eq!(reply, Reply::Array(vec![Reply::bulk(""), Reply::Null]));
        let unknown = Outcome::Unknown(UnknownReason::NoAnswer);
        let Settled::Reply(reply, _) = shown(vec![value(false), unknown]) else {
            panic!("nobody knows")
        };
        assert!(reply.error_text().unwrap().starts_with("ERR not read"));
    }
}
