//! Reads of a delegated key that found nobody who holds it: how many are too many.
//!
//! Some come of every packet that is missed: a copy that did not arrive, or the word of one. The
//! next write makes up for that, while bringing the key home costs all who read and write it. But
//! if those who hold its newest version are gone, nothing else helps.

use machine::Instant;
use std::time::Duration;

/// One read in so many may be missed, again and again.
const SHARE: u64 = 32;

/// As many as that of the reads of so long may be missed at once: one packet that is missed makes
/// all reads wait until the next write.
const BURST_MS: u64 = 250;

/// So many may be, however seldom the key is read.
const FEW: u64 = 3;

/// What is said at one time says nothing of more time than this: nodes tell of reads for two
/// segments, which are as long together.
const SAID_FOR: Duration = Duration::from_millis(200);

/// Reads that were missed under one delegation, less those that are forgiven.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    until: Option<Instant>,
    /// In thousand millionths of a read.
    held_against: u128,
}

impl Losses {
    /// Takes what is said to be missed, and read, per second; whether that is too much by now.
    pub(crate) fn are_too_many(&mut self, now: Instant, reads: u64, missed: u64) -> bool {
        let since = now.since(self.until.replace(now).unwrap_or(now)).min(SAID_FOR);
        let in_time = |rate: u64| u128::from(rate) * since.as_nanos();
        self.held_against += in_time(missed);
        self.held_against = self.held_against.saturating_sub(in_time(reads) / u128::from(SHARE));
        let burst = reads.saturating_mul(BURST_MS) / 1_000 / SHARE;
        self.held_against > u128::from(burst + FEW) * 1_000_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every 5 ms; says after how many milliseconds it is too much, if within ten seconds.
    fn too_many(reads: u64, missed: impl Fn(u64) -> u64) -> Option<u64> {
        let mut losses = Losses::default();
        let looks = (0..10_000).step_by(5);
        let mut late = looks.filter(|ms| {
            losses.are_too_many(Instant::from_unix_ms(1_000 + ms), reads, missed(*ms))
        });
        late.next()
    }

    #[test]
    fn a_share_of_reads_may_be_lost_and_more_may_not() {
        assert_eq!(too_many(3_200, |_| 0), None);
        assert_eq!(too_many(3_200, |_| 100), None, "one in 32");
        let slow = too_many(3_200, |_| 150).unwrap();
        assert!((500..=700).contains(&slow), "25 + 3 of them, at 50 a second too many: {slow}");
        let fast = too_many(3_200, |_| 3_200).unwrap();
        assert!(fast <= 10, "all of them: {fast}");
    }

    #[test]
    fn a_lost_packet_is_forgiven_and_one_now_and_then_as_well() {
        // A read is told of for two segments, as ten a second.
        let one = |at: u64| move |ms: u64| if (at..at + 200).contains(&ms) { 10 } else { 0 };
        assert_eq!(too_many(1, one(1_000)), None);
        assert_eq!(too_many(1_000, |ms| one(0)(ms % 1_000)), None);
        let burst = |ms: u64| if ms < 100 { 200 } else { 0 };
        assert_eq!(too_many(3_200, burst), None, "twenty at once");
        assert!(too_many(100, burst).is_some(), "are a fifth of what is read");
    }

    #[test]
    fn a_key_that_is_hardly_read_comes_home_for_a_few_reads_that_are_lost_again_and_again() {
        let again = |ms: u64| if ms % 500 < 200 { 10 } else { 0 };
        let late = too_many(1, again).unwrap();
        assert!((500..2_000).contains(&late), "{late}");
    }

    #[test]
    fn what_was_said_long_ago_is_not_held_against_it() {
        let mut losses = Losses::default();
        let mut look = |ms, missed| losses.are_too_many(Instant::from_unix_ms(ms), 0, missed);
        assert!(!look(1_000, 10));
        assert!(!look(60_000, 10), "at most two segments");
        assert!(!look(60_100, 10));
        assert!(look(60_300, 10));
    }
}
