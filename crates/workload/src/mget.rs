//! How many keys a multiget has.

use crate::text::{self, SettingError};
use machine::Rng;
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// How many keys each MGET has: always as many, or few in most and many in some.
#[derive(Clone, Debug, PartialEq)]
pub struct MgetSizes {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Fixed(u64),
    Heavy {
        mean: f64,
        /// The probability of at most 1, 2, 3, ... keys.
        at_most: Arc<[f64]>,
    },
}

/// Keys of an MGET if the mix does not say: one datagram's worth.
const KEYS: u64 = 32;

/// Most keys of one MGET: what a client may want at once, well above what fits one datagram.
const KEYS_MAX: u64 = 1024;

/// Most keys of an MGET whose size is drawn: eight datagrams' worth. With a mean of 8.6 keys one of
/// 20,000 multigets has as many, and 47 % have one key.
const HEAVY_KEYS_MAX: u64 = 256;

/// Halvings of the interval in which the exponent lies: more than its digits.
const HALVINGS: u32 = 60;

/// A mean that a falling power law can have lies below that of a flat one.
const MEAN_MAX: f64 = HEAVY_KEYS_MAX as f64 / 2.0;

/// An exponent that leaves next to nothing but single keys.
const EXPONENT_MAX: f64 = 20.0;

impl Default for MgetSizes {
    fn default() -> Self {
        Self { kind: Kind::Fixed(KEYS) }
    }
}

impl MgetSizes {
    /// The most keys that may come.
    #[must_use]
    pub fn max(&self) -> u64 {
        match &self.kind {
            Kind::Fixed(keys) => *keys,
            Kind::Heavy { .. } => HEAVY_KEYS_MAX,
        }
    }

    /// The size of the next one.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match &self.kind {
            Kind::Fixed(keys) => *keys,
            Kind::Heavy { at_most, .. } => {
                let drawn = rng.unit();
                let smaller = at_most.partition_point(|share| *share <= drawn) as u64;
                (smaller + 1).min(HEAVY_KEYS_MAX)
            }
        }
    }

    /// Sizes of 1 to 256 keys by a power law with this mean.
    fn heavy(mean: f64) -> Self {
        let (mut low, mut high) = (0.0, EXPONENT_MAX);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            // A steeper law has fewer keys.
            *(if mean_of(middle) > mean { &mut low } else { &mut high }) = middle;
        }
        let total: f64 = weights(high).sum();
        let at_most = weights(high).scan(0.0, |sum, weight| {
            *sum += weight / total;
            Some(*sum)
        });
        Self { kind: Kind::Heavy { mean, at_most: at_most.collect() } }
    }
}

/// What a power law with this exponent gives to 1, 2, 3, ... keys.
fn weights(exponent: f64) -> impl Iterator<Item = f64> {
    (1..=HEAVY_KEYS_MAX).map(move |keys| (keys as f64).powf(-exponent))
}

fn mean_of(exponent: f64) -> f64 {
    weights(exponent - 1.0).sum::<f64>() / weights(exponent).sum::<f64>()
}

impl fmt::Display for MgetSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Fixed(keys) => write!(f, "{keys}"),
            Kind::Heavy { mean, .. } => write!(f, "~{mean}"),
        }
    }
}

impl Serialize for MgetSizes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.kind {
            Kind::Fixed(keys) => serializer.serialize_u64(*keys),
            Kind::Heavy { .. } => serializer.collect_str(self),
        }
    }
}

impl FromStr for MgetSizes {
    type Err = SettingError;

    /// `16` for all alike; `~8.6` for a power law over 1 to 256 keys with that mean: most have few
    /// keys, and few have most of them, as multigets of applications do.
    fn from_str(input: &str) -> Result<Self, SettingError> {
        let Some(mean) = input.strip_prefix('~') else {
            let keys = text::bounded(input, "keys at once", KEYS_MAX)?;
            return Ok(Self { kind: Kind::Fixed(keys) });
        };
        let mean: f64 = text::number(mean, "keys at once on average")?;
        if !(mean > 1.0 && mean <= MEAN_MAX) {
            return Err(SettingError::new(format!(
                "{mean} keys at once on average: not between 1 and {MEAN_MAX}"
            )));
        }
        Ok(Self::heavy(mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_sizes_have_their_mean_and_most_are_small() {
        for (text, mean) in [("~2", 2.0), ("~8.6", 8.6), ("~32", 32.0)] {
            let sizes: MgetSizes = text.parse().unwrap();
            let mut rng = Rng::new(1);
            let drawn: Vec<u64> = (0..200_000).map(|_| sizes.draw(&mut rng)).collect();
            assert!(drawn.iter().all(|keys| (1..=sizes.max()).contains(keys)));
            let found = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
            assert!((found / mean - 1.0).abs() < 0.03, "{text}: {found}");
            let small = drawn.iter().filter(|keys| (**keys as f64) <= mean / 2.0).count();
            assert!(small * 2 > drawn.len() || text == "~32", "{text}: {small} small ones");
        }
    }

    #[test]
    fn sizes_that_are_all_alike_take_nothing_from_the_randomness() {
        let sizes: MgetSizes = "16".parse().unwrap();
        let (mut rng, mut untouched) = (Rng::new(1), Rng::new(1));
        assert_eq!((sizes.draw(&mut rng), sizes.max()), (16, 16));
        assert_eq!(rng.next_u64(), untouched.next_u64());
    }

    #[test]
    fn text_reads_back_and_nonsense_is_refused() {
        for text in ["1", "1024", "~8.6", "~2", "~128"] {
            assert_eq!(text.parse::<MgetSizes>().unwrap().to_string(), text);
        }
        for text in ["", "0", "1025", "~", "~1", "~129", "~nan", "8.6"] {
            assert!(text.parse::<MgetSizes>().is_err(), "{text:?}");
        }
    }
}
