//! Any sequence of orders, rules and answers.

use super::{Device, HEARD_FOR, SPACE, START, address, own, rule, service, tables};
use crate::{ContentTable, Counts};
use cluster::CacheId;
use machine::Instant;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use wire::{AddressPrefix, ContentClass};

#[derive(Clone, Debug)]
enum Step {
    /// Partitions of one depth each, of which every so many are missing.
    Install(u32, u16, u16),
    Rule(u16, u64, bool),
    Forget(u16),
    Hear(u16),
    Pass,
    Ask(usize),
    Refuse(u8),
    /// The device has only these of what it had, or all.
    Find(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..4u32, 1..=4u16, 1..=5u16).prop_map(|(a, b, c)| Step::Install(a, b, c)),
        6 => (1..=3u16, 0..6u64, any::<bool>()).prop_map(|(a, b, c)| Step::Rule(a, b, c)),
        1 => (1..=3u16).prop_map(Step::Forget),
        4 => (1..=3u16).prop_map(Step::Hear),
        1 => Just(Step::Pass),
        8 => (1..20usize).prop_map(Step::Ask),
        1 => (1..4u8).prop_map(Step::Refuse),
        1 => (0..4u8).prop_map(Step::Find),
    ]
}

/// Match bits of keys, all over the space.
fn key(number: u64) -> u64 {
    number.wrapping_mul(0x2aaa_aaaa_aaaa_aaaa)
}

fn rows(depth: u32, turn: u16, missing: u16) -> Vec<(u32, u128, u16, u16)> {
    let all = (0..1u128 << depth).zip(0u16..);
    let kept = all.filter(|(_, number)| (number + 1) % (missing + 1) != 0);
    kept.map(|(place, number)| (depth, place, (number + turn) % 4 + 1, (number * 3 + turn) % 5 + 1))
        .collect()
}

/// What is told, kept as simply as can be.
#[derive(Default)]
struct NaiveTable {
    rows: Vec<(u32, u128, u16, u16)>,
    keys: BTreeMap<(u16, u64), u32>,
    heard: BTreeMap<u16, Instant>,
}

impl NaiveTable {
    fn wanted(&self) -> BTreeMap<AddressPrefix, Ipv6Addr> {
        let addresses = service().keyspace(SPACE.0).expect("a small id");
        let mut wanted = BTreeMap::new();
        for (depth, place, head, tail) in &self.rows {
            let first = if *depth == 0 { 0 } else { place << (128 - depth) };
            let last = first | u128::MAX >> depth;
            for (class, to) in [
                (ContentClass::Read, tail),
                (ContentClass::ReadAtHome, tail),
                (ContentClass::Write, head),
            ] {
                // Of node 5 nobody knows where it is.
                if *to < 5 {
                    let prefix = addresses.of_interval(class, first, last).expect("a prefix");
                    wanted.insert(prefix, own(1, *to));
                }
            }
        }
        // Of cache 3 neither; of two caches the first counts.
        let held = self.keys.iter().rev();
        for ((cache, bits), _) in held.filter(|((cache, _), count)| *cache < 3 && **count > 0) {
            if self.heard.contains_key(cache) {
                let addr = address(ContentClass::Read, key(*bits));
                wanted.insert(AddressPrefix { addr, len: 128 }, own(2, *cache));
            }
        }
        wanted
    }
}

/// Whether a partition's prefix holds the address.
fn covered(by: &BTreeMap<AddressPrefix, Ipv6Addr>, addr: Ipv6Addr) -> bool {
    by.keys().any(|prefix| prefix.len < 128 && prefix.holds(addr))
}

/// A table, its device, and what is known of both.
struct World {
    table: ContentTable,
    device: Device,
    told: NaiveTable,
    now: Instant,
    probes: Vec<Ipv6Addr>,
    /// Addresses that have led somewhere and were to lead somewhere ever since.
    steady: BTreeSet<Ipv6Addr>,
    /// Prefixes that were there and wanted ever since, wherever they lead.
    exact: BTreeSet<AddressPrefix>,
}

