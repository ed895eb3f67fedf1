//! Multigets that no switch takes apart: the client does, or a coordinator.

#[cfg(test)]
mod assisted;
#[cfg(test)]
mod past;
mod support;

use client::{
    Client, ClientConfig, Coordination, Coordinator, Outcome, Reply, Request, Routes, Value,
};
use cluster::{Epoch, Keyspace, Map, Match, NodeId, NodeSpec, Partition, PartitionId};
use machine::{Instant, Rng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use support::{Cluster, Whims, range_keyspace};
use wire::{Body, Code, Endpoint, Fields as _, Header, Op, Packet, Revision, hop_flag};

const CLIENT: Endpoint = Endpoint { addr: [1; 16], port: 5000 };
const COORDINATOR: Endpoint = Endpoint { addr: [1; 16], port: 6000 };
const SERVICE: Endpoint = Endpoint { addr: [1; 16], port: 7700 };
const START: Instant = Instant(1_000_000_000_000);
const MS: Duration = Duration::from_millis(1);

fn node(id: u16) -> Endpoint {
    Endpoint { addr: [2; 16], port: 8000 + 10 * id }
}

/// Eight equal partitions dealt to three nodes, from `first` on.
fn map(keyspace: &Keyspace, first: u16) -> Map {
    let nodes = (0..3).map(|id| NodeSpec { id: NodeId(id), endpoint: node(id), shards: 2 });
    let share = 1u128 << 125;
    let partitions = (0..8u16).map(|n| Partition {
        id: PartitionId(n.into()),
        keyspace: keyspace.id,
        first: Match(u128::from(n) * share),
        last: Match(u128::from(n) * share + (share - 1)),
        epoch: Epoch(1),
        chain: vec![NodeId((n + first) % 3)],
        open: true,
        ..Partition::default()
    });
    Map {
        revision: Revision::new(1),
        nodes: nodes.collect(),
        keyspaces: vec![keyspace.clone()],
        partitions: partitions.collect(),
        ..Map::default()
    }
}

/// The nodes: each answers for keys of its partitions, and says of others that they are not.
struct Nodes {
    map: Map,
    cluster: Cluster,
    asked: u64,
}

impl Nodes {
    fn answer(&mut self, to: Endpoint, datagram: &[u8]) -> Vec<Vec<u8>> {
        let packet = Packet::parse(datagram).expect("a sound packet");
        let header = Header::read(packet.header());
        assert_eq!((header.op, header.hop_flags), (Op::Mget as u8, hop_flag::DIRECT));
        assert_eq!((header.chain_len, header.chain_pos), (1, 0));
        let id = u16::from_be_bytes([header.chain[0], header.chain[1]]);
        assert!(to.port == node(id).port || to.port == node(id).port + 1);
        self.asked += 1;
        let Ok(Body::Mget(keys)) = packet.body() else { panic!("no keys") };
        let mine = |at: u128| {
            let partition = self.map.partitions.iter().find(|it| it.holds(Match(at)));
            let partition = partition.expect("partitions leave no gap");
            let spec = self.map.nodes.iter().find(|it| Some(it.id) == partition.tail());
            spec.expect("a known node").endpoint_of(partition.id) == to
        };
        let mut wanted = keys.iter().enumerate().filter(|(n, _)| header.bitmap & (1 << n) != 0);
        if wanted.all(|(_, key)| mine(key.match_value)) {
            return self.cluster.answer(datagram);
        }
        let op = Op::MgetReply as u8;
        let code = Code::NotOwner as u8;
        let mut out = Vec::new();
        wire::emit(&mut out, &Header { op, code, flags: 0, key_len: 0, count: 0, ..header }, &[]);
        vec![out]
    }
}

/// Everything between a client and its nodes, with loss.
struct World {
    client: Client,
    coordinator: Coordinator,
    nodes: Nodes,
    keyspace: Arc<Keyspace>,
    keys: Vec<Vec<u8>>,
    rng: Rng,
    now: Instant,
    /// Where to, where from, what.
    on_the_way: BTreeMap<(Instant, u64), (Endpoint, Endpoint, Vec<u8>)>,
    number: u64,
    lose: u64,
    /// Datagrams that were sent to the switch.
    by_service: u64,
}

impl World {
    fn new(coordination: impl FnOnce(&Map) -> Coordination) -> Self {
        let keyspace = range_keyspace(b"");
        let map = map(&keyspace, 0);
        let mut cluster = Cluster::new(keyspace.clone(), 1, Whims::default(), Rng::new(1));
        let keys: Vec<Vec<u8>> = (0..500).map(|n| machine::mix(n).to_be_bytes().to_vec()).collect();
        let values = keys.iter().step_by(2);
        cluster.data = values.map(|key| (key.clone(), Some(key.repeat(11)))).collect();
        let mut config = ClientConfig::new(SERVICE, 77);
        config.coordination = coordination(&map);
        let mut coordinator = Coordinator::new(COORDINATOR, SERVICE, 78, Rng::new(2));
        coordinator.install(&map);
        Self {
            client: Client::new(config, Rng::new(1)),
            coordinator,
            nodes: Nodes { map, cluster, asked: 0 },
            keyspace: Arc::new(keyspace),
            keys,
            rng: Rng::new(3),
            now: START,
            on_the_way: BTreeMap::new(),
            number: 0,
            lose: 0,
            by_service: 0,
        }
    }

    fn send(&mut self, to: Endpoint, from: Endpoint, datagram: Vec<u8>) {
        self.by_service += u64::from(to == SERVICE);
        self.number += 1;
        if !self.rng.chance(self.lose, 100) {
            let at = self.now + MS / 10;
            self.on_the_way.insert((at, self.number), (to, from, datagram));
        }
    }

    fn mget(&mut self) -> Vec<Outcome<Option<Value>>> {
        let keys: Vec<&[u8]> = self.keys.iter().map(Vec::as_slice).collect();
        let request = Request::Mget { keys: &keys, within: None };
        self.client.start(self.now, &self.keyspace, request).expect("a sound request");
        loop {
            while let Some(sent) = self.client.poll_transmit() {
                let (to, datagram) = (sent.to, sent.payload.to_vec());
                self.send(to, CLIENT, datagram);
            }
            while let Some(sent) = self.coordinator.poll_transmit() {
                let (to, datagram) = (sent.to, sent.payload.to_vec());
                self.send(to, COORDINATOR, datagram);
            }
            if let Some((_, outcome)) = self.client.poll_outcome() {
                let Outcome::Done(Reply::Mget(outcomes)) = outcome else { panic!("{outcome:?}") };
                return outcomes;
            }
            self.step();
        }
    }

    fn step(&mut self) {
        let timeouts = [self.client.poll_timeout(), self.coordinator.poll_timeout()];
        let timeout = timeouts.into_iter().flatten().min().expect("something waits");
        let Some(entry) = self.on_the_way.first_entry().filter(|it| it.key().0 <= timeout) else {
            self.now = self.now.max(timeout);
            self.client.handle_timeout(self.now);
            self.coordinator.handle_timeout(self.now);
            return;
        };
        let ((at, _), (to, from, datagram)) = entry.remove_entry();
        self.now = self.now.max(at);
        if to == CLIENT {
            self.client.handle_packet(self.now, from, &datagram);
        } else if to == SERVICE {
            for reply in self.nodes.cluster.answer(&datagram) {
                self.send(from, to, reply);
            }
        } else if to == COORDINATOR {
            self.coordinator.handle_packet(self.now, from, &datagram);
        } else {
            let header = Header::read(Packet::parse(&datagram).expect("a packet").header());
            let back = Endpoint { addr: header.reply_addr, port: header.reply_port };
            assert_eq!(back, from, "the answer goes to whoever asks");
            for reply in self.nodes.answer(to, &datagram) {
                self.send(back, to, reply);
            }
        }
    }

    fn check(&self, outcomes: &[Outcome<Option<Value>>]) {
        assert_eq!(outcomes.len(), self.keys.len());
        for (key, outcome) in self.keys.iter().zip(outcomes) {
            let Outcome::Done(found) = outcome else { panic!("{outcome:?}") };
            let wanted = self.nodes.cluster.data.get(key).cloned().flatten();
            assert_eq!(found.as_ref().map(|it| it.value.clone()), wanted);
        }
    }
}

fn by_client(map: &Map) -> Coordination {
    Coordination::Client(Arc::new(Routes::new(map, CLIENT)))
}

fn by_coordinator(_: &Map) -> Coordination {
    Coordination::Coordinators(Arc::new([COORDINATOR]))
}

#[test]
fn a_client_sends_each_node_its_own_keys_in_full_datagrams() {
    let mut world = World::new(by_client);
    let outcomes = world.mget();
    world.check(&outcomes);
    // Three nodes with two shards: the last datagram for each need not be full.
    assert!(world.nodes.asked <= 500 / 32 + 6, "{}", world.nodes.asked);
    assert_eq!(world.client.counters().retransmits, 0);
    assert_eq!(world.client.counters().datagrams, world.nodes.asked);
    assert_eq!(world.by_service, 0, "no switch has a part in it");
}

#[test]
fn a_client_whose_map_is_old_goes_by_the_new_one_as_soon_as_it_has_it() {
    let mut world = World::new(by_client);
    world.nodes.map = map(&world.keyspace, 1);
    let directory = Arc::new(Routes::new(&world.nodes.map, CLIENT));
    let keys: Vec<&[u8]> = world.keys.iter().map(Vec::as_slice).collect();
    let request = Request::Mget { keys: &keys, within: None };
    world.client.start(world.now, &world.keyspace, request).expect("a sound request");
    // The first datagrams go by the old map. No node owns their keys any more.
    let mut asked = Vec::new();
    while let Some(sent) = world.client.poll_transmit() {
        asked.push((sent.to, sent.payload.to_vec()));
    }
    for (to, datagram) in asked {
        for reply in world.nodes.answer(to, &datagram) {
            assert_eq!(Packet::parse(&reply).unwrap().header().code(), Code::NotOwner as u8);
            world.client.handle_packet(world.now, to, &reply);
        }
    }
    world.client.coordinate(Coordination::Client(directory));
    assert!(!world.client.wants_routes());
    let outcomes = world.mget();
    world.check(&outcomes);
    let rest = world.client.poll_outcome();
    assert!(rest.is_none());
    // Only what was dealt before it had the map.
    assert!(world.by_service <= 8, "{}", world.by_service);
}

#[test]
fn a_coordinator_answers_whole_multigets() {
    for lose in [0, 20] {
        let mut world = World::new(by_coordinator);
        world.lose = lose;
        let outcomes = world.mget();
        world.check(&outcomes);
        let sent = world.client.counters().datagrams;
        assert!(lose > 0 || sent == 500u64.div_ceil(32), "{sent}");
    }
}

#[test]
fn lost_datagrams_are_asked_for_again_past_the_switch_too() {
    let mut world = World::new(by_client);
    world.lose = 20;
    let outcomes = world.mget();
    world.check(&outcomes);
    assert!(world.client.counters().retransmits > 0);
    assert_eq!(world.by_service, 0);
    let found: BTreeSet<bool> = outcomes.iter().map(|it| *it == Outcome::Done(None)).collect();
    assert_eq!(found.len(), 2, "some keys are there and some are not");
}
