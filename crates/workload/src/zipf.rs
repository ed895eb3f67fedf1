//! Zipf's law: rank `r` (from 0) is drawn with probability proportional to `(r + 1)^-theta`.

use crate::zeta::{expm1_over, ln1p_over, zeta};
use machine::Rng;

/// A Zipf distribution over ranks `0..items`, the most popular first.
///
/// Below `theta = 1` it draws by the closed form of Gray et al. (SIGMOD 1994), as YCSB does, so
/// that figures can be compared with YCSB's. The form is exact for ranks 0 and 1 and approximate
/// beyond: with 1,000 items and 0.99, rank 2 comes 17% too often, and no cumulated probability is
/// off by more than 1.6 points. It breaks down from `theta = 1` on, where rejection-inversion
/// (Hörmann and Derflinger 1996) takes over, which is exact.
#[derive(Clone, Debug)]
pub struct Zipf {
    items: u64,
    theta: f64,
    method: Method,
}

#[derive(Clone, Debug)]
enum Method {
    Gray { zeta: f64, eta: f64, alpha: f64 },
    Inversion { integral_first: f64, integral_last: f64, accept_within: f64 },
}

impl Zipf {
    /// The law over this many ranks.
    ///
    /// # Panics
    ///
    /// If there are no ranks, or `theta` is negative or not finite.
    #[must_use]
    pub fn new(items: u64, theta: f64) -> Self {
        assert!(items > 0, "a rank to draw");
        assert!(theta.is_finite() && theta >= 0.0, "an exponent of a falling law: {theta}");
        let method = if theta < 1.0 { gray(items, theta) } else { inversion(items, theta) };
        Self { items, theta, method }
    }

    /// How many ranks there are.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Adds ranks, the least popular ones, until there are `items`. O(1); fewer change nothing.
    pub fn grow(&mut self, items: u64) {
        if items > self.items {
            *self = Self::new(items, self.theta);
        }
    }

    /// The probability that the law gives to a rank.
    #[must_use]
    pub fn probability(&self, rank: u64) -> f64 {
        if rank >= self.items {
            return 0.0;
        }
        ((rank + 1) as f64).powf(-self.theta) / zeta(self.items, self.theta)
    }

    /// Draws a rank. Expected O(1).
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match self.method {
            Method::Gray { zeta, eta, alpha } => {
                let u = rng.unit();
                let scaled = u * zeta;
                if scaled < 1.0 {
                    return 0;
                }
                if scaled < 1.0 + 0.5_f64.powf(self.theta) {
                    return 1.min(self.items - 1);
                }
                let rank = self.items as f64 * (eta * u - eta + 1.0).powf(alpha);
                (rank as u64).min(self.items - 1)
            }
            Method::Inversion { integral_first, integral_last, accept_within } => loop {
                // Uniform under the hat, mapped back to the axis; then rounded to a rank, which
                // is kept if the point lies under that rank's bar.
                let area = integral_last + rng.unit() * (integral_first - integral_last);
                let x = hat_integral_inverse(area, self.theta);
                let position = ((x + 0.5) as u64).clamp(1, self.items);
                let at = position as f64;
                if at - x <= accept_within
                    || area >= hat_integral(at + 0.5, self.theta) - hat(at, self.theta)
                {
                    return position - 1;
                }
            },
        }
    }
}

fn gray(items: u64, theta: f64) -> Method {
    let zeta_items = zeta(items, theta);
    let tail = 1.0 - zeta(2, theta) / zeta_items;
    let eta = (1.0 - (2.0 / items as f64).powf(1.0 - theta)) / tail;
    Method::Gray { zeta: zeta_items, eta, alpha: 1.0 / (1.0 - theta) }
}

fn inversion(items: u64, theta: f64) -> Method {
    Method::Inversion {
        integral_first: hat_integral(1.5, theta) - 1.0,
        integral_last: hat_integral(items as f64 + 0.5, theta),
        accept_within: 2.0
            - hat_integral_inverse(hat_integral(2.5, theta) - hat(2.0, theta), theta),
    }
}

/// The hat over the bars: the law itself, at any point of the axis.
fn hat(x: f64, theta: f64) -> f64 {
    (-theta * x.ln()).exp()
}

/// An antiderivative of the hat that is stable around `theta = 1`.
fn hat_integral(x: f64, theta: f64) -> f64 {
    let log = x.ln();
    expm1_over((1.0 - theta) * log) * log
}

