//! `keyway mget`: read many keys at once.

use crate::command::many::{self, Tally, Within};
use client::Value;
use console::answer::Answer;
use console::bytes::Style;
use console::exit::{Failure, Verdict};
use console::out;
use console::shared::Shared;

/// Read many keys at once.
///
/// The switch sends each node those of the keys that it holds. Prints a line for each key found:
/// key, tab, value, what is not printable escaped. Ends with exit code 1 if a key is missing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway mget a b c
  keyway mget a b c --json
  keyway mget a b c --within 20ms
  seq -f 'user%012g' 0 9999 | keyway mget -")]
pub(crate) struct Args {
    /// The keys; a single - reads them from standard input, one per line.
    #[arg(required = true)]
    keys: Vec<String>,
    /// Keys are given, and keys and values printed, as hexadecimal digits.
    #[arg(long)]
    hex: bool,
    #[command(flatten)]
    within: Within,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let keys = many::keys(&self.keys, self.hex)?;
        let style = Style { hex: self.hex };
        let space = self.within.space(shared)?;
        let outcomes = space.mget(&keys);
        let mut tally = Tally::new(shared, style);
        for (key, outcome) in keys.iter().zip(outcomes) {
            let found = match outcome.into_result() {
                // It fits no datagram.
                Ok(Some(value)) if value.big => space.get(key).into_result(),
                other => other,
            };
            match found {
                Ok(Some(value)) => print_found(shared, style, key, &value)?,
                Ok(None) => tally.missing(key)?,
                Err(not_done) => tally.failed(key, not_done)?,
            }
        }
        tally.verdict()
    }
}

fn print_found(shared: &Shared, style: Style, key: &[u8], value: &Value) -> Result<(), Failure> {
    if shared.json {
        return Answer::new("done").bytes(style, "key", key).value(style, key, value).print();
    }
    out::line(&format!("{}\t{}", style.line(key), style.line(&value.value)))
}
