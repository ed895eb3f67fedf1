//! How much a key is asked for, as nodes and caches reckon it.

use std::time::Duration;

/// How the load of a key is reckoned, in requests per second: time is cut into segments, and with
/// each what was known before counts for less (SwitchKV section 3.2.1, equation 1). Whoever
/// compares loads must have reckoned them alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadMetric {
    /// How long a segment lasts, which is some time.
    pub segment: Duration,
    /// The weight of a segment when it ends, in thousandths (α of the paper); what was known before
    /// has the rest.
    pub newest_permille: u16,
}

impl LoadMetric {
    /// A load at the end of a segment, of the one before and the rate of the segment.
    #[must_use]
    pub fn blend(&self, before: u64, newest: u64) -> u64 {
        let weight = u128::from(self.newest_permille.min(WHOLE));
        let rest = u128::from(WHOLE) - weight;
        let sum = (weight * u128::from(newest) + rest * u128::from(before)) / u128::from(WHOLE);
        u64::try_from(sum).expect("it lies between the two")
    }
}

/// Segments of a second, as in the paper, of which each counts as much as all before it.
impl Default for LoadMetric {
    fn default() -> Self {
        Self { segment: Duration::from_secs(1), newest_permille: WHOLE / 2 }
    }
}

const WHOLE: u16 = 1_000;

/// How often per second something was, that was so often in so much time.
#[must_use]
pub fn per_second(count: u64, time: Duration) -> u64 {
    let rate = u128::from(count) * 1_000_000_000 / time.as_nanos().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_past_counts_less_with_each_segment() {
        let half = LoadMetric::default();
        assert_eq!((half.blend(0, 100), half.blend(50, 101), half.blend(80, 0)), (50, 75, 40));
        assert_eq!(half.blend(u64::MAX, u64::MAX), u64::MAX);
        let slow = LoadMetric { newest_permille: 250, ..half };
        assert_eq!((slow.blend(0, 100), slow.blend(100, 0)), (25, 75));
        let only_new = LoadMetric { newest_permille: 1_000, ..half };
        assert_eq!(only_new.blend(100, 7), 7);
    }

    #[test]
    fn rates_are_rounded_down_and_never_overflow() {
        assert_eq!(per_second(7, Duration::from_millis(200)), 35);
        assert_eq!(per_second(1, Duration::from_secs(2)), 0);
        assert_eq!(per_second(u64::MAX, Duration::ZERO), u64::MAX);
    }
}
