//! Integers in arguments.

use super::errors::{Answer, NOT_AN_INTEGER};
use crate::Reply;

/// The decimal form of a signed 64-bit number, and no other: no plus, no space, no leading zeros.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// What DECRBY adds.
pub(super) fn negated(delta: &[u8]) -> Answer<i64> {
    let delta = integer(delta).ok_or(NOT_AN_INTEGER)?;
    delta.checked_neg().ok_or(Reply::error("ERR decrement would overflow"))
}

#[cfg(test)]
mod tests {
    use super::integer;

    #[test]
    fn only_one_form_of_an_integer_is_taken() {
        assert_eq!(integer(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer(b"0"), Some(0));
        for text in ["", "+1", "01", "-0", " 1", "1 ", "9223372036854775808", "1.0", "\u{663}"] {
            assert_eq!(integer(text.as_bytes()), None, "{text:?}");
        }
    }
}
