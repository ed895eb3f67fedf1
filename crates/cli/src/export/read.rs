//! Reading an export, and telling where it is damaged.

use super::record::{Bytes, FORMAT, LINE_BYTES_MAX, Record, Sum, Totals, digest};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io::{self, BufRead, Read as _};

/// An export that is being read.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    from: R,
    /// Lines that were read.
    line: u64,
    bytes_read: u64,
    lines: Sha256,
    totals: Totals,
    long: Option<Long>,
    ended: bool,
}

#[derive(Debug)]
struct Long {
    key: Vec<u8>,
    len: u64,
    left: u64,
    sum: Sum,
}

/// What an export says next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A key with all of its value.
    Key { key: Vec<u8>, value: Vec<u8>, expires_at_ms: Option<u64> },
    /// A key whose value follows in pieces.
    Long { key: Vec<u8>, len: u64, expires_at_ms: Option<u64> },
    /// The next of them.
    Piece(Vec<u8>),
    /// That was all of the value, and it is as it was.
    Whole,
    /// What came of it is void.
    Void,
}

/// Why an export cannot be read, and where.
#[derive(Debug)]
pub(crate) struct Damage {
    line: u64,
    why: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads the first line.
    pub(crate) fn begin(from: R) -> Result<Self, Damage> {
        let (lines, totals) = (Sha256::new(), Totals::default());
        let mut reader =
            Self { from, line: 0, bytes_read: 0, lines, totals, long: None, ended: false };
        match reader.record() {
            Ok(Record::Export { format: FORMAT, .. }) => Ok(reader),
            Ok(Record::Export { format, .. }) => {
                let why = format!("format {format}, and this program knows {FORMAT} only");
                Err(reader.damage(&why))
            }
            Ok(_) => Err(reader.damage("it does not begin as an export does")),
            Err(damage) if damage.line == 1 && reader.bytes_read > 0 => {
                Err(reader.damage("it is no export of keyway"))
            }
            Err(damage) => Err(damage),
        }
    }

    /// What comes next; `None` after the last line, if nothing was missing and nothing follows.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, Damage> {
        if self.ended {
            return Ok(None);
        }
        let before = self.lines.clone();
        let record = self.record()?;
        match (record, self.long.take()) {
            (Record::Key { key: Bytes(key), value: Bytes(value), expires_at_ms, crc32c }, None) => {
                let mut sum = Sum::new(&key, expires_at_ms);
                sum.add(&value);
                if sum.hex() != crc32c {
                    return Err(self.damage("the checksum of a key and its value is wrong"));
                }
                self.totals.count(&key, value.len() as u64);
                Ok(Some(Event::Key { key, value, expires_at_ms }))
            }
            (Record::Long { key: Bytes(key), bytes: len, expires_at_ms }, None) => {
                let sum = Sum::new(&key, expires_at_ms);
                self.long = Some(Long { key: key.clone(), len, left: len, sum });
                Ok(Some(Event::Long { key, len, expires_at_ms }))
            }
            (Record::Piece { value: Bytes(piece) }, Some(mut long)) => {
                let Some(left) = long.left.checked_sub(piece.len() as u64) else {
                    return Err(self.damage("a value is longer than it is said to be"));
                };
                long.left = left;
                long.sum.add(&piece);
                self.long = Some(long);
                Ok(Some(Event::Piece(piece)))
            }
            (Record::Whole { crc32c }, Some(long)) => {
                if long.left > 0 || long.sum.hex() != crc32c {
                    return Err(self.damage("the length or the checksum of a value is wrong"));
                }
                self.totals.count(&long.key, long.len);
                Ok(Some(Event::Whole))
            }
            (Record::Void, Some(_)) => Ok(Some(Event::Void)),
            (Record::End { keys, bytes, sha256 }, None) => {
                if (Totals { keys, bytes }) != self.totals || digest(&before) != sha256 {
                    let why = "the checksum of the whole is wrong: lines are missing or changed";
                    return Err(self.damage(why));
                }
                self.ended = true;
                match self.fill() {
                    Ok(line) if line.is_empty() => Ok(None),
                    Ok(_) => Err(self.damage("something follows what was the last line")),
                    Err(damage) => Err(damage),
                }
            }
            _ => Err(self.damage("it does not belong here: lines are missing or in another order")),
        }
    }

    /// Bytes that have been read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    fn record(&mut self) -> Result<Record, Damage> {
        let line = self.fill()?;
        if line.is_empty() {
            return Err(self.damage("it ends before its last line: it was cut off"));
        }
        if line.last() != Some(&b'\n') {
            let cut = "it is longer than any, or it was cut off in the middle of a line";
            return Err(self.damage(cut));
        }
        let record = serde_json::from_slice(&line);
        let record = record.map_err(|error| self.damage(&format!("it cannot be read: {error}")))?;
        self.lines.update(&line);
        Ok(record)
    }

    /// The next line with its end, if it has one; nothing at the end.
    fn fill(&mut self) -> Result<Vec<u8>, Damage> {
        let mut line = Vec::new();
        let read: io::Result<usize> =
            (&mut self.from).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line);
        self.line += 1;
        let len = read.map_err(|error| self.damage(&error.to_string()))?;
        self.bytes_read += len as u64;
        Ok(line)
    }

    fn damage(&self, why: &str) -> Damage {
        Damage { line: self.line, why: why.to_owned() }
    }
}
