//! Batches with values for which they have no room.

use super::parts::is_short;
use super::sending::Sending;
use super::step::{Event, Next};
use crate::owned::{OwnedRequest, OwnedStep};
use crate::{Change, Outcome, Refusal, Reply, StartError, Step};
use std::cmp::Reverse;
use wire::big::{BIG_KEY_MAX, is_big};
use wire::{BATCH_BYTES_MAX, BATCH_STEPS_MAX, ManifestBody, UploadBody};

/// A batch that is made with manifests in place of some values, whose parts are sent before. If the
/// keyspace is found to be another one than it was, all of it is done once more.
#[derive(Debug)]
pub(crate) struct Batching<'a> {
    steps: &'a [Step<'a>],
    /// Places of the steps whose values are sent as parts, ascending.
    long: Vec<usize>,
    /// The manifests of the first of them, all of whose parts are there.
    sent: Vec<ManifestBody>,
    /// The value of the next.
    sending: Sending,
    /// What has not been added to that yet.
    left: &'a [u8],
    bytes_max: u64,
    /// Draws names for uploads.
    draw: fn() -> UploadBody,
    /// Whether the keyspace was looked up again, and is another one.
    renewed: bool,
    /// Whether this is the second time.
    again: bool,
}

impl<'a> Batching<'a> {
    /// Makes a batch of these steps; `None` if it has room for all values.
    ///
    /// # Errors
    ///
    /// If a key is too long for one that has long values, or an expiry is none.
    pub(crate) fn new(
        steps: &'a [Step<'a>],
        bytes_max: u64,
        draw: fn() -> UploadBody,
    ) -> Result<Option<Self>, Refusal> {
        if steps.iter().any(|step| put(step).is_some_and(|(_, expiry_ms)| is_big(expiry_ms))) {
            return Err(Refusal::NotSent(StartError::BadBatch));
        }
        let long = long(steps);
        if long.is_empty() {
            return Ok(None);
        }
        if steps.len() > BATCH_STEPS_MAX {
            let len = steps.iter().map(Step::encoded_len).sum();
            return Err(Refusal::NotSent(StartError::BatchTooLarge { steps: steps.len(), len }));
        }
        let (sending, left) = next(steps, &long, bytes_max, draw)?;
        let (sent, renewed, again) = (Vec::new(), false, false);
        Ok(Some(Self { steps, long, sent, sending, left, bytes_max, draw, renewed, again }))
    }

    /// What is next.
    pub(crate) fn step(&mut self, event: Event) -> Next<Outcome<Reply>> {
        if let Event::Renewed(renewed) = event {
            self.renewed = renewed;
        }
        let outcome = match self.go_on(event) {
            Next::End(outcome) => outcome,
            next => return next,
        };
        if !outcome.is_outdated() || !self.renewed || self.again {
            return Next::End(outcome);
        }
        // The parts lie elsewhere now, and all are sent there.
        (self.again, self.sent) = (true, Vec::new());
        match self.turn_to_next() {
            Ok(()) => Next::Forget,
            Err(why) => Next::End(Outcome::Refused(why)),
        }
    }

    fn go_on(&mut self, mut event: Event) -> Next<Outcome<Reply>> {
        loop {
            if !self.left.is_empty() {
                match self.sending.push(&mut self.left, event) {
                    Next::End(Ok(())) => event = Event::Done,
                    Next::End(Err(why)) => return Next::End(Outcome::Refused(why)),
                    next => return next.map(|_| unreachable!("not the end")),
                }
            }
            if self.sent.len() + 1 >= self.long.len() {
                let (steps, long, sent) = (self.steps, &self.long, &self.sent);
                let end = |last: ManifestBody| {
                    let manifests = sent.iter().copied().chain([last]);
                    OwnedRequest::Batch { steps: sealing(steps, long, manifests) }
                };
                return self.sending.finish_with(|parts| end(parts.manifest()), event);
            }
            match self.sending.drain(event) {
                Next::End(Ok(())) => {}
                Next::End(Err(why)) => return Next::End(Outcome::Refused(why)),
                next => return next.map(|_| unreachable!("not the end")),
            }
            self.sent.push(self.sending.manifest());
            if let Err(why) = self.turn_to_next() {
                return Next::End(Outcome::Refused(why));
            }
            event = Event::Done;
        }
    }

    fn turn_to_next(&mut self) -> Result<(), Refusal> {
        let still = self.long.get(self.sent.len()..).unwrap_or_default();
        (self.sending, self.left) = next(self.steps, still, self.bytes_max, self.draw)?;
        Ok(())
    }
}

/// Begins to send the value of the first of these steps.
fn next<'a>(
    steps: &[Step<'a>],
    long: &[usize],
    bytes_max: u64,
    draw: fn() -> UploadBody,
) -> Result<(Sending, &'a [u8]), Refusal> {
    let step = long.first().and_then(|at| steps.get(*at)).expect("one is left");
    let value = put(step).map_or(&[][..], |(value, _)| value);
    Ok((Sending::new(step.key, draw(), bytes_max)?.in_parts(), value))
}

/// Value and expiry that a step leaves.
fn put<'a>(step: &Step<'a>) -> Option<(&'a [u8], u64)> {
    match step.change {
        Change::Put { value, expiry_ms } => Some((value, expiry_ms)),
        Change::None | Change::Delete => None,
    }
}

/// Places of the steps whose values the batch has no room for: those that fit no datagram, and then
/// the longest until the rest fit.
fn long(steps: &[Step<'_>]) -> Vec<usize> {
    let value_len = |step: &Step<'_>| put(step).map_or(0, |(value, _)| value.len());
    let fits = |step: &Step<'_>| put(step).is_none_or(|(value, _)| is_short(step.key, value));
    let may_go =
        |step: &Step<'_>| value_len(step) > ManifestBody::LEN && step.key.len() <= BIG_KEY_MAX;
    let mut len: usize = steps.iter().map(Step::encoded_len).sum();
    let mut going: Vec<(usize, &Step<'_>)> =
        steps.iter().enumerate().filter(|(_, step)| !fits(step) || may_go(step)).collect();
    going.sort_by_key(|(_, step)| (fits(step), Reverse(value_len(step))));
    let mut long: Vec<usize> = going
        .into_iter()
        .take_while(|(_, step)| {
            let goes = !fits(step) || len > BATCH_BYTES_MAX;
            len -= if goes { value_len(step).saturating_sub(ManifestBody::LEN) } else { 0 };
            goes
        })
        .map(|(at, _)| at)
        .collect();
    long.sort_unstable();
    long
}

/// The steps with these manifests in place of the values of the long ones.
fn sealing(
    steps: &[Step<'_>],
    long: &[usize],
    manifests: impl Iterator<Item = ManifestBody>,
) -> Vec<OwnedStep> {
    let mut sealed = long.iter().copied().zip(manifests).peekable();
    let steps = steps.iter().enumerate();
    steps
        .map(|(at, step)| match sealed.next_if(|(place, _)| *place == at) {
            Some((_, manifest)) => OwnedStep::sealing(step, &manifest),
            None => step.into(),
        })
        .collect()
}
