//! Open-loop load: when requests are meant to start, whatever became of the ones before.
//!
//! Latency is counted from the intended start, so that requests which had to wait behind a stall
//! show it (the remedy for *coordinated omission*).

use machine::{Instant, Rng};

/// A Poisson process: gaps between arrivals are exponential and independent.
#[derive(Clone, Debug)]
pub struct Arrivals {
    rng: Rng,
    start: Instant,
    /// Nanoseconds after `start` of the next arrival; exact to below 1 ns for 100 days.
    next_ns: f64,
    gap_ns_mean: f64,
}

impl Arrivals {
    /// Arrivals at `rate_per_second` on average, from `start` on.
    ///
    /// # Panics
    ///
    /// Unless the rate is positive and finite.
    #[must_use]
    pub fn new(rate_per_second: f64, start: Instant, rng: Rng) -> Self {
        assert!(rate_per_second.is_finite() && rate_per_second > 0.0, "a rate to arrive at");
        let mut arrivals = Self { rng, start, next_ns: 0.0, gap_ns_mean: 1e9 / rate_per_second };
        arrivals.advance();
        arrivals
    }

    /// When the next request is meant to start.
    #[must_use]
    pub fn next_start(&self) -> Instant {
        Instant(self.start.0.saturating_add(self.next_ns as u64))
    }

    /// Takes the next arrival if its time has come: the instant it was meant to start.
    pub fn due(&mut self, now: Instant) -> Option<Instant> {
        let start = self.next_start();
        if start > now {
            return None;
        }
        self.advance();
        Some(start)
    }

    /// From `now` on requests arrive at another rate. The next arrival is drawn anew, for a Poisson
    /// process remembers nothing; what is due before must have been taken.
    ///
    /// # Panics
    ///
    /// Unless the rate is positive and finite.
    pub fn set_rate(&mut self, now: Instant, rate_per_second: f64) {
        assert!(rate_per_second.is_finite() && rate_per_second > 0.0, "a rate to arrive at");
        self.gap_ns_mean = 1e9 / rate_per_second;
        self.next_ns = now.0.saturating_sub(self.start.0) as f64;
        self.advance();
    }

    fn advance(&mut self) {
        // `unit` never returns 1, so the logarithm is of a positive number.
        self.next_ns -= (1.0 - self.rng.unit()).ln() * self.gap_ns_mean;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: f64 = 10_000.0;

    #[test]
    fn counts_per_window_have_the_mean_and_the_variance_of_poisson() {
        let start = Instant(5_000_000_000);
        let mut arrivals = Arrivals::new(RATE, start, Rng::new(1));
        let windows = 5_000;
        let window_ns = 10_000_000;
        let counts: Vec<f64> = (1..=windows)
            .map(|window| {
                let now = Instant(start.0 + window * window_ns);
                std::iter::from_fn(|| arrivals.due(now)).count() as f64
            })
            .collect();
        let expected = RATE * window_ns as f64 / 1e9;
        let mean = counts.iter().sum::<f64>() / windows as f64;
        let variance =
            counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (windows - 1) as f64;
        // Both are `expected`; 4 standard errors of each.
        let mean_error = (expected / windows as f64).sqrt();
        let variance_error = expected * (2.0 / windows as f64).sqrt();
        assert!((mean - expected).abs() < 4.0 * mean_error, "mean {mean}");
        assert!((variance - expected).abs() < 4.0 * variance_error, "variance {variance}");
    }

    #[test]
    fn another_rate_holds_from_the_instant_on_at_which_it_is_set() {
        let second = 1_000_000_000;
        let mut arrivals = Arrivals::new(RATE, Instant(0), Rng::new(4));
        let mut counts = Vec::new();
        for (number, times) in (1..).zip([1.0, 4.0, 0.25]) {
            arrivals.set_rate(Instant((number - 1) * second), RATE * times);
            let end = Instant(number * second);
            counts.push(std::iter::from_fn(|| arrivals.due(end)).count() as f64);
            assert!((counts.last().unwrap() / RATE / times - 1.0).abs() < 0.08, "{counts:?}");
        }
    }

    #[test]
    fn gaps_are_exponential() {
        let mut arrivals = Arrivals::new(RATE, Instant(0), Rng::new(2));
        let mut last = Instant(0);
        let draws = 100_000;
        let mut over = [0_u32; 3];
        for _ in 0..draws {
            let at = arrivals.due(Instant(u64::MAX)).unwrap();
            let gap = at.since(last).as_secs_f64() * RATE;
            last = at;
            for (count, bound) in over.iter_mut().zip([0.5, 1.0, 3.0]) {
                *count += u32::from(gap > bound);
            }
        }
        for (count, bound) in over.into_iter().zip([0.5_f64, 1.0, 3.0]) {
            let share = f64::from(count) / f64::from(draws);
            assert!((share - (-bound).exp()).abs() < 0.006, "beyond {bound}: {share}");
        }
    }

    #[test]
    fn a_stalled_caller_gets_every_arrival_with_the_time_it_was_meant_for() {
        let mut on_time = Arrivals::new(RATE, Instant(0), Rng::new(3));
        let mut stalled = on_time.clone();
        let end = Instant(1_000_000_000);
        let mut steady = Vec::new();
        for now in (0..=end.0).step_by(1_000) {
            steady.extend(std::iter::from_fn(|| on_time.due(Instant(now))));
        }
        let late: Vec<Instant> = std::iter::from_fn(|| stalled.due(end)).collect();
        assert_eq!(steady, late);
        assert!(late.is_sorted());
    }
}
