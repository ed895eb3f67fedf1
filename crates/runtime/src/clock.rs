//! The clock that drivers hand to machines: it follows the wall clock, but never by a jump.
//!
//! Leases rest on the *rate* of clocks. So time goes on by the kernel's raw hardware clock, plus
//! the
//! time for which the machine was suspended, and is slewed towards the wall clock by at most half a
//! percent: no two clocks of a cluster then differ in rate by more than about 1 %, within what
//! [`cluster::CLOCK_RATE_MAX_PERCENT`] allows. A wall clock that is further away than
//! [`FOLLOW_MAX`] was set by somebody, and is not followed at all.
//!
//! Values do not expire by this clock, but by that of the cluster: a node is told how far that is
//! ahead of its own (`spec/protocol.md`, "Time").
//!
//! The raw clock is taken because daemons that set the time may slew the others, some of them by
//! more than 8 %.

use machine::Instant;
use nix::time::{ClockId, clock_gettime};
use std::sync::Once;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A thread's own clock. The threads of one member are given clones of one clock, which agree but
/// for the little that they slew apart; others may begin while the wall clock is being set.
#[derive(Clone, Debug)]
pub struct Clock {
    started: Reading,
    /// The most that the machine is known to have been suspended since the start, in nanoseconds.
    slept: u64,
    anchor: Anchor,
}

impl Clock {
    /// A clock that shows the wall clock's time.
    #[must_use]
    pub fn new() -> Self {
        let started = Reading::take();
        Self { slept: 0, anchor: Anchor::new(started.wall), started }
    }

    /// The present. Never before an instant that this clock has given earlier.
    pub fn now(&mut self) -> Instant {
        let reading = Reading::take();
        let slept = reading.asleep.saturating_sub(self.started.asleep);
        self.slept = self.slept.max(slept);
        let awake = reading.raw.saturating_sub(self.started.raw);
        let now = self.anchor.advance(awake.saturating_add(self.slept), reading.wall);
        if self.anchor.distance(reading.wall) > FOLLOW_MAX {
            say_that_the_wall_clock_was_set(now, reading.wall);
        }
        now
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// What the kernel's clocks say at about one moment, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// Since some start; stands still while the machine is suspended.
    raw: u64,
    /// For how long it was suspended since some start; never too much.
    asleep: u64,
    /// Since the Unix epoch.
    wall: u64,
}

impl Reading {
    fn take() -> Self {
        // These two differ by the time that the machine was suspended, plus what passes between the
        // two readings: in this order that makes the difference too small, which the next reading
        // makes good, and never too large.
        let boot = read(ClockId::CLOCK_BOOTTIME);
        let awake = read(ClockId::CLOCK_MONOTONIC);
        Self {
            raw: read(ClockId::CLOCK_MONOTONIC_RAW),
            asleep: boot.saturating_sub(awake),
            wall: read(ClockId::CLOCK_REALTIME).saturating_add_signed(SET.load(Ordering::Relaxed)),
        }
    }
}

/// One clock. A wall clock before 1970 counts as 1970.
fn read(id: ClockId) -> u64 {
    let time = clock_gettime(id).expect("every kernel since Linux 2.6.39 has these clocks");
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec()).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// A wall clock that is further away than this was set, and not just corrected: more than daemons
/// that keep clocks right ever leave.
pub const FOLLOW_MAX: Duration = Duration::from_secs(10);

/// Nanoseconds by which the wall clock of this process is set, in tests.
static SET: AtomicI64 = AtomicI64::new(0);

/// Sets the wall clock forward or back for all clocks of this process, those that run and those to
/// come: what no test can do to a machine.
#[doc(hidden)]
pub fn set_wall_clock_of_test(ahead_ms: i64) {
    SET.store(ahead_ms.saturating_mul(1_000_000), Ordering::Relaxed);
}

/// Said once for a process, however many clocks it has.
static STEP: Once = Once::new();

fn say_that_the_wall_clock_was_set(now: Instant, wall: u64) {
    STEP.call_once(|| {
        let ahead_s =
            Duration::from_nanos(now.0).as_secs_f64() - Duration::from_nanos(wall).as_secs_f64();
        tracing::warn!(
            ahead_s,
            "the wall clock was set: this process goes on by its own; values expire by the clock \
             of the cluster, which does not follow either"
        );
    });
}

/// The last reading, from which the next one goes on. All in nanoseconds.
#[derive(Clone, Debug)]
struct Anchor {
    steady: u64,
    shown: u64,
}

/// Of an elapsed time, the part by which it is made longer or shorter: half a percent.
const SLEW_PART: u64 = 200;

impl Anchor {
    /// Shows this wall clock's time when the steady clock says 0.
    fn new(wall: u64) -> Self {
        Self { steady: 0, shown: wall }
    }

