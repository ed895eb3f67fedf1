//! Readers of command-line arguments that clap does not have.

use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZero;
use std::time::Duration;
use workload::Distribution;

/// A duration: `250ms`, `5s`, `2m`, `7d`, several of them in a row as `1h30m`, or seconds without a
/// unit. One that stands alone may have decimals, as `1.5s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    if text.contains(|c: char| c.is_ascii_alphabetic()) && !text.contains('.') {
        return humantime::parse_duration(text)
            .map_err(|why| format!("{why}; try 500ms, 5s, 1h30m or 7d"));
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or_default();
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        _ => return Err(format!("no unit {unit:?}; there are us, ms, s, m, h, d and w")),
    };
    let number: f64 = digits
        .parse()
        .map_err(|_| format!("{text:?} is no duration; try 500ms, 5s, 1h30m or 7d"))?;
    Duration::try_from_secs_f64(number * seconds)
        .map_err(|_| format!("{text:?} is not a duration that can be waited for"))
}

/// A duration that is not zero.
pub fn some_time(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration.is_zero() { Err("it must be more than zero".to_owned()) } else { Ok(duration) }
}

/// An address and port; a name is looked up, IPv4 before IPv6.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text
        .to_socket_addrs()
        .map_err(|error| format!("{error}; expected HOST:PORT, such as 127.0.0.1:7700"))?;
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| format!("{text:?} has no address"))
}

/// A number that may be written `100k`, `2m` or with underscores.
pub fn count(text: &str) -> Result<u64, String> {
    let plain = text.replace('_', "").to_ascii_lowercase();
    let (digits, unit) = match plain.strip_suffix('k') {
        Some(digits) => (digits, 1_000),
        None => match plain.strip_suffix('m') {
            Some(digits) => (digits, 1_000_000),
            None => (plain.as_str(), 1),
        },
    };
    let number: u64 =
        digits.parse().map_err(|_| format!("{text:?} is no number; try 100000 or 100k"))?;
    number.checked_mul(unit).ok_or_else(|| format!("{text:?} is too large"))
}

/// An exponent of Zipf's law.
pub fn exponent(text: &str) -> Result<f64, String> {
    match format!("zipf:{text}").parse() {
        Ok(Distribution::Zipf { theta }) => Ok(theta),
        Ok(other) => Err(format!("{other} is not Zipf's law")),
        Err(error) => Err(error.to_string()),
    }
}

/// A number of requests per second, see [`count`].
pub fn rate(text: &str) -> Result<NonZero<u32>, String> {
    let rate = u32::try_from(count(text)?).ok().and_then(NonZero::new);
    rate.ok_or_else(|| format!("choose 1 to {}", u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, millis) in [
            ("250ms", 250),
            ("5s", 5_000),
            ("1.5", 1_500),
            ("1.5s", 1_500),
            ("0.5d", 43_200_000),
            ("2m", 120_000),
            ("7d", 604_800_000),
            ("2w", 1_209_600_000),
            ("1h30m", 5_400_000),
            ("1d 2h 3m 4s 5ms", 93_784_005),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "5x", "-1s", "1e300h", "nan", "1h30", "1.5h30m"] {
            assert!(duration(text).is_err(), "{text:?}");
        }
        assert!(some_time("0s").is_err());
    }

    #[test]
    fn counts_have_suffixes() {
        for (text, value) in [("7", 7), ("100k", 100_000), ("2M", 2_000_000), ("1_000", 1_000)] {
            assert_eq!(count(text), Ok(value), "{text}");
        }
        for text in ["", "k", "-1", "1.5k", "99999999999999999999", "99999999999999999m"] {
            assert!(count(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn exponents_are_those_of_a_falling_law() {
        assert_eq!(exponent("0.99"), Ok(0.99));
        for text in ["", "x", "-1", "11", "nan"] {
            assert!(exponent(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn addresses_need_a_port() {
        assert_eq!(address("127.0.0.1:7700").unwrap().port(), 7700);
        assert!(address("[::1]:7700").unwrap().is_ipv6());
        assert!(address("127.0.0.1").is_err());
    }
}
