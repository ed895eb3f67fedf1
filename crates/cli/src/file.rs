//! Values from files and into files, piece by piece.

use crate::exit::Failure;
use anyhow::Context as _;
use client::NotDone;
use client::blocking::{Download, Upload};
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes read from a file at once.
const READ_LEN: usize = 64 << 10;

/// Opens a file to read a value from; `-` is standard input.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()));
    Ok(Box::new(file.map_err(Failure::Other)?))
}

/// Sends all that there is to read.
pub(crate) fn send(file: &mut impl Read, path: &Path, upload: &mut Upload) -> Result<(), Failure> {
    let mut buffer = vec![0; READ_LEN];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(len) => {
                let bytes = buffer.get(..len).unwrap_or_default();
                upload.push(bytes).map_err(NotDone::Refused)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                let what = format!("cannot read {}; nothing was written", path.display());
                return Err(Failure::Other(anyhow::Error::new(error).context(what)));
            }
        }
    }
}

/// Writes a value to a file, which gets its name when all of it is there; `-` is standard output.
pub(crate) fn receive(download: Download, path: &Path) -> Result<(), Failure> {
    if path == Path::new("-") {
        return write(download, &mut io::stdout().lock(), path);
    }
    let unfinished = unfinished(path);
    let done = create(&unfinished)
        .and_then(|mut file| write(download, &mut file, &unfinished))
        .and_then(|()| {
            let named = std::fs::rename(&unfinished, path);
            named
                .with_context(|| format!("cannot write {}", path.display()))
                .map_err(Failure::Other)
        });
    if done.is_err() {
        // It may never have been made.
        drop(std::fs::remove_file(&unfinished));
    }
    done
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".unfinished");
    name.into()
}

fn create(path: &Path) -> Result<File, Failure> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()));
    file.map_err(Failure::Other)
}

fn write(mut download: Download, to: &mut impl Write, path: &Path) -> Result<(), Failure> {
    let failed = |error| {
        let what = format!("cannot write {}", path.display());
        Failure::Other(anyhow::Error::new(error).context(what))
    };
    while let Some(piece) = download.piece().into_result()? {
        to.write_all(&piece).map_err(failed)?;
    }
    to.flush().map_err(failed)
}

/// A range of bytes: `FROM..TO`, either of which may be left out.
pub(crate) fn range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("{text:?} is no range; write FROM..TO, like 0..16, 100.. or ..16");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str, left_out| match text {
        "" => Ok(left_out),
        digits => digits.parse().map_err(|_| wrong()),
    };
    Ok(number(from, 0)?..number(to, u64::MAX)?)
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn either_end_of_a_range_may_be_left_out() {
        assert_eq!(range("3..7"), Ok(3..7));
        assert_eq!(range("3.."), Ok(3..u64::MAX));
        assert_eq!(range("..7"), Ok(0..7));
        assert!(range("7").is_err() && range("a..b").is_err());
    }
}
