//! What the bytes of a field say, and what is to be said of the whole packet.

use crate::capture::Captured;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, SystemTime};
use wire::dissect::{self, Field, Shown};
use wire::{Fields as _, HEADER_LEN, Packet};

/// What the bytes of a field say.
pub(super) enum Said {
    Number(u64),
    Signed(i64),
    Hex(String),
    Word(String),
    Words(Vec<String>),
    Ids(Vec<u16>),
}

pub(super) fn said(field: &Field, bytes: &[u8], op: u8) -> Said {
    let value = dissect::number(bytes);
    let low = u64::try_from(value & u128::from(u64::MAX)).expect("64 bits");
    match field.shown {
        Shown::Number => Said::Number(low),
        Shown::Signed => Said::Signed(low.cast_signed()),
        Shown::Hex => Said::Hex(console::bytes::to_hex(bytes)),
        Shown::Address => Said::Word(address(value).to_string()),
        Shown::Ids => {
            let ids = bytes.as_chunks::<2>().0.iter().map(|id| u16::from_be_bytes(*id));
            Said::Ids(ids.filter(|id| *id != wire::NOBODY).collect())
        }
        Shown::Named(name) => match bytes.first().and_then(|byte| name(*byte)) {
            Some(name) => Said::Word(name.to_owned()),
            None => Said::Number(low),
        },
        Shown::Bits(flags) => {
            let byte = bytes.first().copied().unwrap_or_default();
            let word = |name: Result<&str, u8>| {
                name.map_or_else(|bit| format!("bit {bit}"), ToOwned::to_owned)
            };
            Said::Words(dissect::names(flags, byte, op).map(word).collect())
        }
    }
}

pub(super) fn address(value: u128) -> IpAddr {
    Ipv6Addr::from(value).to_canonical()
}

/// The operation, as a byte; 0 if the header does not reach that far.
pub(super) fn op(datagram: &[u8]) -> u8 {
    datagram.first_chunk::<HEADER_LEN>().map_or(0, |header| header.op())
}

/// Whether a datagram is on its last way, to its reply address, if that is known.
pub(super) fn is_delivered(captured: &Captured<'_>, datagram: &[u8]) -> Option<bool> {
    let (_, to) = captured.ends?;
    let header = datagram.first_chunk::<HEADER_LEN>()?;
    let reply = address(u128::from_be_bytes(header.reply_addr()));
    Some(to.ip().to_canonical() == reply && to.port() == header.reply_port())
}

/// Under which reason whoever it is for drops it, if it does. Of one that the capture cut nobody
/// knows.
pub(super) fn drop_reason(captured: &Captured<'_>, datagram: &[u8]) -> Option<&'static str> {
    if captured.cut || datagram.is_empty() {
        return None;
    }
    let checked = Packet::parse(datagram).and_then(|packet| packet.body().map(drop));
    checked.err().map(wire::DropReason::name)
}

/// When, as RFC 3339 has it.
pub(super) fn time(at: Duration) -> Option<String> {
    let at = SystemTime::UNIX_EPOCH.checked_add(at)?;
    let mut text = String::new();
    // What lies beyond the year 9999 cannot be written so.
    write!(text, "{}", humantime::format_rfc3339_micros(at)).ok()?;
    Some(text)
}
