//! What one turn of a shard (a batch of datagrams and what is due, up to the flush) may cost,
//! whatever clients ask: until it ends, nobody else is served, and no lease is taken.

use wire::{Header, RangeInterval};

/// The present turn.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Records that may still be looked at.
    left: usize,
    /// Pieces of scans and counts that were answered in it.
    answers: Vec<(Question, ScanAnswer)>,
}

/// A piece of a scan or count, as a client has asked for it. One that is sent again has a number
/// of its own, so the number is no part of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Question {
    client: u64,
    partition: u32,
    flags: u8,
    interval: RangeInterval,
    limit: u32,
    bounds: (Box<[u8]>, Box<[u8]>),
}

/// What it was told.
#[derive(Clone, Debug)]
pub(crate) struct ScanAnswer {
    pub(crate) flags: u8,
    pub(crate) count: u8,
    pub(crate) payload: Vec<u8>,
}

impl Default for Turn {
    fn default() -> Self {
        Self { left: TURN_STEPS_MAX, answers: Vec::new() }
    }
}

impl Turn {
    /// Of so many records that somebody would look at, how many he may.
    pub(crate) fn most_for(&self, wanted: usize) -> usize {
        wanted.min(self.left.max(STEPS_MIN))
    }

    /// Records were looked at.
    pub(crate) fn spend(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps);
    }

    /// It is over.
    pub(crate) fn end(&mut self) {
        self.left = TURN_STEPS_MAX;
        self.answers.clear();
    }

    /// What the same question was told in this turn. No answer of it has left, so that whoever
    /// asks cannot have seen anything newer.
    pub(crate) fn answer_to(&self, question: &Question) -> Option<&ScanAnswer> {
        self.answers.iter().find(|(asked, _)| asked == question).map(|(_, answer)| answer)
    }

    pub(crate) fn keep(&mut self, question: Question, answer: ScanAnswer) {
        if self.answers.len() < ANSWERS_MAX {
            self.answers.push((question, answer));
        }
    }
}

impl Question {
    pub(crate) fn new(request: &Header, limit: u32, (start, end): (&[u8], &[u8])) -> Self {
        Self {
            client: request.client,
            partition: request.partition,
            flags: request.flags,
            interval: RangeInterval::of(request),
            limit,
            bounds: (start.into(), end.into()),
        }
    }
}

/// Records looked at in a turn, for all scans, counts and seals of it together: about 2 ms in
/// memory, and 10 ms with the durable engine.
const TURN_STEPS_MAX: usize = 8_192;

/// What each may look at even so, so that it comes on.
const STEPS_MIN: usize = 32;

/// Answers kept until the turn ends: 24 KB. A batch has hardly ever the same question more often
/// than a client sends it again while a shard is busy.
const ANSWERS_MAX: usize = 16;
