//! Which cache each cached address leads to.

use crate::partitions::ipv6;
use cluster::{CacheId, CacheSpec};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// The rules of all caches, by address. Keys of one tag have one address, so rules are counted.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    /// How many keys of an address a cache has rules for; never 0.
    keys: BTreeMap<(Ipv6Addr, CacheId), u32>,
    /// The same, to find what a cache has.
    addresses: BTreeMap<CacheId, BTreeSet<Ipv6Addr>>,
    /// Where caches are, by what the controller says.
    places: BTreeMap<CacheId, Ipv6Addr>,
    /// Until when the rules of those that were heard count.
    until: BTreeMap<CacheId, Instant>,
}

impl Holders {
    /// The cache that reads of an address go to: of several, the first.
    pub(crate) fn find(&self, address: Ipv6Addr) -> Option<Ipv6Addr> {
        let all = (address, CacheId(0))..=(address, CacheId(u16::MAX));
        let caches = self.keys.range(all).map(|((_, cache), _)| cache);
        caches
            .filter(|cache| self.until.contains_key(cache))
            .find_map(|it| self.places.get(it))
            .copied()
    }

    /// A cache has a rule for one more key of this address, or for one less. Says whether that may
    /// change where its reads go.
    pub(crate) fn change(&mut self, cache: CacheId, address: Ipv6Addr, adds: bool) -> bool {
        let keys = self.keys.entry((address, cache)).or_insert(0);
        *keys = if adds { keys.saturating_add(1) } else { keys.saturating_sub(1) };
        let keys = *keys;
        if keys == 0 {
            self.keys.remove(&(address, cache));
            let addresses = self.addresses.get_mut(&cache);
            return addresses.is_some_and(|addresses| addresses.remove(&address));
        }
        keys == 1 && self.addresses.entry(cache).or_default().insert(address)
    }

    /// A cache has no rules any more. Says for which addresses it had some.
    pub(crate) fn forget(&mut self, cache: CacheId) -> BTreeSet<Ipv6Addr> {
        let addresses = self.addresses.remove(&cache).unwrap_or_default();
        for address in &addresses {
            self.keys.remove(&(*address, cache));
        }
        addresses
    }

    /// All addresses of which a cache holds keys.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        self.keys.keys().map(|(address, _)| *address)
    }

    /// A cache was heard. Says for which addresses its rules count again.
    pub(crate) fn hear(&mut self, cache: CacheId, until: Instant) -> BTreeSet<Ipv6Addr> {
        match self.until.insert(cache, until) {
            Some(_) => BTreeSet::new(),
            None => self.addresses.get(&cache).cloned().unwrap_or_default(),
        }
    }

    /// Says which caches are silent: their rules do not count any more.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<CacheId> {
        let silent = self.until.extract_if(.., |_, until| *until <= now);
        silent.map(|(cache, _)| cache).collect()
    }

    /// The addresses for which these have rules.
    pub(crate) fn addresses_of(&self, caches: &[CacheId]) -> BTreeSet<Ipv6Addr> {
        caches.iter().filter_map(|cache| self.addresses.get(cache)).flatten().copied().collect()
    }

    /// Where caches are.
    pub(crate) fn places(&self) -> BTreeSet<Ipv6Addr> {
        self.places.values().copied().collect()
    }

    /// Where those are that are not silent.
    pub(crate) fn heard(&self) -> BTreeSet<Ipv6Addr> {
        self.until.keys().filter_map(|cache| self.place_of(*cache)).collect()
    }

    /// Where a cache is.
    pub(crate) fn place_of(&self, cache: CacheId) -> Option<Ipv6Addr> {
        self.places.get(&cache).copied()
    }

    /// Where caches are. Says for which addresses reads may go elsewhere.
    pub(crate) fn place(&mut self, caches: &[CacheSpec]) -> BTreeSet<Ipv6Addr> {
        let place = |cache: &CacheSpec| Some((cache.id, ipv6(cache.endpoint)?));
        let places: BTreeMap<CacheId, Ipv6Addr> = caches.iter().filter_map(place).collect();
        let before = std::mem::replace(&mut self.places, places);
        let moved = |cache: &&CacheId| before.get(cache) != self.places.get(cache);
        let moved = self.addresses.keys().filter(moved);
        moved.filter_map(|cache| self.addresses.get(cache)).flatten().copied().collect()
    }
}
