//! Writing an export.

use super::record::{Bytes, FORMAT, Record, Sum, Totals, digest};
use sha2::{Digest as _, Sha256};
use std::io::{self, Write};

/// An export that is being written.
#[derive(Debug)]
pub(crate) struct Writer<W> {
    to: W,
    lines: Sha256,
    totals: Totals,
    long: Option<Long>,
}

#[derive(Debug)]
struct Long {
    key: Vec<u8>,
    len: u64,
    sum: Sum,
}

impl<W: Write> Writer<W> {
    /// Writes the first line.
    pub(crate) fn begin(to: W, keyspace: &str, kind: &str) -> io::Result<Self> {
        let (lines, totals) = (Sha256::new(), Totals::default());
        let mut writer = Self { to, lines, totals, long: None };
        let (keyspace, kind) = (keyspace.to_owned(), kind.to_owned());
        writer.line(&Record::Export { format: FORMAT, keyspace, kind })?;
        Ok(writer)
    }

    /// Writes a key with all of its value.
    pub(crate) fn key(
        &mut self,
        key: &[u8],
        value: &[u8],
        expires_at_ms: Option<u64>,
    ) -> io::Result<()> {
        let mut sum = Sum::new(key, expires_at_ms);
        sum.add(value);
        self.totals.count(key, value.len() as u64);
        let (key, value) = (Bytes(key.to_vec()), Bytes(value.to_vec()));
        self.line(&Record::Key { key, value, expires_at_ms, crc32c: sum.hex() })
    }

    /// Begins a long value; its pieces follow, then [`whole`](Self::whole) or [`void`](Self::void).
    pub(crate) fn long(
        &mut self,
        key: &[u8],
        len: u64,
        expires_at_ms: Option<u64>,
    ) -> io::Result<()> {
        let sum = Sum::new(key, expires_at_ms);
        self.long = Some(Long { key: key.to_vec(), len, sum });
        self.line(&Record::Long { key: Bytes(key.to_vec()), bytes: len, expires_at_ms })
    }

    /// Writes the next piece of a long value.
    pub(crate) fn piece(&mut self, piece: Vec<u8>) -> io::Result<()> {
        let long = self.long.as_mut().expect("a long value has begun");
        long.sum.add(&piece);
        self.line(&Record::Piece { value: Bytes(piece) })
    }

    /// Ends a long value.
    pub(crate) fn whole(&mut self) -> io::Result<()> {
        let Long { key, len, sum } = self.long.take().expect("a long value has begun");
        self.totals.count(&key, len);
        self.line(&Record::Whole { crc32c: sum.hex() })
    }

    /// Takes a long value back.
    pub(crate) fn void(&mut self) -> io::Result<()> {
        self.long = None;
        self.line(&Record::Void)
    }

    /// What has been written so far.
    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// Writes the last line.
    pub(crate) fn end(mut self) -> io::Result<W> {
        let Totals { keys, bytes } = self.totals;
        let sha256 = digest(&self.lines);
        self.line(&Record::End { keys, bytes, sha256 })?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn line(&mut self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.lines.update(&line);
        self.to.write_all(&line)
    }
}
