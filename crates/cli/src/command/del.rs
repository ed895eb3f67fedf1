//! `keyway del`: delete one key.

use crate::answer::Answer;
use crate::bytes::{self, Style};
use crate::cli::Shared;
use crate::connect;
use crate::exit::{Failure, Verdict};
use crate::out;

/// Delete one key.
///
/// Ends with exit code 1 if there was none.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway del greeting
  keyway del --hex 00ff01")]
pub(crate) struct Args {
    /// The key.
    key: String,
    /// The key is given as hexadecimal digits.
    #[arg(long)]
    hex: bool,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let key = bytes::key(&self.key, self.hex)?;
        let style = Style { hex: self.hex };
        let reply = connect::space(shared)?.del(&key).into_result()?;
        if shared.json {
            let answer = Answer::new(if reply.existed { "done" } else { "not_found" });
            answer.bytes(style, "key", &key).with("version", reply.version).print();
        } else if reply.existed {
            out::line(&format!("deleted, version {}", reply.version));
        }
        if reply.existed {
            return Ok(Verdict::Yes);
        }
        eprintln!("keyway: no such key: {}", style.line(&key));
        Ok(Verdict::No)
    }
}
