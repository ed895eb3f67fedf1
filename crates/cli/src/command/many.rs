//! What commands for many keys have in common: where keys come from, how long they may take, and
//! what is said of each.

use client::NotDone;
use client::blocking::Space;
use console::answer::Answer;
use console::bytes::{self, Style};
use console::connect;
use console::exit::{Failure, Verdict};
use console::file;
use console::note;
use console::parse;
use console::shared::Shared;
use std::io::{BufRead as _, BufReader};
use std::time::Duration;

/// How long all keys together may take.
#[derive(Debug, clap::Args)]
pub(crate) struct Within {
    /// End after this time with what there is, such as 50ms; the rest is unknown. By default it
    /// goes on until nothing has come for as long as --timeout says.
    #[arg(long, value_name = "TIME", value_parser = parse::some_time)]
    within: Option<Duration>,
}

impl Within {
    /// The keyspace that the command line names, for one who has only so much time.
    pub(crate) fn space(&self, shared: &Shared) -> Result<Space, Failure> {
        let space = connect::space(shared)?;
        Ok(self.within.map_or_else(|| space.clone(), |time| space.within(time)))
    }
}

/// Lines of standard input. What can be read in two ways is refused, before anything is done: scan
/// and mget print what is not text with escapes, and a key of that spelling is another key.
pub(crate) fn lines(hex: bool) -> Result<impl Iterator<Item = Result<String, Failure>>, Failure> {
    let lines = BufReader::new(file::stdin()?).split(b'\n').zip(1_u64..);
    Ok(lines.map(move |(line, number)| {
        let refuse = |why: &str| Failure::usage(format!("standard input, line {number}: {why}"));
        let line = line.map_err(|error| refuse(&error.to_string()))?;
        let line = String::from_utf8(line)
            .map_err(|_| refuse("it is no text: give keys and values with --hex"))?;
        if line.ends_with('\r') {
            return Err(refuse("it ends with a carriage return: end lines with a newline alone"));
        }
        if !hex && line.contains('\\') {
            return Err(refuse(
                "it has a backslash, which may be one or the beginning of an escape: give keys \
                 and values with --hex, or copy them with keyway export and keyway import",
            ));
        }
        Ok(line)
    }))
}

/// Keys from the command line, or from standard input if all it has is a -.
pub(crate) fn keys(given: &[String], hex: bool) -> Result<Vec<Vec<u8>>, Failure> {
    if given == ["-"] {
        return lines(hex)?.map(|line| bytes::key(&line?, hex)).collect();
    }
    given.iter().map(|text| bytes::key(text, hex)).collect()
}

/// What was said of each key, and how the command ends.
#[derive(Debug)]
pub(crate) struct Tally<'a> {
    shared: &'a Shared,
    style: Style,
    missing: usize,
    failed: Option<NotDone>,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(shared: &'a Shared, style: Style) -> Self {
        Self { shared, style, missing: 0, failed: None }
    }

    /// There is no such key.
    pub(crate) fn missing(&mut self, key: &[u8]) -> Result<(), Failure> {
        self.missing += 1;
        if self.shared.json {
            return Answer::new("not_found").bytes(self.style, "key", key).print();
        }
        note!("keyway: no such key: {}", self.style.line(key));
        Ok(())
    }

    /// A key was refused, or nobody knows.
    pub(crate) fn failed(&mut self, key: &[u8], not_done: NotDone) -> Result<(), Failure> {
        let why = Failure::from(not_done);
        if self.shared.json {
            let answer = Answer::new(why.outcome()).bytes(self.style, "key", key);
            answer.with("error", why.message()).print()?;
        } else {
            note!("keyway: {}: {}", self.style.line(key), why.message());
        }
        // A refusal will not go away by itself, so it decides the exit code.
        if self.failed.is_none() || matches!(not_done, NotDone::Refused(_)) {
            self.failed = Some(not_done);
        }
        Ok(())
    }

    /// How the command ends.
    pub(crate) fn verdict(self) -> Result<Verdict, Failure> {
        match self.failed {
            Some(not_done) => Err(not_done.into()),
            None if self.missing > 0 => Ok(Verdict::No),
            None => Ok(Verdict::Yes),
        }
    }
}
