//! Long values on their way to the cluster.

use super::parts::{Cutter, DEPTH};
use super::step::{Event, Next};
use crate::owned::{OwnedExpect, OwnedRequest};
use crate::{Expiry, Outcome, Refusal, Reply};
use wire::{ManifestBody, UploadBody};

/// A value that is sent piece by piece. Nobody sees anything of it before its end is written.
#[derive(Debug)]
pub(crate) struct Sending {
    parts: Cutter,
    /// A request that waits until few enough are under way.
    ready: Option<OwnedRequest>,
    /// Requests without an answer.
    unanswered: usize,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Parts are sent.
    Parts,
    /// Some were refused, because they lie elsewhere now: whoever begins anew gains from knowing.
    Misplaced(Refusal),
    /// The end is being written.
    Ending,
    /// The end was refused for the same reason.
    EndMisplaced(Outcome<Reply>),
}

impl Sending {
    /// Begins one; `id` must never have been another's. A value over `bytes_max` is refused.
    ///
    /// # Errors
    ///
    /// If the key is too long for one that has long values.
    pub(crate) fn new(key: &[u8], id: UploadBody, bytes_max: u64) -> Result<Self, Refusal> {
        let parts = Cutter::new(key, id, bytes_max)?;
        Ok(Self { parts, ready: None, unanswered: 0, stage: Stage::Parts })
    }

    /// The same for a value that is sent as parts however short it is.
    pub(super) fn in_parts(mut self) -> Self {
        self.parts.always = true;
        self
    }

    /// Adds these bytes to the end of the value, and takes them from `bytes`.
    pub(crate) fn push(&mut self, bytes: &mut &[u8], event: Event) -> Next<Result<(), Refusal>> {
        if let Some(next) = self.settle(event) {
            return next;
        }
        loop {
            if let Some(next) = self.send() {
                return next;
            }
            if bytes.is_empty() {
                return Next::End(Ok(()));
            }
            match self.parts.push(bytes) {
                Ok(request) => self.ready = request,
                Err(why) => return Next::End(Err(why)),
            }
        }
    }

    /// Makes what was added the value of the key, if what is there is what is expected.
    pub(crate) fn finish(
        &mut self,
        expect: Option<&OwnedExpect>,
        expiry: Expiry,
        event: Event,
    ) -> Next<Outcome<Reply>> {
        self.finish_with(|parts| parts.end(expect.cloned(), expiry), event)
    }

    /// Makes this request once all that was added is there.
    pub(super) fn finish_with(
        &mut self,
        end: impl FnOnce(&Cutter) -> OwnedRequest,
        event: Event,
    ) -> Next<Outcome<Reply>> {
        match (std::mem::replace(&mut self.stage, Stage::Parts), event) {
            (Stage::Ending, Event::Answer(outcome)) => {
                self.unanswered -= 1;
                if !outcome.is_outdated() {
                    return Next::End(outcome);
                }
                self.stage = Stage::EndMisplaced(outcome);
                Next::Renew
            }
            (Stage::Ending, Event::Done | Event::Renewed(_)) => {
                self.stage = Stage::Ending;
                Next::Take
            }
            (Stage::EndMisplaced(outcome), _) => Next::End(outcome),
            (stage @ (Stage::Parts | Stage::Misplaced(_)), event) => {
                self.stage = stage;
                match self.drain(event) {
                    Next::End(Ok(())) => {}
                    Next::End(Err(why)) => return Next::End(Outcome::Refused(why)),
                    next => return next.map(|_| unreachable!("not the end")),
                }
                (self.stage, self.unanswered) = (Stage::Ending, 1);
                Next::Begin(end(&self.parts))
            }
        }
    }

