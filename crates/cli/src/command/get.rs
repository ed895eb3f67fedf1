//! `keyway get`: read one key.

use console::answer::Answer;
use console::bytes::{self, Style};
use console::connect;
use console::exit::{Failure, Verdict};
use console::file;
use console::note;
use console::shared::Shared;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Read one key.
///
/// Prints the value as it is, with a newline only on a terminal. Ends with exit code 1 if there is
/// no such key. With --out no more of the value is in memory than is on its way; with --range no
/// more is read than what lies in it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway get greeting
  keyway get greeting --json
  keyway get photo > photo.jpg
  keyway get photo --out photo.jpg
  keyway get backup --out - | tar x
  keyway get photo --range 0..16 --hex
  keyway get --hex 00ff01")]
pub(crate) struct Args {
    /// The key.
    key: String,
    /// The key is given, and the value printed, as hexadecimal digits.
    #[arg(long)]
    hex: bool,
    /// Only the bytes from the first (from 0) to before the second number; either may be left out.
    #[arg(long, value_name = "FROM..TO", value_parser = file::range)]
    range: Option<Range<u64>>,
    /// Write the value as it is to this file, - for standard output. A file is there when all of
    /// the value is in it.
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let key = bytes::key(&self.key, self.hex)?;
        let style = Style { hex: self.hex };
        let space = connect::space(shared)?;
        let range = self.range.clone().unwrap_or(0..u64::MAX);
        if let Some(path) = &self.out {
            let Some(download) = space.download_range(&key, range).into_result()? else {
                return missing(shared, style, &key);
            };
            let (len, version) = (download.left, download.version);
            file::receive(download, path)?;
            if shared.json && path != Path::new("-") {
                let answer = Answer::new("done").bytes(style, "key", &key);
                answer.with("version", version).with("bytes", len).print()?;
            }
            return Ok(Verdict::Yes);
        }
        let found = space.get_range(&key, range).into_result()?;
        match found {
            Some(value) if shared.json => {
                Answer::new("done").bytes(style, "key", &key).value(style, &key, &value).print()?;
            }
            Some(value) => bytes::print_raw(&value.value, style)?,
            None => return missing(shared, style, &key),
        }
        Ok(Verdict::Yes)
    }
}

fn missing(shared: &Shared, style: Style, key: &[u8]) -> Result<Verdict, Failure> {
    if shared.json {
        Answer::new("not_found").bytes(style, "key", key).print()?;
    }
    note!("keyway: no such key: {}", style.line(key));
    Ok(Verdict::No)
}
