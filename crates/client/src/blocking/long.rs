//! Values that need not fit a datagram, piece by piece.

use super::space::Space;
use crate::big::{self, Event, Next, Sending};
use crate::face;
use crate::owned::OwnedExpect;
use crate::{CasReply, Expect, Outcome, PutOptions, Refusal, Reply, UnknownReason};
use std::collections::VecDeque;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use wire::Version;

/// A value that is being written. Dropped before it is finished, it never was.
#[derive(Debug)]
pub struct Upload {
    pub(super) sending: Sending,
    pub(super) line: Line,
}

impl Upload {
    /// Adds to the end of the value; waits while too much of it is on its way.
    ///
    /// # Errors
    ///
    /// If the value cannot be written; the key keeps what it has then.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), Refusal> {
        self.line.drive(|event| self.sending.push(&mut bytes, event))
    }

    /// Makes what was added the value of the key, at once and whole; gives its version.
    pub fn finish(&mut self, options: PutOptions) -> Outcome<Version> {
        self.end(None, options).map(face::put)
    }

    /// The same, if what is there is what is expected. If it is not, another version can be
    /// expected, without anything being sent again.
    pub fn finish_if(&mut self, expect: Expect<'_>, options: PutOptions) -> Outcome<CasReply> {
        self.end(Some(expect.into()), options).map(face::cas)
    }

    fn end(&mut self, expect: Option<OwnedExpect>, options: PutOptions) -> Outcome<Reply> {
        let expect = expect.as_ref();
        let end = |event| self.sending.finish(expect, options.expiry, event);
        self.line.drive(end)
    }
}

/// A value that is read piece by piece.
pub type Download = big::Download<Line>;

impl Download {
    /// The next piece, some 80 KB; `None` after the last.
    pub fn piece(&mut self) -> Outcome<Option<Vec<u8>>> {
        let piece = self.line.drive(|event| self.receiving.piece(event));
        self.left = self.receiving.left;
        piece.map_or_else(Into::into, Outcome::Done)
    }
}

/// What the machines of long values are driven over: requests and, in their order, the answers.
#[derive(Debug)]
pub struct Line {
    space: Space,
    waiting: VecDeque<Receiver<Outcome<Reply>>>,
}

impl Line {
    pub(super) fn new(space: &Space) -> Self {
        Self { space: space.clone(), waiting: VecDeque::new() }
    }

    /// Does what a machine wants done until that is over.
    pub(super) fn drive<T>(&mut self, mut step: impl FnMut(Event) -> Next<T>) -> T {
        let mut used = self.space.keyspace.get();
        let mut event = Event::Done;
        loop {
            event = match step(event) {
                Next::Begin(request) => {
                    self.waiting.push_back(self.space.begin(request));
                    Event::Done
                }
                Next::Take => Event::Answer(self.take()),
                Next::Forget => {
                    self.waiting.clear();
                    Event::Done
                }
                Next::Renew => {
                    let renewed = self.space.renew(&used);
                    used = self.space.keyspace.get();
                    Event::Renewed(renewed)
                }
                Next::Rest(time) => {
                    rest(time);
                    Event::Done
                }
                Next::End(end) => return end,
            };
        }
    }

    fn take(&mut self) -> Outcome<Reply> {
        let answer = self.waiting.pop_front().and_then(|answer| answer.recv().ok());
        answer.unwrap_or(Outcome::Unknown(UnknownReason::Closed))
    }
}

#[expect(clippy::disallowed_methods, reason = "the caller waits for the outcome")]
fn rest(time: Duration) {
    std::thread::sleep(time);
}
