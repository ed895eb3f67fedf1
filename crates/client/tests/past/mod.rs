//! Requests for one key, and scans, that are stamped by the client or by a coordinator: held
//! against a map, and against the switch's answers where only the switch knows.

use crate::support::{Cluster, Whims, range_keyspace};
use client::{
    Client, ClientConfig, Coordination, Coordinator, Expiry, Outcome, Reply, Request, Routes,
};
use cluster::{Epoch, Keyspace, Map, Match, NodeId, NodeSpec, Partition, PartitionId};
use machine::{Instant, Rng};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use wire::{Code, Endpoint, Header, Op, Packet, RangeInterval, Revision, hop_flag};

const CLIENT: Endpoint = Endpoint { addr: [1; 16], port: 5000 };
const SERVICE: Endpoint = Endpoint { addr: [1; 16], port: 7700 };
const COORDINATORS: [Endpoint; 2] =
    [Endpoint { addr: [1; 16], port: 6000 }, Endpoint { addr: [1; 16], port: 6001 }];
const START: Instant = Instant(1_000_000_000_000);
const HOP: Duration = Duration::from_micros(100);

fn node(id: u16) -> Endpoint {
    Endpoint { addr: [2; 16], port: 8000 + id }
}

/// Equal partitions with chains of two of three nodes; their ids begin with `first_id`.
fn map(keyspace: &Keyspace, count: u32, first_id: u32, epoch: u32) -> Map {
    let spec = |id| NodeSpec { id: NodeId(id), endpoint: node(id), shards: 1 };
    let share = u128::MAX / u128::from(count) + 1;
    let partitions = (0..count).map(|n| Partition {
        id: PartitionId(first_id + n),
        keyspace: keyspace.id,
        first: Match(u128::from(n) * share),
        last: Match(u128::from(n) * share + (share - 1)),
        epoch: Epoch(epoch),
        chain: [n, n + 1].map(|id| NodeId(u16::try_from(id % 3).expect("of three"))).to_vec(),
        open: true,
        ..Partition::default()
    });
    Map {
        revision: Revision::new(1),
        nodes: (0..3).map(spec).collect(),
        keyspaces: vec![keyspace.clone()],
        partitions: partitions.collect(),
        ..Map::default()
    }
}

/// Nodes, a switch, coordinators, and a client that asks one thing after the other.
struct World {
    client: Client,
    coordinators: Vec<Coordinator>,
    map: Map,
    cluster: Cluster,
    keyspace: Arc<Keyspace>,
    /// Keys of which only the switch knows the way.
    hot: BTreeSet<Vec<u8>>,
    /// Of the node with this id nothing is heard.
    dead: Option<u16>,
    now: Instant,
    on_the_way: BTreeMap<(Instant, u64), (Endpoint, Endpoint, Vec<u8>)>,
    number: u64,
    /// Datagrams that came to the switch, and to nodes.
    by_service: u64,
    past: u64,
}

impl World {
    fn new(coordination: impl FnOnce(&Map) -> Coordination) -> Self {
        let keyspace = range_keyspace(b"");
        let map = map(&keyspace, 8, 1, 1);
        let mut cluster = Cluster::new(keyspace.clone(), 1, Whims::default(), Rng::new(1));
        cluster.data = (0..KEYS).map(|n| (key(n), Some(key(n).repeat(8)))).collect();
        cluster.borders = map.partitions.iter().map(|it| it.last).collect();
        let mut config = ClientConfig::new(SERVICE, 77);
        config.coordination = coordination(&map);
        let coordinators = COORDINATORS.into_iter().zip(78..).map(|(address, id)| {
            let mut coordinator = Coordinator::new(address, SERVICE, id, Rng::new(id));
            coordinator.install(&map);
            coordinator
        });
        Self {
            client: Client::new(config, Rng::new(1)),
            coordinators: coordinators.collect(),
            cluster,
            keyspace: Arc::new(keyspace),
            map,
            hot: BTreeSet::new(),
            dead: None,
            now: START,
            on_the_way: BTreeMap::new(),
            number: 0,
            by_service: 0,
            past: 0,
        }
    }

    fn by_client() -> Self {
        Self::new(|map| Coordination::Client(Arc::new(Routes::new(map, CLIENT))))
    }

    fn by_coordinators() -> Self {
        Self::new(|_| Coordination::Coordinators(Arc::new(COORDINATORS)))
    }

    /// Every partition has become two, under new ids, which begin in a later epoch.
    fn split(&mut self) {
        self.map = map(&self.keyspace, 16, 100, 2);
        self.cluster.borders = self.map.partitions.iter().map(|it| it.last).collect();
    }

    fn install(&mut self) {
        let routes = Arc::new(Routes::new(&self.map, CLIENT));
        self.client.coordinate(Coordination::Client(routes));
    }

    fn ask(&mut self, request: Request<'_>) -> Reply {
        self.client.start(self.now, &self.keyspace, request).expect("a sound request");
        loop {
            self.transmit();
            if let Some((_, outcome)) = self.client.poll_outcome() {
                let Outcome::Done(reply) = outcome else { panic!("{outcome:?}") };
                return reply;
            }
            self.step();
        }
    }

