//! Numbers with a fraction, as Redis computes with them on x86: 80 bits, of which 64 are digits
//! (`long double`). Shown with 17 places after the point, without zeros at the end.

use num_bigint::BigUint;
use rustc_apfloat::ieee::X87DoubleExtended;
use rustc_apfloat::{Float, Round, StatusAnd};
use std::ops::Add;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extended(X87DoubleExtended);

/// Bytes of a number that Redis reads.
const TEXT_MAX: usize = 5 * 1024 - 1;

/// An exponent beyond which every number of at most `TEXT_MAX` digits is infinite or zero.
const EXPONENT_MAX: i64 = 40_000;

/// Places after the point.
const PLACES: usize = 17;

impl Extended {
    pub(super) const ZERO: Self = Self(X87DoubleExtended::ZERO);

    /// What the C function `strtold` reads, if it reads all of it and finds a number that fits.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= TEXT_MAX)?;
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        let lower = unsigned.to_ascii_lowercase();
        let number = if lower == "inf" || lower == "infinity" {
            X87DoubleExtended::INFINITY
        } else {
            finite(&lower)?
        };
        Some(Self(if negative { -number } else { number }))
    }

    /// Its decimal form; `None` if it is infinite or no number.
    pub(super) fn decimal(self) -> Option<String> {
        if !self.0.is_finite() {
            return None;
        }
        let bits = self.0.to_bits();
        let digits = u64::try_from(bits & u128::from(u64::MAX)).ok()?;
        // The value is digits * 2^exponent; the lowest exponent is that of numbers near zero too.
        let biased = i64::try_from((bits >> 64) & 0x7fff).ok()?.max(1);
        let scaled = scale(digits, biased - 16383 - 63);
        let padded = format!("{:0>width$}", scaled.to_string(), width = PLACES + 1);
        let (whole, fraction) = padded.split_at(padded.len() - PLACES);
        let shown = format!("{whole}.{fraction}");
        let shown = shown.trim_end_matches('0').trim_end_matches('.');
        let sign = if self.0.is_negative() && shown != "0" { "-" } else { "" };
        Some(format!("{sign}{shown}"))
    }
}

impl Add for Extended {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self((self.0 + other.0).value)
    }
}

/// `digits` * 2^`exponent` * 10^`PLACES`, rounded to the nearest whole number, ties to even.
fn scale(digits: u64, exponent: i64) -> BigUint {
    let places = 10_u128.pow(17);
    let scaled = u128::from(digits) * places; // below 2^64 * 2^57
    if let Ok(up) = u32::try_from(exponent) {
        return BigUint::from(scaled) << up;
    }
    let down = u32::try_from(-exponent).unwrap_or(u32::MAX);
    let Some(whole) = scaled.checked_shr(down) else { return BigUint::ZERO };
    let rest = scaled - (whole << down);
    let half = 1_u128 << (down - 1);
    let up = rest > half || rest == half && whole % 2 == 1;
    BigUint::from(whole + u128::from(up))
}

/// Reads digits with a point or without, and an exponent: decimal, or hexadecimal after `0x`.
fn finite(lower: &str) -> Option<X87DoubleExtended> {
    let (radix, unprefixed, mark) = match lower.strip_prefix("0x") {
        Some(rest) => (16, rest, 'p'),
        None => (10, lower, 'e'),
    };
    let (mantissa, exponent) = match unprefixed.split_once(mark) {
        Some((mantissa, exponent)) => (mantissa, whole_exponent(exponent)?),
        None => (unprefixed, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Some(X87DoubleExtended::ZERO);
    }
    let per_place = if radix == 16 { 4 } else { 1 };
    let places = i64::try_from(fraction.len()).ok()? * per_place;
    let exponent = exponent.saturating_sub(places).clamp(-EXPONENT_MAX, EXPONENT_MAX);
    let prefix = if radix == 16 { "0x" } else { "" };
    let text = format!("{prefix}{significant}{mark}{exponent}");
    let StatusAnd { value, .. } =
        X87DoubleExtended::from_str_r(&text, Round::NearestTiesToEven).ok()?;
    (value.is_finite() && !value.is_zero()).then_some(value)
}

/// An exponent: a sign or none, and digits. What is too long to count is as good as the bound.
fn whole_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse::<i64>().unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
    Some(if text.starts_with('-') { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::Extended;

    fn sum(one: &str, other: &str) -> Option<String> {
        let read = |text: &str| Extended::parse(text.as_bytes()).unwrap();
        (read(one) + read(other)).decimal()
    }

    #[test]
    fn sums_have_64_bits_and_17_places() {
        for (one, other, expected) in [
            ("0.1", "0.2", "0.3"),
            ("10.50", "0.1", "10.6"),
            ("5.0e3", "2.0e2", "5200"),
            ("3", "-3", "0"),
            ("-1e-20", "0", "0"),
            ("1e-17", "0", "0.00000000000000001"),
            // Half a place goes to the even neighbour, as far as binary digits tell it is a half.
            ("0x1p-18", "0", "0.00000381469726562"),
            ("18446744073709551615", "0", "18446744073709551615"),
            ("18446744073709551616", "1", "18446744073709551616"),
            ("0x1p64", "0x1p63", "27670116110564327424"),
        ] {
            assert_eq!(sum(one, other).as_deref(), Some(expected), "{one} + {other}");
        }
        assert_eq!(sum("inf", "1"), None);
        assert_eq!(sum("inf", "-inf"), None);
    }

    #[test]
    fn what_is_no_number_or_does_not_fit_is_not_read() {
        for text in
            ["", ".", "e1", "1e", "nan", " 1", "1 ", "0x", "0x1g", "--1", "1e5000", "1e-5000"]
        {
            assert!(Extended::parse(text.as_bytes()).is_none(), "{text}");
        }
        for text in
            ["5.", ".5", "+1", "1E5", "0X1P-3", "iNf", "-infinity", "0e99999999999999999999"]
        {
            assert!(Extended::parse(text.as_bytes()).is_some(), "{text}");
        }
    }
}
