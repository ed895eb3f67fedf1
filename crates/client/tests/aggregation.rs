//! Scans and requests for many keys against a map: whatever is lost, doubled or reordered on the
//! way, and however switch and nodes cut their answers, the result is exactly what the map holds.

mod support;

use client::{
    Client, ClientConfig, Expiry, KeyCount, Outcome, Reply, Request, RetransmitBounds, Ticket,
};
use machine::{Instant, Rng};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use support::{Cluster, Whims, goes_some_day, in_order, range_keyspace};
use wire::{Endpoint, Version};

const SERVICE: Endpoint = Endpoint { addr: [1; 16], port: 7700 };
const PREFIX: &[u8] = b"user";

/// What the network does to each datagram, in either direction; each is a chance in 100.
#[derive(Clone, Copy, Debug)]
struct Network {
    lose: u64,
    double: u64,
    delay_us_max: u64,
}

/// Runs until the first outcome, and gives it with the number of datagrams that were sent.
fn run(client: &mut Client, cluster: &mut Cluster, network: Network, seed: u64) -> (Reply, u64) {
    let mut rng = Rng::new(seed).fork("network");
    let mut now = Instant::from_unix_ms(1_000);
    // Datagrams on their way, to the service or back.
    let mut on_the_way: BTreeMap<(Instant, u64), (bool, Vec<u8>)> = BTreeMap::new();
    let mut sent = 0;
    let mut number = 0;
    let mut carry = |way: &mut BTreeMap<_, _>, now: Instant, to_service: bool, bytes: &[u8]| {
        let copies = 1 + u64::from(rng.chance(network.double, 100));
        for _ in 0..copies {
            let delay = Duration::from_micros(20 + rng.below(network.delay_us_max));
            if !rng.chance(network.lose, 100) {
                number += 1;
                way.insert((now + delay, number), (to_service, bytes.to_vec()));
            }
        }
    };
    loop {
        while let Some(datagram) = client.poll_transmit() {
            assert_eq!(datagram.to, SERVICE);
            sent += 1;
            carry(&mut on_the_way, now, true, datagram.payload);
        }
        if let Some((ticket, outcome)) = client.poll_outcome() {
            assert_eq!((ticket, client.in_flight()), (Ticket(0), 0));
            assert_eq!((client.datagrams_in_flight(), client.poll_timeout()), (0, None));
            let Outcome::Done(reply) = outcome else { panic!("{outcome:?}") };
            return (reply, sent);
        }
        let timeout = client.poll_timeout().expect("a request that waits has a timer");
        let arrival = on_the_way.first_entry().filter(|entry| entry.key().0 <= timeout);
        let Some(arrival) = arrival else {
            now = now.max(timeout);
            client.handle_timeout(now);
            continue;
        };
        let ((at, _), (to_service, bytes)) = arrival.remove_entry();
        now = now.max(at);
        if to_service {
            for reply in cluster.answer(&bytes) {
                carry(&mut on_the_way, now, false, &reply);
            }
        } else {
            client.handle_packet(now, SERVICE, &bytes);
        }
    }
}

fn client(seed: u64) -> Client {
    let config = ClientConfig {
        // Only a whole minute without any progress would be a loss of liveness.
        deadline: Duration::from_secs(60),
        retransmit: RetransmitBounds {
            first: Duration::from_millis(20),
            ..RetransmitBounds::default()
        },
        ..ClientConfig::new(SERVICE, 0x1234_5678_9abc_def0)
    };
    Client::new(config, Rng::new(seed).fork("client"))
}

/// Keys that crowd together: few letters, long common beginnings, some without the prefix, some
/// as long as keys may be.
fn any_key() -> impl Strategy<Value = Vec<u8>> {
    let letters =
        || proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(0xff)], 0..5);
    let filler = prop_oneof![6 => Just(0usize), 2 => Just(16), 1 => Just(500), 2 => Just(1012)];
    let prefix = prop_oneof![8 => Just(PREFIX), 1 => Just(&b"t"[..]), 1 => Just(&b"v"[..])];
    (prefix, letters(), filler, letters()).prop_map(|(prefix, head, filler, tail)| {
        let mut key = prefix.to_vec();
        key.extend(head);
        key.extend(std::iter::repeat_n(b'm', filler));
        key.extend(tail);
        key.truncate(wire::KEY_MAX);
        key
    })
}

fn any_data() -> impl Strategy<Value = BTreeMap<Vec<u8>, Option<Vec<u8>>>> {
    let value = proptest::option::weighted(0.8, proptest::collection::vec(any::<u8>(), 0..200));
    proptest::collection::btree_map(any_key(), value, 0..150)
}

fn any_bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        2 => any_key().prop_map(Bound::Included),
        2 => any_key().prop_map(Bound::Excluded),
        1 => Just(Bound::Unbounded),
    ]
}

