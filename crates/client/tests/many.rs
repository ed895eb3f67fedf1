//! Requests for many keys: how many datagrams they take, what delays them, and how they end.

mod support;

use client::{
    Client, ClientConfig, Expiry, MANY_KEYS_MAX, Outcome, Refusal, Reply, Request, StartError,
    UnknownReason, Value,
};
use cluster::{Keyspace, Match};
use machine::{Instant, Rng};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use support::{Cluster, Whims, range_keyspace};
use wire::{Endpoint, Header, Packet};

const SERVICE: Endpoint = Endpoint { addr: [1; 16], port: 7700 };
const START: Instant = Instant(1_000_000_000_000);
const MS: Duration = Duration::from_millis(1);
const NEVER: Expiry = Expiry::Never;

/// A client and a cluster, and a network that delivers everything, in time or late.
struct World {
    client: Client,
    cluster: Cluster,
    keyspace: Arc<Keyspace>,
    now: Instant,
    /// How long an answer takes that only has keys beginning with an `s`.
    slow: Duration,
    /// Replies on their way, by arrival.
    replies: BTreeMap<(Instant, u64), Vec<u8>>,
    /// Datagrams sent, replies taken and timers that were due.
    sent: u64,
    taken: u64,
    timers: u64,
    /// Most datagrams that left at once, and that waited at once.
    burst: usize,
    in_flight: usize,
}

impl World {
    fn new(change: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut config = ClientConfig::new(SERVICE, 77);
        change(&mut config);
        let keyspace = range_keyspace(b"");
        Self {
            client: Client::new(config, Rng::new(1)),
            cluster: Cluster::new(keyspace.clone(), 1, Whims::default(), Rng::new(1)),
            keyspace: Arc::new(keyspace),
            now: START,
            slow: MS / 10,
            replies: BTreeMap::new(),
            sent: 0,
            taken: 0,
            timers: 0,
            burst: 0,
            in_flight: 0,
        }
    }

    /// Two nodes: one has the keys before this one, one the others.
    fn split_at(&mut self, key: &[u8]) {
        let at = self.keyspace.match_value(key);
        self.cluster.borders = BTreeSet::from([Match(at.0 - 1), Match::MAX]);
    }

    fn start(&mut self, request: Request<'_>) {
        self.client.start(self.now, &self.keyspace, request).expect("a sound request");
    }

    fn transmit(&mut self) {
        let mut sent = VecDeque::new();
        while let Some(datagram) = self.client.poll_transmit() {
            sent.push_back(datagram.payload.to_vec());
        }
        self.burst = self.burst.max(sent.len());
        self.in_flight = self.in_flight.max(self.client.datagrams_in_flight());
        for datagram in sent {
            self.sent += 1;
            for reply in self.cluster.answer(&datagram) {
                let delay = if self.is_slow(&datagram, &reply) { self.slow } else { MS / 10 };
                self.replies.insert((self.now + delay, self.sent << 8 | self.taken), reply);
                self.taken += 1;
            }
        }
    }

    /// Whether a reply is that of the slow node. The fake cluster's nodes are the partitions.
    fn is_slow(&self, request: &[u8], reply: &[u8]) -> bool {
        let packet = Packet::parse(request).expect("clients send sound packets");
        let bitmap = Header::read(Packet::parse(reply).expect("a reply").header()).bitmap;
        match packet.body().expect("clients send sound bodies") {
            wire::Body::Mget(keys) => keys
                .iter()
                .enumerate()
                .any(|(index, key)| bitmap & (1 << index) != 0 && key.key.starts_with(b"s")),
            wire::Body::Put { key, .. } | wire::Body::Del { key } => key.starts_with(b"s"),
            other => panic!("{other:?}"),
        }
    }

    /// Runs until the first outcome.
    fn run(&mut self) -> Reply {
        loop {
            self.transmit();
            if let Some((_, outcome)) = self.client.poll_outcome() {
                assert_eq!((self.client.in_flight(), self.client.datagrams_in_flight()), (0, 0));
                return outcome.done().expect("requests for many keys end with their outcomes");
            }
            let timeout = self.client.poll_timeout().expect("a request that waits has a timer");
            match self.replies.first_entry().filter(|entry| entry.key().0 <= timeout) {
                Some(entry) => {
                    let ((at, _), reply) = entry.remove_entry();
                    self.now = self.now.max(at);
                    self.client.handle_packet(self.now, SERVICE, &reply);
                }
                None => {
                    self.timers += 1;
                    self.now = self.now.max(timeout);
                    self.client.handle_timeout(self.now);
                }
            }
        }
    }

    fn mget(&mut self, keys: &[Vec<u8>], within: Option<Duration>) -> Vec<Outcome<Option<Value>>> {
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        self.start(Request::Mget { keys: &keys, within });
        let Reply::Mget(outcomes) = self.run() else { panic!("another reply") };
        outcomes
    }
}

