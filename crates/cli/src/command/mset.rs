//! `keyway mset`: write many keys at once.

use crate::command::many::{self, Tally, Within};
use crate::command::ttl::Ttl;
use console::answer::Answer;
use console::bytes::{self, Style};
use console::exit::{Failure, Verdict};
use console::out;
use console::shared::Shared;

/// Write many keys at once.
///
/// Each key is a write of its own, with its own outcome: it is not atomic, and some may be done and
/// others not. Of a key that is given twice, the last value is written.
///
/// Lines of standard input are all read before anything is written, and those that could mean two
/// things are refused: with a backslash, with a second tab, or with the length of a value in place
/// of it. They have no expiry. To copy keys as they are, use keyway export and keyway import.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway mset a 1 b 2 c 3
  keyway mset a 1 b 2 --ttl 30m --json
  printf 'a\\t1\\nb\\t2\\n' | keyway mset -
  keyway mget - --hex <keys | keyway mset - --hex -k copies")]
pub(crate) struct Args {
    /// Keys and values in turn; a single - reads them from standard input, one key to a line, with
    /// a tab and its value behind it.
    #[arg(required = true, value_name = "KEY VALUE", allow_negative_numbers = true)]
    entries: Vec<String>,
    #[command(flatten)]
    ttl: Ttl,
    /// Keys and values are given as hexadecimal digits.
    #[arg(long)]
    hex: bool,
    #[command(flatten)]
    within: Within,
}

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let entries = self.entries()?;
        let style = Style { hex: self.hex };
        let outcomes = self.within.space(shared)?.mset(&entries, self.ttl.options());
        let mut tally = Tally::new(shared, style);
        let mut written = 0;
        for ((key, _), outcome) in entries.iter().zip(outcomes) {
            match outcome.into_result() {
                Ok(version) => {
                    written += 1;
                    if shared.json {
                        let answer = Answer::new("done").bytes(style, "key", key);
                        answer.with("version", version).print()?;
                    }
                }
                Err(not_done) => tally.failed(key, not_done)?,
            }
        }
        if !shared.json {
            out::line(&format!("ok, {written} of {} written", entries.len()))?;
        }
        tally.verdict()
    }

    fn entries(&self) -> Result<Vec<Entry>, Failure> {
        if self.entries == ["-"] {
            return many::lines(self.hex)?.map(|line| self.entry(&line?)).collect();
        }
        let pairs = self.entries.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            let count = self.entries.len();
            let why = format!("{count} keys and values: each key needs a value behind it");
            return Err(Failure::usage(why));
        }
        let entry = |pair: &[String]| match pair {
            [key, value] => Ok((bytes::key(key, self.hex)?, bytes::value(value, self.hex)?)),
            _ => unreachable!("chunks of two"),
        };
        pairs.map(entry).collect()
    }

    /// A line of standard input.
    fn entry(&self, line: &str) -> Result<Entry, Failure> {
        let Some((key, value)) = line.split_once('\t') else {
            let why = format!("standard input: {line:?} has no tab between a key and its value");
            return Err(Failure::usage(why));
        };
        let why = if value.contains('\t') {
            "has two tabs: where does its key end? Give keys and values with --hex"
        } else if stands_for_more(value) {
            "has the length of a value in place of it, as scan prints long ones: copy them with \
             keyway export and keyway import"
        } else {
            return Ok((bytes::key(key, self.hex)?, bytes::text(value, self.hex)?));
        };
        Err(Failure::usage(format!("standard input: the line of key {key:?} {why}")))
    }
}

/// Whether it is what scan prints in place of a value that fits no datagram.
fn stands_for_more(value: &str) -> bool {
    let len = value.strip_prefix('(').and_then(|rest| rest.strip_suffix(" bytes)"));
    len.is_some_and(|len| len.parse::<u64>().is_ok())
}
