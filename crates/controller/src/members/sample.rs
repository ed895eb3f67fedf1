//! How a member's clock was found to differ from the controller's.

use cluster::ClockAhead;
use machine::Instant;
use std::time::Duration;

/// Of the age of a sample, the part by which it may be off more than when it was taken: clocks
/// differ in rate by at most some 1 %.
const AGE_PART: u32 = 100;

/// What a sample may be wrong by that is good enough to know the time by. Answers take this long
/// only where packets had to wait, as they do at the first contact.
const EXACT_MAX: Duration = Duration::from_millis(10);

/// How a member's clock was found to differ from the controller's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// How far the member's is ahead, or so.
    pub(crate) ahead: ClockAhead,
    /// The most that this is wrong by: half of what passed from the question to the answer.
    error: Duration,
    at: Instant,
}

impl Sample {
    /// From a report that was made at `said`, between two instants of the controller's.
    pub(super) fn new(asked: Instant, heard: Instant, said: Instant) -> Self {
        let error = heard.since(asked) / 2;
        Self { ahead: ClockAhead::of(said, asked + error), error, at: heard }
    }

    /// Whether it is good enough to know the time by.
    pub(crate) fn is_exact(&self) -> bool {
        self.error <= EXACT_MAX
    }

    /// Whether it says more than an older one.
    pub(super) fn is_better_than(self, older: Self) -> bool {
        self.error <= older.error + self.at.since(older.at) / AGE_PART
    }
}
