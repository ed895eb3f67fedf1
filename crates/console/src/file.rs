//! Values from files and into files, piece by piece.

use crate::exit::Failure;
use crate::save::Save;
use anyhow::Context as _;
use client::blocking::{Download, Space, Upload};
use client::{CasReply, Expect, New, NotDone, PutOptions, Refusal};
use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes read from a file at once.
const READ_LEN: usize = 64 << 10;

/// A file that a value comes from.
pub struct Input {
    from: Box<dyn Read>,
    path: PathBuf,
}

/// A value that is to be written.
pub enum Value {
    /// All of it.
    Held(Vec<u8>),
    /// Its beginning, more than fits a datagram, and where the rest is.
    Streamed(Vec<u8>, Input),
}

impl Input {
    /// Opens a file; `-` is standard input. One that is longer than a value can be is refused
    /// before anything is read of it.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let is_stdin = path == Path::new("-");
        let file = if is_stdin { stdin()? } else { File::open(path).with_context(unread(path))? };
        let found = file.metadata().with_context(unread(path))?;
        if found.is_file() {
            // Somebody before us may have read some of standard input.
            let at = (&file).stream_position().with_context(unread(path))?;
            if found.len().saturating_sub(at) > wire::VALUE_MAX as u64 {
                return Err(too_long().into());
            }
        }
        Ok(Self { from: Box::new(file), path: path.to_owned() })
    }

    /// Reads a value, or its beginning if it does not fit a datagram.
    pub fn value(mut self) -> Result<Value, Failure> {
        let mut begin = Vec::new();
        let short = wire::ENTRY_MAX as u64 + 1;
        let read = (&mut self.from).take(short).read_to_end(&mut begin);
        let len = read.with_context(unread(&self.path))?;
        Ok(if len as u64 == short { Value::Streamed(begin, self) } else { Value::Held(begin) })
    }

    /// Reads to the end.
    pub fn all(mut self) -> Result<Vec<u8>, Failure> {
        let mut all = Vec::new();
        let most = wire::VALUE_MAX as u64 + 1;
        let read = (&mut self.from).take(most).read_to_end(&mut all);
        let len = read.with_context(unread(&self.path))?;
        if len as u64 == most { Err(too_long().into()) } else { Ok(all) }
    }

    /// Sends all that there is to read.
    fn send(mut self, begin: &[u8], upload: &mut Upload) -> Result<(), Failure> {
        upload.push(begin).map_err(NotDone::Refused)?;
        let mut buffer = vec![0; READ_LEN];
        loop {
            match self.from.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(len) => {
                    let bytes = buffer.get(..len).unwrap_or_default();
                    upload.push(bytes).map_err(NotDone::Refused)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let what = format!("{}; nothing was written", unread(&self.path)());
                    return Err(Failure::Other(anyhow::Error::new(error).context(what)));
                }
            }
        }
    }
}

impl Value {
    /// Writes it to a key; gives its version.
    pub fn put(self, space: &Space, key: &[u8], options: PutOptions) -> Result<u64, Failure> {
        match self {
            Self::Held(value) => Ok(space.put(key, &value, options).into_result()?.get()),
            Self::Streamed(begin, input) => {
                let mut upload = space.upload(key).map_err(NotDone::Refused)?;
                input.send(&begin, &mut upload)?;
                Ok(upload.finish(options).into_result()?.get())
            }
        }
    }

    /// Writes it to a key if what is there is what is expected.
    pub fn cas(
        self,
        space: &Space,
        key: &[u8],
        expect: Expect<'_>,
        options: PutOptions,
    ) -> Result<CasReply, Failure> {
        match self {
            Self::Held(value) => {
                Ok(space.cas(key, expect, New::Value(&value), options).into_result()?)
            }
            Self::Streamed(begin, input) => {
                let mut upload = space.upload(key).map_err(NotDone::Refused)?;
                input.send(&begin, &mut upload)?;
                Ok(upload.finish_if(expect, options).into_result()?)
            }
        }
    }
}

/// Standard input, which can be read once.
pub fn stdin() -> Result<File, Failure> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(Failure::usage("standard input can be read once: give one - only"));
    }
    let own = io::stdin().as_fd().try_clone_to_owned();
    Ok(File::from(own.context("cannot read standard input")?))
}

fn unread(path: &Path) -> impl Fn() -> String {
    let what = format!("cannot read {}", path.display());
    move || {
        if what.ends_with(" -") { "cannot read standard input".to_owned() } else { what.clone() }
    }
}

fn too_long() -> NotDone {
    NotDone::Refused(Refusal::ValueTooLong { bytes_max: wire::VALUE_MAX as u64 })
}

/// Writes a value to a file, see [`Save`].
pub fn receive(mut download: Download, path: &Path) -> Result<(), Failure> {
    let mut file = Save::begin(path)?;
    while let Some(piece) = download.piece().into_result()? {
        file.write_all(&piece).map_err(|error| file.failed(error))?;
    }
    file.finish()
}

/// A range of bytes: `FROM..TO`, either of which may be left out.
pub fn range(text: &str) -> Result<Range<u64>, String> {
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
