//! Numbers as C prints them.

/// The decimal form of a number with at most so many significant digits, as `%.<digits>g` gives it.
pub(super) fn general(number: f64, digits: usize) -> String {
    if !number.is_finite() {
        let sign = if number.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if number.is_nan() { "nan" } else { "inf" });
    }
    let places = digits.saturating_sub(1);
    let scientific = format!("{number:.places$e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let wide = i32::try_from(digits).unwrap_or(i32::MAX);
    if (-4..wide).contains(&exponent) {
        let decimals = usize::try_from(wide - 1 - exponent).unwrap_or_default();
        return shortened(&format!("{number:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", shortened(mantissa), exponent.unsigned_abs())
}

/// Without zeros at the end of a fraction.
fn shortened(decimal: &str) -> &str {
    if decimal.contains('.') {
        decimal.trim_end_matches('0').trim_end_matches('.')
    } else {
        decimal
    }
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn numbers_are_those_of_c() {
        for (number, digits, expected) in [
            (0.0, 14, "0"),
            (-1.5, 14, "-1.5"),
            (0.1, 14, "0.1"),
            (0.1, 17, "0.10000000000000001"),
            (1.0 / 3.0, 14, "0.33333333333333"),
            (1e14, 14, "1e+14"),
            (1e13, 14, "10000000000000"),
            (123_456_789_012_345.0, 14, "1.2345678901234e+14"),
            (0.0001, 14, "0.0001"),
            (0.00001, 14, "1e-05"),
            (99_999_999_999_999.9, 14, "1e+14"),
            (1e300, 17, "1.0000000000000001e+300"),
            (f64::INFINITY, 14, "inf"),
            (f64::NEG_INFINITY, 14, "-inf"),
        ] {
            assert_eq!(general(number, digits), expected);
        }
    }
}