fn numbered(letter: char, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|n| format!("{letter}{n:012}").into_bytes()).collect()
}

/// The work of a multiget: datagrams, replies and timers, and the time it took in all.
fn work(count: usize) -> (u64, Duration) {
    let mut world = World::new(|_| {});
    let keys = numbered('k', count);
    world.cluster.data = keys.iter().map(|key| (key.clone(), Some(key.clone()))).collect();
    world.cluster.split(8);
    let began = now();
    let outcomes = world.mget(&keys, None);
    let took = began.elapsed();
    assert_eq!(outcomes.len(), count);
    for (key, outcome) in keys.iter().zip(outcomes) {
        assert!(matches!(outcome, Outcome::Done(Some(it)) if it.value == *key));
    }
    (world.sent + world.taken + world.timers, took)
}

#[test]
fn the_work_for_a_key_does_not_grow_with_their_number() {
    let (few, _) = work(100);
    let (many, _) = work(10_000);
    assert!(many * 100 <= few * 10_000 * 3 / 2, "{few} steps for 100, {many} for 10,000");
    // By the clock too, with slack for caches and other tests at the same time: what grows with the
    // square of the number would take 1,024 times as long.
    let best = |count| (0..5).map(|_| work(count).1).min().expect("five rounds");
    let (few, many) = (best(2_000), best(64_000));
    assert!(many < few * 32 * 8, "{few:?} for 2,000 keys, {many:?} for 64,000");
}

#[test]
fn a_giant_multiget_leaves_a_few_datagrams_at_a_time() {
    let mut world = World::new(|_| {});
    let keys = numbered('k', 100_000);
    assert!(world.mget(&keys, None).iter().all(|it| *it == Outcome::Done(None)));
    assert_eq!(world.sent, 100_000 / 32, "each has as many keys as there is room for");
    assert!(world.burst <= 8 && world.in_flight <= 32, "{} {}", world.burst, world.in_flight);
}

#[test]
fn as_many_keys_as_may_be_are_answered_and_no_more_are_taken() {
    let mut world = World::new(|_| {});
    let keys: Vec<Vec<u8>> = (0..MANY_KEYS_MAX as u32).map(|n| n.to_be_bytes().to_vec()).collect();
    world.cluster.data.insert(keys[7].clone(), Some(b"seven".to_vec()));
    let outcomes = world.mget(&keys, None);
    let found = outcomes.iter().position(|it| matches!(it, Outcome::Done(Some(_))));
    assert_eq!((outcomes.len(), found), (MANY_KEYS_MAX, Some(7)));
    let mut keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    keys.push(b"one more");
    let request = Request::Mget { keys: &keys, within: None };
    let refused = world.client.start(world.now, &world.keyspace, request);
    assert_eq!(refused, Err(StartError::TooManyKeys { count: MANY_KEYS_MAX + 1 }));
}

#[test]
fn a_slow_node_delays_only_its_own_keys() {
    let mut world = World::new(|_| {});
    world.slow = Duration::from_secs(3600);
    // Every datagram has some keys of the slow node.
    let mut keys = numbered('k', 14_000);
    for (n, slow) in numbered('s', 2_000).into_iter().enumerate() {
        keys.insert(8 * n, slow);
    }
    world.cluster.data = keys.iter().map(|key| (key.clone(), Some(vec![1]))).collect();
    world.split_at(b"s");
    let outcomes = world.mget(&keys, Some(MS * 1_000));
    assert_eq!(world.now, START + MS * 1_000);
    for (key, outcome) in keys.iter().zip(outcomes) {
        if key.starts_with(b"s") {
            assert_eq!(outcome, Outcome::Unknown(UnknownReason::NoAnswer));
        } else {
            assert!(matches!(outcome, Outcome::Done(Some(_))), "{outcome:?}");
        }
    }
}

#[test]
fn a_slow_nodes_answers_are_taken_when_they_come() {
    let mut world = World::new(|_| {});
    world.slow = MS * 700;
    let mut keys = numbered('k', 3_000);
    keys.extend(numbered('s', 500));
    world.cluster.data = keys.iter().map(|key| (key.clone(), Some(vec![1]))).collect();
    world.split_at(b"s");
    let outcomes = world.mget(&keys, None);
    assert!(outcomes.iter().all(|it| matches!(it, Outcome::Done(Some(_)))));
    assert!(world.now.since(START) < MS * 1_500, "{:?}", world.now.since(START));
}

