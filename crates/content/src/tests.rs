//! What a device is asked for.

mod sequences;

use crate::{Change, ContentTable, Entry, Why};
use cluster::{
    CacheId, CacheSpec, KeyspaceId, Match, NodeId, NodeSpec, Partition, PartitionId, SwitchTables,
};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;
use wire::{AddressPrefix, CacheRule, ContentClass, ServicePrefix};

const SPACE: KeyspaceId = KeyspaceId(5);
const START: Instant = Instant::from_unix_ms(1_000);
const HEARD_FOR: Duration = Duration::from_millis(400);

fn service() -> ServicePrefix {
    "fd00:6b77:1::/48".parse().expect("a service prefix")
}

fn own(group: u16, id: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, group, 0, 0, 0, id)
}

fn node(id: u16) -> NodeSpec {
    let endpoint = SocketAddr::from((own(1, id), 7801)).into();
    NodeSpec { id: NodeId(id), endpoint, shards: 1 }
}

fn cache(id: u16) -> CacheSpec {
    let endpoint = SocketAddr::from((own(2, id), 7801)).into();
    CacheSpec { id: CacheId(id), endpoint, shards: 1 }
}

fn partition(id: u32, first: u128, last: u128, chain: &[u16]) -> Partition {
    Partition {
        id: PartitionId(id),
        keyspace: SPACE,
        first: Match(first),
        last: Match(last),
        chain: chain.iter().copied().map(NodeId).collect(),
        open: true,
        ..Partition::default()
    }
}

/// Four nodes, two caches, and a partition for each of these: how often the space was halved
/// before it came out, its place among those of that size, head and tail.
fn tables(rows: &[(u32, u128, u16, u16)]) -> SwitchTables {
    let partitions = (1..).zip(rows).map(|(id, (depth, place, head, tail))| {
        let rest = u128::MAX.checked_shr(*depth).unwrap_or(0);
        let first = if *depth == 0 { 0 } else { place << (128 - depth) };
        partition(id, first, first | rest, &[*head, *tail])
    });
    SwitchTables {
        nodes: (1..=4).map(node).collect(),
        caches: (1..=2).map(cache).collect(),
        partitions: partitions.collect(),
        ..SwitchTables::default()
    }
}

fn rule(match_bits: u64, adds: u8) -> CacheRule {
    CacheRule { adds: adds == 1, keyspace: SPACE.0, keyhash: 1, match_bits: Some(match_bits) }
}

/// Something that takes what it is asked for.
#[derive(Debug, Default)]
struct Device(BTreeMap<AddressPrefix, Ipv6Addr>);

impl Device {
    fn apply(&mut self, change: Change) {
        match change.via {
            Some(via) => self.0.insert(change.prefix, via),
            None => Some(self.0.remove(&change.prefix).expect("it is there to be taken out")),
        };
    }

    /// Where it sends an address: by the longest prefix.
    fn find(&self, addr: Ipv6Addr) -> Option<Ipv6Addr> {
        let mut holding: Vec<_> = self.0.iter().filter(|(prefix, _)| prefix.holds(addr)).collect();
        holding.sort_by_key(|(prefix, _)| prefix.len);
        holding.last().map(|(_, via)| **via)
    }

    fn settle(&mut self, table: &mut ContentTable) {
        table.try_again();
        while let changes = table.poll(3)
            && !changes.is_empty()
        {
            changes.into_iter().for_each(|change| self.apply(change));
            table.done(&BTreeSet::new());
        }
        assert_eq!(table.counts().pending, 0);
    }

    fn entries(&self) -> Vec<Entry> {
        self.0.iter().map(|(prefix, via)| Entry { prefix: *prefix, via: *via }).collect()
    }
}

fn address(class: ContentClass, match_bits: u64) -> Ipv6Addr {
    let addresses = service().keyspace(SPACE.0).expect("a small id");
    addresses.of_key(class, u128::from(match_bits) << 64)
}

