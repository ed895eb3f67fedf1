//! Rules that an earlier start has left in the device. Caches tell theirs anew, one after the
//! other; until they have, those that are there are as good.

use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::time::Duration;

/// What was there at the beginning, and has not been told by a cache since.
#[derive(Debug, Default)]
pub(crate) struct Inherited {
    rules: BTreeMap<Ipv6Addr, Ipv6Addr>,
    /// When time began to pass.
    since: Option<Instant>,
}

impl Inherited {
    pub(crate) fn new(rules: impl Iterator<Item = (Ipv6Addr, Ipv6Addr)>) -> Self {
        Self { rules: rules.collect(), since: None }
    }

    /// The cache that reads of an address went to.
    pub(crate) fn find(&self, address: Ipv6Addr) -> Option<Ipv6Addr> {
        self.rules.get(&address).copied()
    }

    /// A cache has told something of this address. Says whether there was a rule.
    pub(crate) fn take(&mut self, address: Ipv6Addr) -> bool {
        self.rules.remove(&address).is_some()
    }

    /// Time passes, and these caches are heard. Says which rules do not count any more.
    pub(crate) fn expire(&mut self, now: Instant, heard: &BTreeSet<Ipv6Addr>) -> Vec<Ipv6Addr> {
        if self.rules.is_empty() {
            return Vec::new();
        }
        let since = *self.since.get_or_insert(now);
        if now < since + HEARD_WITHIN {
            return Vec::new();
        }
        let last = now < since + LAST;
        let over = self.rules.extract_if(.., |_, cache| !(last && heard.contains(cache)));
        over.map(|(address, _)| address).collect()
    }
}

/// A cache that is there has been heard by then.
const HEARD_WITHIN: Duration = Duration::from_secs(1);

/// A cache has told all of its rules by then: ten thousand, at a thousand in a second.
const LAST: Duration = Duration::from_secs(10);
