//! What commands for many keys have in common: where keys come from, how long they may take, and
//! what is said of each.

use crate::answer::Answer;
use crate::bytes::{self, Style};
use crate::cli::Shared;
use crate::connect;
use crate::exit::{Failure, Verdict};
use crate::parse;
use client::NotDone;
use client::blocking::Space;
use std::io::BufRead;
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

/// Lines of standard input.
pub(crate) fn lines() -> impl Iterator<Item = Result<String, Failure>> {
    let read = |error| Failure::usage(format!("standard input: {error}"));
    std::io::stdin().lock().lines().map(move |line| line.map_err(read))
}

/// Keys from the command line, or from standard input if all it has is a -.
pub(crate) fn keys(given: &[String], hex: bool) -> Result<Vec<Vec<u8>>, Failure> {
    if given == ["-"] {
        return lines().map(|line| bytes::key(&line?, hex)).collect();
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
    pub(crate) fn missing(&mut self, key: &[u8]) {
        self.missing += 1;
        if self.shared.json {
            Answer::new("not_found").bytes(self.style, "key", key).print();
        } else {
            eprintln!("keyway: no such key: {}", self.style.line(key));
        }
    }

    /// A key was refused, or nobody knows.
    pub(crate) fn failed(&mut self, key: &[u8], not_done: NotDone) {
        let why = Failure::from(not_done);
        if self.shared.json {
            let answer = Answer::new(why.outcome()).bytes(self.style, "key", key);
            answer.with("error", why.message()).print();
        } else {
            eprintln!("keyway: {}: {}", self.style.line(key), why.message());
        }
        // A refusal will not go away by itself, so it decides the exit code.
        if self.failed.is_none() || matches!(not_done, NotDone::Refused(_)) {
            self.failed = Some(not_done);
        }
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
