//! `keyway put`: write one key.

use crate::answer::Answer;
use crate::bytes::{self, Style};
use crate::cli::Shared;
use crate::command::ttl::Ttl;
use crate::connect;
use crate::exit::{Failure, Verdict};
use crate::out;

/// Write one key.
///
/// Key and value together are at most 1280 bytes, the key at most 1024.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway put greeting hello
  keyway put session:7 'logged in' --ttl 30m
  keyway put config @config.toml
  date | keyway put now -
  keyway put --hex 00ff01 cafe")]
pub(crate) struct Args {
    /// The key.
    key: String,
    /// The value: text, @FILE, - for standard input, @@... for text that begins with @.
    #[arg(allow_hyphen_values = true)]
    value: String,
    #[command(flatten)]
    ttl: Ttl,
    /// Key and value are given as hexadecimal digits.
    #[arg(long)]
    hex: bool,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let key = bytes::key(&self.key, self.hex)?;
        let value = bytes::value(&self.value, self.hex)?;
        let space = connect::space(shared)?;
        let version = space.put(&key, &value, self.ttl.options()).into_result()?;
        if shared.json {
            let style = Style { hex: self.hex };
            Answer::new("done").bytes(style, "key", &key).with("version", version).print();
        } else {
            out::line(&format!("ok, version {version}"));
        }
        Ok(Verdict::Yes)
    }
}
