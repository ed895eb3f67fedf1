//! What keys are called.

use crate::text::SettingError;

/// Names of one fixed length for numbered keys: a prefix and digits, so that their order is that of
/// the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyNames {
    prefix: Vec<u8>,
    digits: usize,
    base: Base,
}

/// What a digit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// `0` to `9`.
    Decimal,
    /// A byte.
    Binary,
}

impl Base {
    fn count(self) -> u64 {
        match self {
            Self::Decimal => 10,
            Self::Binary => 256,
        }
    }

    fn zero(self) -> u8 {
        match self {
            Self::Decimal => b'0',
            Self::Binary => 0,
        }
    }
}

impl KeyNames {
    /// Names of `len` bytes for keys `0..count`, with decimal digits.
    ///
    /// # Errors
    ///
    /// If `len` leaves too few digits for `count` names.
    pub fn new(prefix: &str, len: usize, count: u64) -> Result<Self, SettingError> {
        Self::with(prefix, len, count, Base::Decimal)
    }

    /// Numbers of `len` bytes, the most significant first, for keys `0..count`: the shortest names
    /// that there are.
    ///
    /// # Errors
    ///
    /// If `count` numbers need more bytes.
    pub fn binary(len: usize, count: u64) -> Result<Self, SettingError> {
        Self::with("", len, count, Base::Binary)
    }

    fn with(prefix: &str, len: usize, count: u64, base: Base) -> Result<Self, SettingError> {
        let digits = len.saturating_sub(prefix.len());
        let needed = count.saturating_sub(1).max(1).ilog(base.count()) as usize + 1;
        if digits < needed {
            let least = prefix.len() + needed;
            return Err(SettingError::new(format!(
                "{count} keys named {prefix}... need {least} bytes each, not {len}"
            )));
        }
        Ok(Self { prefix: prefix.as_bytes().to_vec(), digits, base })
    }

    /// What all names begin with.
    #[must_use]
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Appends the name of a key.
    pub fn write(&self, index: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prefix);
        let first = out.len();
        let (zero, base) = (self.base.zero(), self.base.count());
        out.resize(first + self.digits, zero);
        let mut left = index;
        for digit in out.iter_mut().skip(first).rev() {
            *digit = zero + u8::try_from(left % base).expect("a digit");
            left /= base;
        }
    }

    /// The name of a key.
    #[must_use]
    pub fn name(&self, index: u64) -> Vec<u8> {
        let mut name = Vec::with_capacity(self.prefix.len() + self.digits);
        self.write(index, &mut name);
        name
    }

    /// The number of the key of this name; `None` if it is none of these names.
    #[must_use]
    pub fn index(&self, name: &[u8]) -> Option<u64> {
        let digits = name.strip_prefix(self.prefix.as_slice())?;
        if digits.len() != self.digits {
            return None;
        }
        digits.iter().try_fold(0_u64, |number, digit| {
            let digit = u64::from(digit.checked_sub(self.base.zero())?);
            let base = self.base.count();
            (digit < base).then(|| number.checked_mul(base)?.checked_add(digit))?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_length_and_read_back_in_order() {
        let names = KeyNames::new("user", 16, 1_000_000).unwrap();
        assert_eq!(names.name(42), b"user000000000042");
        let all: Vec<Vec<u8>> = (0..2_000).map(|index| names.name(index)).collect();
        assert!(all.is_sorted());
        assert!((0..).zip(&all).all(|(index, name)| names.index(name) == Some(index)));
    }

    #[test]
    fn short_names_are_numbers_and_have_their_length_too() {
        let names = KeyNames::binary(4, 1 << 32).unwrap();
        assert_eq!(names.name(0x0102_0304), [1, 2, 3, 4]);
        assert_eq!(names.index(&[255, 0, 0, 9]), Some(0xff00_0009));
        assert_eq!(names.index(&[0, 9]), None);
        assert_eq!(KeyNames::binary(64, 10).unwrap().name(7).len(), 64);
        assert!(KeyNames::binary(4, (1 << 32) + 1).is_err());
        assert!(KeyNames::binary(2, 65_536).is_ok() && KeyNames::binary(2, 65_537).is_err());
    }

    #[test]
    fn foreign_names_have_no_number() {
        let names = KeyNames::new("user", 8, 10_000).unwrap();
        for name in ["", "user", "user123", "user12345", "usr 1234", "user12a4"] {
            assert_eq!(names.index(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn a_length_without_room_for_every_number_is_refused() {
        assert!(KeyNames::new("user", 8, 10_000).is_ok());
        assert!(KeyNames::new("user", 8, 10_001).is_err());
        assert!(KeyNames::new("user", 4, 1).is_err());
        assert!(KeyNames::new("user", 0, 0).is_err());
    }
}
