//! `keyway scan`: read keys in order, or all keys of a hash keyspace in the order of their hashes.

use crate::command::pages::{Interval, Pages};
use client::{ScanOptions, Value};
use console::answer::Answer;
use console::bytes::Style;
use console::connect;
use console::exit::{Failure, Verdict};
use console::out::{self, Out};
use console::shared::Shared;

/// Read keys in order.
///
/// In a keyspace of kind hash that is the order of the hashes, and all keys are read: options that
/// name keys, and --reverse, are for keyspaces of kind range. Every key that has a value all the
/// time is among those that are printed, whatever is written meanwhile.
///
/// The switch cuts the interval at the partitions' bounds; the client puts the pieces together.
/// Prints a line for each key: key, tab, value, what is not printable escaped. Of a value that fits
/// no datagram it is said how long it is, in brackets (with --json under bytes). Expiries are not
/// printed: to copy keys as they are, use keyway export.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway keyspace create users --range --prefix user
  keyway scan -k users
  keyway scan -k users --prefix user0001 --limit 10
  keyway scan -k users --from user000000000100 --before user000000000200 --reverse
  keyway scan -k users --count
  keyway scan --keys-only                       all keys of a hash keyspace")]
pub(crate) struct Args {
    #[command(flatten)]
    interval: Interval,
    /// From the last key to the first.
    #[arg(long)]
    reverse: bool,
    /// At most so many keys.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Leave the values out.
    #[arg(long)]
    keys_only: bool,
    /// Print only how many keys there are.
    #[arg(long, conflicts_with = "keys_only")]
    count: bool,
    /// Keys are given, and keys and values printed, as hexadecimal digits.
    #[arg(long)]
    hex: bool,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let all = ScanOptions { reverse: self.reverse, ..self.whole() };
        let scan = self.interval.options(self.hex, all)?;
        let space = connect::space(shared)?;
        if self.count && scan == self.whole() {
            let most = self.limit.map_or(u64::MAX, |limit| limit as u64);
            Self::print_count(shared, space.count().into_result()?.keys.min(most))?;
            return Ok(Verdict::Yes);
        }
        let mut out = Out::lock();
        let mut pages = Pages::new(&space, scan);
        let (mut left, mut count) = (self.limit.unwrap_or(usize::MAX), 0_u64);
        loop {
            let entries = pages.next(left)?;
            if entries.is_empty() {
                break;
            }
            left -= entries.len();
            count += entries.len() as u64;
            if !self.count {
                entries
                    .iter()
                    .try_for_each(|(key, value)| out.line(&self.line(shared, key, value)))?;
            }
        }
        out.end()?;
        if self.count {
            Self::print_count(shared, count)?;
        }
        Ok(Verdict::Yes)
    }

    fn print_count(shared: &Shared, count: u64) -> Result<(), Failure> {
        if shared.json {
            Answer::new("done").with("count", count).print()
        } else {
            out::line(&count.to_string())
        }
    }

    fn line(&self, shared: &Shared, key: &[u8], value: &Value) -> String {
        let style = Style { hex: self.hex };
        match (shared.json, self.keys_only) {
            (true, keys_only) => {
                let answer = Answer::new("done").bytes(style, "key", key);
                let answer = if keys_only { answer } else { answer.value(style, key, value) };
                answer.line()
            }
            (false, true) => style.line(key),
            (false, false) if value.big => {
                let len = value.whole_len(key).unwrap_or_default();
                format!("{}\t({len} bytes)", style.line(key))
            }
            (false, false) => {
                format!("{}\t{}", style.line(key), style.line(&value.value))
            }
        }
    }

    /// What is asked for where nothing says which keys.
    fn whole(&self) -> ScanOptions {
        ScanOptions { keys_only: self.keys_only || self.count, ..ScanOptions::default() }
    }
}
