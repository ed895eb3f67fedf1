//! Hexadecimal digits: on each line a datagram, or a frame or IP packet with one in it.

use super::frame::{self, LinkType};
use super::reading::{Captured, Reading, unread};
use console::exit::Failure;
use std::io::{BufRead as _, BufReader, Cursor, Read};

/// Bytes of a line: the digits of the longest IP packet, twice over for what stands between them.
const LINE_MAX: u64 = 4 * 65_536;

pub(super) fn read(
    head: Vec<u8>,
    input: Box<dyn Read>,
    reading: &mut Reading<'_>,
) -> Result<(), Failure> {
    let mut lines = BufReader::new(Cursor::new(head).chain(input));
    let mut line = Vec::new();
    for number in 1.. {
        reading.taker.pause()?;
        line.clear();
        let len = (&mut lines).take(LINE_MAX).read_until(b'\n', &mut line).map_err(unread)?;
        if len == 0 {
            break;
        }
        let text = line.trim_ascii();
        if text.is_empty() || text.starts_with(b"#") {
            continue;
        }
        let bytes = bytes(text).ok_or_else(|| refusal(number, len as u64 == LINE_MAX))?;
        if wire::dissect::is_ours(&bytes) {
            let captured = Captured { number, at: None, ends: None, bytes: &bytes, cut: false };
            reading.take(captured)?;
            continue;
        }
        match frame::datagram(LinkType::guess(&bytes), &bytes) {
            Ok(found) => reading.take(found.captured(number, None))?,
            Err(what) => reading.other(what),
        }
    }
    Ok(())
}

fn refusal(number: u64, is_long: bool) -> Failure {
    let what = if is_long { "is too long" } else { "is no row of hexadecimal digit pairs" };
    Failure::usage(format!(
        "line {number} of standard input {what}: give a capture (pcap or pcapng), or each datagram \
         as hexadecimal digits on a line of its own, as `xxd -p -c 0` prints them"
    ))
}

/// The bytes that these digits stand for; what people put between them counts for nothing.
fn bytes(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_prefix(b"0x").unwrap_or(text);
    let between = |byte: &&u8| !matches!(byte, b' ' | b'\t' | b':' | b'-');
    let digits: Vec<u8> = text.iter().filter(between).copied().collect();
    data_encoding::HEXLOWER_PERMISSIVE.decode(&digits).ok()
}
