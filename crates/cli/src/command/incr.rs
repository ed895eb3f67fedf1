//! `keyway incr`: add to a number.

use client::IncrReply;
use console::answer::Answer;
use console::bytes::{self, Style};
use console::connect;
use console::exit::{Failure, Verdict};
use console::note;
use console::out;
use console::shared::Shared;

/// Add to a decimal 64-bit number; a key without a value counts as 0.
///
/// Prints the sum. Ends with exit code 1, and changes nothing, if the value is no number or the sum
/// leaves the 64-bit range.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway incr visits
  keyway incr visits 10
  keyway incr stock -1")]
pub(crate) struct Args {
    /// The key.
    key: String,
    /// What to add; negative to subtract.
    #[arg(default_value_t = 1, allow_negative_numbers = true)]
    delta: i64,
    /// The key is given as hexadecimal digits.
    #[arg(long)]
    hex: bool,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let key = bytes::key(&self.key, self.hex)?;
        let style = Style { hex: self.hex };
        let reply = connect::space(shared)?.incr(&key, self.delta).into_result()?;
        let answer = |outcome| Answer::new(outcome).bytes(style, "key", &key);
        match reply {
            IncrReply::Sum { sum, version } => {
                if shared.json {
                    answer("done").with("sum", sum).with("version", version).print()?;
                } else {
                    out::line(&sum.to_string())?;
                }
                Ok(Verdict::Yes)
            }
            IncrReply::NotANumber => {
                if shared.json {
                    answer("not_a_number").print()?;
                }
                note!("keyway: not added: the value is not a decimal 64-bit number");
                Ok(Verdict::No)
            }
            IncrReply::Overflow => {
                if shared.json {
                    answer("overflow").print()?;
                }
                note!("keyway: not added: the sum leaves the 64-bit range");
                Ok(Verdict::No)
            }
        }
    }
}
