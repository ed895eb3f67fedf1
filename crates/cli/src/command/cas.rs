//! `keyway cas`: write one key if what is there is what is expected.

use crate::command::ttl::Ttl;
use clap::builder::TypedValueParser as _;
use client::{CasReply, Expect, New};
use console::answer::Answer;
use console::bytes::{self, Style};
use console::connect;
use console::exit::{Failure, Verdict};
use console::note;
use console::out;
use console::shared::Shared;
use wire::Version;

/// Write one key if its value, or its version, is the expected one.
///
/// Without a new value, the one that is there stays and only its expiry is new.
/// Ends with exit code 1, and changes nothing, if something else is there.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("expectation").required(true))]
#[command(after_help = "\
Examples:
  keyway cas lock mine --expect-absent          take a lock, if it is free
  keyway cas lock yours --expect mine           hand it on
  keyway cas config @new.toml --expect-version 12
  keyway cas lock --expect yours --ttl 30s      hold it for longer")]
pub(crate) struct Args {
    /// The key.
    key: String,
    /// The new value: text, @FILE, - for standard input, @@... for text that begins with @.
    #[arg(allow_hyphen_values = true)]
    value: Option<String>,
    #[command(flatten)]
    expected: Expected,
    /// There must be no value.
    #[arg(long, group = "expectation", requires = "value")]
    expect_absent: bool,
    #[command(flatten)]
    ttl: Ttl,
    /// Key and values are given as hexadecimal digits.
    #[arg(long)]
    hex: bool,
}

/// What must be there, for commands that change only that.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Expected {
    /// The value that must be there.
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true, group = "expectation")]
    expect: Option<String>,
    /// The version that must be there, as put, get --json and cas report it.
    #[arg(long, value_name = "VERSION", group = "expectation")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..).map(Version::new))]
    expect_version: Option<Version>,
}

/// An expectation with its bytes.
pub(crate) enum Expectation {
    Version(Version),
    Value(Vec<u8>),
}

impl Expected {
    /// `None` if nothing is said.
    pub(crate) fn read(&self, hex: bool) -> Result<Option<Expectation>, Failure> {
        Ok(match (&self.expect, self.expect_version) {
            (Some(text), _) => Some(Expectation::Value(bytes::value(text, hex)?)),
            (None, version) => version.map(Expectation::Version),
        })
    }
}

impl Expectation {
    pub(crate) fn as_expect(&self) -> Expect<'_> {
        match self {
            Self::Version(version) => Expect::Version(*version),
            Self::Value(value) => Expect::Value(value),
        }
    }
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let key = bytes::key(&self.key, self.hex)?;
        let new = self.value.map(|text| bytes::long_value(&text, self.hex)).transpose()?;
        // The group demands one of them: nothing said is that there is to be nothing.
        let expected = self.expected.read(self.hex)?.unwrap_or(Expectation::Version(Version::NONE));
        let style = Style { hex: self.hex };
        let space = connect::space(shared)?;
        let (expect, options) = (expected.as_expect(), self.ttl.options());
        let reply = match new {
            Some(new) => new.cas(&space, &key, expect, options)?,
            None => space.cas(&key, expect, New::Same, options).into_result()?,
        };
        let (outcome, version) = match reply {
            CasReply::Written { version } => ("done", version),
            CasReply::Mismatch { version } => ("mismatch", version),
        };
        if shared.json {
            Answer::new(outcome).bytes(style, "key", &key).with("version", version).print()?;
        }
        match reply {
            CasReply::Written { version } => {
                if !shared.json {
                    out::line(&format!("ok, version {version}"))?;
                }
                Ok(Verdict::Yes)
            }
            CasReply::Mismatch { version: Version::NONE } => {
                note!("keyway: not written: there is no such key: {}", style.line(&key));
                Ok(Verdict::No)
            }
            CasReply::Mismatch { version } => {
                note!("keyway: not written: something else is there, version {version}");
                Ok(Verdict::No)
            }
        }
    }
}
