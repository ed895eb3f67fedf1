//! `keyway del`: delete one key.

use crate::command::cas::Expected;
use client::{CasReply, New, PutOptions};
use console::answer::Answer;
use console::bytes::{self, Style};
use console::connect;
use console::exit::{Failure, Verdict};
use console::note;
use console::out;
use console::shared::Shared;
use wire::Version;

/// Delete one key.
///
/// Ends with exit code 1, and changes nothing, if there was none, or not the expected one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway del greeting
  keyway del lock --expect mine                 give a lock back, if it is still held
  keyway del --hex 00ff01")]
pub(crate) struct Args {
    /// The key.
    key: String,
    #[command(flatten)]
    expected: Expected,
    /// The key is given as hexadecimal digits.
    #[arg(long)]
    hex: bool,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let key = bytes::key(&self.key, self.hex)?;
        let style = Style { hex: self.hex };
        let expected = self.expected.read(self.hex)?;
        let space = connect::space(shared)?;
        let (outcome, version) = match &expected {
            None => {
                let reply = space.del(&key).into_result()?;
                (if reply.existed { "done" } else { "not_found" }, reply.version)
            }
            Some(expected) => {
                let (expect, never) = (expected.as_expect(), PutOptions::default());
                match space.cas(&key, expect, New::Nothing, never).into_result()? {
                    CasReply::Written { version } => ("done", version),
                    CasReply::Mismatch { version: Version::NONE } => ("not_found", Version::NONE),
                    CasReply::Mismatch { version } => ("mismatch", version),
                }
            }
        };
        if shared.json {
            Answer::new(outcome).bytes(style, "key", &key).with("version", version).print()?;
        } else if outcome == "done" {
            out::line(&format!("deleted, version {version}"))?;
        }
        match outcome {
            "done" => return Ok(Verdict::Yes),
            "mismatch" => {
                note!("keyway: not deleted: something else is there, version {version}");
            }
            _ => note!("keyway: no such key: {}", style.line(&key)),
        }
        Ok(Verdict::No)
    }
}