#[test]
fn reads_lead_to_the_tail_writes_to_the_head_and_cached_keys_to_their_cache() {
    let (mut table, mut device) = (ContentTable::new(service()), Device::default());
    table.install(&tables(&[(1, 0, 1, 2), (1, 1, 3, 3)]));
    table.hear_cache(CacheId(2), START + HEARD_FOR);
    table.change_rule(CacheId(2), &rule(77, 1));
    device.settle(&mut table);
    assert_eq!(device.0.len(), 7, "three classes of two partitions, and a rule");
    let found = |class, bits| device.find(address(class, bits));
    let (low, high) = (5, u64::MAX);
    assert_eq!(found(ContentClass::Read, low), Some(own(1, 2)));
    assert_eq!(found(ContentClass::ReadAtHome, low), Some(own(1, 2)));
    assert_eq!(found(ContentClass::Write, low), Some(own(1, 1)));
    assert_eq!(found(ContentClass::Write, high), Some(own(1, 3)));
    let classes = [ContentClass::Read, ContentClass::ReadAtHome, ContentClass::Write];
    let cached = classes.map(|class| found(class, 77));
    assert_eq!(cached, [own(2, 2), own(1, 2), own(1, 1)].map(Some), "a cache takes reads alone");
    let counts = table.counts();
    assert_eq!((counts.partitions, counts.rules, counts.failed), (6, 1, 0));
}

#[test]
fn what_has_no_prefix_is_named_and_the_others_are_found() {
    let mut table = ContentTable::new(service());
    let mut order = tables(&[(1, 0, 1, 1)]);
    order.partitions.push(partition(2, 1 << 127, u128::MAX - 1, &[1]));
    order.partitions.push(Partition { keyspace: KeyspaceId(5_000), ..partition(3, 0, 9, &[1]) });
    order.nodes.push(NodeSpec { endpoint: SocketAddr::from(([10, 0, 0, 1], 9)).into(), ..node(9) });
    let v4 = Partition { keyspace: KeyspaceId(6), ..partition(4, 0, u128::MAX, &[9]) };
    order.partitions.push(v4);
    table.install(&order);
    let why: Vec<Why> = table.unroutable().iter().map(|it| it.why).collect();
    assert_eq!(why, [Why::Bounds, Why::Keyspace, Why::Address(NodeId(9))]);
    assert_eq!(
        table.unroutable()[0].to_string(),
        "partition 2 of keyspace 5 is no prefix of addresses"
    );
    assert_eq!(table.poll(100).len(), 3);
}

#[test]
fn nothing_leads_to_a_node_that_is_fenced() {
    let (mut table, mut device) = (ContentTable::new(service()), Device::default());
    let mut order = tables(&[(0, 0, 1, 2)]);
    order.fenced = vec![NodeId(2)];
    table.install(&order);
    device.settle(&mut table);
    assert_eq!(device.find(address(ContentClass::Read, 1)), None);
    assert_eq!(device.find(address(ContentClass::Write, 1)), Some(own(1, 1)));
}

#[test]
fn keys_of_one_address_are_counted_and_a_silent_cache_has_no_rules() {
    let (mut table, mut device) = (ContentTable::new(service()), Device::default());
    table.install(&tables(&[(0, 0, 1, 2)]));
    let reads = |device: &Device| device.find(address(ContentClass::Read, 7));
    table.hear_cache(CacheId(1), START + HEARD_FOR);
    table.change_rule(CacheId(1), &rule(7, 1));
    table.change_rule(CacheId(1), &rule(7, 1));
    table.change_rule(CacheId(1), &rule(7, 0));
    device.settle(&mut table);
    assert_eq!(reads(&device), Some(own(2, 1)), "another key of that address is held");
    table.handle_timeout(START + HEARD_FOR);
    device.settle(&mut table);
    assert_eq!(reads(&device), Some(own(1, 2)));
    table.hear_cache(CacheId(1), START + 2 * HEARD_FOR);
    device.settle(&mut table);
    assert_eq!(reads(&device), Some(own(2, 1)));
    table.change_rule(CacheId(1), &rule(7, 0));
    device.settle(&mut table);
    assert_eq!(reads(&device), Some(own(1, 2)));
}

#[test]
fn what_an_earlier_one_left_stays_until_there_are_tables_and_is_made_right_then() {
    let mut device = Device::default();
    let mut before = ContentTable::new(service());
    before.install(&tables(&[(1, 0, 1, 2), (1, 1, 3, 4)]));
    device.settle(&mut before);
    let mut table = ContentTable::new(service());
    table.found(device.entries());
    table.hear_cache(CacheId(1), START + HEARD_FOR);
    table.change_rule(CacheId(1), &rule(7, 1));
    assert_eq!((table.poll(100), table.counts().partitions), (vec![], 6));
    table.install(&tables(&[(1, 0, 1, 2), (1, 1, 3, 3)]));
    let changes = table.poll(100);
    assert_eq!(changes.len(), 3, "two reads to another tail, and a rule: {changes:?}");
    changes.into_iter().for_each(|change| device.apply(change));
    table.done(&BTreeSet::new());
    table.clear();
    device.settle(&mut table);
    assert!(device.0.is_empty());
}

