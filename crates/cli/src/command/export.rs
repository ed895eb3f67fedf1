//! `keyway export`: all keys of a keyspace into a file, as they are.

use crate::command::pages::{Interval, Pages};
use crate::export::Writer;
use client::blocking::{Download, Space};
use client::{NotDone, Refusal, ScanOptions};
use cluster::KeyspaceKind;
use console::answer::Answer;
use console::bytes;
use console::chart::grouped;
use console::connect;
use console::exit::{Failure, Verdict};
use console::note;
use console::out;
use console::progress::Progress;
use console::save::Save;
use console::shared::Shared;
use std::path::{Path, PathBuf};

/// Write keys into a file, with their values and expiries, as they are.
///
/// The file is read back by `keyway import`, into this keyspace or another one. Any bytes and
/// values of any length pass unchanged; the last line has a checksum of the whole. Every key that
/// has a value all the time is in it, each as it was at some moment meanwhile: it is no snapshot.
///
/// In a keyspace of kind hash all keys are read, and --prefix leaves out what does not begin so;
/// the other bounds are for keyspaces of kind range.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway export --out default.export
  keyway export -k users --prefix user0001 --out some.export
  keyway export | zstd >default.export.zst
  keyway export -k users | keyway import -k copies")]
pub(crate) struct Args {
    #[command(flatten)]
    interval: Interval,
    /// Write to this file, - for standard output. A file is there when all is in it.
    #[arg(long, value_name = "PATH", default_value = "-")]
    out: PathBuf,
    /// Keys are given as hexadecimal digits.
    #[arg(long)]
    hex: bool,
}

/// Attempts to read a long value that is replaced again and again.
const ATTEMPTS: usize = 8;

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let mut scan = self.interval.options(self.hex, ScanOptions::default())?;
        let space = connect::space(shared)?;
        let mut prefix = Vec::new();
        if let (false, Some(text)) = (space.keyspace().is_ordered(), self.interval.only_prefix()) {
            prefix = bytes::key(text, self.hex)?;
            scan = ScanOptions::default();
        }
        let progress = Progress::keys("exporting", space.count().into_result()?.keys);
        let kind = match space.keyspace().kind {
            KeyspaceKind::Hash => "hash",
            KeyspaceKind::Range { .. } => "range",
        };
        let to = Save::begin(&self.out)?;
        let failed = to.on_error();
        let mut writer = Writer::begin(to, &space.keyspace().name, kind).map_err(&failed)?;
        let mut pages = Pages::new(&space, scan);
        loop {
            let entries = pages.next(usize::MAX)?;
            if entries.is_empty() {
                break;
            }
            progress.add(entries.len() as u64);
            for (key, value) in entries.iter().filter(|(key, _)| key.starts_with(&prefix)) {
                if value.big {
                    long(&space, key, &mut writer, &failed)?;
                } else {
                    let expires_at_ms = Some(value.expiry_ms).filter(|ms| *ms > 0);
                    writer.key(key, &value.value, expires_at_ms).map_err(&failed)?;
                }
            }
        }
        let totals = writer.totals();
        writer.end().map_err(&failed)?.finish()?;
        drop(progress);
        let (keys, bytes) = (totals.keys, totals.bytes);
        let said = format!("{} keys, {} bytes", grouped(keys), grouped(bytes));
        if self.out == Path::new("-") {
            note!("keyway: exported {said}");
        } else if shared.json {
            Answer::new("done").with("keys", keys).with("bytes", bytes).print()?;
        } else {
            out::line(&format!("exported {said} to {}", self.out.display()))?;
        }
        Ok(Verdict::Yes)
    }
}

/// Writes a value that fits no datagram; nothing if there is none any more.
fn long(
    space: &Space,
    key: &[u8],
    writer: &mut Writer<Save>,
    failed: &impl Fn(std::io::Error) -> Failure,
) -> Result<(), Failure> {
    for _ in 0..ATTEMPTS {
        let Some(download) = space.download(key).into_result()? else { return Ok(()) };
        let expires_at_ms = Some(download.expiry_ms).filter(|ms| *ms > 0);
        writer.long(key, download.len, expires_at_ms).map_err(failed)?;
        match pieces(download, writer, failed) {
            Ok(()) => return writer.whole().map_err(failed),
            Err(Broken::Replaced) => writer.void().map_err(failed)?,
            Err(Broken::For(failure)) => return Err(failure),
        }
    }
    Err(NotDone::Refused(Refusal::Replaced).into())
}

/// Why a long value was not written to its end.
enum Broken {
    /// There is another one now.
    Replaced,
    /// It cannot be read or written.
    For(Failure),
}

fn pieces(
    mut download: Download,
    writer: &mut Writer<Save>,
    failed: &impl Fn(std::io::Error) -> Failure,
) -> Result<(), Broken> {
    loop {
        match download.piece().into_result() {
            Ok(Some(piece)) => writer.piece(piece).map_err(|why| Broken::For(failed(why)))?,
            Ok(None) => return Ok(()),
            Err(NotDone::Refused(Refusal::Replaced)) => return Err(Broken::Replaced),
            Err(not_done) => return Err(Broken::For(not_done.into())),
        }
    }
}
