//! Scripts against a cache: what it answers, what it says to lenders, and what it tells the switch.

use super::*;
use cluster::{
    CacheId, CacheTables, ClusterId, HotPolicy, Incarnation, KeyName, Keyspace, KeyspaceId,
    KeyspaceKind, NodeId, NodeSpec,
};
use machine::{Instant, LoadMetric};
use std::time::Duration;
use wire::{
    Body, CacheCopy, CacheGrantBody, CacheLoanBody, CacheMessage, CacheRecallBody, CacheReportBody,
    CacheReports, CacheUpdateBody, Endpoint, GetReplyBody, Header, LoanNumber, Op, Packet,
    Revision, Version, hop_flag,
};

const MS: Duration = Duration::from_millis(1);
const METRIC: LoadMetric = LoadMetric { segment: Duration::from_millis(200), newest_permille: 250 };
const LENDER: u64 = 77;
const ME: u64 = 5;
const KEY: &[u8] = b"k";
/// What time it is for lenders, far from the cache's own.
const TOLD: u64 = 7_000;

fn port(port: u16) -> Endpoint {
    Endpoint { addr: [1; 16], port }
}

/// A cache, with what it has said.
struct Bench {
    now: Instant,
    cache: Cache,
    said: Vec<(Endpoint, Vec<u8>)>,
    /// A switch that answers nothing.
    deaf: Option<Endpoint>,
}

impl Bench {
    fn new(entries_max: usize) -> Self {
        let now = Instant::from_unix_ms(1_000_000);
        let config = CacheConfig {
            id: CacheId(3),
            shard: (0, 1),
            incarnation: Incarnation(ME),
            entries_max,
            bytes_max: 1 << 20,
            rule_pace: RulePace { per_second: 10_000, remove_within: MS * 100 },
            admission: Admission::ByLoad,
            metric: METRIC,
        };
        let mut bench = Self { now, cache: Cache::new(config, now), said: Vec::new(), deaf: None };
        let node = |id| NodeSpec { id: NodeId(id), endpoint: port(100 + id), shards: 1 };
        let tables = CacheTables {
            revision: Revision::new(1),
            cluster: ClusterId(1),
            cache: CacheId(3),
            switch: port(1),
            standbys: Vec::new(),
            nodes: vec![node(1), node(2)],
            keyspaces: Vec::new(),
        };
        bench.cache.install(now, &tables);
        bench.follow_rules();
        bench
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        let now = self.now;
        self.cache.handle_timeout(now);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(datagram) = self.cache.poll_transmit() {
            self.said.push((datagram.to, datagram.payload.to_vec()));
        }
    }

    /// The switch answers all that it was told.
    fn follow_rules(&mut self) {
        self.pass(MS * 10);
        let mut said = Vec::new();
        for (to, datagram) in std::mem::take(&mut self.said) {
            let packet = Packet::parse(&datagram).unwrap();
            let header = Header::read(packet.header());
            let Ok(Body::Cache(CacheMessage::Rules(rules))) = packet.body() else {
                said.push((to, datagram));
                continue;
            };
            if self.deaf == Some(to) {
                said.push((to, datagram));
                continue;
            }
            let seq = header.seq + rules.iter().count() as u64;
            let answer = Header {
                op: Op::CacheRuled as u8,
                client: header.client,
                seq,
                ..Header::default()
            };
            self.hear(to, &answer, &[]);
        }
        self.said.extend(said);
    }

    /// Which rules a switch is being told, as keyhashes and whether they are to be there.
    fn telling(&self, switch: Endpoint) -> Vec<(bool, u64)> {
        let mut rules = Vec::new();
        for (_, datagram) in self.said.iter().filter(|(to, _)| *to == switch) {
            if let Ok(Body::Cache(CacheMessage::Rules(told))) =
                Packet::parse(datagram).unwrap().body()
            {
                rules.extend(told.iter().map(|it| (it.adds, it.keyhash)));
            }
        }
        rules
    }