    fn get(&mut self, n: u64) {
        let Reply::Get(Some(found)) = self.ask(Request::Get { key: &key(n) }) else {
            panic!("key {n} is there")
        };
        assert_eq!(Some(Some(&found.value)), self.cluster.data.get(&key(n)).map(Option::as_ref));
    }

    fn put(&mut self, n: u64, value: &[u8]) {
        let key = key(n);
        let reply = self.ask(Request::Put { key: &key, value, expiry: Expiry::Never });
        assert!(matches!(reply, Reply::Put { .. }), "{reply:?}");
        assert_eq!(self.cluster.data.get(&key), Some(&Some(value.to_vec())));
    }

    fn scan(&mut self, limit: Option<usize>, reverse: bool) {
        let (start, end) = (Bound::Unbounded, Bound::Unbounded);
        let request = Request::Range { start, end, reverse, limit, keys_only: false };
        let Reply::Range(found) = self.ask(request) else { panic!("no entries") };
        let mut expected: Vec<&Vec<u8>> = self.cluster.data.keys().collect();
        if reverse {
            expected.reverse();
        }
        expected.truncate(limit.unwrap_or(usize::MAX));
        assert!(found.iter().map(|(key, _)| key).eq(expected));
    }

    fn transmit(&mut self) {
        while let Some(sent) = self.client.poll_transmit() {
            let (to, datagram) = (sent.to, sent.payload.to_vec());
            self.send(to, CLIENT, datagram);
        }
        for (place, from) in COORDINATORS.into_iter().enumerate() {
            while let Some(sent) = self.coordinators[place].poll_transmit() {
                let (to, datagram) = (sent.to, sent.payload.to_vec());
                self.send(to, from, datagram);
            }
        }
    }

    fn send(&mut self, to: Endpoint, from: Endpoint, datagram: Vec<u8>) {
        self.number += 1;
        self.on_the_way.insert((self.now + HOP, self.number), (to, from, datagram));
    }

    fn step(&mut self) {
        let timeout = self.client.poll_timeout().expect("a request waits");
        let Some(entry) = self.on_the_way.first_entry().filter(|it| it.key().0 <= timeout) else {
            self.now = self.now.max(timeout);
            self.client.handle_timeout(self.now);
            return;
        };
        let ((at, _), (to, from, datagram)) = entry.remove_entry();
        self.now = self.now.max(at);
        if to == CLIENT {
            self.client.handle_packet(self.now, from, &datagram);
        } else if let Some(place) = COORDINATORS.iter().position(|it| *it == to) {
            self.coordinators[place].handle_packet(self.now, from, &datagram);
        } else {
            let replies =
                if to == SERVICE { self.switch(&datagram) } else { self.node(to, &datagram) };
            replies.into_iter().for_each(|reply| self.send(from, to, reply));
        }
    }

    /// The switch, and whatever is behind it.
    fn switch(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        self.by_service += 1;
        let header = header_of(datagram);
        assert_eq!((header.hop_flags, header.chain_len), (0, 0), "nobody else has stamped it");
        assert_eq!((header.partition, header.epoch, header.chain), (0, 0, [0; 16]));
        let partition = self.map.partitions.iter().find(|it| it.holds(Match(header.match_value)));
        let partition = partition.expect("partitions leave no gap").clone();
        let stamped = rewrite(datagram, |header| {
            (header.partition, header.epoch) = (partition.id.0, partition.epoch.0);
        });
        self.cluster.answer(&stamped)
    }

    /// A node as far as it matters here: what it refuses, and in which order.
    fn node(&mut self, to: Endpoint, datagram: &[u8]) -> Vec<Vec<u8>> {
        let header = header_of(datagram);
        let op = Packet::parse(datagram).expect("a sound packet").op();
        if self.dead == Some(to.port - node(0).port) {
            return Vec::new();
        }
        self.past += 1;
        assert_eq!(header.hop_flags & hop_flag::DIRECT, hop_flag::DIRECT);
        let partition = self.map.partitions.iter().find(|it| it.id.0 == header.partition);
        let Some(partition) = partition else { return vec![refusal(&header, op, Code::NotOwner)] };
        if partition.epoch.0 != header.epoch {
            return vec![refusal(&header, op, Code::StaleEpoch)];
        }
        let chain: Vec<NodeId> =
            if op.is_for_head() { partition.chain.clone() } else { vec![partition.chain[1]] };
        assert_eq!(to, node(chain[0].0), "the head for a write, the tail for a read");
        let (stamped, len) = wire::chain_bytes(chain.iter().map(|id| id.0));
        assert_eq!((header.chain, header.chain_len, header.chain_pos), (stamped, len, 0));
        assert!(partition.holds(Match(header.match_value)));
        if op == Op::Range {
            assert!(partition.holds(Match(RangeInterval::of(&header).last)), "a piece of it");
        } else if self.hot.iter().any(|key| self.keyspace.keyhash(key) == header.keyhash) {
            return vec![refusal(&header, op, Code::NotHere)];
        }
        self.cluster.answer(datagram)
    }
}

