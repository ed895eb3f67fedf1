//! Commands from the bytes of a connection, in whatever portions they come.
//!
//! A command's arguments are slices of the bytes that were read, not copies. What is known of a
//! command whose end has not come is kept, so that no byte is looked at twice however slowly the
//! bytes drip in.

use super::inline;
use bytes::{Buf as _, Bytes, BytesMut};
use std::fmt;
use std::ops::Range;

/// How much a client may make the server hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Arguments of a command, its name among them.
    pub args_max: usize,
    /// Bytes of an argument: `proto-max-bulk-len`.
    pub bulk_max: usize,
    /// Bytes of a command as it is sent: `client-query-buffer-limit`.
    pub command_max: usize,
    /// Whether `args_max` and `bulk_max` are those of a client that has not shown who it is.
    pub unauthenticated: bool,
}

/// Most arguments of a command: what Redis takes.
const ARGS_MAX: usize = 1 << 20;
/// Most bytes of an argument: what Redis takes by default.
const BULK_MAX: usize = 512 << 20;
/// Most bytes of a command. Far less than the gigabyte of Redis: values are small here, and ten
/// thousand clients may do it at once. It is room for a multiget of 50,000 of the longest keys.
const COMMAND_MAX: usize = 64 << 20;
/// Most bytes of a line: what Redis takes, of inline commands and of the numbers before bulks.
const LINE_MAX: usize = 64 << 10;
/// Most arguments of a client that has not shown who it is, as in Redis: AUTH and HELLO need fewer.
const STRANGER_ARGS_MAX: usize = 10;
/// Most bytes of an argument of a client that has not shown who it is, as in Redis.
const STRANGER_BULK_MAX: usize = 16 << 10;

impl Limits {
    /// The limits of a client that has shown who it is, or need not.
    pub const DEFAULT: Self = Self {
        args_max: ARGS_MAX,
        bulk_max: BULK_MAX,
        command_max: COMMAND_MAX,
        unauthenticated: false,
    };

    /// The limits of a client that has not.
    pub const STRANGER: Self = Self {
        args_max: STRANGER_ARGS_MAX,
        bulk_max: STRANGER_BULK_MAX,
        // The longest password, with all that may stand around it, or one line.
        command_max: 4 * STRANGER_BULK_MAX,
        unauthenticated: true,
    };
}

/// What is wrong with the bytes. After it nothing of a connection makes sense any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The number of arguments is none, or too large.
    ArgumentCount,
    /// It is more than a stranger may send.
    StrangerArgumentCount,
    /// The line with the number of arguments does not end.
    ArgumentCountLine,
    /// An argument does not begin with `$` but with this.
    NoBulk(u8),
    /// The length of an argument is none, or too large.
    BulkLength,
    /// It is more than a stranger may send.
    StrangerBulkLength,
    /// The line with the length of an argument does not end.
    BulkLengthLine,
    /// An inline command does not end.
    InlineLength,
    /// An inline command opens a quotation and does not close it.
    Quotes,
    /// The command as a whole is too large.
    CommandLength,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            Self::ArgumentCount => f.write_str("invalid multibulk length"),
            Self::StrangerArgumentCount => f.write_str("unauthenticated multibulk length"),
            Self::ArgumentCountLine => f.write_str("too big mbulk count string"),
            Self::NoBulk(found) => write!(f, "expected '$', got '{}'", char::from(*found)),
            Self::BulkLength => f.write_str("invalid bulk length"),
            Self::StrangerBulkLength => f.write_str("unauthenticated bulk length"),
            Self::BulkLengthLine => f.write_str("too big bulk count string"),
            Self::InlineLength => f.write_str("too big inline request"),
            Self::Quotes => f.write_str("unbalanced quotes in request"),
            Self::CommandLength => f.write_str("command exceeds client-query-buffer-limit"),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// What is known of the command that the buffer begins with.