    fn hear(&mut self, from: Endpoint, header: &Header, parts: &[&[u8]]) {
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, header, parts);
        self.cache.handle_packet(self.now, from, 0, &datagram);
        self.drain();
    }

    fn hear_tail(
        &mut self,
        op: Op,
        seq: u64,
        version: u64,
        body: &[u8],
        (key, value): (&[u8], &[u8]),
    ) {
        let mut header = Header { op: op as u8, client: ME, seq, ..at(key) };
        CacheCopy { version: Version::new(version) }.put(&mut header);
        self.hear(port(101), &header, &[body, key, value]);
    }

    fn report(&mut self, key: &[u8], rate: u32) {
        let Header { partition, epoch, match_value, keyhash, keyspace, .. } = at(key);
        let fixed =
            CacheReportBody { keyspace, partition, epoch, match_value, keyhash, rate, key_len: 0 };
        let mut payload = Vec::new();
        assert!(CacheReports::push(&mut payload, &fixed, key));
        self.hear(
            port(101),
            &Header { op: Op::CacheReport as u8, node: 1, ..Header::default() },
            &[&payload],
        );
    }

    /// The number of the question for a key, which was the last thing that was said.
    fn asked(&mut self) -> u64 {
        let (to, datagram) = self.said.pop().expect("it was asked for");
        let packet = Packet::parse(&datagram).unwrap();
        assert_eq!((to, packet.op()), (port(101), Op::CacheFetch));
        Header::read(packet.header()).seq
    }

    fn lend(&mut self, seq: u64, (loan, from): (u64, u64), version: u64, key: &[u8], value: &[u8]) {
        let [loan, from] = [loan, from].map(LoanNumber::new);
        let fixed =
            CacheLoanBody { lender: LENDER, loan, from, expiry_ms: 0, now_ms: TOLD, lasts_ms: 300 };
        self.hear_tail(Op::CacheLoan, seq, version, &fixed.to_bytes(), (key, value));
    }

    fn update(&mut self, loan: u64, version: u64, value: &[u8]) -> Said {
        self.update_until(0, loan, version, value)
    }

    fn update_until(&mut self, expiry_ms: u64, loan: u64, version: u64, value: &[u8]) -> Said {
        let fixed = CacheUpdateBody { lender: LENDER, loan: LoanNumber::new(loan), expiry_ms };
        self.hear_tail(Op::CacheUpdate, 0, version, &fixed.to_bytes(), (KEY, value));
        self.answered()
    }

    fn recall(&mut self, loan: u64, key: &[u8]) -> Said {
        let fixed = CacheRecallBody { lender: LENDER, loan: LoanNumber::new(loan) };
        self.hear_tail(Op::CacheRecall, 0, 0, &fixed.to_bytes(), (key, &[]));
        self.answered()
    }

    /// What it said to its lender last.
    fn answered(&mut self) -> Said {
        let (_, datagram) = self.said.pop().expect("it answers");
        let packet = Packet::parse(&datagram).unwrap();
        let Ok(Body::Cache(CacheMessage::Answer { fixed, .. })) = packet.body() else {
            panic!("{packet:?}")
        };
        (fixed.loan.get(), fixed.held == 1)
    }

    /// What becomes of a read: an answer to the client, or that it goes on to its tail.
    fn read(&mut self, key: &[u8]) -> Option<(u64, Vec<u8>)> {
        self.read_all(key).map(|(version, _, value)| (version, value))
    }

    /// The same with when the value ends, and what time it is.
    fn read_all(&mut self, key: &[u8]) -> Option<(u64, GetReplyBody, Vec<u8>)> {
        let mut header = Header { op: Op::Get as u8, client: 9, seq: 1, reply_port: 9, ..at(key) };
        (header.node, header.reply_addr) = (0, [9; 16]);
        header.set_chain([1]);
        self.hear(port(1), &header, &[key]);
        let (to, datagram) = self.said.pop().expect("no read is lost");
        let packet = Packet::parse(&datagram).unwrap();
        let header = Header::read(packet.header());
        if packet.op() == Op::Get {
            assert_eq!((to, header.reply_port), (port(101), 9), "it is answered to the client");
            assert_ne!(header.hop_flags & hop_flag::MISSED, 0);
            return None;
        }
        assert_eq!((to, packet.op(), header.node), (port(1), Op::GetReply, 3));
        let (fixed, value) = GetReplyBody::split(packet.payload()).unwrap();
        Some((wire::KeyReply::of(&header).version.get(), fixed, value.to_vec()))
    }

    /// It has been lent the key in its first version, as the first loan.
    fn holding() -> Self {
        let mut bench = Self::new(10);
        bench.report(KEY, 100);
        let asked = bench.asked();
        bench.lend(asked, (1, 1), 1, KEY, b"one");
        bench.follow_rules();
        assert_eq!(bench.read(KEY), Some((1, b"one".to_vec())));
        bench
    }
}

/// A loan, and whether the cache says to hold it.
type Said = (u64, bool);