    /// Sends what is left of what was added, and waits until all of it is there.
    pub(super) fn drain(&mut self, event: Event) -> Next<Result<(), Refusal>> {
        if let Some(next) = self.settle(event) {
            return next;
        }
        if self.ready.is_none() {
            self.ready = self.parts.flush();
        }
        if let Some(next) = self.send() {
            return next;
        }
        if self.unanswered > 0 { Next::Take } else { Next::End(Ok(())) }
    }

    /// What the value of the key is to be, once all that was added is there.
    pub(super) fn manifest(&self) -> ManifestBody {
        self.parts.manifest()
    }

    /// Takes what has come; gives what comes of that, if it is not just to go on.
    fn settle(&mut self, event: Event) -> Option<Next<Result<(), Refusal>>> {
        if let Stage::Misplaced(why) = std::mem::replace(&mut self.stage, Stage::Parts) {
            return Some(Next::End(Err(why)));
        }
        let Event::Answer(outcome) = event else { return None };
        self.unanswered -= 1;
        let why = Cutter::taken(outcome).err()?;
        if !matches!(why, Refusal::BadMatch | Refusal::UnknownKeyspace) {
            return Some(Next::End(Err(why)));
        }
        self.stage = Stage::Misplaced(why);
        Some(Next::Renew)
    }

    /// Sends what is ready, as soon as few enough requests are under way.
    fn send<T>(&mut self) -> Option<Next<T>> {
        if self.ready.is_some() && self.unanswered >= DEPTH {
            return Some(Next::Take);
        }
        let request = self.ready.take()?;
        self.unanswered += 1;
        Some(Next::Begin(request))
    }
}

/// A long value that is here as a whole and is written; if the keyspace is found to be another one
/// than it was, once more.
#[derive(Debug)]
pub(crate) struct Writing<'a> {
    key: &'a [u8],
    value: &'a [u8],
    expect: Option<OwnedExpect>,
    expiry: Expiry,
    bytes_max: u64,
    /// Draws names for uploads.
    draw: fn() -> UploadBody,
    sending: Sending,
    /// What has not been added yet.
    left: &'a [u8],
    /// Whether the keyspace was looked up again, and is another one.
    renewed: bool,
    /// Whether this is the second time.
    again: bool,
}

impl<'a> Writing<'a> {
    /// Writes this value to this key.
    ///
    /// # Errors
    ///
    /// If the key is too long for one that has long values.
    pub(crate) fn new(
        (key, value): (&'a [u8], &'a [u8]),
        expect: Option<OwnedExpect>,
        expiry: Expiry,
        bytes_max: u64,
        draw: fn() -> UploadBody,
    ) -> Result<Self, Refusal> {
        let sending = Sending::new(key, draw(), bytes_max)?;
        let (left, renewed, again) = (value, false, false);
        Ok(Self { key, value, expect, expiry, bytes_max, draw, sending, left, renewed, again })
    }

    /// What is next.
    pub(crate) fn step(&mut self, mut event: Event) -> Next<Outcome<Reply>> {
        if let Event::Renewed(renewed) = event {
            self.renewed = renewed;
        }
        let mut pushed = self.left.is_empty();
        loop {
            let outcome = if pushed {
                match self.sending.finish(self.expect.as_ref(), self.expiry, event) {
                    Next::End(outcome) => outcome,
                    next => return next,
                }
            } else {
                match self.sending.push(&mut self.left, event) {
                    Next::End(Ok(())) => {
                        (pushed, event) = (true, Event::Done);
                        continue;
                    }
                    Next::End(Err(why)) => Outcome::Refused(why),
                    next => return next.map(|_| unreachable!("not the end")),
                }
            };
            if !outcome.is_outdated() || !self.renewed || self.again {
                return Next::End(outcome);
            }
            // The parts lie elsewhere now, and all are sent there.
            self.sending = match Sending::new(self.key, (self.draw)(), self.bytes_max) {
                Ok(sending) => sending,
                Err(why) => return Next::End(Outcome::Refused(why)),
            };
            (self.left, self.again) = (self.value, true);
            return Next::Forget;
        }
    }
}
