//! Values of any length on their way out of the cluster.

use super::parts::{Assembler, DEPTH, manifest};
use super::step::{Event, Next};
use crate::owned::OwnedRequest;
use crate::{NotDone, Refusal, Value, face};
use std::ops::Range;
use std::time::Duration;

/// How often a read begins again because the value was replaced meanwhile.
const ATTEMPTS: u32 = 8;

/// Before it does so; doubled each time.
const REST: Duration = Duration::from_millis(1);

/// A value that is received piece by piece: one value, not pieces of several.
#[derive(Debug)]
pub(crate) struct Receiving {
    /// Bytes of the whole value.
    pub(crate) len: u64,
    /// Bytes that are still to come.
    pub(crate) left: u64,
    short: Option<Vec<u8>>,
    parts: Option<Assembler>,
    /// Requests without an answer.
    unanswered: usize,
}

impl Receiving {
    /// Of what was found under a key, whatever its length, the bytes that lie in a range.
    ///
    /// # Errors
    ///
    /// [`Refusal::Damaged`] if what says where its parts are does not.
    pub(crate) fn new(key: &[u8], found: Value, range: Range<u64>) -> Result<Self, Refusal> {
        let manifest = manifest(key, &found)?;
        let len = manifest.map_or(found.value.len() as u64, |manifest| manifest.len);
        let parts = manifest.map(|manifest| Assembler::new(key, manifest, 0..u64::MAX));
        let short = parts.is_none().then_some(found.value);
        Ok(Self { len, left: len, short, parts, unanswered: 0 }.only(range))
    }

    /// Whether the value does not fit a datagram: of a short one, everything is here already.
    pub(crate) fn is_long(&self) -> bool {
        self.parts.is_some()
    }

    /// Of what is left to be read only the bytes of the value that lie in a range, before any were
    /// asked for.
    pub(crate) fn only(mut self, range: Range<u64>) -> Self {
        self.left = range.end.min(self.len).saturating_sub(range.start);
        self.short = self.short.map(|value| cut(value, &range)).filter(|it| !it.is_empty());
        self.parts = self.parts.map(|parts| parts.only(range));
        self
    }

    /// The next piece; `None` after the last.
    pub(crate) fn piece(&mut self, event: Event) -> Next<Result<Option<Vec<u8>>, NotDone>> {
        let Some(parts) = &mut self.parts else {
            self.left = 0;
            return Next::End(Ok(self.short.take()));
        };
        if let Event::Answer(outcome) = event {
            self.unanswered -= 1;
            let piece = parts.take(outcome);
            let len = piece.as_ref().map_or(0, |piece| piece.len() as u64);
            self.left = self.left.saturating_sub(len);
            return Next::End(piece.map(Some));
        }
        if self.unanswered < DEPTH
            && let Some(request) = parts.request()
        {
            self.unanswered += 1;
            return Next::Begin(request);
        }
        if self.unanswered == 0 { Next::End(Ok(None)) } else { Next::Take }
    }
}

/// A long value that is read as a whole, and anew if it is replaced meanwhile.
#[derive(Debug)]
pub(crate) struct Reading {
    key: Vec<u8>,
    range: Range<u64>,
    bytes_max: usize,
    /// How often it has been replaced.
    replaced: u32,
    /// Its bytes so far.
    bytes: Vec<u8>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// This is what the key has.
    Found(Value),
    /// Its parts are read; the value is what was found, without bytes.
    Parts(Receiving, Value),
    /// It was replaced. After a rest the key is asked for again.
    Replaced,
    Rested,
    /// The key is asked for; whether that was refused before, because it lies elsewhere now.
    Asked {
        again: bool,
    },
    /// That was refused, and the keyspace is looked up.
    Misplaced(NotDone),
}

impl Reading {
    /// Reads bytes of the value whose beginning was found under a key, if they are not too many.
    pub(crate) fn new(key: &[u8], range: Range<u64>, bytes_max: usize, found: Value) -> Self {
        let (key, bytes, stage) = (key.to_vec(), Vec::new(), Stage::Found(found));
        Self { key, range, bytes_max, replaced: 0, bytes, stage }
    }

