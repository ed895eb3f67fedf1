//! What a partition is asked for lately: a sample of the match values, to know where a cut would
//! halve the load.
//!
//! Time is cut into windows. Of all requests of a window each is as likely in the sample (Vitter's
//! algorithm R), so that a burst at its end counts no more than as much at its beginning.

use cluster::{Match, PartitionId, PartitionSample};
use machine::{Instant, Rng};
use std::time::Duration;

/// Samples of the present window and of the last one.
#[derive(Debug)]
pub(crate) struct Asked {
    began: Instant,
    /// Requests of the present window.
    seen: u64,
    sample: Vec<Match>,
    /// Of the last window: when it began, how many there were in a second, and some of them.
    last_began: Instant,
    rate: u64,
    last: Vec<Match>,
    rng: Rng,
}

impl Asked {
    /// Nothing was asked for yet.
    pub(crate) fn new(partition: PartitionId) -> Self {
        Self {
            began: Instant(0),
            seen: 0,
            sample: Vec::new(),
            last_began: Instant(0),
            rate: 0,
            last: Vec::new(),
            rng: Rng::new(u64::from(partition.0)),
        }
    }

    /// A key was read, or a write of it committed.
    pub(crate) fn see(&mut self, now: Instant, at: Match) {
        let lasts = now.since(self.began);
        if lasts >= WINDOW && (self.seen >= SAMPLE || lasts >= WINDOW_MAX) {
            self.begin_window(now, lasts);
        }
        self.seen += 1;
        if self.seen <= SAMPLE {
            self.sample.push(at);
            return;
        }
        let place = usize::try_from(self.rng.below(self.seen)).unwrap_or(usize::MAX);
        if let Some(kept) = self.sample.get_mut(place) {
            *kept = at;
        }
    }

    fn begin_window(&mut self, now: Instant, lasted: Duration) {
        let micros = u64::try_from(lasted.as_micros()).unwrap_or(u64::MAX);
        self.rate = (self.seen * 1_000_000).checked_div(micros).unwrap_or(0);
        std::mem::swap(&mut self.last, &mut self.sample);
        self.sample.clear();
        (self.last_began, self.began, self.seen) = (self.began, now, 0);
    }

    /// Requests per second in the last window whose sample says something; 0 if there is none.
    pub(crate) fn rate(&self) -> u64 {
        if self.last.len() as u64 == SAMPLE { self.rate } else { 0 }
    }

    /// How long ago the last window began.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.since(self.last_began)
    }

    /// Match values of the last window, in order, each of the same share.
    pub(crate) fn points(&self) -> Vec<Match> {
        let mut points = self.last.clone();
        points.sort_unstable();
        let step = points.len().div_ceil(PartitionSample::POINTS_MAX).max(1);
        points.into_iter().skip(step / 2).step_by(step).collect()
    }
}

/// How long a window lasts at least.
const WINDOW: Duration = Duration::from_millis(500);

/// How long one may last that has few requests.
const WINDOW_MAX: Duration = Duration::from_secs(10);

/// Requests in a sample. The half of them differs from the half of all by less than one part in
/// eleven, 19 times of 20.
const SAMPLE: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_for(values: impl Iterator<Item = u128>, per_second: u64) -> Asked {
        let mut asked = Asked::new(PartitionId(3));
        let mut now = Instant::from_unix_ms(1_000_000);
        for value in values {
            asked.see(now, Match(value));
            now = now + Duration::from_secs(1) / u32::try_from(per_second).unwrap();
        }
        asked
    }

    #[test]
    fn points_cut_the_load_into_equal_shares() {
        // Half of the load is on one key in front of a million others.
        let mut rng = Rng::new(1);
        let values = (0..40_000).map(|_| match rng.below(2) {
            0 => 5,
            _ => 10 + u128::from(rng.below(1_000_000)),
        });
        let asked = asked_for(values, 20_000);
        let points = asked.points();
        assert_eq!(points.len(), 64);
        assert!(points.is_sorted());
        let hot = points.iter().filter(|it| it.0 == 5).count();
        assert!((24..=40).contains(&hot), "{hot}");
        assert!((19_000..=21_000).contains(&asked.rate()), "{}", asked.rate());
        // The last of the four windows that 40,000 requests make in two seconds is not over.
        let age = asked.age(Instant::from_unix_ms(1_002_000));
        assert!((990..=1_010).contains(&age.as_millis()), "{age:?}");
    }

    #[test]
    fn what_was_asked_before_the_last_window_is_forgotten() {
        let values = (0..10_000).map(|n| if n < 5_000 { 1 } else { 2 });
        let asked = asked_for(values, 1_000);
        assert!(asked.points().iter().all(|it| it.0 == 2), "{:?}", asked.points());
    }

    #[test]
    fn a_few_requests_say_nothing() {
        let asked = asked_for((0..1_000).map(|n| n % 7), 5);
        assert_eq!(asked.rate(), 0);
    }
}
