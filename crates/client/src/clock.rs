//! The faces' clock.

use machine::Instant;
use std::time::Duration;

/// Unix time that never goes backwards: read once from the system, then counted on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: std::time::Instant,
    unix_at_start: Duration,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the faces drive the machine in real time")]
    pub(crate) fn new() -> Self {
        let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // What it shows does not matter, only how it goes on.
        Self { started: std::time::Instant::now(), unix_at_start: unix.unwrap_or_default() }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::default() + self.unix_at_start + self.started.elapsed()
    }
}
