//! The time of a test, and waiting for what will be.

use machine::Instant;
use runtime::clock::Clock;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// One clock for all threads: their histories are compared.
#[derive(Debug, Default)]
pub(crate) struct Watch(Mutex<Clock>);

impl Watch {
    pub(crate) fn now(&self) -> Instant {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).now()
    }

    /// Waits until this moment.
    pub(crate) fn wait_until(&self, at: Instant) {
        pause(at.since(self.now()));
    }

    /// Asks again and again until it is so, and says how long that took; or what it is instead.
    pub(crate) fn wait_for(
        &self,
        give_up_after: Duration,
        mut check: impl FnMut() -> Result<(), String>,
    ) -> Result<Duration, String> {
        let begun = self.now();
        loop {
            let Err(why) = check() else { return Ok(self.now().since(begun)) };
            if self.now().since(begun) >= give_up_after {
                return Err(format!("not within {} s: {why}", give_up_after.as_secs()));
            }
            pause(ASK_AGAIN);
        }
    }
}

const ASK_AGAIN: Duration = Duration::from_millis(100);

#[expect(clippy::disallowed_methods, reason = "faults take their time, as real ones do")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