impl World {
    fn new() -> Self {
        let of_class = |class| (0..6).map(move |number| address(class, key(number)));
        Self {
            table: ContentTable::new(service()),
            device: Device::default(),
            told: NaiveTable::default(),
            now: START,
            probes: ContentClass::ALL.into_iter().flat_map(of_class).collect(),
            steady: BTreeSet::new(),
            exact: BTreeSet::new(),
        }
    }

    fn step(&mut self, step: Step) {
        let Self { table, device, told, .. } = self;
        match step {
            Step::Install(depth, turn, missing) => {
                told.rows = rows(depth, turn, missing);
                table.install(&tables(&told.rows));
            }
            Step::Rule(cache, bits, adds) => {
                let count = told.keys.entry((cache, bits)).or_insert(0);
                // Nobody takes away a rule that is not there.
                if adds || *count > 0 {
                    *count = if adds { *count + 1 } else { *count - 1 };
                    table.change_rule(CacheId(cache), &rule(key(bits), adds.into()));
                }
            }
            Step::Forget(cache) => {
                told.keys.retain(|(of, _), _| *of != cache);
                table.forget_cache(CacheId(cache));
            }
            Step::Hear(cache) => {
                told.heard.insert(cache, self.now + HEARD_FOR);
                table.hear_cache(CacheId(cache), self.now + HEARD_FOR);
            }
            Step::Pass => {
                self.now = self.now + HEARD_FOR / 2;
                told.heard.retain(|_, until| *until > self.now);
                table.handle_timeout(self.now);
            }
            Step::Ask(most) => self.ask(most, None),
            Step::Refuse(every) => self.ask(10, Some(every.into())),
            Step::Find(every) => {
                let mut number = 0u8;
                let mut keep = |_: &AddressPrefix, _: &mut Ipv6Addr| {
                    number += 1;
                    every == 0 || number.is_multiple_of(every)
                };
                device.0.retain(&mut keep);
                table.found(device.entries());
                self.steady.clear();
                self.exact.clear();
            }
        }
    }

    /// The device is asked for so many changes, and refuses one of so many.
    fn ask(&mut self, most: usize, refuses: Option<usize>) {
        let changes = self.table.poll(most);
        assert!(changes.len() <= most);
        assert!(changes.is_empty() || self.table.poll(most).is_empty(), "one after the other");
        let mut refused = BTreeSet::new();
        // It may do what it is asked for at once in any order.
        for (number, change) in (1..).zip(changes.into_iter().rev()) {
            if refuses.is_some_and(|every| usize::is_multiple_of(number, every)) {
                refused.insert(change.prefix);
                continue;
            }
            self.device.apply(change);
            for addr in &self.steady {
                assert!(covered(&self.device.0, *addr), "{addr} leads nowhere");
            }
            for prefix in &self.exact {
                assert!(self.device.0.contains_key(prefix), "{prefix} is missing");
            }
        }
        self.table.done(&refused);
    }

    fn look(&mut self) {
        let (wanted, has) = (self.told.wanted(), &self.device.0);
        self.exact.retain(|prefix| wanted.contains_key(prefix));
        self.exact.extend(wanted.keys().filter(|prefix| has.contains_key(prefix)));
        let both = |addr: &Ipv6Addr| covered(&wanted, *addr) && covered(has, *addr);
        self.steady.retain(|addr| covered(&wanted, *addr));
        self.steady.extend(self.probes.iter().copied().filter(both));
        if self.table.counts().failed > 0 {
            // What comes in the place of something is refused, which goes all the same.
            self.steady.clear();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn a_device_gets_what_is_wanted_and_keeps_what_was(
        steps in proptest::collection::vec(step(), 0..80),
    ) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
            world.look();
        }
        let World { mut table, mut device, told, .. } = world;
        if !told.rows.is_empty() {
            device.settle(&mut table);
            prop_assert_eq!(&device.0, &told.wanted());
            prop_assert!(table.installed().eq(device.entries()));
        }
        table.clear();
        device.settle(&mut table);
        prop_assert!(device.0.is_empty() && table.counts() == Counts::default());
    }
}