fn hat_integral_inverse(area: f64, theta: f64) -> f64 {
    // Rounding may take the argument just below the pole of the logarithm.
    let t = (area * (1.0 - theta)).max(-1.0);
    (ln1p_over(t) * area).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 1_000_000;

    fn counts(zipf: &Zipf, seed: u64) -> Vec<u32> {
        let mut rng = Rng::new(seed);
        let mut counts = vec![0; usize::try_from(zipf.items()).unwrap()];
        for _ in 0..DRAWS {
            counts[usize::try_from(zipf.draw(&mut rng)).unwrap()] += 1;
        }
        counts
    }

    /// Pearson's statistic less its expectation, in standard deviations.
    fn chi_square_excess(counts: &[u32], probability: impl Fn(u64) -> f64) -> f64 {
        let mut sum = 0.0;
        for (rank, &count) in (0..).zip(counts) {
            let expected = probability(rank) * f64::from(DRAWS);
            assert!(expected > 5.0, "enough draws for rank {rank}: {expected}");
            sum += (f64::from(count) - expected).powi(2) / expected;
        }
        let freedom = counts.len() as f64 - 1.0;
        (sum - freedom) / (2.0 * freedom).sqrt()
    }

    /// What Gray's closed form says a rank's probability is.
    fn gray_probability(zipf: &Zipf, rank: u64) -> f64 {
        let Method::Gray { zeta, eta, alpha } = zipf.method else { panic!("theta below 1") };
        let cumulated = |rank: u64| match rank {
            0 => 0.0,
            1 => 1.0 / zeta,
            2 => (1.0 + 0.5_f64.powf(zipf.theta)) / zeta,
            _ => ((rank as f64 / zipf.items as f64).powf(1.0 / alpha) - 1.0 + eta) / eta,
        };
        cumulated(rank + 1) - cumulated(rank)
    }

    #[test]
    fn rejection_inversion_draws_exactly_by_the_law() {
        for (seed, theta) in [(1, 1.0), (2, 1.001), (3, 1.2), (4, 1.5)] {
            let zipf = Zipf::new(500, theta);
            let excess = chi_square_excess(&counts(&zipf, seed), |rank| zipf.probability(rank));
            assert!(excess.abs() < 4.0, "theta {theta}: {excess} deviations");
        }
    }

    #[test]
    fn the_closed_form_draws_exactly_as_gray_wrote_it() {
        for (seed, theta) in [(1, 0.0), (2, 0.5), (3, 0.9), (4, 0.95), (5, 0.99)] {
            let zipf = Zipf::new(1_000, theta);
            let excess =
                chi_square_excess(&counts(&zipf, seed), |rank| gray_probability(&zipf, rank));
            assert!(excess.abs() < 4.0, "theta {theta}: {excess} deviations");
        }
    }

    #[test]
    fn the_closed_form_is_exact_for_the_two_hottest_and_near_the_law_beyond() {
        for theta in [0.5, 0.9, 0.95, 0.99] {
            for items in [100, 1_000, 100_000] {
                let zipf = Zipf::new(items, theta);
                for rank in 0..2 {
                    let error = gray_probability(&zipf, rank) / zipf.probability(rank) - 1.0;
                    assert!(error.abs() < 1e-9, "theta {theta}, rank {rank}: {error}");
                }
                let mut off: f64 = 0.0;
                let mut worst: f64 = 0.0;
                for rank in 0..items {
                    off += gray_probability(&zipf, rank) - zipf.probability(rank);
                    worst = worst.max(off.abs());
                }
                assert!(worst < 0.018, "theta {theta}, {items} items: cumulated {worst}");
                assert!(off.abs() < 1e-9, "probabilities sum to 1");
            }
        }
    }

    #[test]
    fn every_size_and_exponent_stays_within_its_ranks() {
        let mut rng = Rng::new(6);
        for items in [1, 2, 3, 10_000_000_000] {
            for theta in [0.0, 0.5, 0.99, 1.0, 1.2, 5.0] {
                let zipf = Zipf::new(items, theta);
                assert!((0..2_000).all(|_| zipf.draw(&mut rng) < items), "{items} {theta}");
            }
        }
    }

    #[test]
    fn growing_is_the_same_as_starting_larger() {
        let mut grown = Zipf::new(10, 0.99);
        grown.grow(1_000);
        grown.grow(500);
        assert_eq!(grown.items(), 1_000);
        let larger = Zipf::new(1_000, 0.99);
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        assert!((0..1_000).all(|_| grown.draw(&mut a) == larger.draw(&mut b)));
    }
}
