//! What packets say, field by field, for programs that show them to people: the tables that
//! `spec/layout.toml` becomes, and how to go through a datagram by them. Nothing here knows a body
//! or an operation, and nothing that takes part in the protocol needs any of it.

mod tables;
#[cfg(test)]
mod tests;

use crate::layout::{ENVELOPE_MAGIC, EnvelopeBody, Fields, HEADER_LEN, MAGIC};
use alloc::vec::Vec;

/// A field of the header or of a body.
#[derive(Debug)]
pub struct Field {
    /// As the specification has it.
    pub name: &'static str,
    /// Where it begins in the header or the body.
    pub at: usize,
    /// Bytes.
    pub size: usize,
    /// How people see it.
    pub shown: Shown,
    when: &'static [When],
    /// Of ids: the field that counts them.
    count: Option<&'static str>,
    /// Of ids: the field that those behind them are, and when.
    rest: Option<(&'static Field, &'static [When])>,
}

/// How people see a field.
#[derive(Clone, Copy, Debug)]
pub enum Shown {
    /// As a decimal number.
    Number,
    /// As a decimal number, of which the highest bit is the sign.
    Signed,
    /// As hexadecimal digits, all of them.
    Hex,
    /// As an IPv6 address, or the IPv4 address that it stands for.
    Address,
    /// As ids of two bytes each.
    Ids,
    /// By the name of what it stands for.
    Named(fn(u8) -> Option<&'static str>),
    /// As the names of its bits.
    Bits(&'static [Flag]),
}

/// A bit and what it is called.
#[derive(Debug)]
pub struct Flag {
    name: &'static str,
    bit: u8,
    /// The operations that it belongs to; none: all.
    ops: &'static [u8],
}

/// What must hold of a header.
#[derive(Debug)]
struct When {
    ops: &'static [u8],
    codes: &'static [u8],
    codes_from: u8,
    hop: u8,
    hop_clear: u8,
    flags: u8,
    /// Begins and sizes of the fields that are 0.
    zero: &'static [(usize, usize)],
    delivered: Option<bool>,
}

/// The fixed fields of a payload or of a part of it.
#[derive(Debug)]
struct Form {
    name: &'static str,
    fields: &'static [Field],
    kinds: &'static [u8],
    then: &'static [Part],
    tail: &'static [When],
}

#[derive(Debug)]
struct Part {
    what: What,
    when: &'static [When],
    having: Having,
    unless: Having,
}

/// A field, and values of it.
type Having = &'static [(&'static str, &'static [u8])];

#[derive(Debug)]
enum What {
    Form(&'static Form),
    Bytes { name: &'static str, len: Option<&'static str> },
    BytesOf { name: &'static str, lens: &'static str },
    Each { forms: &'static [&'static Form], times: Option<&'static str> },
}

#[derive(Debug)]
struct Payload {
    when: &'static [When],
    parts: &'static [Part],
}

/// One piece of what a datagram says, in the order of its bytes.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// A field of the header, or of the body that has begun.
    Field {
        /// Which one.
        field: &'static Field,
        /// Its bytes, of ids only those that count.
        bytes: &'a [u8],
        /// Whether that is what these bytes are. Where it depends on where the datagram goes, and
        /// nobody has said that, there is an item for each of the fields that they may be.
        sure: bool,
    },
    /// A key, a value or the like.
    Bytes {
        /// What the specification calls it.
        name: &'static str,
        /// All of it, or what there is.
        bytes: &'a [u8],
    },
    /// A body of this name begins; its fields follow.
    Begin(&'static str),
    /// It ends.
    End,
    /// There are too few bytes for this, and nothing follows.
    Missing(&'static str),
    /// Bytes that the header has no room for, or that nothing says the meaning of.
    Left(&'a [u8]),
}

/// The datagrams in what one UDP datagram of a capture carries: mostly one; several where the
/// kernel had not cut yet what was handed to it at once.
pub fn datagrams(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        let (now, later) = rest.split_at_checked(one_len(rest))?;
        rest = later;
        (!now.is_empty()).then_some(now)
    })
}

/// Whether these bytes begin as every packet does, or as the envelope of one.
#[must_use]
pub fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC.to_be_bytes()) || bytes.starts_with(&ENVELOPE_MAGIC.to_be_bytes())
}

/// The envelope of a datagram, which is empty if it has none, and the packet behind it.
#[must_use]
pub fn split_envelope(datagram: &[u8]) -> (&[u8], &[u8]) {
    let is_in_one = datagram.starts_with(&ENVELOPE_MAGIC.to_be_bytes());
    let len = if is_in_one { datagram.len().min(EnvelopeBody::LEN) } else { 0 };
    datagram.split_at(len)
}

/// Bytes of the first datagram: all, unless another begins where the header says that it ends.
fn one_len(bytes: &[u8]) -> usize {
    let (envelope, packet) = split_envelope(bytes);
    let header = packet.first_chunk::<HEADER_LEN>();
    let before = envelope.len() + HEADER_LEN;
    let len = header.map(|header| before + usize::from(header.payload_len()));
    let another = |len: &usize| bytes.get(*len..).is_some_and(is_ours);
    len.filter(another).unwrap_or(bytes.len())
}

/// Says what a datagram consists of. `delivered`: whether it is on its last way, to the reply
/// address, if that is known.
pub fn dissect<'a>(datagram: &'a [u8], delivered: Option<bool>, tell: &mut dyn FnMut(Item<'a>)) {
    let (envelope, packet) = split_envelope(datagram);
    if !envelope.is_empty() {
        tell_envelope(envelope, tell);
        // Of one that is cut nothing follows, and a cookie is all that there is.
        if packet.is_empty() {
            return;
        }
    }
    let (head, payload) = packet.split_at(packet.len().min(HEADER_LEN));
    let header = Header { bytes: head, delivered };
    header.tell(tell);
    if head.len() == HEADER_LEN {
        Walk { header, rest: payload, seen: Vec::new(), level: 0, tell }.payload();
    }
}

/// The name of the body that an envelope is.
pub const ENVELOPE: &str = "envelope";

fn tell_envelope<'a>(bytes: &'a [u8], tell: &mut dyn FnMut(Item<'a>)) {
    if bytes.len() < EnvelopeBody::LEN {
        return tell(Item::Missing(ENVELOPE));
    }
    tell(Item::Begin(ENVELOPE));
    let form = tables::FORMS.iter().find(|form| form.name == ENVELOPE);
    for field in form.into_iter().flat_map(|form| form.fields) {
        let bytes = bytes.get(field.at..field.at + field.size).unwrap_or_default();
        tell(Item::Field { field, bytes, sure: true });
    }
    tell(Item::End);
}

/// Names of the bits that are set; of one that has none its number.
pub fn names(
    flags: &'static [Flag],
    byte: u8,
    op: u8,
) -> impl Iterator<Item = Result<&'static str, u8>> {
    let named = move |bit: u8| {
        let of_op =
            |flag: &&Flag| flag.bit == bit && (flag.ops.is_empty() || flag.ops.contains(&op));
        flags.iter().find(of_op).map(|flag| flag.name).ok_or(bit)
    };
    (0..8).filter(move |bit| byte & 1 << bit != 0).map(named)
}

