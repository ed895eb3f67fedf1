//! What is wanted, what is installed, and which changes come next.

use crate::holders::Holders;
use crate::inherited::Inherited;
use crate::loads::Loads;
use crate::partitions::{Unroutable, prefixes};
use cluster::{CacheId, PartitionCount, SwitchTables};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use wire::{AddressPrefix, CacheRule, ContentClass, ServicePrefix};

/// Changes that a device is asked for at once: few enough that it is soon asked for something more
/// urgent, many enough that the way there and back costs little.
pub const BATCH_MAX: usize = 1_024;

/// What a device has: addresses, and the member that it sends them to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Which addresses.
    pub prefix: AddressPrefix,
    /// The own address of the member.
    pub via: Ipv6Addr,
}

/// What a device is to do about one prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub prefix: AddressPrefix,
    /// Where it leads from now on, in place of where it led; `None`: it is taken out.
    pub via: Option<Ipv6Addr>,
}

/// How far a device has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Prefixes of partitions that it has.
    pub partitions: usize,
    /// Rules of cached keys, by address, that it has.
    pub rules: usize,
    /// Changes that are still to come.
    pub pending: usize,
    /// Changes that it refused, and that are asked for again later.
    pub failed: usize,
}

/// The content table of one device.
///
/// What is wanted and installed in two states one after the other is so in between. A prefix that
/// leads elsewhere is replaced, never taken out and put in. Prefixes of partitions are taken out
/// when those that come in their place are in, so that all their addresses lead somewhere.
#[derive(Debug)]
pub struct ContentTable {
    service: ServicePrefix,
    partitions: BTreeMap<AddressPrefix, Ipv6Addr>,
    unroutable: Vec<Unroutable>,
    holders: Holders,
    inherited: Inherited,
    installed: BTreeMap<AddressPrefix, Ipv6Addr>,
    rules_installed: usize,
    due: Due,
    asked: BTreeMap<AddressPrefix, Option<Ipv6Addr>>,
    failed: BTreeSet<AddressPrefix>,
    /// Where caches are that have lost all of their rules at once.
    gone: BTreeSet<Ipv6Addr>,
    /// Rules that were taken out since what was refused was asked for again.
    freed: usize,
    loads: Loads,
    /// Whether anything was ever wanted. Until then what was found is left as it is.
    told: bool,
    /// Whether the device has said what it has, or was asked for something.
    seen: bool,
}

/// Prefixes that are not as they are wanted.
#[derive(Debug, Default)]
struct Due {
    partitions: Sides,
    rules: Sides,
}

/// Of these, those that are to be put in or to lead elsewhere, and those that are to go.
#[derive(Debug, Default)]
struct Sides {
    more: BTreeSet<AddressPrefix>,
    less: BTreeSet<AddressPrefix>,
}

impl Sides {
    fn remove(&mut self, prefix: &AddressPrefix) {
        self.more.remove(prefix);
        self.less.remove(prefix);
    }

    fn len(&self) -> usize {
        self.more.len() + self.less.len()
    }
}

impl Due {
    fn of(&mut self, prefix: &AddressPrefix) -> &mut Sides {
        if is_rule(prefix) { &mut self.rules } else { &mut self.partitions }
    }
}

/// Whether a prefix is a rule: one address.
fn is_rule(prefix: &AddressPrefix) -> bool {
    prefix.len == RULE_LEN
}

/// Bits of a rule's prefix.
const RULE_LEN: u8 = 128;

impl ContentTable {
    /// Of a device that has nothing yet.
    #[must_use]
    pub fn new(service: ServicePrefix) -> Self {
        Self {
            service,
            partitions: BTreeMap::new(),
            unroutable: Vec::new(),
            holders: Holders::default(),
            inherited: Inherited::default(),
            installed: BTreeMap::new(),
            rules_installed: 0,
            due: Due::default(),
            asked: BTreeMap::new(),
            failed: BTreeSet::new(),
            gone: BTreeSet::new(),
            freed: 0,
            loads: Loads::default(),
            told: false,
            seen: false,
        }
    }

    /// All addresses that it has to do with.
    #[must_use]
    pub fn service(&self) -> ServicePrefix {
        self.service
    }

    /// The controller's tables are these from now on.
    pub fn install(&mut self, tables: &SwitchTables) {
        let (partitions, unroutable) = prefixes(self.service, tables);
        let before = std::mem::replace(&mut self.partitions, partitions);
        self.unroutable = unroutable;
        self.loads.follow(self.service, tables);
        let moved = self.holders.place(&tables.caches);
        if !std::mem::replace(&mut self.told, true) {
            self.inherit();
            return self.look_at_all();
        }
        let present: Vec<AddressPrefix> = self.partitions.keys().copied().collect();
        self.look_at(before.into_keys().chain(present));
        self.look_at_rules(moved);
    }

