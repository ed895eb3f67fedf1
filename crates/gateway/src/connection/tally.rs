//! What is counted and noted of commands that were carried out.

use super::Connection;
use super::call::{Call, CallTally};
use super::held::held_by;
use crate::Reply;
use crate::command::{self, Run};
use crate::lookups::Lookups;
use std::time::Duration;

impl Connection {
    /// A command is under way no more, and has its reply.
    pub(super) fn end_call(&mut self, call: &Call, reply: &Reply) {
        self.under_way_bytes = self.under_way_bytes.saturating_sub(held_by(&call.args));
        self.note(call, reply);
        self.reply(reply);
    }

    fn note(&mut self, call: &Call, reply: &Reply) {
        let took = self.now.saturating_duration_since(call.began);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let error = reply.error_text();
        if error.is_some() || (self.tally.number, self.tally.micros) != (call.number, micros) {
            self.count_calls();
        }
        self.tally = CallTally { number: call.number, micros, count: self.tally.count + 1 };
        if let Some(Run::Keyed(command)) = command::numbered().get(call.number).map(|it| it.run) {
            self.lookups.add(Lookups::of(command, &call.args, reply));
        }
        if let Some(text) = error {
            self.shared.stats.note_failure(call.number, text);
        }
        if self.shared.settings.slower_than().is_some_and(|slow| took >= slow) {
            self.note_slow(call, took);
        }
    }

    /// Counts the calls, and lookups, that are not counted yet: before anybody can have read their
    /// replies.
    pub(super) fn count_calls(&mut self) {
        let CallTally { number, micros, count } = std::mem::take(&mut self.tally);
        if count > 0 {
            self.shared.stats.note_calls(number, micros, count);
            self.shared.stats.note_lookups(std::mem::take(&mut self.lookups));
        }
    }

    fn note_slow(&self, call: &Call, took: Duration) {
        // What everybody may use has passwords among its arguments.
        let spec = command::numbered().get(call.number);
        if spec.is_some_and(|spec| !spec.is_for_all()) {
            let len_max = self.shared.settings.slowlog_len_max();
            let unix_seconds = self.shared.time_of_day().as_secs();
            let (slowlog, entry) = (&self.shared.slowlog, &self.peer.entry);
            slowlog.note(unix_seconds, took, &call.args, entry, len_max);
        }
    }
}
