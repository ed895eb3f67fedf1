//! When to send again: the estimator of RFC 6298.

use std::time::Duration;

/// Smoothed round-trip time and the retransmission timeout that follows from it.
///
/// Feed it only with samples of exchanges that were sent once (Karn's rule): the answer to a
/// datagram sent twice does not say which copy it answers.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    smoothed: Option<Duration>,
    variation: Duration,
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
            timeout_min: min,
            timeout_max: max,
            timeout_first: first,
        }
    }

    /// Takes one sample (RFC 6298 section 2, with its weights 1/8 and 1/4).
    pub fn sample(&mut self, rtt: Duration) {
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(rtt)) / 4;
                self.smoothed = Some((smoothed * 7 + rtt) / 8);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn converges_on_a_steady_path_and_backs_off_to_its_bound() {
        let mut rtt = RttEstimator::new(MS, 50 * MS, 1_000 * MS);
        assert_eq!(rtt.timeout(0), 50 * MS);
        for _ in 0..100 {
            rtt.sample(4 * MS);
        }
        let timeout = rtt.timeout(0);
        assert!((4 * MS..5 * MS).contains(&timeout), "{timeout:?}");
        assert_eq!(rtt.timeout(1), timeout * 2);
        assert_eq!(rtt.timeout(40), 1_000 * MS);
    }
}
