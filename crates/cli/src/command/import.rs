//! `keyway import`: keys from a file that `keyway export` has written.

use crate::export::{Damage, Event, Reader};
use anyhow::{Context as _, anyhow};
use client::blocking::{Space, Upload};
use client::{CasReply, Expect, Expiry, New, NotDone, PutOptions};
use console::answer::Answer;
use console::chart::grouped;
use console::connect;
use console::exit::{Failure, Verdict};
use console::file;
use console::out;
use console::progress::Progress;
use console::shared::Shared;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use wire::Version;

/// Write keys from a file that keyway export has written, with their values and expiries.
///
/// A file is checked to its end before anything is written: if it was cut off or changed, it is
/// said where, and nothing happens. What comes from a pipe is checked line by line, and at its end
/// as a whole. To do it again does no harm: the same keys get the same values. They go into the
/// keyspace that -k names, whatever the one was called that they come from.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway import default.export
  keyway import -k copies users.export --if-absent
  zstd -dc default.export.zst | keyway import
  keyway export --service 10.0.0.1:7700 | keyway import --service 10.0.1.1:7700")]
pub(crate) struct Args {
    /// The file, - for standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    from: PathBuf,
    /// Leave keys alone that have a value.
    #[arg(long)]
    if_absent: bool,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let name = self.from.display();
        let mut file = if self.from == Path::new("-") {
            file::stdin()?
        } else {
            File::open(&self.from).with_context(|| format!("cannot read {name}"))?
        };
        let found = file.metadata().with_context(|| format!("cannot read {name}"))?;
        let len = found.is_file().then_some(found.len());
        if let Some(len) = len {
            let start = file.stream_position().with_context(|| format!("cannot read {name}"))?;
            check(&file, len).map_err(|damage| {
                Failure::Other(anyhow!("{name}, {damage}; nothing was written"))
            })?;
            file.seek(SeekFrom::Start(start)).with_context(|| format!("cannot read {name}"))?;
        }
        let space = connect::space(shared)?;
        let mut import = Import { space: &space, if_absent: self.if_absent, done: Done::default() };
        let progress = Progress::bytes("importing", len);
        let result = import.all(&file, &progress);
        drop(progress);
        let Done { keys, bytes, present } = import.done;
        result.map_err(|stopped| stopped.tell(&name.to_string(), keys))?;
        if shared.json {
            let answer = Answer::new("done").with("keys", keys).with("bytes", bytes);
            answer.with("present", present).print()?;
        } else {
            let (keys, bytes) = (grouped(keys), grouped(bytes));
            let left = match present {
                0 => String::new(),
                _ => format!("; {} had a value and were left alone", grouped(present)),
            };
            let to = &shared.keyspace;
            out::line(&format!("imported {keys} keys, {bytes} bytes, into {to}{left}"))?;
        }
        Ok(Verdict::Yes)
    }
}

/// Reads all of a file.
fn check(file: &File, len: u64) -> Result<(), Damage> {
    let progress = Progress::bytes("checking", Some(len));
    let mut reader = Reader::begin(BufReader::with_capacity(READ_LEN, file))?;
    while reader.next()?.is_some() {
        progress.set(reader.bytes_read());
    }
    Ok(())
}

/// Bytes read from a file at once.
const READ_LEN: usize = 256 << 10;

/// Why an import stopped before its end.
enum Stopped {
    Damage(Damage),
    At { key: Vec<u8>, why: NotDone },
}

impl From<Damage> for Stopped {
    fn from(damage: Damage) -> Self {
        Self::Damage(damage)
    }
}

impl Stopped {
    /// For people, with what had been done.
    fn tell(self, name: &str, keys: u64) -> Failure {
        let before =
            format!("{} keys were written before; to do it again does no harm", grouped(keys));
        match self {
            Self::Damage(damage) => Failure::Other(anyhow!("{name}, {damage}; {before}")),
            Self::At { key, why } => {
                let text = format!(
                    "key {}: {}; {before}",
                    key.escape_ascii(),
                    Failure::from(why).message()
                );
                match why {
                    NotDone::Refused(_) => Failure::Refused(text),
                    NotDone::Unknown(_) => Failure::Unknown(text),
                }
            }
        }
    }
}

/// What has been done so far.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    /// Keys that were written.
    keys: u64,
    /// Of these keys and their values.
    bytes: u64,
    /// Keys that had a value.
    present: u64,
}

struct Import<'a> {
    space: &'a Space,
    if_absent: bool,
    done: Done,
}

/// Keys that are written at once, each once, whatever the order of the file: a key that is there
/// twice has its last value.
type Batch = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

/// Keys in a batch: some megabytes.
const BATCH_KEYS: usize = 4_096;
/// Requests at once, of those that are for one key each.
const THREADS: usize = 16;