fn any_network() -> impl Strategy<Value = Network> {
    let lose = prop_oneof![Just(0u64), Just(5), Just(30)];
    (lose, 0u64..30, 1u64..3_000).prop_map(|(lose, double, delay_us_max)| Network {
        lose,
        double,
        delay_us_max,
    })
}

fn any_whims() -> impl Strategy<Value = Whims> {
    let again = prop_oneof![Just(0u64), Just(20)];
    let resplit = prop_oneof![Just(0u64), Just(10)];
    (0u64..60, again, resplit).prop_map(|(stop, again, resplit)| Whims { stop, again, resplit })
}

fn keys_and_values(reply: Reply) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Reply::Range(entries) = reply else { panic!("{reply:?}") };
    entries.into_iter().map(|(key, value)| (key, value.value)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn a_scan_returns_what_the_map_holds_once_and_in_order(
        data in any_data(),
        partitions in prop_oneof![1usize..8, 30usize..90],
        (start, end) in (any_bound(), any_bound()),
        reverse in any::<bool>(),
        limit in proptest::option::of(0usize..60),
        (network, whims) in (any_network(), any_whims()),
        seed in any::<u64>(),
    ) {
        let keyspace = range_keyspace(PREFIX);
        let mut cluster = Cluster::new(keyspace.clone(), 1, whims, Rng::new(seed).fork("cluster"));
        cluster.data = data;
        cluster.split(partitions);
        let bounds = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
        let mut client = client(seed);
        let (start, end) = bounds;
        let request = Request::Range { start, end, reverse, limit, keys_only: false };
        client.start(Instant::from_unix_ms(1_000), &Arc::new(keyspace), request).unwrap();
        let (reply, _) = run(&mut client, &mut cluster, network, seed);
        let mut want: Vec<(Vec<u8>, Vec<u8>)> = in_order(&cluster.data, bounds, reverse)
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect();
        want.truncate(limit.unwrap_or(usize::MAX));
        prop_assert_eq!(keys_and_values(reply), want);
    }

    #[test]
    fn a_count_counts_every_key_once(
        data in any_data(),
        partitions in prop_oneof![1usize..8, 30usize..90],
        (network, whims) in (any_network(), any_whims()),
        seed in any::<u64>(),
    ) {
        let keyspace = range_keyspace(PREFIX);
        let mut cluster = Cluster::new(keyspace.clone(), 1, whims, Rng::new(seed).fork("cluster"));
        cluster.data = data;
        cluster.split(partitions);
        let mut client = client(seed);
        client.start(Instant::from_unix_ms(1_000), &Arc::new(keyspace), Request::Count).unwrap();
        let (reply, _) = run(&mut client, &mut cluster, network, seed);
        let there = || cluster.data.iter().filter(|(_, value)| value.is_some());
        let keys = there().count() as u64;
        let expiring = there().filter(|(key, _)| goes_some_day(key)).count() as u64;
        prop_assert_eq!(reply, Reply::Count(KeyCount { keys, expiring }));
    }

    #[test]
    fn a_multiget_answers_every_key_in_the_order_of_the_request(
        data in any_data(),
        partitions in 1usize..20,
        others in proptest::collection::vec(any_key(), 0..20),
        picks in proptest::collection::vec(any::<proptest::sample::Index>(), 0..400),
        (network, whims) in (any_network(), any_whims()),
        seed in any::<u64>(),
    ) {
        let keyspace = range_keyspace(PREFIX);
        let mut cluster = Cluster::new(keyspace.clone(), 1, whims, Rng::new(seed).fork("cluster"));
        let pool = data.keys().cloned().chain(others).chain([b"k".to_vec()]);
        let pool: Vec<Vec<u8>> = pool.collect();
        cluster.data = data;
        cluster.split(partitions);
        let keys: Vec<&[u8]> = picks.iter().map(|pick| pick.get(&pool).as_slice()).collect();
        let mut client = client(seed);
        let request = Request::Mget { keys: &keys, within: None };
        client.start(Instant::from_unix_ms(1_000), &Arc::new(keyspace), request).unwrap();
        let (reply, _) = run(&mut client, &mut cluster, network, seed);
        let Reply::Mget(outcomes) = reply else { panic!("{reply:?}") };
        let found: Vec<Option<Vec<u8>>> =
            outcomes.into_iter().map(|it| it.done().unwrap().map(|it| it.value)).collect();
        let want: Vec<Option<Vec<u8>>> =
            keys.iter().map(|key| cluster.data.get(*key).cloned().flatten()).collect();
        prop_assert_eq!(found, want);
    }

    #[test]
    fn of_many_writes_each_is_carried_out_once_and_the_last_of_a_key_stays(
        partitions in 1usize..20,
        pool in proptest::collection::vec(any_key(), 1..150),
        picks in proptest::collection::vec(any::<proptest::sample::Index>(), 0..250),
        delete in any::<bool>(),
        (network, whims) in (any_network(), any_whims()),
        seed in any::<u64>(),
    ) {
        let keyspace = range_keyspace(PREFIX);
        let mut cluster = Cluster::new(keyspace.clone(), 1, whims, Rng::new(seed).fork("cluster"));
        cluster.data = pool.iter().step_by(2).map(|key| (key.clone(), Some(vec![1]))).collect();
        let before = cluster.data.clone();
        cluster.split(partitions);
        let keys: Vec<&[u8]> = picks.iter().map(|pick| pick.get(&pool).as_slice()).collect();
        let values: Vec<Vec<u8>> =
            (0..keys.len() as u32).map(|place| place.to_be_bytes().to_vec()).collect();
        let entries: Vec<(&[u8], &[u8])> =
            keys.iter().zip(&values).map(|(key, value)| (*key, value.as_slice())).collect();
        let request = if delete {
            Request::Mdel { keys: &keys, within: None }
        } else {
            Request::Mset { entries: &entries, expiry: Expiry::Never, within: None }
        };
        let mut client = client(seed);
        client.start(Instant::from_unix_ms(1_000), &Arc::new(keyspace), request).unwrap();
        let (reply, _) = run(&mut client, &mut cluster, network, seed);

        let mut want = before.clone();
        want.extend(entries.iter().map(|(key, value)| {
            (key.to_vec(), (!delete).then(|| value.to_vec()))
        }));
        prop_assert_eq!(&cluster.data, &want);
        let distinct: BTreeSet<&[u8]> = keys.iter().copied().collect();
        prop_assert_eq!(cluster.written.len(), distinct.len());
        let versions: Vec<Version> = match reply {
            Reply::Mset(outcomes) => outcomes.into_iter().map(|it| it.done().unwrap()).collect(),
            Reply::Mdel(outcomes) => {
                let replies: Vec<_> = outcomes.into_iter().map(|it| it.done().unwrap()).collect();
                for (key, reply) in keys.iter().zip(&replies) {
                    prop_assert_eq!(reply.existed, before.contains_key(*key));
                }
                replies.iter().map(|it| it.version).collect()
            }
            other => panic!("{other:?}"),
        };
        let by_key = keys.iter().copied().zip(versions.clone());
        let by_key: BTreeSet<(&[u8], Version)> = by_key.collect();
        let distinct_versions: BTreeSet<Version> = versions.into_iter().collect();
        prop_assert_eq!((by_key.len(), distinct_versions.len()), (distinct.len(), distinct.len()));
    }
}