/// Rules of the first cache for these keys, as an earlier start has left them.
fn left_behind(keys: std::ops::Range<u64>) -> Device {
    let (mut before, mut device) = (ContentTable::new(service()), Device::default());
    before.install(&tables(&[(0, 0, 1, 2)]));
    before.hear_cache(CacheId(1), START + HEARD_FOR);
    keys.for_each(|bits| before.change_rule(CacheId(1), &rule(bits, 1)));
    device.settle(&mut before);
    device
}

#[test]
fn rules_that_an_earlier_one_left_stay_while_their_cache_tells_them_anew() {
    for tables_first in [true, false] {
        let mut device = left_behind(0..20);
        let mut table = ContentTable::new(service());
        let install = |table: &mut ContentTable| table.install(&tables(&[(0, 0, 1, 2)]));
        if tables_first {
            install(&mut table);
        }
        assert!(table.found(device.entries()));
        assert!(!table.found(device.entries()), "that is known");
        if !tables_first {
            install(&mut table);
        }
        table.handle_timeout(START);
        assert_eq!(table.poll(100), [], "what is there is as good as can be known");
        let later = START + Duration::from_secs(2);
        table.hear_cache(CacheId(1), later + HEARD_FOR);
        table.forget_cache(CacheId(1));
        assert_eq!(table.poll_sweep(), None, "its stream begins anew");
        (0..5).for_each(|bits| table.change_rule(CacheId(1), &rule(bits, 1)));
        table.change_rule(CacheId(1), &rule(4, 0));
        table.handle_timeout(later);
        let changes = table.poll(100);
        assert_eq!(changes.len(), 1, "one that it does not want: {changes:?}");
        changes.into_iter().for_each(|change| device.apply(change));
        table.done(&BTreeSet::new());
        let end = START + Duration::from_secs(10);
        table.hear_cache(CacheId(1), end + HEARD_FOR);
        table.handle_timeout(end);
        device.settle(&mut table);
        assert_eq!(table.counts().rules, 4, "those that it has told");
    }
}

#[test]
fn rules_that_an_earlier_one_left_go_with_a_cache_that_is_silent() {
    let mut device = left_behind(0..20);
    let mut table = ContentTable::new(service());
    table.found(device.entries());
    table.install(&tables(&[(0, 0, 1, 2)]));
    table.handle_timeout(START);
    table.handle_timeout(START + Duration::from_secs(1));
    device.settle(&mut table);
    assert_eq!(table.counts().rules, 0);
}

#[test]
fn all_rules_of_a_cache_that_is_gone_can_be_taken_out_at_once() {
    let (mut table, mut device) = (ContentTable::new(service()), Device::default());
    table.install(&tables(&[(0, 0, 1, 2)]));
    table.hear_cache(CacheId(1), START + HEARD_FOR);
    table.hear_cache(CacheId(2), START + 2 * HEARD_FOR);
    (0..20).for_each(|bits| table.change_rule(CacheId(1), &rule(bits, 1)));
    (10..30).for_each(|bits| table.change_rule(CacheId(2), &rule(bits, 1)));
    device.settle(&mut table);
    assert_eq!(table.poll_sweep(), None, "both are there");
    table.handle_timeout(START + HEARD_FOR);
    assert_eq!(table.poll_sweep(), Some(own(2, 1)));
    assert_eq!((table.asked(), table.poll(100)), (20, vec![]), "one thing after the other");
    table.give_up();
    assert_eq!((table.counts().rules, table.poll_sweep()), (30, None), "then one by one");
    assert_eq!(table.poll(100).len(), 20);
    table.done(&BTreeSet::new());
    let keeps = |prefix: &AddressPrefix| device.0.get(prefix) == Some(&own(2, 2));
    let second = table.installed().filter(|it| keeps(&it.prefix)).count();
    assert_eq!(second, 10, "what the second one holds alone");
    // It comes back before anybody has asked.
    table.hear_cache(CacheId(2), START + 2 * HEARD_FOR);
    table.handle_timeout(START + 2 * HEARD_FOR);
    table.hear_cache(CacheId(2), START + 3 * HEARD_FOR);
    assert_eq!(table.poll_sweep(), None);
}