#[test]
fn values_that_fill_datagrams_come_in_as_many_as_it_takes() {
    let mut world = World::new(|_| {});
    let keys = numbered('k', 100);
    let value = vec![5; 1_267];
    world.cluster.data = keys.iter().map(|key| (key.clone(), Some(value.clone()))).collect();
    let outcomes = world.mget(&keys, None);
    let whole =
        |it: &Outcome<Option<Value>>| matches!(it, Outcome::Done(Some(v)) if v.value == value);
    assert!(outcomes.iter().all(whole));
    assert_eq!((world.sent, world.taken), (4, 100), "one reply for each key, to four requests");
}

#[test]
fn values_beyond_what_the_client_may_hold_are_refused_key_by_key() {
    let mut world = World::new(|config| config.result_bytes_max = 100_000);
    let keys = numbered('k', 1_000);
    world.cluster.data = keys.iter().map(|key| (key.clone(), Some(vec![5; 1_000]))).collect();
    // Each key twice: its value is there twice as well.
    let doubled: Vec<Vec<u8>> = keys.iter().chain(&keys).cloned().collect();
    let outcomes = world.mget(&doubled, None);
    let refused = Outcome::Refused(Refusal::ResultTooLarge { bytes_max: 100_000 });
    let count = outcomes.iter().filter(|it| it.is_done()).count();
    assert!((80..100).contains(&count), "{count}");
    assert_eq!(outcomes.iter().filter(|it| **it == refused).count(), 2_000 - count);
    assert_eq!(outcomes[..1_000], outcomes[1_000..]);
}

#[test]
fn of_many_writes_those_that_were_not_sent_in_time_are_refused() {
    let mut world = World::new(|_| {});
    world.slow = Duration::from_secs(3600);
    world.split_at(b"s");
    let (slow, quick) = (numbered('s', 20), numbered('k', 100_000));
    let keys: Vec<&[u8]> = slow.iter().chain(&quick).map(Vec::as_slice).collect();
    let entries: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (*key, &b"v"[..])).collect();
    let within = Some(MS * 200);
    world.start(Request::Mset { entries: &entries, expiry: NEVER, within });
    let Reply::Mset(outcomes) = world.run() else { panic!("another reply") };
    assert_eq!(world.now, START + MS * 200);
    let (slow, quick) = outcomes.split_at(20);
    assert!(slow.iter().all(|it| *it == Outcome::Unknown(UnknownReason::NoAnswer)), "{slow:?}");
    let done = quick.iter().take_while(|it| it.is_done()).count();
    assert!(done > 1_000, "{done}");
    let unsent = Outcome::Refused(Refusal::NotInTime);
    let (open, rest) = quick[done..].split_at(128.min(quick.len() - done));
    assert!(open.iter().all(|it| it.is_unknown() || *it == unsent), "{open:?}");
    assert!(rest.iter().all(|it| *it == unsent));
    // What was refused was not written.
    assert!(world.cluster.written.len() <= 20 + done + 128);
}

#[test]
fn without_progress_it_ends_and_with_progress_it_does_not() {
    let mut world = World::new(|config| config.deadline = MS * 300);
    world.slow = MS * 250;
    let keys = numbered('s', 2_000);
    let outcomes = world.mget(&keys, None);
    assert!(outcomes.iter().all(Outcome::is_done) && world.now.since(START) > MS * 500);
    world.slow = Duration::from_secs(3600);
    let before = world.now;
    let outcomes = world.mget(&keys, None);
    assert!(outcomes.iter().all(Outcome::is_unknown));
    assert_eq!(world.now.since(before), MS * 300);
}

#[test]
fn a_time_to_live_counts_from_the_start_of_the_request() {
    let mut world = World::new(|_| {});
    let keys = numbered('s', 200);
    let entries: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (&key[..], &b"v"[..])).collect();
    let expiry = Expiry::In(MS * 60_000);
    world.slow = MS * 100;
    world.start(Request::Mset { entries: &entries, expiry, within: None });
    let (mut seen, mut last) = (0, u64::MAX);
    while seen < 200 {
        while let Some(datagram) = world.client.poll_transmit() {
            let packet = Packet::parse(datagram.payload).unwrap();
            let wire::Body::Put { expiry_ms, .. } = packet.body().unwrap() else { panic!() };
            let waited_ms = u64::try_from(world.now.since(START).as_millis()).unwrap();
            let span = wire::expiry::span;
            assert!((span(60_000 - waited_ms)..=span(60_000)).contains(&expiry_ms));
            last = last.min(expiry_ms);
            seen += 1;
            let replies = world.cluster.answer(datagram.payload);
            world.replies.extend(replies.into_iter().map(|it| ((world.now, seen), it)));
        }
        world.now = world.now + MS;
        while let Some((_, reply)) = world.replies.pop_first() {
            world.client.handle_packet(world.now, SERVICE, &reply);
        }
    }
    assert!(last < wire::expiry::span(60_000), "the last were sent later");
}

#[expect(clippy::disallowed_methods, reason = "the time that the test itself takes")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}
