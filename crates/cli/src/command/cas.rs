//! `keyway cas`: write one key if what is there is what is expected.

use crate::answer::Answer;
use crate::bytes::{self, Style};
use crate::cli::Shared;
use crate::command::ttl::Ttl;
use crate::connect;
use crate::exit::{Failure, Verdict};
use crate::out;
use client::{CasReply, Expect};

/// Write one key if its value, or its version, is the expected one.
///
/// Ends with exit code 1, and changes nothing, if something else is there.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway cas lock mine --expect-absent          take a lock, if it is free
  keyway cas lock yours --expect mine           hand it on
  keyway cas config @new.toml --expect-version 12")]
pub(crate) struct Args {
    /// The key.
    key: String,
    /// The new value: text, @FILE, - for standard input, @@... for text that begins with @.
    #[arg(allow_hyphen_values = true)]
    value: String,
    #[command(flatten)]
    expected: Expected,
    #[command(flatten)]
    ttl: Ttl,
    /// Key and values are given as hexadecimal digits.
    #[arg(long)]
    hex: bool,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Expected {
    /// The value that must be there.
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    expect: Option<String>,
    /// The version that must be there, as put, get --json and cas report it.
    #[arg(long, value_name = "VERSION")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    expect_version: Option<u64>,
    /// There must be no value.
    #[arg(long)]
    expect_absent: bool,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let key = bytes::key(&self.key, self.hex)?;
        let value = bytes::value(&self.value, self.hex)?;
        let expected =
            self.expected.expect.map(|text| bytes::value(&text, self.hex)).transpose()?;
        let expect = match (&expected, self.expected.expect_version) {
            (Some(value), _) => Expect::Value(value),
            (None, version) => Expect::Version(version.unwrap_or(0)),
        };
        let style = Style { hex: self.hex };
        let space = connect::space(shared)?;
        let reply = space.cas(&key, expect, &value, self.ttl.options()).into_result()?;
        let (outcome, version) = match reply {
            CasReply::Written { version } => ("done", version),
            CasReply::Mismatch { version } => ("mismatch", version),
        };
        if shared.json {
            Answer::new(outcome).bytes(style, "key", &key).with("version", version).print();
        }
        match reply {
            CasReply::Written { version } => {
                if !shared.json {
                    out::line(&format!("ok, version {version}"));
                }
                Ok(Verdict::Yes)
            }
            CasReply::Mismatch { version: 0 } => {
                eprintln!("keyway: not written: there is no such key: {}", style.line(&key));
                Ok(Verdict::No)
            }
            CasReply::Mismatch { version } => {
                eprintln!("keyway: not written: something else is there, version {version}");
                Ok(Verdict::No)
            }
        }
    }
}
