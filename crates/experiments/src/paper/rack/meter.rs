//! What a trial measures: requests that were meant to start within its window.

use super::agenda::{Agenda, Event};
use client::{Outcome, Refusal};
use machine::Instant;
use std::time::Duration;
use workload::{Ending, IntervalSummary, OpKind, Recorder};

/// How a trial is looked at closely.
#[derive(Clone, Copy, Debug)]
pub struct CloseLook {
    /// How long the pieces are of which there is a summary.
    pub piece: Duration,
    /// Within how many microseconds a request is answered in time.
    pub in_time_us: u64,
}

/// What became of the requests that were meant to start within [`STARTS_FOR`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// How many there were.
    pub begun: u64,
    /// How many of them ended in time.
    pub in_time: u64,
}

/// For how long requests start that are counted together.
pub const STARTS_FOR: Duration = Duration::from_millis(10);

/// Counts while a trial lasts.
#[derive(Debug)]
pub(super) struct Meter {
    from: Instant,
    until: Instant,
    pub(super) begun: u64,
    pub(super) done: u64,
    /// Writes that were refused because a node was full.
    pub(super) full: u64,
    /// Reads that showed a value that was never written to its key, or too few keys.
    pub(super) wrong: u64,
    pub(super) recorder: Recorder,
    look: Option<CloseLook>,
    /// The pieces of the window that are over, and what became of what started when.
    pub(super) pieces: Vec<IntervalSummary>,
    pub(super) starts: Vec<Starts>,
}

impl Meter {
    /// One that looks at nothing.
    pub(super) fn idle() -> Self {
        Self::new(Instant(0), Duration::ZERO, None)
    }

    pub(super) fn new(from: Instant, window: Duration, look: Option<CloseLook>) -> Self {
        let starts = window.as_nanos().div_ceil(STARTS_FOR.as_nanos());
        let starts = look.map_or(0, |_| usize::try_from(starts).expect("windows are short"));
        Self {
            from,
            until: from + window,
            begun: 0,
            done: 0,
            full: 0,
            wrong: 0,
            recorder: Recorder::new(),
            look,
            pieces: Vec::new(),
            starts: vec![Starts::default(); starts],
        }
    }

    /// Plans the end of the first piece.
    pub(super) fn begin(&self, agenda: &mut Agenda) {
        if let Some(look) = self.look {
            agenda.plan(self.from + look.piece, Event::Tick);
        }
    }

    pub(super) fn covers(&self, at: Instant) -> bool {
        (self.from..self.until).contains(&at)
    }

    /// A request was meant to start.
    pub(super) fn request(&mut self, intended: Instant) {
        self.begun += u64::from(self.covers(intended));
        if let Some(starts) = self.starts_at(intended) {
            starts.begun += 1;
        }
    }

    fn starts_at(&mut self, intended: Instant) -> Option<&mut Starts> {
        if !self.covers(intended) {
            return None;
        }
        let place = intended.since(self.from).as_nanos() / STARTS_FOR.as_nanos();
        self.starts.get_mut(usize::try_from(place).ok()?)
    }

    /// It has ended like this; counts it if a node was full.
    pub(super) fn full<T>(&mut self, outcome: &Outcome<T>, intended: Instant) {
        let full = matches!(outcome, Outcome::Refused(Refusal::Full));
        self.full += u64::from(full && self.covers(intended));
    }

    /// It has ended.
    pub(super) fn end(&mut self, now: Instant, kind: OpKind, ending: Ending, intended: Instant) {
        if self.covers(intended) {
            self.done += u64::from(ending == Ending::Done);
            self.recorder.record(kind, ending, now.since(intended));
        }
        let took = now.since(intended).as_micros();
        if self.look.is_some_and(|look| took <= look.in_time_us.into())
            && let Some(starts) = self.starts_at(intended)
        {
            starts.in_time += 1;
        }
    }

    /// A piece is over; plans the end of the next.
    pub(super) fn tick(&mut self, now: Instant, agenda: &mut Agenda) {
        let Some(look) = self.look.filter(|_| now <= self.until) else { return };
        let piece = look.piece;
        let interval = self.recorder.take_interval();
        self.pieces.push(interval.summary(now.since(self.from), piece));
        agenda.plan(now + piece, Event::Tick);
    }
}
