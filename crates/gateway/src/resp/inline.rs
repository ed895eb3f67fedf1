//! Commands as people type them: words on one line, with quotation marks.

use bytes::{BufMut as _, Bytes, BytesMut};

/// The words of a line; `None` if a quotation is not closed, or something follows right after one.
pub(super) fn split(line: &[u8]) -> Option<Vec<Bytes>> {
    let mut words = Vec::new();
    // To Redis a zero byte is the end of the line.
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let mut word = BytesMut::new();
        rest = take_word(rest, &mut word)?.trim_ascii_start();
        words.push(word.freeze());
    }
    Some(words)
}

/// Takes one word; gives what follows it.
fn take_word<'a>(mut rest: &'a [u8], word: &mut BytesMut) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return Some(rest),
            [byte, ..] if byte.is_ascii_whitespace() => return Some(rest),
            [b'"', after @ ..] => return closed(take_double(after, word)?),
            [b'\'', after @ ..] => return closed(take_single(after, word)?),
            [byte, after @ ..] => {
                word.put_u8(*byte);
                rest = after;
            }
        }
    }
}

/// After a quotation comes a space or nothing.
fn closed(rest: &[u8]) -> Option<&[u8]> {
    rest.first().is_none_or(u8::is_ascii_whitespace).then_some(rest)
}

fn take_double<'a>(mut rest: &'a [u8], word: &mut BytesMut) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return None,
            [b'"', after @ ..] => return Some(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.put_u8(nibble(*high) << 4 | nibble(*low));
                rest = after;
            }
            [b'\\', escaped, after @ ..] => {
                word.put_u8(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                rest = after;
            }
            [byte, after @ ..] => {
                word.put_u8(*byte);
                rest = after;
            }
        }
    }
}

fn take_single<'a>(mut rest: &'a [u8], word: &mut BytesMut) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return None,
            [b'\'', after @ ..] => return Some(after),
            [b'\\', b'\'', after @ ..] => {
                word.put_u8(b'\'');
                rest = after;
            }
            [byte, after @ ..] => {
                word.put_u8(*byte);
                rest = after;
            }
        }
    }
}

fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.saturating_sub(b'A') + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<Vec<u8>>> {
        split(line.as_bytes()).map(|words| words.iter().map(|word| word.to_vec()).collect())
    }

    #[test]
    fn words_are_split_at_spaces_and_quotations_hold_them_together() {
        let is = |line, expected: &[&[u8]]| {
            assert_eq!(words(line), Some(expected.iter().map(|w| w.to_vec()).collect()), "{line}");
        };
        is("", &[]);
        is("  \t ", &[]);
        is("get  a\t", &[b"get", b"a"]);
        is("get a\0 b", &[b"get", b"a"]);
        is(r#"set a "b c""#, &[b"set", b"a", b"b c"]);
        is(r#"set a """#, &[b"set", b"a", b""]);
        is(r#"set a "\x00\xfF\n\"\q" 'it\'s \n'"#, &[b"set", b"a", b"\0\xff\n\"q", b"it's \\n"]);
        is(r#"a"b""#, &[b"ab"]);
    }

    #[test]
    fn a_quotation_is_closed_and_followed_by_a_space() {
        for line in [r#"get "a"#, "get 'a", r#"get "a"b"#, "get 'a'b", r#"get "a\"#] {
            assert_eq!(words(line), None, "{line}");
        }
    }
}
