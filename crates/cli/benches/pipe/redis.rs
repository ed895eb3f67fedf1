//! RESP, as Redis speaks it.

use crate::load::closed_loop::{Reply, Request};
use crate::pipe::{Protocol, split_line, split_value};
use std::io::Write as _;

pub(crate) const PROTOCOL: Protocol = Protocol { encode, parse };

fn encode(out: &mut Vec<u8>, request: &Request<'_>) {
    match request.value {
        None => out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n$16\r\n"),
        Some(_) => out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n$16\r\n"),
    }
    out.extend_from_slice(request.key);
    out.extend_from_slice(b"\r\n");
    if let Some(value) = request.value {
        write!(out, "${}\r\n", value.len()).expect("memory takes it");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
}

fn parse(bytes: &[u8]) -> Option<(Reply<'_>, usize)> {
    let (line, rest) = split_line(bytes)?;
    let (reply, rest) = match line {
        b"+OK" => (Reply::Done, rest),
        [b'$', b'0'..=b'9', ..] => {
            let (value, rest) = split_value(line.strip_prefix(b"$")?, rest)?;
            (Reply::Value(value), rest)
        }
        other => (Reply::Failed(other.escape_ascii().to_string()), rest),
    };
    Some((reply, bytes.len() - rest.len()))
}