/// Big-endian bytes as a number.
#[must_use]
pub fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// What is known about a condition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holds {
    No,
    Perhaps,
    Yes,
}

#[derive(Clone, Copy)]
struct Header<'a> {
    bytes: &'a [u8],
    delivered: Option<bool>,
}

impl<'a> Header<'a> {
    fn of(self, field: &Field) -> Option<&'a [u8]> {
        self.bytes.get(field.at..field.at + field.size)
    }

    fn named(self, name: &str) -> Option<usize> {
        let field = tables::HEADER.iter().find(|field| field.name == name)?;
        usize::try_from(number(self.of(field)?)).ok()
    }

    fn any(self, when: &[When]) -> Holds {
        when.iter().map(|row| self.holds(row)).max().unwrap_or(Holds::No)
    }

    fn holds(self, when: &When) -> Holds {
        let Some(header) = self.bytes.first_chunk::<HEADER_LEN>() else { return Holds::No };
        let one_of = |list: &[u8], byte| list.is_empty() || list.contains(&byte);
        let is_zero = |at: &(usize, usize)| {
            header.get(at.0..at.0 + at.1).is_some_and(|bytes| number(bytes) == 0)
        };
        let sure = one_of(when.ops, header.op())
            && one_of(when.codes, header.code())
            && header.code() >= when.codes_from
            && header.hop_flags() & when.hop == when.hop
            && header.hop_flags() & when.hop_clear == 0
            && header.flags() & when.flags == when.flags
            && when.zero.iter().all(is_zero);
        match (sure, when.delivered, self.delivered) {
            (true, None, _) => Holds::Yes,
            (true, Some(_), None) => Holds::Perhaps,
            (true, Some(wanted), Some(is)) if wanted == is => Holds::Yes,
            (true, Some(_), Some(_)) | (false, ..) => Holds::No,
        }
    }

    fn tell(self, tell: &mut dyn FnMut(Item<'a>)) {
        for field in &tables::HEADER {
            let holds = if field.when.is_empty() { Holds::Yes } else { self.any(field.when) };
            let Some(bytes) = self.of(field) else {
                tell(Item::Missing(field.name));
                return;
            };
            let used = self.used(field, bytes);
            if holds == Holds::No || field.when.is_empty() && self.is_covered(field, used) {
                continue;
            }
            let sure = holds == Holds::Yes;
            let (bytes, after) = bytes.split_at(used);
            tell(Item::Field { field, bytes, sure });
            if let Some((rest, when)) = field.rest
                && self.any(when) == Holds::Yes
            {
                tell(Item::Field { field: rest, bytes: after, sure: true });
            }
        }
    }

    /// How many bytes of a field mean something.
    fn used(self, field: &Field, bytes: &[u8]) -> usize {
        let count = field.count.and_then(|name| self.named(name));
        count.map_or(bytes.len(), |count| bytes.len().min(2 * count))
    }

    /// Whether an overlay lies over what is used of a field.
    fn is_covered(self, field: &Field, used: usize) -> bool {
        let over = |it: &&Field| it.at < field.at + used && field.at < it.at + it.size;
        tables::HEADER.iter().filter(over).any(|it| self.any(it.when) == Holds::Yes)
    }
}

