//! `keyway scan`: read keys in order, or all keys of a hash keyspace in the order of their hashes.

use crate::answer::Answer;
use crate::bytes::{self, Style};
use crate::cli::Shared;
use crate::connect;
use crate::exit::{Failure, Verdict};
use crate::out::{self, Out};
use client::{PageStart, ScanOptions, Value};
use std::ops::Bound;

/// Read keys in order.
///
/// In a keyspace of kind hash that is the order of the hashes, and all keys are read: options that
/// name keys, and --reverse, are for keyspaces of kind range. Every key that has a value all the
/// time is among those that are printed, whatever is written meanwhile.
///
/// The switch cuts the interval at the partitions' bounds; the client puts the pieces together.
/// Prints a line for each key: key, tab, value, what is not printable escaped. Of a value that fits
/// no datagram it is said how long it is, in brackets (with --json under bytes).
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
    /// First key, itself included.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["after", "prefix"])]
    from: Option<String>,
    /// First key, itself left out.
    #[arg(long, value_name = "KEY", conflicts_with = "prefix")]
    after: Option<String>,
    /// Last key, itself included.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["before", "prefix"])]
    to: Option<String>,
    /// Last key, itself left out.
    #[arg(long, value_name = "KEY", conflicts_with = "prefix")]
    before: Option<String>,
    /// Only keys that begin so.
    #[arg(long, value_name = "KEY")]
    prefix: Option<String>,
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

/// Keys asked for at a time: some megabytes, so that a scan of any length prints as it goes.
const PAGE_KEYS: usize = 10_000;

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let mut scan = self.options()?;
        let space = connect::space(shared)?;
        if self.count && scan == self.whole() {
            let most = self.limit.map_or(u64::MAX, |limit| limit as u64);
            Self::print_count(shared, space.count().into_result()?.keys.min(most))?;
            return Ok(Verdict::Yes);
        }
        let mut out = Out::lock();
        let mut left = self.limit.unwrap_or(usize::MAX);
        let mut count = 0_u64;
        let by_hash = !space.keyspace().is_ordered() && scan == self.whole();
        let mut cursor = Some(PageStart::FIRST);
        while left > 0 {
            let page = left.min(PAGE_KEYS);
            let entries = if by_hash {
                let Some(from) = cursor else { break };
                let mut page = space.page(&from, page, scan.keys_only).into_result()?;
                cursor = page.next;
                page.entries.truncate(left);
                page.entries
            } else {
                scan.limit = Some(page);
                space.scan(scan.clone()).into_result()?
            };
            for (key, value) in &entries {
                count += 1;
                if !self.count {
                    out.line(&self.line(shared, key, value))?;
                }
            }
            let full = entries.len() == page;
            left -= entries.len();
            if by_hash {
                continue;
            }
            let (true, Some((last, _))) = (full, entries.into_iter().next_back()) else { break };
            let rest = if self.reverse { &mut scan.end } else { &mut scan.start };
            *rest = Bound::Excluded(last);
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

    fn options(&self) -> Result<ScanOptions, Failure> {
        let options = ScanOptions { reverse: self.reverse, ..self.whole() };
        if let Some(prefix) = &self.prefix {
            let prefix = bytes::key(prefix, self.hex)?;
            let end = after_all_with(&prefix).map_or(Bound::Unbounded, Bound::Excluded);
            return Ok(ScanOptions { start: Bound::Included(prefix), end, ..options });
        }
        let start = self.bound(self.from.as_deref(), self.after.as_deref())?;
        let end = self.bound(self.to.as_deref(), self.before.as_deref())?;
        Ok(ScanOptions { start, end, ..options })
    }

    fn bound(
        &self,
        included: Option<&str>,
        excluded: Option<&str>,
    ) -> Result<Bound<Vec<u8>>, Failure> {
        match (included, excluded) {
            (Some(key), _) => Ok(Bound::Included(bytes::key(key, self.hex)?)),
            (None, Some(key)) => Ok(Bound::Excluded(bytes::key(key, self.hex)?)),
            (None, None) => Ok(Bound::Unbounded),
        }
    }
}

/// The first key after all that begin with `prefix`; `None` if there is none.
fn after_all_with(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut next = prefix.to_vec();
    while let Some(last) = next.pop() {
        if last < u8::MAX {
            next.push(last + 1);
            return Some(next);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_the_next_one_begins() {
        assert_eq!(after_all_with(b"user"), Some(b"uses".to_vec()));
        assert_eq!(after_all_with(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(after_all_with(b"\xff"), None);
    }
}