    /// Goes on to where the steady clock says `steady`, nearer to the wall clock if that is near.
    fn advance(&mut self, steady: u64, wall: u64) -> Instant {
        let elapsed = steady.saturating_sub(self.steady);
        let is_near = self.shown.saturating_add(elapsed).abs_diff(wall) <= nanos(FOLLOW_MAX);
        let slew = if is_near { elapsed / SLEW_PART } else { 0 };
        let slowest = self.shown.saturating_add(elapsed - slew);
        let fastest = self.shown.saturating_add(elapsed).saturating_add(slew);
        self.steady = self.steady.max(steady);
        self.shown = wall.clamp(slowest, fastest);
        Instant(self.shown)
    }

    /// How far away the wall clock is, either way.
    fn distance(&self, wall: u64) -> Duration {
        Duration::from_nanos(self.shown.abs_diff(wall))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_wall_clock_that_agrees_is_shown_as_it_is() {
        let mut anchor = Anchor::new(100 * SECOND);
        assert_eq!(anchor.advance(SECOND, 101 * SECOND), Instant(101 * SECOND));
        let near = 102 * SECOND + 4_000_000;
        assert_eq!(anchor.advance(2 * SECOND, near), Instant(near), "4 ms in a second");
    }

    #[test]
    fn a_step_forward_is_made_up_for_by_half_a_percent() {
        let mut anchor = Anchor::new(100 * SECOND);
        // Set forward by a second: after one more second the wall clock shows 102.
        assert_eq!(anchor.advance(SECOND, 102 * SECOND), Instant(101 * SECOND + SECOND / 200));
        assert_eq!(anchor.advance(199 * SECOND, 300 * SECOND).0, 299 * SECOND + 995_000_000);
        // 200 seconds after the step both show the same again.
        assert_eq!(anchor.advance(200 * SECOND, 301 * SECOND), Instant(301 * SECOND));
        assert_eq!(anchor.advance(201 * SECOND, 302 * SECOND), Instant(302 * SECOND));
    }

    #[test]
    fn a_step_back_is_made_up_for_by_half_a_percent() {
        let mut anchor = Anchor::new(100 * SECOND);
        assert_eq!(anchor.advance(SECOND, 100 * SECOND), Instant(101 * SECOND - SECOND / 200));
        assert_eq!(anchor.advance(200 * SECOND, 299 * SECOND), Instant(299 * SECOND));
    }

    #[test]
    fn an_hour_is_no_correction_and_is_not_followed() {
        for hour in [3_600_i64, -3_600] {
            let mut anchor = Anchor::new(100_000 * SECOND);
            let wall = |steady: u64| {
                (100_000 * SECOND + steady).saturating_add_signed(hour * 1_000_000_000)
            };
            for steady in [SECOND, 60 * SECOND, 86_400 * SECOND] {
                let shown = anchor.advance(steady, wall(steady));
                assert_eq!(shown, Instant(100_000 * SECOND + steady));
            }
        }
    }

    #[test]
    fn the_real_clock_shows_a_plausible_date() {
        let now = Clock::new().now();
        assert!(now.unix_ms() > 1_600_000_000_000, "{now:?} is before 2020");
    }

    #[test]
    fn slewing_stays_within_what_leases_rest_on() {
        let (fastest, slowest) = (SLEW_PART + 1, SLEW_PART - 1);
        // Quartz is within 0.01 %; a tenth of a percent leaves room for bad ones.
        let percent = fastest * 1_001 * 100 / (slowest * 999);
        assert!(percent < u64::from(cluster::CLOCK_RATE_MAX_PERCENT), "{percent}");
    }

    proptest! {
        #[test]
        fn time_never_goes_backwards_whatever_the_clocks_say(
            readings in proptest::collection::vec((any::<u64>(), any::<u64>()), 1..50),
        ) {
            let mut anchor = Anchor::new(0);
            let mut last = Instant(0);
            for (steady, wall) in readings {
                let now = anchor.advance(steady, wall);
                prop_assert!(now >= last);
                last = now;
            }
        }

        #[test]
        fn the_rate_is_kept_over_any_interval_whatever_the_wall_clock_says(
            readings in proptest::collection::vec((0..SECOND, 0..1_000 * SECOND), 1..50),
        ) {
            let start = 500 * SECOND;
            let mut anchor = Anchor::new(start);
            let mut steady = 0;
            for (elapsed, wall) in readings {
                steady += elapsed;
                let shown = anchor.advance(steady, wall).0 - start;
                prop_assert!(shown * SLEW_PART <= steady * (SLEW_PART + 1));
                prop_assert!(shown * SLEW_PART >= steady * (SLEW_PART - 1));
            }
        }

        #[test]
        fn the_wall_clock_is_reached_in_the_end(
            step in -5_000_000_000i64..5_000_000_000,
            pause in 1_000_000..SECOND,
        ) {
            let at = |steady: u64| (100 * SECOND + steady).saturating_add_signed(step);
            let mut anchor = Anchor::new(100 * SECOND);
            let mut steady = 0;
            // Five seconds take a thousand.
            while steady <= 1_001 * SECOND {
                steady += pause;
                anchor.advance(steady, at(steady));
            }
            prop_assert_eq!(anchor.shown, at(steady));
        }
    }
}
