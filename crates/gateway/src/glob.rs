//! Patterns as Redis has them, for names of keys and parameters: `*`, `?`, `[a-z]`, `[^a]`, `\`.
//!
//! A pattern comes from a client, so what it can cost is bounded: it is read once, it has at most
//! [`PATTERN_MAX`] bytes, a match takes at most as many steps as the product of the lengths, and
//! many matches are made in slices (`Sieve`), so that a worker's other connections go on.

use std::fmt;

/// Bytes of a pattern: a class of two letters, as `[aA]`, for every byte of the longest key.
pub const PATTERN_MAX: usize = 4 * wire::KEY_MAX;

/// Steps of one slice: about a tenth of a millisecond, and a quarter of what the most expensive
/// match takes.
const SLICE_STEPS_MAX: usize = 100_000;

/// A pattern of more than [`PATTERN_MAX`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong(pub usize);

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(len) = self;
        write!(f, "a pattern has at most {PATTERN_MAX} bytes here, and this one has {len}")
    }
}

impl std::error::Error for TooLong {}

/// A pattern that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<Element>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Element {
    /// Any bytes, also none.
    Star,
    /// One byte, whatever it is.
    Any,
    One(u8),
    Class(Box<Class>),
}

/// A set of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Class([u64; 4]);

impl Class {
    fn insert(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte / 64)) {
            *word |= 1 << (byte % 64);
        }
    }

    fn has(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte / 64)).is_some_and(|word| word >> (byte % 64) & 1 == 1)
    }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// If it is too long. Everything else is a pattern.
    pub fn new(pattern: &[u8]) -> Result<Self, TooLong> {
        Self::read(pattern, false)
    }

    /// Reads a pattern to which letters are the same in either case.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn any_case(pattern: &[u8]) -> Result<Self, TooLong> {
        Self::read(pattern, true)
    }

    fn read(mut pattern: &[u8], any_case: bool) -> Result<Self, TooLong> {
        if pattern.len() > PATTERN_MAX {
            return Err(TooLong(pattern.len()));
        }
        let mut elements = Vec::new();
        loop {
            let (element, rest) = match pattern {
                [] => return Ok(Self(elements)),
                [b'*', rest @ ..] => (Element::Star, rest),
                [b'?', rest @ ..] => (Element::Any, rest),
                [b'[', rest @ ..] => class(rest, any_case),
                [b'\\', plain, rest @ ..] | [plain, rest @ ..] => (one(*plain, any_case), rest),
            };
            pattern = rest;
            if element != Element::Star || elements.last() != Some(&Element::Star) {
                elements.push(element);
            }
        }
    }

    /// Whether the whole text matches.
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        self.find(text).0
    }

    /// The same, and how many steps it took: at most one more than the product of the lengths, each
    /// taken to be one larger. It goes back to the last star only.
    fn find(&self, text: &[u8]) -> (bool, usize) {
        let (mut pattern, mut text) = (self.0.as_slice(), text);
        // Where to go on if what follows the last star does not match: behind it, one byte later.
        let mut again: Option<(&[Element], &[u8])> = None;
        let mut steps = 0;
        loop {
            steps += 1;
            let next = match (pattern, text) {
                ([Element::Star], _) | ([], []) => return (true, steps),
                ([Element::Star, rest @ ..], _) => {
                    again = Some((rest, text));
                    pattern = rest;
                    continue;
                }
                (_, []) => return (false, steps),
                ([], _) => None,
                ([element, rest @ ..], [byte, after @ ..]) => {
                    element.takes(*byte).then_some((rest, after))
                }
            };
            (pattern, text) = match (next, again) {
                (Some(next), _) => next,
                (None, Some((behind, [_, later @ ..]))) => {
                    again = Some((behind, later));
                    (behind, later)
                }
                (None, _) => return (false, steps),
            };
        }
    }
}

impl Element {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Star | Self::Any => true,
            Self::One(own) => *own == byte,
            Self::Class(class) => class.has(byte),
        }
    }
}

fn one(byte: u8, any_case: bool) -> Element {
    if !any_case || !byte.is_ascii_alphabetic() {
        return Element::One(byte);
    }
    let mut both = Class::default();
    both.insert(byte.to_ascii_lowercase());
    both.insert(byte.to_ascii_uppercase());
    Element::Class(Box::new(both))
}

