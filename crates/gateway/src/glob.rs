//! Patterns as Redis has them, for names of keys and parameters: `*`, `?`, `[a-z]`, `[^a]`, `\`.

/// Whether the whole text matches.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    find(pattern, text, false)
}

/// Whether the whole text matches, letters in either case.
#[must_use]
pub fn matches_any_case(pattern: &[u8], text: &[u8]) -> bool {
    find(pattern, text, true)
}

/// Goes back to the last star only, so that the work is at most the product of the lengths.
fn find(mut pattern: &[u8], mut text: &[u8], any_case: bool) -> bool {
    // Where to go on if what follows the last star does not match: behind it, one byte later.
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            again = Some((rest, text));
            pattern = rest;
            continue;
        }
        let next = match (text.split_first(), pattern.is_empty()) {
            (None, true) => return true,
            (None, false) => return false,
            (Some(_), true) => None,
            (Some((byte, after)), false) => one(pattern, *byte, any_case).map(|rest| (rest, after)),
        };
        (pattern, text) = match (next, again) {
            (Some(next), _) => next,
            (None, Some((behind, [_, later @ ..]))) => {
                again = Some((behind, later));
                (behind, later)
            }
            (None, _) => return false,
        };
    }
}

/// What remains of the pattern if its first element, which is no star, matches the byte.
fn one(pattern: &[u8], byte: u8, any_case: bool) -> Option<&[u8]> {
    let same = |a: u8, b: u8| if any_case { a.eq_ignore_ascii_case(&b) } else { a == b };
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => class(rest, byte, any_case),
        [b'\\', escaped, rest @ ..] => same(*escaped, byte).then_some(rest),
        [plain, rest @ ..] => same(*plain, byte).then_some(rest),
        [] => None,
    }
}

/// A class behind its `[`. One that is not closed ends with the pattern, as in Redis.
fn class(pattern: &[u8], byte: u8, any_case: bool) -> Option<&[u8]> {
    let fold = |byte: u8| if any_case { byte.to_ascii_lowercase() } else { byte };
    let byte = fold(byte);
    let (negated, mut rest) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut found = false;
    loop {
        rest = match rest {
            [] => break,
            [b']', after @ ..] => {
                rest = after;
                break;
            }
            [b'\\', escaped, after @ ..] => {
                found |= fold(*escaped) == byte;
                after
            }
            [from, b'-', to, after @ ..] => {
                let (from, to) = (fold(*from), fold(*to));
                found |= (from.min(to)..=from.max(to)).contains(&byte);
                after
            }
            [plain, after @ ..] => {
                found |= fold(*plain) == byte;
                after
            }
        };
    }
    (found != negated).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        let yes = [
            ("", ""),
            ("*", ""),
            ("*", "anything"),
            ("a?c", "abc"),
            ("app:*", "app:"),
            ("*:*:end", "a:b:c:end"),
            ("h[ae]llo", "hello"),
            ("h[^e]llo", "hallo"),
            ("h[a-c]llo", "hbllo"),
            ("h[c-a]llo", "hbllo"),
            (r"a\*b", "a*b"),
            (r"[\]]", "]"),
            ("[ab", "a"),
        ];
        for (pattern, text) in yes {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        let no = [
            ("", "a"),
            ("a", ""),
            ("a?c", "ac"),
            ("app:*", "ap:1"),
            ("h[^e]llo", "hello"),
            (r"a\*b", "axb"),
            ("A", "a"),
            ("*a", "ab"),
        ];
        for (pattern, text) in no {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        assert!(matches_any_case(b"MaxC*", b"maxclients") && matches_any_case(b"[A]", b"a"));
    }

    #[test]
    fn many_stars_are_no_trap() {
        let pattern = b"*a".repeat(2_000);
        assert!(!matches(&pattern, &[b'a'; 1_999]));
        assert!(!matches(&[b"a*".repeat(20), b"b".to_vec()].concat(), &[b'a'; 20_000]));
    }
}
