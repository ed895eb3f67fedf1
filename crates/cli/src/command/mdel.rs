//! `keyway mdel`: delete many keys at once.

use crate::command::many::{self, Tally, Within};
use console::answer::Answer;
use console::bytes::Style;
use console::exit::{Failure, Verdict};
use console::out;
use console::shared::Shared;

/// Delete many keys at once.
///
/// Each key is deleted on its own, with its own outcome: it is not atomic. Ends with exit code 1 if
/// there was no such key among them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway mdel a b c
  keyway mdel a b c --json
  seq -f 'user%012g' 0 9999 | keyway mdel -")]
pub(crate) struct Args {
    /// The keys; a single - reads them from standard input, one per line.
    #[arg(required = true)]
    keys: Vec<String>,
    /// Keys are given as hexadecimal digits.
    #[arg(long)]
    hex: bool,
    #[command(flatten)]
    within: Within,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let keys = many::keys(&self.keys, self.hex)?;
        let style = Style { hex: self.hex };
        let outcomes = self.within.space(shared)?.mdel(&keys);
        let mut tally = Tally::new(shared, style);
        let mut deleted = 0;
        for (key, outcome) in keys.iter().zip(outcomes) {
            match outcome.into_result() {
                Ok(reply) if reply.existed => {
                    deleted += 1;
                    if shared.json {
                        let answer = Answer::new("done").bytes(style, "key", key);
                        answer.with("version", reply.version).print()?;
                    }
                }
                Ok(_) => tally.missing(key)?,
                Err(not_done) => tally.failed(key, not_done)?,
            }
        }
        if !shared.json {
            out::line(&format!("ok, {deleted} of {} deleted", keys.len()))?;
        }
        tally.verdict()
    }
}