#[test]
fn a_device_that_is_full_is_asked_again_for_few_rules_and_all_prefixes() {
    let mut table = ContentTable::new(service());
    table.install(&tables(&[(0, 0, 1, 2)]));
    table.hear_cache(CacheId(1), START + HEARD_FOR);
    (0..100).for_each(|bits| table.change_rule(CacheId(1), &rule(bits, 1)));
    let asked: BTreeSet<AddressPrefix> = table.poll(200).iter().map(|it| it.prefix).collect();
    // It has room for twenty rules.
    let (rules, others): (Vec<_>, Vec<_>) = asked.into_iter().partition(|it| it.len == 128);
    table.done(&rules.into_iter().skip(20).chain(others).collect());
    assert_eq!((table.counts().rules, table.counts().failed), (20, 83));
    table.try_again();
    let again: BTreeSet<AddressPrefix> = table.poll(200).iter().map(|it| it.prefix).collect();
    assert_eq!(again.len(), 3 + 16);
    table.done(&again.iter().copied().filter(|it| it.len == 128).collect());
    assert_eq!((table.counts().partitions, table.counts().failed), (3, 80));
    // Twenty are taken out.
    let there: Vec<AddressPrefix> = table.installed().map(|it| it.prefix).collect();
    let bits = (0..100).filter(|bits| {
        let addr = address(ContentClass::Read, *bits);
        there.contains(&AddressPrefix { addr, len: 128 })
    });
    bits.for_each(|bits| table.change_rule(CacheId(1), &rule(bits, 0)));
    assert_eq!(table.poll(200).len(), 20);
    table.done(&BTreeSet::new());
    table.try_again();
    assert_eq!(table.poll(200).len(), 20 + 16);
}

#[test]
fn what_a_device_counts_is_the_load_of_partitions() {
    let mut table = ContentTable::new(service());
    table.install(&tables(&[(1, 0, 1, 2), (1, 1, 3, 3)]));
    let space = service().keyspace(SPACE.0).expect("a small id");
    let half = |class| space.of_interval(class, 0, u128::MAX >> 1).expect("a prefix");
    let [reads, home, writes] = ContentClass::ALL.map(half);
    table.count([(reads, 100), (writes, 7)]);
    let loads = |table: &ContentTable| {
        table.loads().map(|it| (it.partition.0, it.reads, it.writes)).collect::<Vec<_>>()
    };
    assert_eq!(loads(&table), [(1, 0, 0), (2, 0, 0)], "it may have counted for long");
    table.count([(reads, 110), (home, 5), (writes, 9)]);
    assert_eq!(loads(&table), [(1, 15, 2), (2, 0, 0)]);
    // It was started anew.
    table.count([(reads, 1), (home, 5), (writes, 10)]);
    assert_eq!(loads(&table), [(1, 16, 3), (2, 0, 0)]);
    table.install(&tables(&[(1, 0, 1, 2)]));
    assert_eq!(loads(&table), [(1, 16, 3)]);
}

#[test]
fn what_is_refused_is_asked_for_again_when_it_is_time() {
    let (mut table, mut device) = (ContentTable::new(service()), Device::default());
    table.install(&tables(&[(0, 0, 1, 2)]));
    let asked: BTreeSet<AddressPrefix> = table.poll(100).iter().map(|it| it.prefix).collect();
    table.done(&asked);
    assert_eq!((table.counts().failed, table.poll(100)), (3, vec![]));
    device.settle(&mut table);
    assert_eq!((table.counts().failed, device.0.len()), (0, 3));
}

/// New rules come first, and those that are to go do not wait for ever.
#[test]
fn a_stream_of_new_rules_does_not_keep_old_ones() {
    let (mut table, mut device) = (ContentTable::new(service()), Device::default());
    table.install(&tables(&[(0, 0, 1, 2)]));
    table.hear_cache(CacheId(1), START + HEARD_FOR);
    (0..20).for_each(|bits| table.change_rule(CacheId(1), &rule(bits, 1)));
    device.settle(&mut table);
    (0..20).for_each(|bits| table.change_rule(CacheId(1), &rule(bits, 0)));
    (100..200).for_each(|bits| table.change_rule(CacheId(1), &rule(bits, 1)));
    let changes = table.poll(8);
    let less = changes.iter().filter(|change| change.via.is_none()).count();
    assert_eq!((changes.len(), less), (8, 2));
}
