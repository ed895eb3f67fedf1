//! Keys and values on the command line and on the way out: they are bytes, people type text.

use crate::exit::Failure;
use crate::file::{self, Input};
use crate::out;
use serde_json::{Map, Value, json};
use std::path::Path;

/// A key as typed.
pub fn key(text: &str, hex: bool) -> Result<Vec<u8>, Failure> {
    let key = if hex { from_hex(text)? } else { text.as_bytes().to_vec() };
    if key.is_empty() {
        return Err(Failure::usage("a key has at least one byte"));
    }
    Ok(key)
}

/// A value as typed: text, `@FILE`, `-` for standard input, `@@...` for text that begins with @.
/// From a file all of it is read.
pub fn value(text: &str, hex: bool) -> Result<Vec<u8>, Failure> {
    match source(text) {
        Source::Text(text) => self::text(text, hex),
        Source::File(path) => open(path)?.all(),
    }
}

/// The same, of which only the beginning is read if it is long.
pub fn long_value(text: &str, hex: bool) -> Result<file::Value, Failure> {
    match source(text) {
        Source::Text(text) => self::text(text, hex).map(file::Value::Held),
        Source::File(path) => open(path)?.value(),
    }
}

enum Source<'a> {
    Text(&'a str),
    File(&'a Path),
}

fn source(text: &str) -> Source<'_> {
    match text.strip_prefix('@') {
        Some(rest) if rest.starts_with('@') => Source::Text(rest),
        Some(path) => Source::File(Path::new(path)),
        None if text == "-" => Source::File(Path::new(text)),
        None => Source::Text(text),
    }
}

fn open(path: &Path) -> Result<Input, Failure> {
    Input::open(path).map_err(|failure| match failure {
        Failure::Other(why) => {
            Failure::usage(format!("{why:#}; for text that begins with @ write @@"))
        }
        other => other,
    })
}

/// A value that is nothing but text, or hexadecimal digits.
pub fn text(text: &str, hex: bool) -> Result<Vec<u8>, Failure> {
    if hex { from_hex(text) } else { Ok(text.as_bytes().to_vec()) }
}

/// How bytes are shown.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Always as hexadecimal digits.
    pub hex: bool,
}

impl Style {
    /// On one line: hexadecimal if asked for, else text with escapes for what is not printable.
    pub fn line(self, bytes: &[u8]) -> String {
        if self.hex {
            return to_hex(bytes);
        }
        match std::str::from_utf8(bytes) {
            Ok(text) if !text.chars().any(|c| c.is_control() || c == '\\') => text.to_owned(),
            _ => bytes.escape_ascii().to_string(),
        }
    }

    /// Puts bytes into a JSON object, as text or, if they are none, as hexadecimal digits under
    /// `NAME_hex`.
    pub fn put(self, object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(text) if !self.hex => object.insert(name.to_owned(), json!(text)),
            _ => object.insert(format!("{name}_hex"), json!(to_hex(bytes))),
        };
    }
}

/// Writes a value to standard output as it is, with a newline if a person reads it there.
pub fn print_raw(bytes: &[u8], style: Style) -> Result<(), Failure> {
    if style.hex {
        return out::line(&to_hex(bytes));
    }
    out::raw(bytes)?;
    if out::is_terminal() { out::line("") } else { Ok(()) }
}

/// Two digits for each byte.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Result<Vec<u8>, Failure> {
    let bad = || Failure::usage(format!("{text:?} is not a row of hexadecimal digit pairs"));
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(bad());
    }
    let pairs = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2).unwrap_or_default());
    pairs.map(|pair| u8::from_str_radix(pair, 16).map_err(|_| bad())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_read_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&to_hex(&bytes)).unwrap(), bytes);
        for text in ["0", "0g", "+1", "é", "0 "] {
            assert!(from_hex(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_line_shows_text_as_it_is_and_the_rest_escaped() {
        let style = Style { hex: false };
        assert_eq!(style.line("grün".as_bytes()), "grün");
        assert_eq!(style.line(b"a\tb\xff"), r"a\tb\xff");
        assert_eq!(style.line(br"a\b"), r"a\\b");
        assert_eq!(Style { hex: true }.line(b"\x01a"), "0161");
    }

    #[test]
    fn json_tells_text_from_bytes() {
        let mut object = Map::new();
        let style = Style { hex: false };
        style.put(&mut object, "key", b"k");
        style.put(&mut object, "value", b"\xff");
        assert_eq!(Value::Object(object), json!({ "key": "k", "value_hex": "ff" }));
    }

    #[test]
    fn an_at_sign_can_be_doubled() {
        assert_eq!(value("@@home", false).unwrap(), b"@home");
        assert!(value("@/does/not/exist", false).unwrap_err().message().contains("@@"));
        assert_eq!(value("6b", true).unwrap(), b"k");
        assert!(key("", false).is_err());
    }
}