    /// What is next.
    pub(crate) fn step(&mut self, mut event: Event) -> Next<Result<Option<Value>, NotDone>> {
        loop {
            let event = std::mem::replace(&mut event, Event::Done);
            let ended = match (std::mem::replace(&mut self.stage, Stage::Rested), event) {
                (Stage::Found(found), _) if !found.big => {
                    let value = cut(found.value, &self.range);
                    return Next::End(Ok(Some(Value { value, ..found })));
                }
                (Stage::Found(found), _) => self.begin(found),
                (Stage::Parts(mut receiving, found), event) => match receiving.piece(event) {
                    Next::End(Ok(Some(piece))) => {
                        self.bytes.extend_from_slice(&piece);
                        self.stage = Stage::Parts(receiving, found);
                        Ok(())
                    }
                    Next::End(Ok(None)) => {
                        let value = std::mem::take(&mut self.bytes);
                        return Next::End(Ok(Some(Value { value, big: false, ..found })));
                    }
                    Next::End(Err(not_done)) => Err(not_done),
                    next => {
                        self.stage = Stage::Parts(receiving, found);
                        return next.map(|_| unreachable!("not the end"));
                    }
                },
                (Stage::Replaced, _) => {
                    let rest = REST * (1 << self.replaced);
                    self.replaced += 1;
                    return Next::Rest(rest);
                }
                (Stage::Rested, _) if self.replaced == ATTEMPTS => {
                    return Next::End(Err(NotDone::Refused(Refusal::Replaced)));
                }
                (Stage::Rested, _) => return self.ask(false),
                (Stage::Asked { again }, Event::Answer(outcome)) => {
                    let outdated = outcome.is_outdated() && !again;
                    match outcome.map(face::get).into_result() {
                        Ok(None) => return Next::End(Ok(None)),
                        Ok(Some(found)) => {
                            self.stage = Stage::Found(found);
                            Ok(())
                        }
                        Err(why) if outdated => {
                            self.stage = Stage::Misplaced(why);
                            return Next::Renew;
                        }
                        Err(why) => Err(why),
                    }
                }
                (Stage::Asked { again }, Event::Done | Event::Renewed(_)) => {
                    self.stage = Stage::Asked { again };
                    return Next::Take;
                }
                (Stage::Misplaced(_), Event::Renewed(true)) => return self.ask(true),
                (Stage::Misplaced(why), _) => Err(why),
            };
            match ended {
                Ok(()) => {}
                Err(NotDone::Refused(Refusal::Replaced)) => {
                    self.stage = Stage::Replaced;
                    return Next::Forget;
                }
                Err(not_done) => return Next::End(Err(not_done)),
            }
        }
    }

    fn ask<T>(&mut self, again: bool) -> Next<T> {
        self.stage = Stage::Asked { again };
        Next::Begin(OwnedRequest::Get { key: self.key.clone() })
    }

    fn begin(&mut self, found: Value) -> Result<(), NotDone> {
        let info = Value { value: Vec::new(), ..found };
        let receiving = Receiving::new(&self.key, found, self.range.clone());
        let receiving = receiving.map_err(NotDone::Refused)?;
        let bytes_max = self.bytes_max;
        if receiving.left > bytes_max as u64 {
            return Err(NotDone::Refused(Refusal::ResultTooLarge { bytes_max }));
        }
        self.bytes.clear();
        self.stage = Stage::Parts(receiving, info);
        Ok(())
    }
}

/// Those bytes of a value that lie in a range.
pub(crate) fn cut(mut value: Vec<u8>, wanted: &Range<u64>) -> Vec<u8> {
    if wanted.start == 0 && wanted.end >= value.len() as u64 {
        return value;
    }
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(value.len());
    let (start, end) = (place(wanted.start), place(wanted.end));
    value.truncate(end);
    value.split_off(start.min(end))
}
