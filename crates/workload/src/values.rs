//! What values hold: bytes that follow from the key and a stamp, so that a reader can tell a right
//! value from a damaged or misplaced one.

use crate::Zipf;
use crate::text::{self, SettingError};
use machine::{Rng, mix};
use std::fmt;
use std::str::FromStr;

/// How large values are, in bytes.
#[derive(Clone, Debug)]
pub struct Sizes {
    max: usize,
    kind: SizeKind,
}

#[derive(Clone, Debug)]
enum SizeKind {
    Fixed,
    Uniform { min: usize },
    Zipf(Zipf),
}

/// Every value starts with its stamp.
const STAMP_LEN: usize = 8;

impl Sizes {
    /// The largest that may come.
    #[must_use]
    pub fn max(&self) -> usize {
        self.max
    }

    fn draw(&self, rng: &mut Rng) -> usize {
        match &self.kind {
            SizeKind::Fixed => self.max,
            SizeKind::Uniform { min } => {
                let span = (self.max - min) as u64 + 1;
                min + usize::try_from(rng.below(span)).expect("below a length")
            }
            SizeKind::Zipf(law) => {
                STAMP_LEN + usize::try_from(law.draw(rng)).expect("below a length")
            }
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            SizeKind::Fixed => write!(f, "{}", self.max),
            SizeKind::Uniform { min } => write!(f, "{min}-{}", self.max),
            SizeKind::Zipf(_) => write!(f, "zipf:{}", self.max),
        }
    }
}

impl FromStr for Sizes {
    type Err = SettingError;

    /// `128` for all alike, `16-512` for uniform, `zipf:1000` for mostly small (as YCSB's
    /// `zipfian` field length).
    fn from_str(input: &str) -> Result<Self, SettingError> {
        let check = |text: &str| {
            let size: usize = text::number(text, "value size")?;
            if size < STAMP_LEN {
                let least = format!("value size {size}: at least {STAMP_LEN}, for the stamp");
                return Err(SettingError::new(least));
            }
            Ok(size)
        };
        if let Some(max) = input.strip_prefix("zipf:") {
            let max = check(max)?;
            let law = Zipf::new((max - STAMP_LEN) as u64 + 1, 0.99);
            return Ok(Self { max, kind: SizeKind::Zipf(law) });
        }
        let Some((min, max)) = input.split_once('-') else {
            return Ok(Self { max: check(input)?, kind: SizeKind::Fixed });
        };
        let (min, max) = (check(min)?, check(max)?);
        if min > max {
            return Err(SettingError::new(format!("value size {input}: the first is the smaller")));
        }
        Ok(Self { max, kind: SizeKind::Uniform { min } })
    }
}

/// Makes and checks values.
#[derive(Clone, Debug)]
pub struct Values {
    sizes: Sizes,
}

impl Values {
    /// Values of these sizes.
    #[must_use]
    pub fn new(sizes: Sizes) -> Self {
        Self { sizes }
    }

    /// The sizes.
    #[must_use]
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Appends the value of `key` under `stamp`: any number that tells this write from others.
    pub fn write(&self, key: u64, stamp: u64, out: &mut Vec<u8>) {
        let len = self.sizes.draw(&mut Rng::new(mix(key).wrapping_add(stamp)));
        fill(key, stamp, len, out);
    }

    /// The stamp of a value of `key`; `None` if these bytes were never written there. Whatever
    /// sizes it was written with: the bytes follow from its own length.
    #[must_use]
    pub fn stamp_of(key: u64, value: &[u8]) -> Option<u64> {
        let stamp = u64::from_be_bytes(*value.first_chunk()?);
        let mut expected = Vec::with_capacity(value.len());
        fill(key, stamp, value.len(), &mut expected);
        (expected == value).then_some(stamp)
    }
}

/// Appends `len` bytes, the stamp and then what follows from all three.
fn fill(key: u64, stamp: u64, len: usize, out: &mut Vec<u8>) {
    let mut rng = Rng::new(mix(mix(key).wrapping_add(stamp)) ^ len as u64);
    let end = out.len() + len;
    out.extend_from_slice(&stamp.to_be_bytes());
    while out.len() < end {
        let word = rng.next_u64().to_be_bytes();
        out.extend(word.iter().take(end - out.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(sizes: &str) -> Values {
        Values::new(sizes.parse().unwrap())
    }

    fn value(values: &Values, key: u64, stamp: u64) -> Vec<u8> {
        let mut out = Vec::new();
        values.write(key, stamp, &mut out);
        out
    }

    #[test]
    fn sizes_are_as_told() {
        let fixed = values("128");
        assert!((0..100).all(|key| value(&fixed, key, 1).len() == 128));
        let uniform = values("9-12");
        let mut seen = [0_u32; 13];
        (0..4_000).for_each(|key| seen[value(&uniform, key, 1).len()] += 1);
        assert!(seen[9..].iter().all(|&n| (850..1_150).contains(&n)), "{seen:?}");
        assert!(seen[..9].iter().all(|&n| n == 0));
        let zipf = values("zipf:1000");
        let lens: Vec<usize> = (0..4_000).map(|key| value(&zipf, key, 1).len()).collect();
        assert!(lens.iter().all(|len| (8..=1_000).contains(len)));
        let small = lens.iter().filter(|len| **len < 100).count();
        assert!(small > 2_000, "{small} small ones");
    }

    #[test]
    fn text_reads_back_and_nonsense_is_refused() {
        for text in ["8", "16-512", "zipf:1000"] {
            assert_eq!(text.parse::<Sizes>().unwrap().to_string(), text);
        }
        for text in ["", "7", "-8", "12-9", "4-9", "zipf:", "zipf:3", "big"] {
            assert!(text.parse::<Sizes>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_value_tells_its_stamp_and_any_change_shows(
            key: u64, stamp: u64, other: u64, at in 0..64_usize, bit in 0..8_u32,
        ) {
            let values = values("16-64");
            let written = value(&values, key, stamp);
            prop_assert_eq!(Values::stamp_of(key, &written), Some(stamp));
            if other != key {
                prop_assert_eq!(Values::stamp_of(other, &written), None);
            }
            let mut damaged = written.clone();
            let at = at % damaged.len();
            damaged[at] ^= 1 << bit;
            prop_assert_eq!(Values::stamp_of(key, &damaged), None);
            prop_assert_eq!(Values::stamp_of(key, &written[..written.len() - 1]), None);
        }
    }
}
