//! The one in the middle of several measurements.

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