#[derive(Debug, Default)]
pub struct Parser {
    /// Bytes of the buffer that are understood.
    at: usize,
    /// Bytes behind `at` that hold no end of a line.
    searched: usize,
    /// Arguments to come, once the first line has been read.
    missing: Option<usize>,
    /// Bytes of the argument that begins at `at`, once its length has been read.
    bulk: Option<usize>,
    /// Where the arguments lie that are whole.
    args: Vec<Range<usize>>,
    /// Arguments of this command that are not in the buffer any more.
    early: Vec<Bytes>,
    /// Bytes of an argument that is taken out of the buffer as it comes.
    coming: usize,
}

/// A value of more bytes is taken piece by piece.
const COMING_MIN: usize = 64 << 10;

/// Places of arguments that are kept for the next command.
const KEPT_PLACES_MAX: usize = 8;

impl Parser {
    /// Takes the first command out of the buffer, if it is whole. Empty ones are skipped.
    ///
    /// # Errors
    ///
    /// If what is there is no command, or one over the limits.
    pub fn parse(
        &mut self,
        buffer: &mut BytesMut,
        limits: &Limits,
    ) -> Result<Option<Vec<Bytes>>, ProtocolError> {
        while self.missing == Some(0) || !buffer.is_empty() {
            let taken = if self.missing.is_some() || buffer.first() == Some(&b'*') {
                self.parse_array(buffer, limits)?
            } else {
                self.parse_inline(buffer)?
            };
            match taken {
                Some(args) if args.is_empty() => {}
                Some(args) => return Ok(Some(args)),
                None if buffer.len() > limits.command_max => {
                    return Err(ProtocolError::CommandLength);
                }
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    fn parse_array(
        &mut self,
        buffer: &mut BytesMut,
        limits: &Limits,
    ) -> Result<Option<Vec<Bytes>>, ProtocolError> {
        let mut missing = match self.missing {
            Some(missing) => missing,
            None => {
                let Some(line) = self.line(buffer, b'\r', ProtocolError::ArgumentCountLine)? else {
                    return Ok(None);
                };
                let count = number(buffer.get(line.start + 1..line.end).unwrap_or_default());
                argument_count(count, limits)?
            }
        };
        while missing > 0 {
            self.missing = Some(missing);
            let length = match self.bulk {
                Some(length) => length,
                None => match self.bulk_length(buffer, limits)? {
                    Some(length) => *self.bulk.insert(length),
                    None => return Ok(None),
                },
            };
            let end = self.at + length;
            if buffer.len() < end + 2 && self.long_set(buffer).is_some() {
                return Ok(None);
            }
            if buffer.len() < end + 2 {
                let whole = end.saturating_add(2);
                return if whole > limits.command_max {
                    Err(ProtocolError::CommandLength)
                } else {
                    Ok(None)
                };
            }
            self.args.push(self.at..end);
            self.at = end + 2;
            self.bulk = None;
            missing -= 1;
        }
        let bytes = buffer.split_to(self.at).freeze();
        let mut args = std::mem::take(&mut self.early);
        args.reserve_exact(self.args.len());
        args.extend(self.args.drain(..).map(|range| bytes.slice(range)));
        let places = std::mem::take(&mut self.args);
        let kept = if places.capacity() > KEPT_PLACES_MAX { Vec::new() } else { places };
        *self = Self { args: kept, ..Self::default() };
        Ok(Some(args))
    }

    /// If the argument that is incomplete is the value of a SET, and long: its length.
    #[must_use]
    pub fn long_set(&self, buffer: &BytesMut) -> Option<usize> {
        let [name, _] = self.args.as_slice() else { return None };
        let is_set = buffer.get(name.clone()).is_some_and(|it| it.eq_ignore_ascii_case(b"set"));
        self.bulk.filter(|length| is_set && self.early.is_empty() && *length > COMING_MIN)
    }

    /// If the command that is not whole yet is a SET of a long value, its key and the length of the
    /// value, which is from now on taken piece by piece ([`piece`](Self::piece)) and then empty in
    /// the command.
    pub fn begin_long_set(&mut self, buffer: &mut BytesMut) -> Option<(Bytes, usize)> {
        self.long_set(buffer)?;
        let bytes = buffer.split_to(self.at).freeze();
        self.early = self.args.drain(..).map(|range| bytes.slice(range)).collect();
        self.early.push(Bytes::new());
        let length = self.bulk.take()?;
        (self.at, self.coming) = (0, length + 2);
        self.missing = self.missing.map(|missing| missing - 1);
        Some((self.early.get(1)?.clone(), length))
    }

    /// Whether a command has begun that is not whole.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.missing.is_some() || self.coming > 0
    }

    /// Whether pieces of a long value are still to come.
    #[must_use]
    pub fn is_in_value(&self) -> bool {
        self.coming > 0
    }

    /// The next piece of a long value, if any is there. The end of its line is no part of it.
    pub fn piece(&mut self, buffer: &mut BytesMut) -> Option<Bytes> {
        let value = self.coming.saturating_sub(2).min(buffer.len());
        if value > 0 {
            self.coming -= value;
            return Some(buffer.split_to(value).freeze());
        }
        let end = self.coming.min(buffer.len());
        self.coming -= end;
        buffer.advance(end);
        None
    }

    fn bulk_length(
        &mut self,
        buffer: &BytesMut,
        limits: &Limits,
    ) -> Result<Option<usize>, ProtocolError> {
        let start = self.at;
        let Some(line) = self.line(buffer, b'\r', ProtocolError::BulkLengthLine)? else {
            return Ok(None);
        };
        match buffer.get(start) {
            Some(b'$') => {}
            other => return Err(ProtocolError::NoBulk(other.copied().unwrap_or_default())),
        }
        let length = number(buffer.get(line.start + 1..line.end).unwrap_or_default());
        let length = length.and_then(|length| usize::try_from(length).ok());
        match length {
            Some(length) if length <= limits.bulk_max => Ok(Some(length)),
            Some(_) if limits.unauthenticated => Err(ProtocolError::StrangerBulkLength),
            Some(_) | None => Err(ProtocolError::BulkLength),
        }
    }

    fn parse_inline(&mut self, buffer: &mut BytesMut) -> Result<Option<Vec<Bytes>>, ProtocolError> {
        let Some(line) = self.line(buffer, b'\n', ProtocolError::InlineLength)? else {
            return Ok(None);
        };
        let text = buffer.get(line.clone()).unwrap_or_default();
        let args = inline::split(text.strip_suffix(b"\r").unwrap_or(text));
        buffer.advance(line.end + 1);
        *self = Self::default();
        args.map(Some).ok_or(ProtocolError::Quotes)
    }

    /// The line that begins at `at`, which is then behind it: up to `end`, and if that is not the
    /// last byte of the line's end, one more.
    fn line(
        &mut self,
        buffer: &BytesMut,
        end: u8,
        too_long: ProtocolError,
    ) -> Result<Option<Range<usize>>, ProtocolError> {
        let after = usize::from(end == b'\r');
        let rest = buffer.get(self.at + self.searched..).unwrap_or_default();
        let Some(found) = rest.iter().position(|byte| *byte == end) else {
            self.searched += rest.len();
            return if self.searched > LINE_MAX { Err(too_long) } else { Ok(None) };
        };
        if self.searched + found > LINE_MAX {
            return Err(too_long);
        }
        if found + after >= rest.len() {
            self.searched += found;
            return Ok(None);
        }
        let line = self.at..self.at + self.searched + found;
        self.at = line.end + 1 + after;
        self.searched = 0;
        Ok(Some(line))
    }
}

/// How many arguments there are; none is no error but an empty command.
fn argument_count(count: Option<i64>, limits: &Limits) -> Result<usize, ProtocolError> {
    match count.map(|count| usize::try_from(count).unwrap_or(0)) {
        Some(count) if count <= limits.args_max => Ok(count),
        Some(count) if limits.unauthenticated && count <= ARGS_MAX => {
            Err(ProtocolError::StrangerArgumentCount)
        }
        Some(_) | None => Err(ProtocolError::ArgumentCount),
    }
}

/// A number in the one way that Redis takes: no spaces, no plus, no zeros in front.
fn number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    plain.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
