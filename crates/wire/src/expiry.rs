//! When a value goes: never, at a time, or some time from now.
//!
//! In a request both of the latter may stand, for only the cluster knows what time it is: the head
//! makes a time of a span when it takes the write, once. Everywhere else only times stand.

use crate::big::EXPIRY_BIG;
use crate::layout::EXPIRY_SPAN_BIT;

/// The bit of a request's expiry that says that it is a span.
pub const EXPIRY_SPAN: u64 = 1 << EXPIRY_SPAN_BIT;

/// The last time, and the longest span, in milliseconds: the bits above say other things.
pub const TIME_MAX: u64 = EXPIRY_SPAN - 1;

/// The expiry of a request for a value that is to live so many milliseconds.
#[must_use]
pub const fn span(ms: u64) -> u64 {
    EXPIRY_SPAN | if ms < TIME_MAX { ms } else { TIME_MAX }
}

/// Whether an expiry is a span.
#[must_use]
pub const fn is_span(expiry: u64) -> bool {
    expiry & EXPIRY_SPAN != 0
}

/// What an expiry of a request means when the write is taken at `now_ms`: never with a span.
#[must_use]
pub const fn fixed_at(expiry: u64, now_ms: u64) -> u64 {
    if !is_span(expiry) {
        return expiry;
    }
    // 0 would mean never.
    let at = match (expiry & TIME_MAX).saturating_add(now_ms) {
        0 => 1,
        1..TIME_MAX => (expiry & TIME_MAX).saturating_add(now_ms),
        TIME_MAX.. => TIME_MAX,
    };
    expiry & EXPIRY_BIG | at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::big::{is_big, time_of};

    #[test]
    fn a_span_becomes_a_time_and_a_time_stays_one() {
        assert_eq!(fixed_at(span(30_000), 1_000_000), 1_030_000);
        assert_eq!(fixed_at(1_030_000, 5), 1_030_000);
        assert_eq!(fixed_at(0, 5), 0, "never");
        let big = fixed_at(span(7) | EXPIRY_BIG, 5);
        assert!(is_big(big) && time_of(big) == 12);
    }

    #[test]
    fn no_span_is_never_and_none_overflows_into_a_flag() {
        assert_eq!(fixed_at(span(0), 0), 1);
        for expiry in [span(u64::MAX), span(TIME_MAX), span(1) | EXPIRY_BIG] {
            for now_ms in [0, 1, TIME_MAX, u64::MAX] {
                let fixed = fixed_at(expiry, now_ms);
                assert!(!is_span(fixed) && fixed != 0);
                assert_eq!(is_big(fixed), is_big(expiry));
            }
        }
    }
}