    /// Partitions that no prefix leads to.
    #[must_use]
    pub fn unroutable(&self) -> &[Unroutable] {
        &self.unroutable
    }

    /// A cache has one more rule, or one less.
    pub fn change_rule(&mut self, cache: CacheId, rule: &CacheRule) {
        let addresses = self.service.keyspace(rule.keyspace);
        let (Some(addresses), Some(bits)) = (addresses, rule.match_bits) else { return };
        let address = addresses.of_bits(ContentClass::Read, bits);
        let inherited = self.inherited.take(address);
        if self.holders.change(cache, address, rule.adds) || inherited {
            self.look_at_rules([address]);
        }
    }

    /// A cache has no rules any more.
    pub fn forget_cache(&mut self, cache: CacheId) {
        self.gone.extend(self.holders.place_of(cache));
        let addresses = self.holders.forget(cache);
        self.look_at_rules(addresses);
    }

    /// A cache was heard, and its rules count until then.
    pub fn hear_cache(&mut self, cache: CacheId, until: Instant) {
        let addresses = self.holders.hear(cache, until);
        self.look_at_rules(addresses);
    }

    /// Time passes: rules of caches that are silent do not count any more.
    pub fn handle_timeout(&mut self, now: Instant) {
        let silent = self.holders.expire(now);
        self.gone.extend(silent.iter().filter_map(|cache| self.holders.place_of(*cache)));
        let mut addresses = self.holders.addresses_of(&silent);
        addresses.extend(self.inherited.expire(now, &self.holders.heard()));
        self.look_at_rules(addresses);
    }

    /// Nothing is wanted any more.
    pub fn clear(&mut self) {
        self.told = true;
        self.partitions.clear();
        (self.holders, self.inherited) = Default::default();
        self.look_at_all();
    }

    /// The device has this and nothing else, whatever it was asked for before. Says whether that is
    /// not what was thought.
    pub fn found(&mut self, entries: impl IntoIterator<Item = Entry>) -> bool {
        let entries = entries.into_iter().map(|it| (it.prefix, it.via)).collect();
        let first = !std::mem::replace(&mut self.seen, true);
        if self.asked.is_empty() && self.installed == entries {
            return false;
        }
        self.installed = entries;
        self.rules_installed = self.installed.keys().filter(|it| is_rule(it)).count();
        self.asked.clear();
        if first && self.told {
            self.inherit();
        }
        self.look_at_all();
        true
    }

    /// What is there when the first tables are is from an earlier start: caches will tell which of
    /// its rules they still want.
    fn inherit(&mut self) {
        let rules = self.installed.iter().filter(|(prefix, _)| is_rule(prefix));
        let places = self.holders.places();
        let rules = rules.filter(|(_, via)| places.contains(via));
        self.inherited = Inherited::new(rules.map(|(prefix, via)| (prefix.addr, *via)));
    }

    /// The next changes, at most so many; the device is then asked for these, and nothing else
    /// before [`done`](Self::done) or [`found`](Self::found) says what became of them.
    pub fn poll(&mut self, most: usize) -> Vec<Change> {
        if !self.asked.is_empty() {
            return Vec::new();
        }
        let mut prefixes = Vec::new();
        let mut take = |from: &mut BTreeSet<AddressPrefix>, most: usize| {
            while prefixes.len() < most {
                let Some(prefix) = from.pop_first() else { break };
                prefixes.push(prefix);
            }
            prefixes.len()
        };
        let Due { partitions, rules } = &mut self.due;
        let mut taken = take(&mut partitions.more, most);
        // What is to go may be all that covers what is still to come, so it waits for that.
        if taken == 0 {
            taken = take(&mut partitions.less, most);
        }
        // A new rule relieves a node, one that is late costs a cache a miss: those wait, but not
        // for ever.
        let late = rules.less.len().min((most - taken) / LATE_PART);
        take(&mut rules.more, most - late);
        take(&mut rules.less, most);
        self.seen |= !prefixes.is_empty();
        let changes: Vec<Change> = prefixes
            .into_iter()
            .map(|prefix| Change { prefix, via: self.wanted(prefix) })
            .collect();
        self.asked = changes.iter().map(|it| (it.prefix, it.via)).collect();
        changes
    }