const KEYS: u64 = 200;

/// Spread over the whole space.
fn key(n: u64) -> Vec<u8> {
    (n * (u64::MAX / KEYS)).to_be_bytes().to_vec()
}

fn header_of(datagram: &[u8]) -> Header {
    Header::read(Packet::parse(datagram).expect("a sound packet").header())
}

fn rewrite(datagram: &[u8], change: impl FnOnce(&mut Header)) -> Vec<u8> {
    let packet = Packet::parse(datagram).expect("a sound packet");
    let mut header = Header::read(packet.header());
    change(&mut header);
    let mut out = Vec::new();
    wire::emit(&mut out, &header, &[packet.payload()]);
    out
}

fn refusal(request: &Header, op: Op, code: Code) -> Vec<u8> {
    let (op, code) = (op.reply() as u8, code as u8);
    let mut out = Vec::new();
    wire::emit(&mut out, &Header { op, code, flags: 0, key_len: 0, count: 0, ..*request }, &[]);
    out
}

#[test]
fn every_request_goes_to_the_nodes_that_it_is_for_and_none_to_the_switch() {
    for mut world in [World::by_client(), World::by_coordinators()] {
        for n in 0..KEYS {
            world.get(n);
            world.put(n, &n.to_be_bytes());
        }
        assert_eq!(world.past, 2 * KEYS);
        world.scan(None, false);
        assert!(world.past >= 2 * KEYS + 8, "a piece for each partition");
        world.scan(Some(30), false);
        world.scan(Some(70), true);
        let key = key(3);
        let keys: [&[u8]; 1] = [&key];
        assert!(matches!(world.ask(Request::Mdel { keys: &keys, within: None }), Reply::Mdel(_)));
        assert_eq!(world.by_service, 0);
        assert_eq!(world.client.counters().retransmits, 0);
        assert!(!world.client.wants_routes());
    }
}

#[test]
fn whoever_goes_by_an_old_map_asks_by_the_service_address_until_there_is_another() {
    let mut world = World::by_client();
    world.split();
    let before = world.now;
    world.get(7);
    assert!(world.client.wants_routes());
    assert_eq!((world.past, world.by_service), (1, 1), "it was told, and went on at once");
    assert!(world.now < before + HOP * 5, "nothing was waited for");
    world.put(8, b"new");
    world.scan(None, false);
    assert_eq!(world.past, 1, "one node's word is enough");
    world.install();
    assert!(!world.client.wants_routes());
    let by_service = world.by_service;
    for n in 0..KEYS {
        world.get(n);
        world.put(n, b"newer");
    }
    world.scan(None, true);
    assert_eq!(world.by_service, by_service);
}

#[test]
fn a_scan_finds_its_way_by_an_old_map_too() {
    let mut world = World::by_client();
    world.split();
    world.scan(None, false);
    assert!(world.client.wants_routes());
    assert!(world.by_service > 0);
}

#[test]
fn an_answer_that_passed_the_switch_tells_that_a_map_is_old() {
    let mut world = World::by_client();
    // The only thing that the client hears of the split is where its key was found.
    world.hot.insert(key(7));
    world.get(7);
    assert!(!world.client.wants_routes());
    world.map.partitions.iter_mut().for_each(|it| it.epoch = Epoch(2));
    world.dead = world.map.partitions.iter().find(|it| it.holds(at(7))).map(|it| it.chain[1].0);
    world.get(7);
    assert!(world.client.wants_routes(), "silence said nothing, and the switch's answer did");
}

fn at(n: u64) -> Match {
    range_keyspace(b"").match_value(&key(n))
}

#[test]
fn hot_keys_are_asked_for_by_the_service_address_and_the_others_are_not() {
    for mut world in [World::by_client(), World::by_coordinators()] {
        world.hot.insert(key(5));
        for _ in 0..3 {
            world.get(5);
            world.put(5, b"hot");
            world.get(6);
        }
        assert_eq!((world.by_service, world.past), (6, 9));
        assert!(!world.client.wants_routes(), "a key is hot by any map");
    }
}

#[test]
fn a_coordinator_whose_map_is_old_says_so_and_delays_nobody() {
    let mut world = World::by_coordinators();
    world.split();
    for n in 0..10 {
        world.get(n);
        world.put(n, b"value");
    }
    assert!(world.coordinators.iter().any(Coordinator::wants_map));
    assert_eq!(world.by_service, 20);
    let map = world.map.clone();
    world.coordinators.iter_mut().for_each(|coordinator| coordinator.install(&map));
    world.get(3);
    world.scan(None, false);
    assert!(!world.coordinators.iter().any(Coordinator::wants_map));
    assert_eq!(world.by_service, 20);
}

#[test]
fn what_a_dead_node_or_coordinator_does_not_answer_the_switch_does() {
    let mut world = World::by_client();
    world.dead = Some(1);
    (0..KEYS).for_each(|n| world.get(n));
    assert!(world.by_service > 0);
    assert_eq!(world.client.counters().moves, 0, "a node's silence is not the switch's");
}
