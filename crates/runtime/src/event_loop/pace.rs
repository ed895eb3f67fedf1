//! How fast a thread goes around its loop.
//!
//! A thread that is woken for each datagram serves it at once, and spends most of what that takes
//! on waking up. While it has a processor to itself nobody lacks it. Where a limit or others keep
//! it from a processor while it has work to do, it lacks it for requests: then it pauses before it
//! looks for more, as network cards do before they interrupt, and finds more at once.

use machine::Instant;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use std::time::Duration;

/// Decides before each wait how long to pause.
#[derive(Debug)]
pub(super) struct Pace {
    /// What was counted, from when on.
    since: Instant,
    /// Processor time that the thread had used by then.
    busy: Duration,
    /// How long it had nothing to do.
    waited: Duration,
    /// How often it has found datagrams, and how many.
    rounds: u64,
    datagrams: u64,
    pause: Duration,
    /// For so many windows more it does not pause.
    rests: u32,
}

/// How often it is decided.
const WINDOW: Duration = Duration::from_millis(100);

/// A thread that is kept from a processor for this part of the time has too little of it, as its
/// inverse. One that shares two processors with a few others is for less.
const KEPT_OFF_PART: u32 = 4;

/// Pauses begin with this, and double.
const PAUSE_MIN: Duration = Duration::from_micros(125);

/// No pause is longer: who waits for an answer would notice. A thread that is kept off for a
/// quarter of the time is so for many milliseconds at a time.
const PAUSE_MAX: Duration = Duration::from_millis(1);

/// Pauses pay if so many datagrams are found after each. Who asks one thing after the other, and
/// waits for each answer, has nothing of them.
const FOUND_MIN: u64 = 4;

/// Pauses that did not pay are tried again after so many windows.
const RESTS: u32 = 10;

impl Pace {
    /// Of a thread that has used so much processor time.
    pub(super) fn new(now: Instant, busy: Duration) -> Self {
        let (waited, pause) = (Duration::ZERO, Duration::ZERO);
        Self { since: now, busy, waited, rounds: 0, datagrams: 0, pause, rests: 0 }
    }

    /// It has gone around once and found so many datagrams.
    pub(super) fn note_round(&mut self, datagrams: usize) {
        self.rounds += u64::from(datagrams > 0);
        self.datagrams += datagrams as u64;
    }

    /// It had nothing to do, or has paused, for so long.
    pub(super) fn note_waited(&mut self, waited: Duration) {
        self.waited += waited;
    }

    /// How long to pause before the next wait. `busy` is asked now and then for the processor time
    /// that the thread has used.
    pub(super) fn pause(&mut self, now: Instant, busy: impl FnOnce() -> Duration) -> Duration {
        let took = now.since(self.since);
        if took >= WINDOW {
            let busy = busy();
            let kept_off = took.saturating_sub(self.waited + busy.saturating_sub(self.busy));
            let pays = self.datagrams >= self.rounds * FOUND_MIN;
            let (pause, rests) = self.decide(kept_off >= took / KEPT_OFF_PART, pays);
            *self = Self { pause, rests, ..Self::new(now, busy) };
        }
        self.pause
    }

    /// How long to pause from now on, and for how many windows not to.
    fn decide(&self, is_kept_off: bool, pays: bool) -> (Duration, u32) {
        if self.rests > 0 {
            (Duration::ZERO, self.rests - 1)
        } else if !is_kept_off {
            let half = self.pause / 2;
            (if half < PAUSE_MIN { Duration::ZERO } else { half }, 0)
        } else if pays {
            ((self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX), 0)
        } else if self.pause.is_zero() {
            (PAUSE_MIN, 0)
        } else {
            (Duration::ZERO, RESTS)
        }
    }
}

/// Processor time that this thread has used.
pub(crate) fn thread_busy() -> Duration {
    let micros = |usage: nix::sys::resource::Usage| {
        usage.user_time().num_microseconds() + usage.system_time().num_microseconds()
    };
    let used = getrusage(UsageWho::RUSAGE_THREAD).map(micros).unwrap_or(0);
    Duration::from_micros(u64::try_from(used).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread of whose time this part is work, this part waiting, and that is kept off for the
    /// rest.
    struct Thread {
        pace: Pace,
        now: Instant,
        busy: Duration,
    }

    impl Thread {
        fn new() -> Self {
            let now = Instant::from_unix_ms(1_000_000);
            Self { pace: Pace::new(now, Duration::ZERO), now, busy: Duration::ZERO }
        }

        /// The pause in microseconds after a window of 100 rounds with so many datagrams each.
        fn window(&mut self, [busy_ms, waited_ms]: [u64; 2], datagrams: usize) -> u128 {
            for _ in 0..100 {
                self.pace.note_round(datagrams);
            }
            self.pace.note_waited(Duration::from_millis(waited_ms));
            self.busy += Duration::from_millis(busy_ms);
            self.now = self.now + WINDOW;
            self.pace.pause(self.now, || self.busy).as_micros()
        }
    }

    const LIMITED: [u64; 2] = [30, 10];

    #[test]
    fn who_is_not_kept_from_its_processor_never_pauses() {
        let mut thread = Thread::new();
        for part in [[100, 0], [0, 100], [40, 40], [50, 26]] {
            assert_eq!([1, 100].map(|datagrams| thread.window(part, datagrams)), [0, 0]);
        }
    }

    #[test]
    fn who_is_pauses_longer_until_it_is_not() {
        let mut thread = Thread::new();
        let pauses: [u128; 5] = std::array::from_fn(|_| thread.window(LIMITED, 8));
        assert_eq!(pauses, [125, 250, 500, 1_000, 1_000]);
        let pauses: [u128; 5] = std::array::from_fn(|_| thread.window([30, 60], 8));
        assert_eq!(pauses, [500, 250, 125, 0, 0]);
    }

    #[test]
    fn pauses_that_find_no_more_are_given_up_for_a_second() {
        let mut thread = Thread::new();
        let pauses: [u128; 14] = std::array::from_fn(|_| thread.window(LIMITED, 1));
        assert_eq!(pauses[..2], [125, 0]);
        assert_eq!(pauses[2..12], [0; 10]);
        assert_eq!(pauses[12..], [125, 0]);
    }

    #[test]
    fn it_is_decided_once_in_a_window() {
        let mut thread = Thread::new();
        thread.now = thread.now + WINDOW / 2;
        let pause = thread.pace.pause(thread.now, || panic!("it is not asked"));
        assert_eq!(pause, Duration::ZERO);
    }

    #[test]
    fn a_thread_knows_how_much_it_has_worked() {
        let before = thread_busy();
        let mut sum = 0_u64;
        while thread_busy() < before + Duration::from_millis(2) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(sum > 0);
    }
}
