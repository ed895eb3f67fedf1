//! `keyway get`: read one key.

use crate::answer::Answer;
use crate::bytes::{self, Style};
use crate::cli::Shared;
use crate::connect;
use crate::exit::{Failure, Verdict};

/// Read one key.
///
/// Prints the value as it is, with a newline only on a terminal. Ends with exit code 1 if there is
/// no such key.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway get greeting
  keyway get greeting --json
  keyway get photo > photo.jpg
  keyway get --hex 00ff01")]
pub(crate) struct Args {
    /// The key.
    key: String,
    /// The key is given, and the value printed, as hexadecimal digits.
    #[arg(long)]
    hex: bool,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let key = bytes::key(&self.key, self.hex)?;
        let style = Style { hex: self.hex };
        let found = connect::space(shared)?.get(&key).into_result()?;
        match found {
            Some(value) if shared.json => {
                Answer::new("done").bytes(style, "key", &key).value(style, &value).print();
            }
            Some(value) => bytes::print_raw(&value.value, style)?,
            None => {
                if shared.json {
                    Answer::new("not_found").bytes(style, "key", &key).print();
                }
                eprintln!("keyway: no such key: {}", style.line(&key));
                return Ok(Verdict::No);
            }
        }
        Ok(Verdict::Yes)
    }
}
