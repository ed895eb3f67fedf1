//! A packet as lines of text.

use super::said::{Said, drop_reason, is_delivered, op, said, time};
use crate::capture::Captured;
use console::bytes::{Style, to_hex};
use console::out::{Tone, paint};
use wire::dissect::{Item, dissect, split_envelope};
use wire::{EnvelopeBody, Op};

/// Columns that lines of fields have at most, if words allow it.
const WIDTH: usize = 100;
const INDENT: &str = "    ";

/// Several lines, the last without its end: what it is, its header, its payload.
pub(crate) fn text(captured: &Captured<'_>, datagram: &[u8]) -> String {
    let (_, packet) = split_envelope(datagram);
    let op = op(packet);
    let mut lines = Lines { op, ..Lines::default() };
    dissect(datagram, is_delivered(captured, packet), &mut |item| lines.take(item));
    lines.close();
    let mut title = captured.number.to_string();
    if let Some(at) = captured.at.and_then(time) {
        title += &format!("  {at}");
    }
    if let Some((from, to)) = captured.ends {
        title += &format!("  {from} > {to}");
    }
    let name = match Op::from_wire(op) {
        Some(op) => op.name().to_owned(),
        None if packet.is_empty() && datagram.len() == EnvelopeBody::LEN => "cookie".to_owned(),
        None => format!("op {op:#04x}"),
    };
    title += &format!("  {}  {} bytes", paint(Tone::Good, &name), datagram.len());
    let mut text = format!("{title}\n{}", lines.done.join("\n"));
    if captured.cut {
        text += &format!("\n{INDENT}the capture has only the beginning of it");
    }
    if let Some(reason) = drop_reason(captured, packet) {
        text += &format!("\n{INDENT}{}", paint(Tone::Bad, &format!("is dropped: {reason}")));
    }
    text
}

#[derive(Default)]
struct Lines {
    op: u8,
    done: Vec<String>,
    /// The words of the line that is being made.
    open: String,
    /// The last field that may be something else.
    unsure: bool,
}

impl Lines {
    fn take(&mut self, item: Item<'_>) {
        match item {
            Item::Field { field, bytes, sure } => {
                let or = if !sure && self.unsure { "or " } else { "" };
                self.unsure = !sure;
                let said = word(said(field, bytes, self.op));
                self.push(&format!("{or}{} {said}", field.name));
            }
            Item::Bytes { name, bytes } => {
                let line = Style { hex: false }.line(bytes);
                self.push(&format!("{name} \"{line}\""));
            }
            Item::Begin(name) => {
                self.close();
                self.open = format!("{INDENT}{name}:");
            }
            Item::End => self.close(),
            Item::Missing(name) => {
                self.close();
                self.push(&paint(Tone::Bad, &format!("ends before {name}")));
            }
            Item::Left(bytes) => {
                self.close();
                self.push(&format!("left {}", to_hex(bytes)));
            }
        }
    }

    fn push(&mut self, words: &str) {
        if self.open.len() + 2 + words.len() > WIDTH {
            self.close();
        }
        let between = if self.open.is_empty() { INDENT } else { "  " };
        self.open += &format!("{between}{words}");
    }

    fn close(&mut self) {
        let line = std::mem::take(&mut self.open);
        if !line.is_empty() {
            self.done.push(line);
        }
    }
}

fn word(said: Said) -> String {
    match said {
        Said::Number(number) => number.to_string(),
        Said::Signed(number) => number.to_string(),
        Said::Hex(digits) => format!("0x{digits}"),
        Said::Word(word) => word,
        Said::Words(words) if words.is_empty() => "-".to_owned(),
        Said::Words(words) => words.join("|"),
        Said::Ids(ids) => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            format!("[{}]", ids.join(" "))
        }
    }
}
