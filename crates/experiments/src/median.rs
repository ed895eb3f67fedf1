//! The one in the middle of several measurements.

/// What was measured of the same, round by round.
#[derive(Clone, Debug)]
pub(crate) struct Rounds<T>(pub(crate) Vec<T>);

impl<T> Default for Rounds<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Rounds<T> {
    /// The median of something.
    pub(crate) fn median(&self, of: impl Fn(&T) -> f64) -> f64 {
        median(self.0.iter().map(of).collect())
    }

    /// The median, over the rounds, of how many times as large something is here as in the same
    /// round elsewhere: what the machine did otherwise was much the same for both.
    pub(crate) fn over(&self, other: &Self, of: impl Fn(&T) -> f64) -> f64 {
        median(self.ratios(other, of))
    }

    /// These ratios, round by round.
    pub(crate) fn ratios(&self, other: &Self, of: impl Fn(&T) -> f64) -> Vec<f64> {
        self.0.iter().zip(&other.0).map(|(one, other)| of(one) / of(other)).collect()
    }
}

/// The one in the middle, or between the two there; NaN of none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().saturating_sub(1) / 2, values.len() / 2);
    let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
    f64::midpoint(at(low), at(high))
}

/// The one in the middle, the upper of two: a value that was measured.
pub(crate) fn measured_median(values: &mut [u64]) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

#[test]
fn what_is_measured_by_turns_is_compared_round_by_round() {
    // The machine was slower in each round, for both.
    let (one, other) = (Rounds(vec![200.0, 100.0, 50.0]), Rounds(vec![100.0, 50.0, 24.0]));
    assert!((one.over(&other, |it| *it) - 2.0).abs() < 1e-9);
    assert!((one.median(|it| *it) - 100.0).abs() < 1e-9);
}

#[test]
fn the_median_is_in_the_middle() {
    assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
    assert!((median(vec![4.0, 1.0]) - 2.5).abs() < 1e-9);
    assert!(median(Vec::new()).is_nan());
}

#[test]
fn a_measured_median_is_one_of_the_values() {
    assert_eq!(measured_median(&mut [3, 1, 2]), Some(2));
    assert_eq!(measured_median(&mut []), None);
}
