//! The clock that drivers hand to machines: wall time that never goes backwards.
//!
//! A machine's timers must not jump when somebody sets the system's clock, while expiry must
//! follow it. So between two readings time goes on as the monotonic clock does; when the wall clock
//! is ahead, it is followed at once, and when it was set back, time runs at half speed until the
//! wall clock has caught up. Timers then fire late by at most their own length.

use machine::Instant;
use std::time::{SystemTime, UNIX_EPOCH};

/// A thread's own clock. Clocks of one machine agree but for the time that they slew.
#[derive(Debug)]
pub struct Clock {
    started: std::time::Instant,
    anchor: Anchor,
}

impl Clock {
    /// A clock that shows the wall clock's time.
    #[must_use]
    pub fn new() -> Self {
        let (started, wall) = read();
        Self { started, anchor: Anchor::new(0, wall) }
    }

    /// The present. Never before an instant that this clock has given earlier.
    pub fn now(&mut self) -> Instant {
        let (monotonic, wall) = read();
        let elapsed = monotonic.duration_since(self.started).as_nanos();
        self.anchor.advance(u64::try_from(elapsed).unwrap_or(u64::MAX), wall)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// One reading of both clocks: the monotonic one, and nanoseconds since the Unix epoch.
#[expect(clippy::disallowed_methods, reason = "this is where the runtime's clock is read")]
fn read() -> (std::time::Instant, u64) {
    let monotonic = std::time::Instant::now();
    // A wall clock before 1970 counts as 1970: time then goes on by the monotonic clock alone.
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (monotonic, u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX))
}

/// The last reading, from which the next one goes on. All in nanoseconds.
#[derive(Debug)]
struct Anchor {
    monotonic: u64,
    shown: u64,
}

impl Anchor {
    fn new(monotonic: u64, wall: u64) -> Self {
        Self { monotonic, shown: wall }
    }

    fn advance(&mut self, monotonic: u64, wall: u64) -> Instant {
        let elapsed = monotonic.saturating_sub(self.monotonic);
        let steady = self.shown.saturating_add(elapsed);
        let slewed = self.shown.saturating_add(elapsed / 2);
        self.monotonic = self.monotonic.max(monotonic);
        self.shown = if wall >= steady { wall } else { slewed.max(wall) };
        Instant(self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_wall_clock_that_agrees_is_shown_as_it_is() {
        let mut anchor = Anchor::new(5, 100 * SECOND);
        assert_eq!(anchor.advance(5 + SECOND, 101 * SECOND), Instant(101 * SECOND));
    }

    #[test]
    fn a_step_forward_is_followed_at_once() {
        let mut anchor = Anchor::new(0, 100 * SECOND);
        assert_eq!(anchor.advance(1, 500 * SECOND), Instant(500 * SECOND));
    }

    #[test]
    fn a_step_back_is_made_up_for_at_half_speed() {
        let mut anchor = Anchor::new(0, 100 * SECOND);
        // Set back by ten seconds: after one more second the wall clock shows 91.
        assert_eq!(anchor.advance(SECOND, 91 * SECOND), Instant(100 * SECOND + SECOND / 2));
        // Twenty seconds after the step both show the same again.
        assert_eq!(anchor.advance(20 * SECOND, 110 * SECOND), Instant(110 * SECOND));
        assert_eq!(anchor.advance(21 * SECOND, 111 * SECOND), Instant(111 * SECOND));
    }

    #[test]
    fn the_real_clock_shows_a_plausible_date() {
        let now = Clock::new().now();
        assert!(now.unix_ms() > 1_600_000_000_000, "{now:?} is before 2020");
    }

    proptest! {
        #[test]
        fn time_never_goes_backwards_whatever_the_clocks_say(
            readings in proptest::collection::vec((any::<u64>(), any::<u64>()), 1..50),
        ) {
            let mut anchor = Anchor::new(0, 0);
            let mut last = Instant(0);
            for (monotonic, wall) in readings {
                let now = anchor.advance(monotonic, wall);
                prop_assert!(now >= last);
                last = now;
            }
        }

        #[test]
        fn what_is_shown_is_never_behind_the_wall_clock(
            readings in proptest::collection::vec((0..SECOND, any::<u64>()), 1..50),
        ) {
            let mut anchor = Anchor::new(0, 0);
            let mut monotonic = 0;
            for (elapsed, wall) in readings {
                monotonic += elapsed;
                prop_assert!(anchor.advance(monotonic, wall).0 >= wall);
            }
        }
    }
}
