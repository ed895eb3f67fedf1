//! `keyway put`: write one key.

use crate::command::ttl::Ttl;
use console::answer::Answer;
use console::bytes::{self, Style};
use console::connect;
use console::exit::{Failure, Verdict};
use console::file::Input;
use console::out;
use console::shared::Shared;
use std::path::PathBuf;

/// Write one key.
///
/// The key is at most 1024 bytes. A value that does not fit a datagram with its key (1280 bytes
/// together) is sent in parts, up to 512 MiB, and becomes the key's value at once and whole; its
/// key is at most 980 bytes. What comes from a file or from standard input is read to its end; no
/// more of it is in memory than is on its way.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway put greeting hello
  keyway put session:7 'logged in' --ttl 30m
  keyway put config @config.toml
  date | keyway put now -
  keyway put photo --file photo.jpg
  tar c music | keyway put backup --file - --ttl 24h
  keyway put --hex 00ff01 cafe")]
pub(crate) struct Args {
    /// The key.
    key: String,
    /// The value: text, @FILE, - for standard input, @@... for text that begins with @.
    #[arg(allow_hyphen_values = true, required_unless_present = "file")]
    value: Option<String>,
    /// Read the value from this file, - for standard input.
    #[arg(long, value_name = "PATH", conflicts_with = "value")]
    file: Option<PathBuf>,
    #[command(flatten)]
    ttl: Ttl,
    /// Key and value (but for what is in a file) are given as hexadecimal digits.
    #[arg(long)]
    hex: bool,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let key = bytes::key(&self.key, self.hex)?;
        let value = match (&self.value, &self.file) {
            (Some(value), _) => bytes::long_value(value, self.hex)?,
            (None, Some(path)) => Input::open(path)?.value()?,
            (None, None) => unreachable!("a value or a file is required"),
        };
        let version = value.put(&connect::space(shared)?, &key, self.ttl.options())?;
        if shared.json {
            let style = Style { hex: self.hex };
            Answer::new("done").bytes(style, "key", &key).with("version", version).print()?;
        } else {
            out::line(&format!("ok, version {version}"))?;
        }
        Ok(Verdict::Yes)
    }
}
