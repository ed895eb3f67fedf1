//! How fast a thread goes around its loop.
//!
//! A thread that is woken for each datagram serves it at once, and spends most of what that takes
//! on waking up. While it has a processor to itself nobody lacks it. Where a limit or others keep
//! it from a processor while it has work to do, it lacks it for requests: then it pauses before it
//! looks for more, as network cards do before they interrupt, and finds more at once.

use machine::Instant;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

/// Decides before each wait how long to pause.
#[derive(Debug)]
pub(super) struct Pace {
    /// Where the kernel says how long the thread was kept off; `None` if it does not.
    told: Option<File>,
    window: Window,
    pause: Duration,
    /// For so many windows more it does not pause.
    rests: u32,
}

/// What was counted since then.
#[derive(Clone, Copy, Debug)]
struct Window {
    since: Instant,
    /// How long the thread had been kept off by then.
    kept_off: Duration,
    /// How often it has found datagrams, and how many.
    rounds: u64,
    datagrams: u64,
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
    /// Of the thread that calls this.
    pub(super) fn new(now: Instant) -> Self {
        let told = File::open("/proc/thread-self/schedstat").ok();
        let kept_off = told.as_ref().and_then(kept_off).unwrap_or_default();
        let window = Window { since: now, kept_off, rounds: 0, datagrams: 0 };
        Self { told, window, pause: Duration::ZERO, rests: 0 }
    }

    /// It has gone around once and found so many datagrams.
    pub(super) fn note_round(&mut self, datagrams: usize) {
        self.window.rounds += u64::from(datagrams > 0);
        self.window.datagrams += datagrams as u64;
    }

    /// How long to pause before the next wait.
    pub(super) fn pause(&mut self, now: Instant) -> Duration {
        if now.since(self.window.since) >= WINDOW
            && let Some(kept_off) = self.told.as_ref().and_then(kept_off)
        {
            self.end_window(now, kept_off);
        }
        self.pause
    }

    /// Decides by what was counted; so long has the thread been kept off in all its time.
    fn end_window(&mut self, now: Instant, kept_off: Duration) {
        let Window { since, kept_off: before, rounds, datagrams } = self.window;
        let is_kept_off = kept_off.saturating_sub(before) >= now.since(since) / KEPT_OFF_PART;
        (self.pause, self.rests) = self.decide(is_kept_off, datagrams >= rounds * FOUND_MIN);
        self.window = Window { since: now, kept_off, rounds: 0, datagrams: 0 };
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

/// How long a thread could have run and was not let, as the kernel tells now.
fn kept_off(told: &File) -> Option<Duration> {
    let mut text = [0; 64];
    let len = told.read_at(&mut text, 0).ok()?;
    kept_off_in(std::str::from_utf8(text.get(..len)?).ok()?)
}

/// The same in what it tells: nanoseconds on a processor, nanoseconds kept off, and how often it
/// was let run.
fn kept_off_in(told: &str) -> Option<Duration> {
    Some(Duration::from_nanos(told.split_whitespace().nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thread {
        pace: Pace,
        now: Instant,
        kept_off: Duration,
    }

    impl Thread {
        fn new() -> Self {
            let now = Instant::from_unix_ms(1_000_000);
            let mut pace = Pace::new(now);
            pace.window.kept_off = Duration::ZERO;
            Self { pace, now, kept_off: Duration::ZERO }
        }

        /// The pause in microseconds after a window of 100 rounds with so many datagrams each, of
        /// whose 100 ms it was kept off for some.
        fn window(&mut self, kept_off_ms: u64, datagrams: usize) -> u128 {
            for _ in 0..100 {
                self.pace.note_round(datagrams);
                self.pace.note_round(0);
            }
            self.kept_off += Duration::from_millis(kept_off_ms);
            self.now = self.now + WINDOW;
            self.pace.end_window(self.now, self.kept_off);
            self.pace.pause.as_micros()
        }
    }

    #[test]
    fn who_is_hardly_kept_from_its_processor_never_pauses() {
        let mut thread = Thread::new();
        for kept_off in [0, 10, 24] {
            assert_eq!([1, 100].map(|datagrams| thread.window(kept_off, datagrams)), [0, 0]);
        }
    }

    #[test]
    fn who_is_pauses_longer_until_it_is_not() {
        let mut thread = Thread::new();
        let pauses: [u128; 5] = std::array::from_fn(|_| thread.window(60, 8));
        assert_eq!(pauses, [125, 250, 500, 1_000, 1_000]);
        let pauses: [u128; 5] = std::array::from_fn(|_| thread.window(10, 8));
        assert_eq!(pauses, [500, 250, 125, 0, 0]);
    }

    #[test]
    fn pauses_that_find_no_more_are_given_up_for_a_second() {
        let mut thread = Thread::new();
        let pauses: [u128; 14] = std::array::from_fn(|_| thread.window(60, 1));
        assert_eq!(pauses[..2], [125, 0]);
        assert_eq!(pauses[2..12], [0; 10]);
        assert_eq!(pauses[12..], [125, 0]);
    }

    #[test]
    fn it_is_decided_once_in_a_window() {
        let mut thread = Thread::new();
        thread.pace.note_round(1);
        thread.pace.pause(thread.now + WINDOW / 2);
        assert_eq!(thread.pace.window.rounds, 1);
        thread.pace.pause(thread.now + WINDOW);
        let counts = thread.pace.told.is_some();
        assert_eq!(thread.pace.window.rounds, u64::from(!counts), "where the kernel tells");
    }

    #[test]
    fn of_what_the_kernel_tells_the_second_number_counts() {
        assert_eq!(
            kept_off_in("60703722 1614109051 990\n"),
            Some(Duration::from_nanos(1614109051))
        );
        for nonsense in ["", "60703722", "60703722 -1 990", "a b c"] {
            assert_eq!(kept_off_in(nonsense), None, "{nonsense}");
        }
        let told = File::open("/proc/thread-self/schedstat");
        assert!(told.is_err() || kept_off(&told.unwrap()).is_some(), "it is told so here");
    }
}