#[test]
fn a_large_scan_over_many_partitions_asks_little_more_than_once_for_each_datagram() {
    let keyspace = range_keyspace(b"");
    let whims = Whims::default();
    let mut cluster = Cluster::new(keyspace.clone(), 1, whims, Rng::new(1));
    for n in 0..10_000u32 {
        let key = machine::mix(n.into()).to_be_bytes().to_vec();
        cluster.data.insert(key, Some(vec![7; 100]));
    }
    cluster.split(128);
    let mut client = client(1);
    let request = Request::Range {
        start: Bound::Unbounded,
        end: Bound::Unbounded,
        reverse: false,
        limit: None,
        keys_only: false,
    };
    client.start(Instant::from_unix_ms(1_000), &Arc::new(keyspace), request).unwrap();
    let network = Network { lose: 0, double: 0, delay_us_max: 100 };
    let (reply, sent) = run(&mut client, &mut cluster, network, 1);
    assert_eq!(keys_and_values(reply).len(), 10_000);
    // Ten entries fill a datagram; each partition ends with one that is not full.
    assert!(sent <= 10_000 / 10 + 128 + 8, "{sent}");
    assert_eq!(client.counters().retransmits, 0);
}

#[test]
fn a_scan_with_a_limit_visits_no_partition_beyond_it() {
    let keyspace = range_keyspace(b"");
    let mut cluster = Cluster::new(keyspace.clone(), 1, Whims::default(), Rng::new(1));
    for n in 0..10_000u32 {
        cluster.data.insert(machine::mix(n.into()).to_be_bytes().to_vec(), Some(vec![7; 10]));
    }
    cluster.split(128);
    let mut client = client(1);
    let request = Request::Range {
        start: Bound::Unbounded,
        end: Bound::Unbounded,
        reverse: true,
        limit: Some(30),
        keys_only: false,
    };
    client.start(Instant::from_unix_ms(1_000), &Arc::new(keyspace), request).unwrap();
    let network = Network { lose: 0, double: 0, delay_us_max: 100 };
    let (reply, sent) = run(&mut client, &mut cluster, network, 1);
    assert_eq!(keys_and_values(reply).len(), 30);
    assert!(sent <= 6, "{sent}");
}