/// Where a key lies: at node 1.
fn at(key: &[u8]) -> Header {
    let hash = |hash: u64, byte: &u8| hash.wrapping_mul(31).wrapping_add(u64::from(*byte));
    let keyhash = key.iter().fold(7, hash);
    Header {
        node: 1,
        partition: 4,
        epoch: 2,
        keyspace: 1,
        match_value: u128::from(keyhash) << 64,
        keyhash,
        key_len: u16::try_from(key.len()).unwrap(),
        ..Header::default()
    }
}

#[test]
fn what_is_held_is_answered_as_long_as_its_lease_and_then_goes_on_to_its_tail() {
    let mut bench = Bench::holding();
    assert_eq!(bench.read(b"other"), None);
    bench.pass(MS * 290);
    bench.said.clear();
    assert_eq!(bench.read(KEY), None, "it was not renewed");
}

#[test]
fn a_value_is_shown_until_its_end_may_have_come_by_the_clock_of_the_cluster() {
    let mut bench = Bench::holding();
    let expiry_ms = TOLD + 100;
    assert_eq!(bench.update_until(expiry_ms, 1, 2, b"two"), (1, true));
    // It was asked for, and with it what time it is, ten milliseconds ago.
    bench.now = bench.now + MS * 87;
    let shown = (2, GetReplyBody { expiry_ms, now_ms: TOLD + 99 }, b"two".to_vec());
    assert_eq!(bench.read_all(KEY), Some(shown));
    bench.now = bench.now + MS;
    assert_eq!(bench.read(KEY), None, "its own clock may be slow");
    assert_eq!(bench.update(1, 3, b"three"), (1, true));
    assert_eq!(bench.read(KEY), Some((3, b"three".to_vec())), "it holds the key all the same");
}

#[test]
fn a_shard_takes_its_own_keys_alone() {
    let mut bench = Bench::new(10);
    let of_first = |it: &&Vec<u8>| cluster::cache_shard_of(at(it).keyhash, 2) == 0;
    let keys: Vec<Vec<u8>> = (0..8_u8).map(|it| vec![it; 20]).collect();
    let first = keys.iter().filter(of_first).count();
    assert!((1..8).contains(&first), "both have some: {first}");
    bench.cache.config.shard = (0, 2);
    keys.iter().for_each(|key| bench.report(key, 100));
    assert_eq!(bench.cache.len(), first);
    bench.cache.config.shard = (1, 2);
    keys.iter().for_each(|key| bench.report(key, 100));
    assert_eq!(bench.cache.len(), 8);
}

#[test]
fn a_lease_counts_from_when_it_was_asked_for() {
    let mut bench = Bench::holding();
    bench.pass(MS * 90);
    let (_, datagram) = bench.said.iter().find(|(to, _)| *to == port(101)).expect("it renews");
    let asked = Header::read(Packet::parse(datagram).unwrap().header());
    assert_eq!((asked.op, asked.partition), (Op::CacheRenew as u8, 4));
    bench.said.clear();
    bench.pass(MS * 85);
    let from = LoanNumber::new(1);
    let fixed = CacheGrantBody { lender: LENDER, from, now_ms: TOLD, lasts_ms: 300 }.to_bytes();
    bench.hear_tail(Op::CacheGrant, asked.seq, 0, &fixed, (&[], &[]));
    bench.said.clear();
    bench.now = bench.now + MS * 214;
    assert!(bench.read(KEY).is_some());
    bench.now = bench.now + MS * 2;
    assert_eq!(bench.read(KEY), None, "300 ms after the question, not after the answer");
}

#[test]
fn updates_are_held_and_old_ones_change_nothing() {
    let mut bench = Bench::holding();
    assert_eq!(bench.update(1, 3, b"three"), (1, true));
    assert_eq!(bench.update(1, 2, b"two"), (1, true), "it came late");
    assert_eq!(bench.read(KEY), Some((3, b"three".to_vec())));
    assert_eq!(bench.recall(1, KEY), (1, false));
    assert_eq!(bench.read(KEY), None);
}

#[test]
fn a_loan_that_an_update_has_overtaken_is_not_taken() {
    let mut bench = Bench::new(10);
    bench.report(KEY, 100);
    let asked = bench.asked();
    assert_eq!(bench.update(1, 2, b"two"), (1, false));
    bench.lend(asked, (1, 1), 1, KEY, b"one");
    assert_eq!(bench.answered(), (1, false));
    assert_eq!(bench.read(KEY), None);
}

