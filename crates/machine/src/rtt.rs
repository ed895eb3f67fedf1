//! When to send again: the estimator of RFC 6298, with the weights of RFC 7323.

use std::time::Duration;

/// Smoothed round-trip time and the retransmission timeout that follows from it.
///
/// Feed it only with samples of exchanges that were sent once (Karn's rule): the answer to a
/// datagram sent twice does not say which copy it answers.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    smoothed: Option<Duration>,
    variation: Duration,
    samples: u32,
    timeout_min: Duration,
    timeout_max: Duration,
    timeout_first: Duration,
}

impl RttEstimator {
    /// An estimator that says `first` until it has seen a sample, and stays within the bounds.
    ///
    /// # Panics
    ///
    /// Unless `min <= first <= max`.
    #[must_use]
    pub fn new(min: Duration, first: Duration, max: Duration) -> Self {
        assert!(min <= first && first <= max, "bounds enclose the first timeout");
        Self {
            smoothed: None,
            variation: Duration::ZERO,
            samples: 0,
            timeout_min: min,
            timeout_max: max,
            timeout_first: first,
        }
    }

    /// Takes one sample, of an exchange while so many were under way (with this one, if it was).
    ///
    /// RFC 6298 gives a sample the weight 1/8 (and 1/4 in the variation) because it means one for
    /// each round trip. Where all of many exchanges are timed, a thousand come in one, and an
    /// estimate with those weights knows the last burst of answers and nothing of the slower ones
    /// between. So they share that weight (RFC 7323 appendix G); the first ones ever have all of
    /// it, until there are enough.
    pub fn sample(&mut self, rtt: Duration, under_way: usize) {
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some(rtt);
            self.variation = rtt / 2;
            return;
        };
        self.samples = self.samples.saturating_add(1);
        let share = u32::try_from(under_way).unwrap_or(u32::MAX).clamp(1, SHARES_MAX);
        let share = share.min((self.samples / 8).max(1));
        self.variation = towards(self.variation, smoothed.abs_diff(rtt), 4 * share);
        self.smoothed = Some(towards(smoothed, rtt, 8 * share));
    }

    /// How long to wait before copy number `attempt + 1`; doubles with each, up to the bound.
    #[must_use]
    pub fn timeout(&self, attempt: u32) -> Duration {
        let base = self.smoothed.map_or(self.timeout_first, |smoothed| {
            (smoothed + self.variation * 4).max(self.timeout_min)
        });
        base.saturating_mul(1 << attempt.min(16)).min(self.timeout_max)
    }

    /// The smoothed round-trip time, once there is one.
    #[must_use]
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }
}

/// Exchanges that share the weight of one at most: nanoseconds are too coarse for much more.
const SHARES_MAX: u32 = 1 << 12;

/// A value moved by one part of so many towards another.
fn towards(value: Duration, to: Duration, parts: u32) -> Duration {
    let step = value.abs_diff(to) / parts;
    if to > value { value + step } else { value - step }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn converges_on_a_steady_path_and_backs_off_to_its_bound() {
        let mut rtt = RttEstimator::new(MS, 50 * MS, 1_000 * MS);
        assert_eq!(rtt.timeout(0), 50 * MS);
        for _ in 0..100 {
            rtt.sample(4 * MS, 1);
        }
        let timeout = rtt.timeout(0);
        assert!((4 * MS..5 * MS).contains(&timeout), "{timeout:?}");
        assert_eq!(rtt.timeout(1), timeout * 2);
        assert_eq!(rtt.timeout(40), 1_000 * MS);
    }

    #[test]
    fn a_burst_of_quick_answers_does_not_hide_the_slow_ones() {
        // Rounds of a thousand: most are answered at once, a tenth waits for the server's turn.
        let after_burst = |under_way| {
            let mut rtt = RttEstimator::new(MS, 50 * MS, 1_000 * MS);
            for _ in 0..100 {
                (0..100).for_each(|_| rtt.sample(30 * MS, under_way));
                (0..900).for_each(|_| rtt.sample(MS, under_way));
            }
            rtt.timeout(0)
        };
        assert!(after_burst(1) < 2 * MS);
        assert!(after_burst(1_000) > 20 * MS);
    }
}
