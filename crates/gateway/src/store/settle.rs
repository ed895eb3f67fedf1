//! What the outcome of its one request makes of a command that needed no more.

use super::Store;
use super::errors::{not_read, not_written};
use super::keys::type_name;
use super::numbers::summed;
use super::plan::{Plan, Settled, Shown};
use super::ranges::length;
use super::terms::Seen;
use crate::Reply;
use client::{CasReply, Outcome, Value};

impl Store {
    /// What becomes of a command whose request ended so.
    pub(crate) fn take_outcome(&self, plan: Plan, outcome: Outcome<client::Reply>) -> Settled {
        if outcome.is_outdated() {
            return Settled::Again;
        }
        let reply = match outcome.into_result() {
            Ok(reply) => reply,
            Err(why) => {
                let says = if matches!(plan, Plan::Read(_)) { not_read } else { not_written };
                return Settled::Reply(says(why), Seen::Nothing);
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
            (_, other) => {
                unreachable!("the variant of a reply is that of its request, but here is {other:?}")
            }
        };
        Settled::Reply(told, Seen::Nothing)
    }

    fn show(&self, shown: Shown, found: Option<Value>) -> Settled {
        let reply = match (shown, found) {
            (Shown::Value, None) => return Settled::Reply(Reply::Null, Seen::Absent),
            (Shown::Value, Some(found)) if found.big => return Settled::Found(found),
            (Shown::Value, Some(found)) => {
                let seen = Seen::Version(found.version);
                return Settled::Reply(Reply::Bulk(found.value.into()), seen);
            }
            (Shown::Presence, found) => Reply::Integer(found.is_some().into()),
            (Shown::Type, found) => type_name(found.is_some()),
            // What is said of it is not with the key.
            (Shown::Len | Shown::TimeLeft(_), Some(found)) if found.big => return Settled::Again,
            (Shown::Len, found) => length(found.map_or(0, |found| found.value.len())),
            (Shown::TimeLeft(when), found) => self.show_time_left(found.as_ref(), when),
        };
        Settled::Reply(reply, Seen::Nothing)
    }
}