#[test]
fn the_answer_to_an_earlier_question_ends_no_loan_that_is_held_or_on_its_way() {
    let mut bench = Bench::new(10);
    bench.report(KEY, 100);
    let first = bench.asked();
    bench.pass(MS * 20);
    let second = bench.asked();
    // The tail has heard them in the other order.
    bench.lend(first, (2, 1), 1, KEY, b"one");
    assert!(bench.said.is_empty(), "to deny it would deny the first loan as well");
    bench.lend(second, (1, 1), 1, KEY, b"one");
    assert!(bench.read(KEY).is_some());
    assert_eq!(bench.update(2, 2, b"two"), (2, true), "whatever number the tail counts by");
    assert_eq!(bench.read(KEY), Some((2, b"two".to_vec())));
}

#[test]
fn a_loan_that_comes_when_it_is_over_is_not_taken() {
    let mut bench = Bench::new(10);
    bench.report(KEY, 100);
    let asked = bench.asked();
    bench.now = bench.now + MS * 300;
    bench.lend(asked, (1, 1), 1, KEY, b"one");
    assert_eq!(bench.read(KEY), None);
}

#[test]
fn what_is_void_is_not_answered_though_the_lease_goes_on() {
    let mut bench = Bench::holding();
    bench.report(b"other", 100);
    let asked = bench.asked();
    bench.lend(asked, (6, 5), 4, b"other", b"o");
    assert_eq!(bench.read(KEY), None, "loans before the fifth are void");
    assert!(bench.read(b"other").is_some());
}

#[test]
fn a_closing_partition_takes_back_all_and_what_is_on_its_way() {
    let mut bench = Bench::holding();
    bench.report(b"other", 100);
    let asked = bench.asked();
    assert_eq!(bench.recall(2, &[]), (2, false));
    bench.lend(asked, (2, 1), 4, b"other", b"o");
    assert_eq!((bench.read(KEY), bench.read(b"other")), (None, None));
}

#[test]
fn a_full_cache_makes_room_for_what_is_read_more_and_says_so_to_the_tail() {
    let mut bench = Bench::new(1);
    bench.report(KEY, 100);
    let asked = bench.asked();
    bench.lend(asked, (1, 1), 1, KEY, b"one");
    bench.report(b"other", 110);
    assert!(bench.said.is_empty(), "that is hardly more");
    bench.report(b"other", 200);
    bench.asked();
    assert_eq!(bench.answered(), (1, false));
    assert_eq!(bench.read(KEY), None);
}

#[test]
fn what_a_key_is_worth_is_reckoned_as_nodes_reckon_what_they_report() {
    let mut bench = Bench::new(1);
    bench.pass(METRIC.segment);
    bench.report(KEY, 100);
    let asked = bench.asked();
    bench.lend(asked, (1, 1), 1, KEY, b"one");
    bench.follow_rules();
    (0..120).for_each(|_| assert!(bench.read(KEY).is_some()));
    bench.pass(METRIC.segment - MS * 11);
    let worth = |bench: &Bench| bench.cache.slots.iter().map(crate::slots::Slot::load).next();
    assert_eq!(worth(&bench), Some(100), "the segment is not over");
    bench.pass(MS);
    assert_eq!(worth(&bench), Some(225), "600 in a second count a quarter");
    bench.follow_rules();
    bench.said.clear();
    bench.report(b"other", 270);
    assert!(bench.said.is_empty(), "that is not a fifth more");
    bench.report(b"other", 271);
    assert_eq!(bench.cache.slots.iter().map(|it| &*it.key.bytes).collect::<Vec<_>>(), [b"other"]);
}

#[test]
fn what_is_called_back_and_lent_again_takes_its_room_once() {
    let mut bench = Bench::new(10);
    let key = [7; 1_000];
    bench.report(&key, 100);
    for loan in 1..=1_100 {
        let asked = bench.asked();
        bench.lend(asked, (loan, 1), 1, &key, b"one");
        if loan % 100 == 0 {
            bench.follow_rules();
        }
        assert_eq!(bench.recall(loan, &key), (loan, false));
        bench.now = bench.now + MS * 5;
        bench.report(&key, 100);
    }
    bench.report(b"other", 1);
    bench.asked();
    assert_eq!(bench.cache.report().bytes, 1_005);
}

#[test]
fn for_a_switch_that_follows_no_rules_nothing_is_borrowed() {
    let mut bench = Bench::holding();
    let told = bench.cache.report();
    assert_eq!((told.entries, told.rules, told.hits), (1, 1, 1));
    bench.pass(MS * 1_000);
    assert_eq!(bench.cache.report().entries, 0);
    bench.said.clear();
    bench.report(KEY, 100);
    assert!(bench.said.is_empty());
}