/// A payload that is gone through.
struct Walk<'a, 't> {
    header: Header<'a>,
    rest: &'a [u8],
    /// The bodies so far, with their bytes.
    seen: Vec<(&'static Form, &'a [u8])>,
    /// Which of them is the one that the parts at hand belong to.
    level: usize,
    tell: &'t mut dyn FnMut(Item<'a>),
}

/// Nothing more can be said: what should be there is not.
struct Ends;

impl<'a> Walk<'a, '_> {
    fn payload(&mut self) {
        let len = self.header.bytes.first_chunk().map_or(0, <[u8; HEADER_LEN]>::payload_len);
        let all = self.rest;
        let (payload, after) = all.split_at(all.len().min(len.into()));
        let has_caught_up = payload.len() == usize::from(len);
        let mut tails = tables::FORMS.iter().filter(|it| self.header.any(it.tail) == Holds::Yes);
        let tail = tails.next().filter(|_| has_caught_up);
        let at = payload.len().saturating_sub(tail.map_or(0, |form| form.len()));
        let (front, end) = payload.split_at(at);
        self.rest = front;
        let mut rows = tables::PAYLOADS.iter();
        let row = rows.find(|row| self.header.any(row.when) == Holds::Yes);
        let parts = self.parts(row.map_or(&[], |row| row.parts));
        self.left();
        self.rest = end;
        let ended = parts.and_then(|()| tail.map_or(Ok(()), |form| self.form(form)));
        if ended.is_ok() && !has_caught_up {
            (self.tell)(Item::Missing("payload"));
        }
        self.left();
        self.rest = after;
        self.left();
    }

    fn left(&mut self) {
        let rest = core::mem::take(&mut self.rest);
        if !rest.is_empty() {
            (self.tell)(Item::Left(rest));
        }
    }

    fn parts(&mut self, parts: &'static [Part]) -> Result<(), Ends> {
        parts
            .iter()
            .filter(|part| part.when.is_empty() || self.header.any(part.when) == Holds::Yes)
            .collect::<Vec<_>>()
            .into_iter()
            .try_for_each(|part| if self.has(part) { self.part(part) } else { Ok(()) })
    }

    /// Whether the bodies so far say that a part is there.
    fn has(&self, part: &Part) -> bool {
        let is_one = |(name, values): &(&'static str, &'static [u8])| {
            let value = self.number(name).and_then(|value| u8::try_from(value).ok());
            value.is_some_and(|value| values.contains(&value))
        };
        part.having.iter().all(is_one) && !part.unless.iter().any(is_one)
    }

    fn part(&mut self, part: &'static Part) -> Result<(), Ends> {
        match part.what {
            What::Form(form) => self.form(form),
            What::Bytes { name, len } => {
                let len = len.map_or(Some(self.rest.len()), |len| self.number(len));
                self.bytes(name, len.unwrap_or(0))
            }
            What::BytesOf { name, lens } => {
                let lens: Vec<&[u8]> =
                    self.seen.iter().filter(|it| it.0.name == lens).map(|it| it.1).collect();
                let mut lens = lens.into_iter().map(|bytes| usize::try_from(number(bytes)));
                lens.try_for_each(|len| self.bytes(name, len.unwrap_or(usize::MAX)))
            }
            What::Each { forms, times } => {
                let mut times = times.map(|name| self.number(name).unwrap_or(0));
                while times.map_or(!self.rest.is_empty(), |times| times > 0) {
                    times = times.map(|times| times - 1);
                    let kind = self.rest.first();
                    let fits = |form: &&&Form| {
                        form.kinds.is_empty() || kind.is_some_and(|kind| form.kinds.contains(kind))
                    };
                    self.form(forms.iter().find(fits).ok_or(Ends)?)?;
                }
                Ok(())
            }
        }
    }

    fn bytes(&mut self, name: &'static str, len: usize) -> Result<(), Ends> {
        let (bytes, rest) = self.rest.split_at(self.rest.len().min(len));
        self.rest = rest;
        (self.tell)(Item::Bytes { name, bytes });
        if bytes.len() == len {
            return Ok(());
        }
        (self.tell)(Item::Missing(name));
        Err(Ends)
    }

    fn form(&mut self, form: &'static Form) -> Result<(), Ends> {
        let Some((bytes, rest)) = self.rest.split_at_checked(form.len()) else {
            (self.tell)(Item::Missing(form.name));
            return Err(Ends);
        };
        self.rest = rest;
        let outer = core::mem::replace(&mut self.level, self.seen.len());
        self.seen.push((form, bytes));
        (self.tell)(Item::Begin(form.name));
        for field in form.fields {
            let bytes = bytes.get(field.at..field.at + field.size).unwrap_or_default();
            (self.tell)(Item::Field { field, bytes, sure: true });
        }
        let ended = self.parts(form.then);
        self.level = outer;
        (self.tell)(Item::End);
        ended
    }

    /// A field of the body that the parts at hand belong to, of the first one after it that has one
    /// of this name, or else of the header.
    fn number(&self, name: &str) -> Option<usize> {
        let in_bodies = self.seen.iter().skip(self.level).find_map(|(form, bytes)| {
            let field = form.fields.iter().find(|field| field.name == name)?;
            bytes.get(field.at..field.at + field.size)
        });
        match in_bodies {
            Some(bytes) => usize::try_from(number(bytes)).ok(),
            None => self.header.named(name),
        }
    }
}

impl Form {
    fn len(&self) -> usize {
        self.fields.iter().map(|field| field.size).sum()
    }
}
