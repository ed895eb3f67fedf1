//! The routers of a world with content routing: they know nothing of keys, and bring what is sent
//! to a content address where their table says. What they are told takes its time, of each route
//! another, and now and then a route is just wrong.

use crate::clock::nanos;
use crate::role::{cache_spec, node_spec, service};
use cluster::{CacheId, ContentRouting, SwitchTables};
use machine::{Instant, Rng};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wire::{AddressPrefix, CacheRules, ContentClass, Endpoint, ServicePrefix};

/// What all content addresses begin with.
const PREFIX: &str = "fd00:6b77:1::/48";

/// Where the content addresses of a world are.
pub(crate) fn content_routing() -> ContentRouting {
    let prefix: ServicePrefix = PREFIX.parse().expect("a service prefix");
    ContentRouting { prefix, port: service(0).port - 1 }
}

/// All routes, as if there were one router.
pub(crate) struct Routes {
    rng: Rng,
    content: ContentRouting,
    /// Where each prefix leads.
    table: BTreeMap<AddressPrefix, Endpoint>,
    /// What is still to be changed, of each prefix in order.
    changes: BTreeMap<AddressPrefix, VecDeque<(Instant, Option<Endpoint>)>>,
    /// Where the prefixes of partitions are to lead.
    wanted: BTreeMap<AddressPrefix, Endpoint>,
    /// How long a change takes at most.
    delay_max: Duration,
    /// Of a thousand datagrams, those that are brought to anybody.
    astray_permille: u64,
    nodes: u16,
    caches: u16,
}

impl Routes {
    pub(crate) fn new(rng: Rng, (nodes, caches): (u16, u16), delay_max: Duration) -> Self {
        Self {
            rng,
            content: content_routing(),
            table: BTreeMap::new(),
            changes: BTreeMap::new(),
            wanted: BTreeMap::new(),
            delay_max,
            astray_permille: ASTRAY_PERMILLE,
            nodes,
            caches,
        }
    }

    /// From now on routes are what they were told to be, soon after.
    pub(crate) fn heal(&mut self) {
        self.delay_max = Duration::from_micros(100);
        self.astray_permille = 0;
    }

    /// Whether a datagram to there goes by these routes.
    pub(crate) fn lead(&self, to: Endpoint) -> bool {
        self.content.holds(to)
    }

    /// Where a datagram comes that is sent there now; nowhere without a route.
    pub(crate) fn resolve(&mut self, now: Instant, to: Endpoint) -> Option<Endpoint> {
        self.come_to(now);
        let addr = to.addr.into();
        let content = self.content.prefix.read(addr)?;
        if self.rng.chance(self.astray_permille, 1_000) {
            let all = u64::from(self.nodes + self.caches);
            let anybody = u16::try_from(self.rng.below(all)).expect("few of them");
            let is_node = anybody < self.nodes || content.class != ContentClass::Read;
            return Some(if is_node {
                node_spec(anybody % self.nodes, 1).endpoint
            } else {
                cache_spec(anybody - self.nodes).endpoint
            });
        }
        let routes = self.table.iter().filter(|(prefix, _)| prefix.holds(addr));
        routes.max_by_key(|(prefix, _)| prefix.len).map(|(_, to)| *to)
    }

    /// The active switch has these tables, and the routers are told.
    pub(crate) fn learn(&mut self, now: Instant, tables: &SwitchTables) {
        let mut wanted = BTreeMap::new();
        for partition in &tables.partitions {
            let Some(addresses) = self.content.prefix.keyspace(partition.keyspace.0) else {
                continue;
            };
            for class in ContentClass::ALL {
                let (first, last) = (partition.first.0, partition.last.0);
                let prefix = addresses.of_interval(class, first, last);
                if let (Some(prefix), Some(node)) = (prefix, partition.asked(class)) {
                    wanted.insert(prefix, node_spec(node.0, 1).endpoint);
                }
            }
        }
        let before = std::mem::replace(&mut self.wanted, wanted.clone());
        let gone = before.keys().filter(|prefix| !wanted.contains_key(*prefix));
        let gone: Vec<AddressPrefix> = gone.copied().collect();
        gone.into_iter().for_each(|prefix| self.change(now, prefix, None));
        for (prefix, to) in wanted {
            if before.get(&prefix) != Some(&to) {
                self.change(now, prefix, Some(to));
            }
        }
    }

    /// A cache says which keys it holds.
    pub(crate) fn learn_rules(&mut self, now: Instant, cache: CacheId, rules: &CacheRules<'_>) {
        for rule in rules.iter() {
            let addresses = self.content.prefix.keyspace(rule.keyspace);
            let (Some(addresses), Some(bits)) = (addresses, rule.match_bits) else { continue };
            let addr = addresses.of_bits(ContentClass::Read, bits);
            let prefix = AddressPrefix { addr, len: 128 };
            let to = rule.adds.then(|| cache_spec(cache.0).endpoint);
            self.change(now, prefix, to);
        }
    }

    fn change(&mut self, now: Instant, prefix: AddressPrefix, to: Option<Endpoint>) {
        let delay = Duration::from_nanos(self.rng.below(nanos(self.delay_max) + 1));
        let changes = self.changes.entry(prefix).or_default();
        let last = changes.back().map_or(now, |(at, _)| *at);
        changes.push_back((last.max(now + delay), to));
    }

    /// Makes the changes that are due.
    fn come_to(&mut self, now: Instant) {
        let Self { table, changes, .. } = self;
        changes.retain(|prefix, changes| {
            while let Some((_, to)) = changes.front().copied().filter(|(at, _)| *at <= now) {
                changes.pop_front();
                match to {
                    Some(to) => table.insert(*prefix, to),
                    None => table.remove(prefix),
                };
            }
            !changes.is_empty()
        });
    }
}

/// Of a thousand datagrams, while there are faults.
const ASTRAY_PERMILLE: u64 = 20;