#[test]
fn a_switch_that_stands_by_has_all_rules_when_it_takes_over() {
    let mut bench = Bench::holding();
    let tables = bench.cache.tables.clone().unwrap();
    let with = |revision, switch, standby| {
        let revision = Revision::new(revision);
        CacheTables { revision, switch, standbys: vec![standby], ..tables.clone() }
    };
    let keyhash = at(KEY).keyhash;
    bench.cache.install(bench.now, &with(2, port(1), port(2)));
    bench.pass(MS * 10);
    assert_eq!(bench.telling(port(2)), [(true, keyhash)]);
    assert_eq!(bench.telling(port(1)), [], "it has that rule");
    bench.follow_rules();
    bench.cache.install(bench.now, &with(3, port(2), port(1)));
    bench.pass(MS * 100);
    assert_eq!((bench.telling(port(1)), bench.telling(port(2))), (vec![], vec![]));
    bench.follow_rules();
    assert_eq!(bench.cache.report().entries, 1, "it was heard before it served");
    // One that nobody stands by for any more is told nothing.
    let alone = CacheTables { standbys: Vec::new(), ..with(4, port(2), port(1)) };
    bench.cache.install(bench.now, &alone);
    bench.pass(MS * 200);
    assert!(bench.said.iter().all(|(to, _)| *to != port(1)));
}

#[test]
fn a_switch_that_is_not_there_is_told_ten_times_a_second_and_keeps_nothing_from_the_others() {
    let mut bench = Bench::holding();
    let tables = bench.cache.tables.clone().unwrap();
    let tables = CacheTables { revision: Revision::new(2), standbys: vec![port(9)], ..tables };
    bench.cache.install(bench.now, &tables);
    bench.deaf = Some(port(9));
    let mut told = 0;
    for _ in 0..600 {
        bench.follow_rules();
        told += bench.said.iter().filter(|(to, _)| *to == port(9)).count();
        bench.said.clear();
    }
    assert!((145..=155).contains(&told), "hundred in the first of six seconds: {told}");
    let report = bench.cache.report();
    assert_eq!((report.rules, report.rules_wanted), (1, 1));
}

#[test]
fn no_more_keys_are_held_than_switches_have_room_for_rules() {
    let mut bench = Bench::new(1_000);
    let hold = |bench: &mut Bench, keys: std::ops::Range<u8>| {
        for key in keys {
            bench.report(&[key], 100);
            while bench.said.iter().any(|(to, _)| *to == port(101)) {
                let seq = bench.asked();
                bench.lend(seq, (u64::from(key) + 1, 1), 1, &[key], b"value");
                bench.said.clear();
            }
            bench.follow_rules();
        }
        bench.cache.report()
    };
    // Of 10,000 rules a second that are of no use for 100 ms each there may be 1,000.
    bench.cache.set_rules_max(1_020);
    let report = hold(&mut bench, 0..40);
    assert_eq!((report.entries, report.room_entries), (20, 20));
    bench.cache.set_rules_max(1_005);
    bench.pass(MS * 100);
    assert_eq!(bench.cache.report().entries, 5);
    bench.cache.set_rules_max(1_000_000);
    assert_eq!(bench.cache.report().room_entries, 1_000);
}

#[test]
fn only_nodes_lend_and_only_the_switch_asks() {
    let mut bench = Bench::holding();
    let mut header = Header { op: Op::CacheUpdate as u8, client: ME, ..at(KEY) };
    CacheCopy { version: Version::new(9) }.put(&mut header);
    let fixed =
        CacheUpdateBody { lender: LENDER, loan: LoanNumber::new(1), expiry_ms: 0 }.to_bytes();
    bench.hear(port(666), &header, &[&fixed, KEY, b"forged"]);
    let read = Header { op: Op::Get as u8, client: 9, seq: 1, ..at(KEY) };
    bench.hear(port(666), &read, &[KEY]);
    assert!(bench.said.is_empty());
    let dropped = |reason| bench.cache.dropped().find(|(it, _)| *it == reason).unwrap().1;
    assert_eq!(dropped(wire::DropReason::NotFromMember), 1);
    assert_eq!(dropped(wire::DropReason::NotFromSwitch), 1);
    assert_eq!(bench.read(KEY), Some((1, b"one".to_vec())));
}

