//! Tells code from comments and literals, so that rules about code do not stumble over prose.

/// What a character belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// Two copies of a Rust source with the same lines and columns: one with everything but code
/// blanked out (quotes stay), one with everything but comments.
pub(super) fn separate(text: &str) -> (String, String) {
    let chars: Vec<char> = text.chars().collect();
    let kinds = classify(&chars);
    let only = |wanted: Kind| {
        let keep = |(c, kind): (&char, &Kind)| match *c {
            '\n' => '\n',
            c if *kind == wanted => c,
            _ => ' ',
        };
        chars.iter().zip(&kinds).map(keep).collect::<String>()
    };
    (only(Kind::Code), only(Kind::Comment))
}

fn classify(chars: &[char]) -> Vec<Kind> {
    let mut kinds = Vec::with_capacity(chars.len());
    while kinds.len() < chars.len() {
        let rest = chars.get(kinds.len()..).unwrap_or_default();
        let before = kinds.len().checked_sub(1).and_then(|i| chars.get(i)).copied();
        let (kind, length) = token(rest, before);
        kinds.extend(std::iter::repeat_n(kind, length.min(rest.len()).max(1)));
    }
    kinds
}

/// What `rest` begins with, and how long it is.
fn token(rest: &[char], before: Option<char>) -> (Kind, usize) {
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    match rest {
        ['/', '/', ..] => {
            let end = rest.iter().position(|c| *c == '\n');
            (Kind::Comment, end.unwrap_or(rest.len()))
        }
        ['/', '*', ..] => (Kind::Comment, block_comment(rest)),
        ['"', ..] => (Kind::Literal, quoted(rest, '"')),
        ['\'', '\\', ..] => (Kind::Literal, quoted(rest, '\'')),
        // A character, not a lifetime.
        ['\'', _, '\'', ..] => (Kind::Literal, 3),
        ['r', '"' | '#', ..] if !in_word || before == Some('b') => raw(rest),
        _ => (Kind::Code, 1),
    }
}

fn block_comment(rest: &[char]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    loop {
        match rest.get(at..).unwrap_or_default() {
            [] => return rest.len(),
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] if depth == 1 => return at + 2,
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
}

fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    loop {
        match rest.get(at) {
            None => return rest.len(),
            Some('\\') => at += 2,
            Some(c) if *c == quote => return at + 1,
            Some(_) => at += 1,
        }
    }
}

/// A raw string `r#"..."#`, or a raw identifier `r#match`, which is code.
fn raw(rest: &[char]) -> (Kind, usize) {
    let hashes = rest.iter().skip(1).take_while(|c| **c == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return (Kind::Code, 1);
    }
    let mut end = vec!['"'];
    end.extend(std::iter::repeat_n('#', hashes));
    let start = hashes + 2;
    let body = rest.get(start..).unwrap_or_default();
    let length = body.windows(end.len()).position(|window| window == end.as_slice());
    (Kind::Literal, length.map_or(rest.len(), |length| start + length + end.len()))
}

/// Whether `word` stands in `code` as a word of its own; it may hold `::`.
pub(super) fn has_word(code: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code.get(..at).and_then(|s| s.chars().next_back());
        let after = code.get(at + word.len()..).and_then(|s| s.chars().next());
        let starts = word.starts_with(part) && before.is_some_and(part);
        let ends = word.ends_with(part) && after.is_some_and(part);
        !starts && !ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let squeezed = separate(text).0;
        squeezed.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        assert_eq!(code("a // b\nc"), "a c");
        assert_eq!(code("a /* b /* c */ d */ e"), "a e");
        assert_eq!(code(r#"a("b \" c { // d"); e"#), "a( ); e");
        assert_eq!(code("a(r#\"b \" c\"#) + r\"d\" + br\"e\""), "a( ) + + b");
        assert_eq!(code("a('{', '\\'', b'x', '\\u{7f}')"), "a( , , b , )");
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        assert_eq!(code("fn a<'b>(c: &'b str) { r#match }"), "fn a<'b>(c: &'b str) { r#match }");
    }

    #[test]
    fn lines_stay_where_they_were() {
        let text = "a\n/* b\nc */ d\n\"e\nf\" g\n";
        let (code, comments) = separate(text);
        assert_eq!(code.lines().count(), text.lines().count());
        assert_eq!(comments.lines().nth(2).map(str::trim), Some("c */"));
        assert_eq!(code.lines().nth(4).map(str::trim), Some("g"));
    }

    #[test]
    fn what_never_ends_ends_with_the_file() {
        for text in ["\"a", "/* a", "r#\"a", "'\\", "r"] {
            let (code, _) = separate(text);
            assert_eq!(code.chars().count(), text.chars().count());
        }
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("let x: Foo = a::b();", "Foo") && has_word("a::b()", "a::b"));
        assert!(!has_word("FooBar MyFoo foo_Foo", "Foo"));
        assert!(has_word("todo!()", "todo!"));
    }
}
