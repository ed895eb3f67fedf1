//! Replies as bytes, in the version of RESP that the client has asked for.

use crate::Reply;
use bytes::{BufMut as _, BytesMut};
use std::fmt::Write as _;

/// A version of RESP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// What every client speaks before it says otherwise.
    #[default]
    Two,
    /// With maps, sets, doubles, booleans and one null.
    Three,
}

impl Version {
    /// As a number.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Two => 2,
            Self::Three => 3,
        }
    }
}

/// Appends a reply.
pub fn encode(reply: &Reply, version: Version, out: &mut BytesMut) {
    let three = version == Version::Three;
    match reply {
        Reply::Status(text) => put_line(out, b'+', text),
        Reply::Error(text) => put_line(out, b'-', text),
        Reply::Integer(number) => put_text(out, format_args!(":{number}\r\n")),
        Reply::Bulk(bytes) => put_bulk(out, bytes),
        // Its bytes, and the end of the line, are written as they come.
        Reply::Long(long) => put_text(out, format_args!("${}\r\n", long.len())),
        Reply::Null | Reply::NullArray if three => out.put_slice(b"_\r\n"),
        Reply::Null => out.put_slice(b"$-1\r\n"),
        Reply::NullArray => out.put_slice(b"*-1\r\n"),
        Reply::Array(items) => put_all(out, b'*', items, version),
        Reply::Set(items) => put_all(out, if three { b'~' } else { b'*' }, items, version),
        Reply::Map(pairs) => {
            if three {
                put_text(out, format_args!("%{}\r\n", pairs.len()));
            } else {
                put_text(out, format_args!("*{}\r\n", 2 * pairs.len()));
            }
            for (key, value) in pairs {
                encode(key, version, out);
                encode(value, version, out);
            }
        }
        Reply::Double(number) if three => put_text(out, format_args!(",{}\r\n", decimal(*number))),
        Reply::Double(number) => put_bulk(out, decimal(*number).as_bytes()),
        Reply::Boolean(is) if three => out.put_slice(if *is { b"#t\r\n" } else { b"#f\r\n" }),
        Reply::Boolean(is) => put_text(out, format_args!(":{}\r\n", u8::from(*is))),
        Reply::Verbatim(bytes) if three => {
            put_text(out, format_args!("={}\r\ntxt:", bytes.len() + 4));
            out.put_slice(bytes);
            out.put_slice(b"\r\n");
        }
        Reply::Verbatim(bytes) => put_bulk(out, bytes),
    }
}

fn put_all(out: &mut BytesMut, kind: u8, items: &[Reply], version: Version) {
    out.put_u8(kind);
    put_text(out, format_args!("{}\r\n", items.len()));
    for item in items {
        encode(item, version, out);
    }
}

fn put_bulk(out: &mut BytesMut, bytes: &[u8]) {
    put_text(out, format_args!("${}\r\n", bytes.len()));
    out.put_slice(bytes);
    out.put_slice(b"\r\n");
}

/// A line: what would end it early, from a client's own words most likely, becomes a space.
fn put_line(out: &mut BytesMut, kind: u8, text: &str) {
    out.put_u8(kind);
    for (nth, part) in text.split(['\r', '\n']).enumerate() {
        if nth > 0 {
            out.put_u8(b' ');
        }
        out.put_slice(part.as_bytes());
    }
    out.put_slice(b"\r\n");
}

fn put_text(out: &mut BytesMut, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a growing buffer takes everything");
}

/// A number as Redis writes it.
fn decimal(number: f64) -> String {
    if number.is_nan() { "nan".to_owned() } else { number.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reply: Reply, two: &str, three: &str) {
        for (version, expected) in [(Version::Two, two), (Version::Three, three)] {
            let mut out = BytesMut::new();
            encode(&reply, version, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected, "{reply:?} in {version:?}");
        }
    }

    #[test]
    fn every_reply_has_its_form_in_both_versions() {
        check(Reply::OK, "+OK\r\n", "+OK\r\n");
        check(Reply::error("ERR no"), "-ERR no\r\n", "-ERR no\r\n");
        check(Reply::Integer(-7), ":-7\r\n", ":-7\r\n");
        check(Reply::bulk("a\r\n"), "$3\r\na\r\n\r\n", "$3\r\na\r\n\r\n");
        check(Reply::bulk(""), "$0\r\n\r\n", "$0\r\n\r\n");
        check(Reply::Null, "$-1\r\n", "_\r\n");
        check(Reply::NullArray, "*-1\r\n", "_\r\n");
        let items = vec![Reply::Integer(1), Reply::Array(Vec::new())];
        check(Reply::Array(items.clone()), "*2\r\n:1\r\n*0\r\n", "*2\r\n:1\r\n*0\r\n");
        check(Reply::Set(items), "*2\r\n:1\r\n*0\r\n", "~2\r\n:1\r\n*0\r\n");
        let pairs = vec![(Reply::bulk("a"), Reply::Null)];
        check(Reply::Map(pairs), "*2\r\n$1\r\na\r\n$-1\r\n", "%1\r\n$1\r\na\r\n_\r\n");
        check(Reply::Double(1.5), "$3\r\n1.5\r\n", ",1.5\r\n");
        check(Reply::Double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n");
        check(Reply::Double(f64::NAN), "$3\r\nnan\r\n", ",nan\r\n");
        check(Reply::Boolean(true), ":1\r\n", "#t\r\n");
        check(Reply::Verbatim("ab".into()), "$2\r\nab\r\n", "=6\r\ntxt:ab\r\n");
    }

    #[test]
    fn no_text_ends_its_line_early() {
        let text = "ERR unknown command 'a\r\n+OK'".to_owned();
        let line = "-ERR unknown command 'a  +OK'\r\n";
        check(Reply::Error(text.into()), line, line);
    }
}
