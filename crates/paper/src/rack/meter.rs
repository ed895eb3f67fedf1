//! What a trial measures: requests that were meant to start within its window.

use super::agenda::{Agenda, Event};
use machine::Instant;
use std::time::Duration;
use workload::{Ending, IntervalSummary, OpKind, Recorder};

/// Counts while a trial lasts.
#[derive(Debug)]
pub(super) struct Meter {
    from: Instant,
    until: Instant,
    pub(super) begun: u64,
    pub(super) done: u64,
    /// Values that were never written to the key they were read from.
    pub(super) wrong_values: u64,
    pub(super) recorder: Recorder,
    /// The window in pieces, if that is wanted: how long each is, and those that are over.
    piece: Option<Duration>,
    pub(super) pieces: Vec<IntervalSummary>,
}

impl Meter {
    /// One that looks at nothing.
    pub(super) fn idle() -> Self {
        Self::new(Instant(0), Duration::ZERO, None)
    }

    pub(super) fn new(from: Instant, window: Duration, piece: Option<Duration>) -> Self {
        let (until, recorder, pieces) = (from + window, Recorder::new(), Vec::new());
        Self { from, until, begun: 0, done: 0, wrong_values: 0, recorder, piece, pieces }
    }

    /// Plans the end of the first piece.
    pub(super) fn begin(&self, agenda: &mut Agenda) {
        if let Some(piece) = self.piece {
            agenda.plan(self.from + piece, Event::Tick);
        }
    }

    pub(super) fn covers(&self, at: Instant) -> bool {
        (self.from..self.until).contains(&at)
    }

    /// A request was meant to start.
    pub(super) fn request(&mut self, intended: Instant) {
        self.begun += u64::from(self.covers(intended));
    }

    /// It has ended.
    pub(super) fn end(&mut self, now: Instant, kind: OpKind, ending: Ending, intended: Instant) {
        if self.covers(intended) {
            self.done += u64::from(ending == Ending::Done);
            self.recorder.record(kind, ending, now.since(intended));
        }
    }

    /// A piece is over; plans the end of the next.
    pub(super) fn tick(&mut self, now: Instant, agenda: &mut Agenda) {
        let Some(piece) = self.piece.filter(|_| now <= self.until) else { return };
        let interval = self.recorder.take_interval();
        self.pieces.push(interval.summary(now.since(self.from), piece));
        agenda.plan(now + piece, Event::Tick);
    }
}