/// A class behind its `[`, and what follows it. One that is not closed ends with the pattern, as in
/// Redis.
fn class(pattern: &[u8], any_case: bool) -> (Element, &[u8]) {
    let fold = |byte: u8| if any_case { byte.to_ascii_lowercase() } else { byte };
    let (negated, mut rest) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut listed = Class::default();
    loop {
        rest = match rest {
            [] => break,
            [b']', after @ ..] => {
                rest = after;
                break;
            }
            [b'\\', escaped, after @ ..] => {
                listed.insert(fold(*escaped));
                after
            }
            [from, b'-', to, after @ ..] => {
                let (from, to) = (fold(*from), fold(*to));
                (from.min(to)..=from.max(to)).for_each(|byte| listed.insert(byte));
                after
            }
            [plain, after @ ..] => {
                listed.insert(fold(*plain));
                after
            }
        };
    }
    let mut class = Class::default();
    let taken = (0..=u8::MAX).filter(|byte| listed.has(fold(*byte)) != negated);
    taken.for_each(|byte| class.insert(byte));
    (Element::Class(Box::new(class)), rest)
}

/// Many texts held against one pattern, in slices of bounded work, after each of which whatever
/// else the thread has to do gets its turn.
#[derive(Debug)]
pub(crate) struct Sieve<'a> {
    pattern: &'a Pattern,
    /// Steps of the present slice.
    steps: usize,
}

impl<'a> Sieve<'a> {
    pub(crate) fn new(pattern: &'a Pattern) -> Self {
        Self { pattern, steps: 0 }
    }

    /// Whether the whole text matches.
    pub(crate) async fn keeps(&mut self, text: &[u8]) -> bool {
        if self.steps >= SLICE_STEPS_MAX {
            self.steps = 0;
            tokio::task::yield_now().await;
        }
        let (matches, steps) = self.pattern.find(text);
        self.steps += steps;
        matches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn matches(pattern: impl AsRef<[u8]>, text: impl AsRef<[u8]>) -> bool {
        Pattern::new(pattern.as_ref()).unwrap().matches(text.as_ref())
    }

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
            ("[^", "a"),
            (r"a\", r"a\"),
            ("a***b", "axyb"),
        ];
        for (pattern, text) in yes {
            assert!(matches(pattern, text), "{pattern} {text}");
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
            ("[]", "]"),
            ("?", ""),
        ];
        for (pattern, text) in no {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
        let any_case =
            |pattern: &[u8], text: &[u8]| Pattern::any_case(pattern).unwrap().matches(text);
        assert!(any_case(b"MaxC*", b"maxclients") && any_case(b"[A]", b"a"));
        assert!(any_case(b"[^b]", b"A") && !any_case(b"[^A]", b"a"));
    }

    #[test]
    fn no_pattern_takes_more_steps_than_the_product_of_the_lengths() {
        let text = [b'a'; wire::KEY_MAX];
        let class = [b"*[".as_slice(), &[b'b'; PATTERN_MAX - 3], b"]"].concat();
        let patterns = [
            b"*a".repeat(PATTERN_MAX / 2),
            [b"a*".repeat(PATTERN_MAX / 2 - 1), b"b".to_vec()].concat(),
            [b"*".to_vec(), b"a".repeat(500), b"b".to_vec()].concat(),
            b"*[".repeat(PATTERN_MAX / 2),
            class.clone(),
        ];
        for pattern in patterns {
            let pattern = Pattern::new(&pattern).unwrap();
            let (matched, steps) = pattern.find(&text);
            assert!(!matched);
            assert!(steps <= (pattern.0.len() + 1) * (text.len() + 1) + 1, "{steps} steps");
        }
        // However long a class is, to ask it is one step.
        let (_, steps) = Pattern::new(&class).unwrap().find(&text);
        assert!(steps <= 2 * text.len() + 2, "{steps} steps");
    }

    #[test]
    fn a_pattern_that_is_too_long_is_none() {
        assert!(Pattern::new(&[b'a'; PATTERN_MAX]).is_ok());
        let refused = Pattern::new(&[b'['; PATTERN_MAX + 1]).unwrap_err();
        let text = "a pattern has at most 4096 bytes here, and this one has 4097";
        assert_eq!(refused.to_string(), text);
    }

    #[test]
    fn many_matches_let_others_have_their_turn() {
        let pattern = [b"*".to_vec(), b"a".repeat(500), b"b".to_vec()].concat();
        let pattern = Pattern::new(&pattern).unwrap();
        let text = [b'a'; wire::KEY_MAX];
        let (_, each) = pattern.find(&text);
        let mut sieve = Sieve::new(&pattern);
        let mut all = pin!(async {
            for _ in 0..100 {
                assert!(!sieve.keeps(&text).await);
            }
        });
        let mut turns = 1;
        let mut context = Context::from_waker(Waker::noop());
        while all.as_mut().poll(&mut context) == Poll::Pending {
            turns += 1;
        }
        let most = SLICE_STEPS_MAX + each;
        assert!(turns >= 100 * each / most, "{turns} turns for {} steps", 100 * each);
    }
}
