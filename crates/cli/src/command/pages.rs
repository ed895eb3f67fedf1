//! Keys of a keyspace, page by page, and which of them.

use client::blocking::Space;
use client::{NotDone, PageStart, ScanOptions, Value};
use console::bytes;
use console::exit::Failure;
use std::ops::Bound;

/// Bounds of keys on the command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Interval {
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
}

impl Interval {
    /// The prefix, if nothing else is said.
    pub(crate) fn only_prefix(&self) -> Option<&str> {
        let Self { from, after, to, before, prefix } = self;
        let others = [from, after, to, before].into_iter().any(Option::is_some);
        prefix.as_deref().filter(|_| !others)
    }

    /// Adds the bounds to what is asked for.
    pub(crate) fn options(&self, hex: bool, all: ScanOptions) -> Result<ScanOptions, Failure> {
        if let Some(prefix) = &self.prefix {
            let prefix = bytes::key(prefix, hex)?;
            let end = after_all_with(&prefix).map_or(Bound::Unbounded, Bound::Excluded);
            return Ok(ScanOptions { start: Bound::Included(prefix), end, ..all });
        }
        let bound = |key: &Option<String>, bound: fn(Vec<u8>) -> Bound<Vec<u8>>| {
            key.as_ref().map(|key| bytes::key(key, hex).map(bound)).transpose()
        };
        let start = bound(&self.from, Bound::Included)?.or(bound(&self.after, Bound::Excluded)?);
        let end = bound(&self.to, Bound::Included)?.or(bound(&self.before, Bound::Excluded)?);
        let (start, end) = (start.unwrap_or(Bound::Unbounded), end.unwrap_or(Bound::Unbounded));
        Ok(ScanOptions { start, end, ..all })
    }
}

/// The first key after all that begin so; `None` if none is.
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

/// A key and its value.
pub(crate) type Entry = (Vec<u8>, Value);

/// A walk through a keyspace.
#[derive(Debug)]
pub(crate) struct Pages<'a> {
    space: &'a Space,
    rest: Rest,
}

#[derive(Debug)]
enum Rest {
    /// By the hashes of keys, from here on.
    Hashes {
        cursor: PageStart,
        keys_only: bool,
    },
    /// By keys.
    Keys(ScanOptions),
    Over,
}

/// Keys asked for at a time: some megabytes, so that a walk of any length shows what it finds as
/// it goes.
const PAGE_KEYS: usize = 10_000;

impl<'a> Pages<'a> {
    /// Walks through what is asked for; the limit is not looked at.
    pub(crate) fn new(space: &'a Space, scan: ScanOptions) -> Self {
        let whole = ScanOptions { keys_only: scan.keys_only, ..ScanOptions::default() };
        let rest = if !space.keyspace().is_ordered() && scan == whole {
            Rest::Hashes { cursor: PageStart::FIRST, keys_only: scan.keys_only }
        } else {
            Rest::Keys(scan)
        };
        Self { space, rest }
    }

    /// The next keys, at most so many; none if that was all.
    pub(crate) fn next(&mut self, most: usize) -> Result<Vec<Entry>, NotDone> {
        let count = most.min(PAGE_KEYS);
        if count == 0 {
            return Ok(Vec::new());
        }
        loop {
            match std::mem::replace(&mut self.rest, Rest::Over) {
                Rest::Over => return Ok(Vec::new()),
                Rest::Hashes { cursor, keys_only } => {
                    let page = self.space.page(&cursor, count, keys_only).into_result()?;
                    if let Some(cursor) = page.next {
                        self.rest = Rest::Hashes { cursor, keys_only };
                    }
                    let mut entries = page.entries;
                    if entries.len() > most {
                        entries.truncate(most);
                        self.rest = Rest::Over;
                    }
                    if !entries.is_empty() {
                        return Ok(entries);
                    }
                }
                Rest::Keys(mut scan) => {
                    scan.limit = Some(count);
                    let entries = self.space.scan(scan.clone()).into_result()?;
                    if let (true, Some((last, _))) = (entries.len() == count, entries.last()) {
                        let rest = if scan.reverse { &mut scan.end } else { &mut scan.start };
                        *rest = Bound::Excluded(last.clone());
                        self.rest = Rest::Keys(scan);
                    }
                    return Ok(entries);
                }
            }
        }
    }
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