#[test]
fn a_node_that_does_not_answer_is_asked_for_few_keys_at_a_time_and_less_and_less_often() {
    let mut bench = Bench::new(1_000);
    (0..200_u16).for_each(|key| bench.report(&key.to_be_bytes(), 10));
    let fetches = |bench: &mut Bench| {
        let said = std::mem::take(&mut bench.said);
        let fetch = |(to, datagram): &&(Endpoint, Vec<u8>)| {
            *to == port(101) && Packet::parse(datagram).unwrap().op() == Op::CacheFetch
        };
        said.iter().filter(fetch).count()
    };
    let mut seconds = Vec::new();
    for _ in 0..4 {
        let mut count = fetches(&mut bench);
        for _ in 0..100 {
            bench.follow_rules();
            let now = fetches(&mut bench);
            assert!(now <= 32, "{now} in 10 ms");
            count += now;
        }
        seconds.push(count);
    }
    // A few keys are asked for again after 20, 40, ... ms, and once a second in the end.
    assert!(seconds[0] >= 32 && seconds[0] <= 8 * 32, "{seconds:?}");
    assert!(seconds[1..].iter().all(|count| (1..=3 * 32).contains(count)), "{seconds:?}");
}

#[test]
fn a_cache_that_cannot_keep_up_holds_the_keys_alone_that_are_read_most() {
    let mut bench = Bench::new(100);
    for key in 0..100_u8 {
        bench.report(&[key], 1_000 + u32::from(key));
        let seq = bench.asked();
        bench.lend(seq, (u64::from(key) + 1, 1), 1, &[key], b"value");
    }
    assert_eq!(bench.cache.len(), 100);
    // Something waits all the time.
    for _ in 0..10 {
        let ruled = Header { op: Op::CacheRuled as u8, client: 1, ..Header::default() };
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &ruled, &[]);
        bench.cache.handle_packet(bench.now, port(1), 50, &datagram);
        bench.pass(MS * 100);
    }
    let held = bench.cache.len();
    assert!(held < 20, "{held} are held");
    let kept = |key: u8| bench.cache.slots.iter().any(|slot| *slot.key.bytes == [key]);
    assert!((0..100).all(|key| kept(key) == (usize::from(key) >= 100 - held)));
}

#[test]
fn a_key_that_is_too_hot_for_a_cache_is_told_of_where_nodes_may_copy_it() {
    for (hot, told) in [(HotPolicy::Either, true), (HotPolicy::Cache, false)] {
        let mut bench = Bench::new(10);
        let (id, name, kind) = (KeyspaceId(at(KEY).keyspace), "a".into(), KeyspaceKind::Hash);
        let keyspace = Keyspace { id, name, kind, seed: 1, replicas: 1, hot, content: None };
        let tables = bench.cache.tables.clone().unwrap();
        let revision = Revision::new(2);
        let tables = CacheTables { revision, keyspaces: vec![keyspace], ..tables };
        bench.cache.install(bench.now, &tables);
        for (loan, (key, rate)) in (1..).zip([(KEY, 900), (b"other".as_slice(), 800)]) {
            bench.report(key, rate);
            let seq = bench.asked();
            bench.lend(seq, (loan, 1), 1, key, b"value");
        }
        let ruled = Header { op: Op::CacheRuled as u8, client: 1, ..Header::default() };
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &ruled, &[]);
        let full = |bench: &mut Bench, waiting: u16| {
            bench.cache.handle_packet(bench.now, port(1), waiting, &datagram);
            bench.pass(MS * 100);
            bench.cache.report()
        };
        (0..99).for_each(|_| assert!(bench.read(KEY).is_some()));
        bench.pass(METRIC.segment);
        let before = full(&mut bench, 0);
        let name = KeyName { keyspace: id, key: KEY.to_vec() };
        let hottest = before.hot.first().map(|it| (it.key.clone(), before.hot.len()));
        assert_eq!(hottest, told.then(|| (KEY.to_vec(), 2)));
        assert_eq!(before.crowding, [], "it keeps up");
        let expected = if told { vec![name] } else { Vec::new() };
        assert_eq!(full(&mut bench, 50).crowding, expected);
        (0..4).for_each(|_| drop(full(&mut bench, 50)));
        assert!(bench.cache.is_empty(), "it has given up what it cannot bear");
        assert_eq!(full(&mut bench, 0).crowding, expected, "and has said so until it was heard");
        (0..9).for_each(|_| drop(full(&mut bench, 0)));
        assert_eq!(full(&mut bench, 0).crowding, []);
    }
}