impl Import<'_> {
    fn all(&mut self, file: &File, progress: &Progress) -> Result<(), Stopped> {
        let mut reader = Reader::begin(BufReader::with_capacity(READ_LEN, file))?;
        let mut batch = Batch::new();
        loop {
            let event = reader.next()?;
            progress.set(reader.bytes_read());
            match event {
                Some(Event::Key { key, value, expires_at_ms }) => {
                    batch.insert(key, (value, expires_at_ms));
                    if batch.len() == BATCH_KEYS {
                        self.write(std::mem::take(&mut batch))?;
                    }
                }
                Some(Event::Long { key, len, expires_at_ms }) => {
                    // The key may be in it.
                    self.write(std::mem::take(&mut batch))?;
                    self.write_long(&mut reader, key, len, expires_at_ms)?;
                }
                // The reader gives them after a long value has begun only.
                Some(Event::Piece(_) | Event::Whole | Event::Void) => {}
                None => return self.write(batch),
            }
        }
    }

    fn write(&mut self, batch: Batch) -> Result<(), Stopped> {
        let jobs = self.jobs(batch);
        let next = AtomicUsize::new(0);
        let results: Vec<Result<Done, Stopped>> = thread::scope(|scope| {
            let work = || {
                let mut done = Done::default();
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    self.job(job, &mut done)?;
                }
                Ok(done)
            };
            let threads: Vec<_> = (0..THREADS.min(jobs.len())).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|it| it.join().expect("it does not panic")).collect()
        });
        for result in results {
            let done = result?;
            self.done.keys += done.keys;
            self.done.bytes += done.bytes;
            self.done.present += done.present;
        }
        Ok(())
    }

    /// What expires together is written together, if nothing is expected of it.
    fn jobs(&self, batch: Batch) -> Vec<Job> {
        let entries = batch.into_iter().map(|(key, (value, expires))| (expires, (key, value)));
        if self.if_absent {
            return entries.map(|(expires, entry)| Job { expires, entries: vec![entry] }).collect();
        }
        let mut jobs: BTreeMap<Option<u64>, Entries> = BTreeMap::new();
        entries.for_each(|(expires, entry)| jobs.entry(expires).or_default().push(entry));
        jobs.into_iter().map(|(expires, entries)| Job { expires, entries }).collect()
    }

    fn job(&self, Job { expires, entries }: &Job, done: &mut Done) -> Result<(), Stopped> {
        let options = options(*expires);
        let mut count = |key: &[u8], value: &[u8]| {
            done.keys += 1;
            done.bytes += (key.len() + value.len()) as u64;
        };
        if self.if_absent {
            for (key, value) in entries {
                let new = New::Value(value);
                let reply = self.space.cas(key, ABSENT, new, options).into_result();
                match reply.map_err(|why| Stopped::At { key: key.clone(), why })? {
                    CasReply::Written { .. } => count(key, value),
                    CasReply::Mismatch { .. } => done.present += 1,
                }
            }
            return Ok(());
        }
        let outcomes = self.space.mset(entries, options);
        for ((key, value), outcome) in entries.iter().zip(outcomes) {
            outcome.into_result().map_err(|why| Stopped::At { key: key.clone(), why })?;
            count(key, value);
        }
        Ok(())
    }

    /// Nobody sees anything of a long value before all of it is there and right.
    fn write_long(
        &mut self,
        reader: &mut Reader<BufReader<&File>>,
        key: Vec<u8>,
        len: u64,
        expires_at_ms: Option<u64>,
    ) -> Result<(), Stopped> {
        let at = |why| Stopped::At { key: key.clone(), why };
        let refused = |why| at(NotDone::Refused(why));
        let mut upload: Upload = self.space.upload(&key).map_err(refused)?;
        loop {
            match reader.next()? {
                Some(Event::Piece(piece)) => upload.push(&piece).map_err(refused)?,
                Some(Event::Whole) => break,
                // Void, or something that the reader does not give here.
                _ => return Ok(()),
            }
        }
        let options = options(expires_at_ms);
        if self.if_absent {
            let reply = upload.finish_if(ABSENT, options).into_result().map_err(at)?;
            if matches!(reply, CasReply::Mismatch { .. }) {
                self.done.present += 1;
                return Ok(());
            }
        } else {
            upload.finish(options).into_result().map_err(at)?;
        }
        self.done.keys += 1;
        self.done.bytes = self.done.bytes.saturating_add(key.len() as u64).saturating_add(len);
        Ok(())
    }
}

/// Keys that are written in one request, or in one after the other.
struct Job {
    expires: Option<u64>,
    entries: Entries,
}

/// Keys and their values.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// There is no value: none has version 0.
const ABSENT: Expect<'static> = Expect::Version(Version::NONE);

fn options(expires_at_ms: Option<u64>) -> PutOptions {
    PutOptions { expiry: expires_at_ms.map_or(Expiry::Never, Expiry::AtMs) }
}