    /// A member to which rules lead of which none is wanted any more, as those of a cache that is
    /// gone: for a device that can take all of them out at once. It is asked for that then, as by
    /// [`poll`](Self::poll).
    pub fn poll_sweep(&mut self) -> Option<Ipv6Addr> {
        if !self.asked.is_empty() {
            return None;
        }
        while let Some(member) = self.gone.pop_first() {
            let leads = |it: &(&AddressPrefix, &Ipv6Addr)| is_rule(it.0) && *it.1 == member;
            let all = self.installed.iter().filter(leads).map(|(prefix, _)| *prefix);
            let all: BTreeSet<AddressPrefix> = all.collect();
            if all.len() > 1 && all.iter().all(|it| self.wanted(*it) != Some(member)) {
                all.iter().for_each(|prefix| self.due.rules.remove(prefix));
                self.asked = all.into_iter().map(|prefix| (prefix, None)).collect();
                return Some(member);
            }
        }
        None
    }

    /// How many prefixes the device is being asked about.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.asked.len()
    }

    /// Nobody knows what has become of what it was asked for; [`found`](Self::found) follows.
    pub fn give_up(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        self.look_at(asked.into_keys());
    }

    /// The device has matched so many packets with each of these prefixes.
    pub fn count(&mut self, counts: impl IntoIterator<Item = (AddressPrefix, u64)>) {
        self.loads.count(counts);
    }

    /// How much partitions were asked for, by their ids.
    pub fn loads(&self) -> impl Iterator<Item = PartitionCount> + '_ {
        self.loads.sums()
    }

    /// The device has done what it was asked for, but for these prefixes, which are as they were.
    pub fn done(&mut self, refused: &BTreeSet<AddressPrefix>) {
        for (prefix, via) in std::mem::take(&mut self.asked) {
            if refused.contains(&prefix) {
                self.failed.insert(prefix);
                continue;
            }
            let before = match via {
                Some(via) => self.installed.insert(prefix, via),
                None => self.installed.remove(&prefix),
            };
            if is_rule(&prefix) {
                self.rules_installed += usize::from(via.is_some());
                self.rules_installed -= usize::from(before.is_some());
                self.freed += usize::from(via.is_none() && before.is_some());
            }
            self.look_at([prefix]);
        }
    }

    /// What was refused is asked for again: of rules, which may find no room, few more than have
    /// been taken out since.
    pub fn try_again(&mut self) {
        let (rules, mut again): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.failed).into_iter().partition(is_rule);
        let most = std::mem::take(&mut self.freed) + RULES_AGAIN;
        again.extend(rules.iter().take(most));
        self.failed.extend(rules.iter().skip(most));
        self.look_at(again);
    }

    /// How far the device has come.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            partitions: self.installed.len() - self.rules_installed,
            rules: self.rules_installed,
            pending: self.due.partitions.len() + self.due.rules.len() + self.asked.len(),
            failed: self.failed.len(),
        }
    }

    /// What the device has, as far as is known.
    pub fn installed(&self) -> impl Iterator<Item = Entry> + '_ {
        self.installed.iter().map(|(prefix, via)| Entry { prefix: *prefix, via: *via })
    }

    /// Where a prefix is to lead; `None`: there is to be no such prefix.
    #[must_use]
    pub fn wanted(&self, prefix: AddressPrefix) -> Option<Ipv6Addr> {
        let find = || self.holders.find(prefix.addr).or_else(|| self.inherited.find(prefix.addr));
        let rule = is_rule(&prefix).then(find).flatten();
        rule.or_else(|| self.partitions.get(&prefix).copied())
    }

    fn look_at_all(&mut self) {
        (self.due, self.failed) = Default::default();
        let installed = self.installed.keys();
        let rules = self.holders.addresses().map(|addr| AddressPrefix { addr, len: RULE_LEN });
        let all: BTreeSet<AddressPrefix> =
            installed.chain(self.partitions.keys()).copied().chain(rules).collect();
        self.look_at(all);
    }

    fn look_at_rules(&mut self, addresses: impl IntoIterator<Item = Ipv6Addr>) {
        self.look_at(addresses.into_iter().map(|addr| AddressPrefix { addr, len: RULE_LEN }));
    }

    /// These prefixes may be wanted otherwise than they are.
    fn look_at(&mut self, prefixes: impl IntoIterator<Item = AddressPrefix>) {
        for prefix in prefixes {
            let wanted = self.wanted(prefix);
            self.failed.remove(&prefix);
            let sides = self.due.of(&prefix);
            sides.remove(&prefix);
            // What it will be is not known before the device has answered.
            if self.asked.contains_key(&prefix) || !self.told {
                continue;
            }
            match (wanted, self.installed.get(&prefix)) {
                (None, Some(_)) => sides.less.insert(prefix),
                (Some(via), at) if at != Some(&via) => sides.more.insert(prefix),
                (None, None) | (Some(_), _) => false,
            };
        }
    }
}

/// So many rules that were refused are asked for again in any case: there may be room for another
/// reason than that some were taken out.
const RULES_AGAIN: usize = 16;

/// This part of a batch is for rules that are to go, if there are so many.
const LATE_PART: usize = 4;
