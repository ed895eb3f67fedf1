//! `keyway mget`: read many keys at once.

use crate::answer::Answer;
use crate::bytes::{self, Style};
use crate::cli::Shared;
use crate::connect;
use crate::exit::{Failure, Verdict};
use client::{NotDone, Value};
use std::io::{BufRead, Write};

/// Read many keys at once.
///
/// The switch sends each node those of the keys that it holds. Prints a line for each key found:
/// key, tab, value, what is not printable escaped. Ends with exit code 1 if a key is missing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway mget a b c
  keyway mget a b c --json
  seq -f 'user%012g' 0 31 | keyway mget -")]
pub(crate) struct Args {
    /// The keys; a single - reads them from standard input, one per line.
    #[arg(required = true)]
    keys: Vec<String>,
    /// Keys are given, and keys and values printed, as hexadecimal digits.
    #[arg(long)]
    hex: bool,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let keys = self.keys()?;
        let style = Style { hex: self.hex };
        let outcomes = connect::space(shared)?.mget(&keys);
        let mut missing = 0;
        let mut failed = None;
        for (key, outcome) in keys.iter().zip(outcomes) {
            match outcome.into_result() {
                Ok(Some(value)) => print_found(shared, style, key, &value)?,
                Ok(None) => {
                    missing += 1;
                    if shared.json {
                        Answer::new("not_found").bytes(style, "key", key).print();
                    } else {
                        eprintln!("keyway: no such key: {}", style.line(key));
                    }
                }
                Err(not_done) => {
                    let why = Failure::from(not_done);
                    if shared.json {
                        let answer = Answer::new(why.outcome()).bytes(style, "key", key);
                        answer.with("error", why.message()).print();
                    } else {
                        eprintln!("keyway: {}: {}", style.line(key), why.message());
                    }
                    // A refusal will not go away by itself, so it decides the exit code.
                    if failed.is_none() || matches!(not_done, NotDone::Refused(_)) {
                        failed = Some(not_done);
                    }
                }
            }
        }
        match failed {
            Some(not_done) => Err(not_done.into()),
            None if missing > 0 => Ok(Verdict::No),
            None => Ok(Verdict::Yes),
        }
    }

    fn keys(&self) -> Result<Vec<Vec<u8>>, Failure> {
        if self.keys != ["-"] {
            return self.keys.iter().map(|text| bytes::key(text, self.hex)).collect();
        }
        let mut keys = Vec::new();
        for line in std::io::stdin().lock().lines() {
            let line = line.map_err(|error| Failure::usage(format!("standard input: {error}")))?;
            keys.push(bytes::key(&line, self.hex)?);
        }
        Ok(keys)
    }
}

fn print_found(shared: &Shared, style: Style, key: &[u8], value: &Value) -> Result<(), Failure> {
    if shared.json {
        Answer::new("done").bytes(style, "key", key).value(style, value).print();
        return Ok(());
    }
    let line = format!("{}\t{}\n", style.line(key), style.line(&value.value));
    std::io::stdout().write_all(line.as_bytes()).map_err(|error| Failure::Other(error.into()))
}
