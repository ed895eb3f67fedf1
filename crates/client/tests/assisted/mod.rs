//! Multigets with hints for a switch that cannot loop over keys.

use crate::support::{Cluster, Whims, range_keyspace};
use client::{Client, ClientConfig, Coordination, Outcome, Reply, Request, Routes};
use cluster::{Epoch, Keyspace, Map, Match, NodeId, NodeSpec, Partition, PartitionId};
use machine::{Instant, Rng};
use std::collections::BTreeSet;
use std::sync::Arc;
use wire::{
    Body, Code, Endpoint, Fields as _, GroupedMget, HEADER_LEN, Header, MGET_GROUPS_MAX, Op,
    Packet, Revision, flag,
};

const SERVICE: Endpoint = Endpoint { addr: [1; 16], port: 7700 };
const START: Instant = Instant(1_000_000_000_000);

/// As many equal partitions (a power of two) as there are nodes, times 4, dealt to these in turn;
/// their ids begin with `first_id`.
fn map(keyspace: &Keyspace, nodes: u16, first_id: u32) -> Map {
    let spec = |id| NodeSpec {
        id: NodeId(id),
        endpoint: Endpoint { addr: [2; 16], port: 8000 + 10 * id },
        shards: 1,
    };
    let count = 4 * nodes;
    let share = u128::MAX / u128::from(count) + 1;
    let partitions = (0..count).map(|n| Partition {
        id: PartitionId(first_id + u32::from(n)),
        keyspace: keyspace.id,
        first: Match(u128::from(n) * share),
        last: Match(u128::from(n) * share + (share - 1)),
        epoch: Epoch(1),
        chain: vec![NodeId(n % nodes)],
        open: true,
        ..Partition::default()
    });
    Map {
        revision: Revision::new(1),
        nodes: (0..nodes).map(spec).collect(),
        keyspaces: vec![keyspace.clone()],
        partitions: partitions.collect(),
        ..Map::default()
    }
}

/// A client with a map, and everything that answers it.
struct World {
    client: Client,
    cluster: Cluster,
    map: Map,
    keyspace: Arc<Keyspace>,
    keys: Vec<Vec<u8>>,
    now: Instant,
}

impl World {
    fn new(nodes: u16, first_id: u32, keys: u64) -> Self {
        let keyspace = range_keyspace(b"");
        let map = map(&keyspace, nodes, first_id);
        let mut cluster = Cluster::new(keyspace.clone(), 1, Whims::default(), Rng::new(1));
        let keys: Vec<Vec<u8>> =
            (0..keys).map(|n| machine::mix(n).to_be_bytes().to_vec()).collect();
        cluster.data = keys.iter().map(|key| (key.clone(), Some(key.clone()))).collect();
        let mut config = ClientConfig::new(SERVICE, 77);
        let directory = Routes::new(&map, Endpoint::default());
        config.coordination = Coordination::Assisted(Arc::new(directory));
        let client = Client::new(config, Rng::new(1));
        Self { client, cluster, map, keyspace: Arc::new(keyspace), keys, now: START }
    }

    fn start(&mut self) {
        let keys: Vec<&[u8]> = self.keys.iter().map(Vec::as_slice).collect();
        let request = Request::Mget { keys: &keys, within: None };
        self.client.start(self.now, &self.keyspace, request).expect("a sound request");
    }

    fn sent(&mut self) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        while let Some(datagram) = self.client.poll_transmit() {
            assert_eq!(datagram.to, SERVICE, "hints are for the switch");
            sent.push(datagram.payload.to_vec());
        }
        sent
    }

    fn answer(&mut self, datagram: &[u8]) {
        for reply in self.cluster.answer(datagram) {
            self.client.handle_packet(self.now, SERVICE, &reply);
        }
    }

    /// Whether all keys have their values.
    fn check(&mut self) {
        let Some((_, Outcome::Done(Reply::Mget(found)))) = self.client.poll_outcome() else {
            panic!("not done")
        };
        let found = found.into_iter().map(|it| it.into_result().unwrap().unwrap().value);
        assert!(found.eq(self.keys.iter().cloned()), "in the order of the request");
    }

    fn node(&self, at: u128) -> NodeId {
        let partition = self.map.partitions.iter().find(|it| it.holds(Match(at)));
        partition.and_then(Partition::tail).expect("partitions leave no gap")
    }

    /// Holds the hints of a datagram against the map; gives the number of groups.
    fn check_hints(&self, datagram: &[u8]) -> usize {
        let packet = Packet::parse(datagram).unwrap();
        let header = packet.header();
        let GroupedMget { ends: all_ends, group, partitions } = GroupedMget::read(header);
        assert_eq!((header.flags(), group), (flag::GROUPED, 0));
        let Ok(Body::Mget(keys)) = packet.body() else { panic!("no keys") };
        let keys: Vec<u128> = keys.iter().map(|key| key.match_value).collect();
        let mut groups = partitions.chunks(2).map(|id| u16::from_be_bytes([id[0], id[1]]));
        let mut group = groups.next().unwrap();
        let mut names = vec![group];
        for (index, at) in keys.iter().enumerate() {
            let named = self.map.partitions.iter().find(|it| it.id.0 == u32::from(group)).unwrap();
            assert_eq!(named.tail(), Some(self.node(*at)), "its group goes to its node");
            let Some(next) = keys.get(index + 1) else { break };
            let ends = all_ends >> index & 1 == 1;
            assert_eq!(ends, self.node(*at) != self.node(*next), "KEYIDX");
            if ends {
                group = groups.next().expect("no more groups than there is room for");
                names.push(group);
            }
        }
        names.len()
    }
}

#[test]
fn keys_stand_by_node_and_the_header_says_where_each_node_ends() {
    for nodes in [1, 4, 8] {
        let mut world = World::new(nodes, 1, 300);
        world.start();
        let mut groups = 0;
        loop {
            let sent = world.sent();
            if sent.is_empty() {
                break;
            }
            for datagram in sent {
                groups += world.check_hints(&datagram);
                world.answer(&datagram);
            }
        }
        world.check();
        // Ten datagrams, and a node more in each than there are nodes.
        assert!(groups < 10 + usize::from(nodes), "{groups}");
        assert_eq!(world.client.counters().datagrams, 300u64.div_ceil(32));
    }
}

#[test]
fn keys_of_a_node_are_not_divided_among_datagrams_if_one_holds_them() {
    for (nodes, keys) in [(8, 100), (4, 100), (8, 31)] {
        let mut world = World::new(nodes, 1, keys);
        world.start();
        let sent = world.sent();
        let groups: usize = sent.iter().map(|datagram| world.check_hints(datagram)).sum();
        assert_eq!(groups, usize::from(nodes), "each node has one part of {keys} keys");
        sent.iter().for_each(|datagram| world.answer(datagram));
        world.check();
    }
}

#[test]
fn a_datagram_has_no_more_groups_than_hints_can_name() {
    let mut world = World::new(64, 1, 30);
    world.start();
    let sent = world.sent();
    assert_eq!(sent.len(), 2, "30 keys are on more than {MGET_GROUPS_MAX} nodes");
    assert_eq!(world.check_hints(&sent[0]), MGET_GROUPS_MAX);
    sent.iter().for_each(|datagram| world.answer(datagram));
    world.check();
}

#[test]
fn what_no_hint_can_name_is_asked_without() {
    let mut world = World::new(4, 70_000, 10);
    world.start();
    let sent = world.sent();
    assert_eq!(sent[0].first_chunk::<HEADER_LEN>().unwrap().flags(), 0);
    world.answer(&sent[0]);
    world.check();
}

#[test]
fn what_is_asked_again_has_no_hints() {
    let mut world = World::new(4, 1, 20);
    world.start();
    let first = world.sent().remove(0);
    let header = Header::read(first.first_chunk().unwrap());
    // A node that the hints led to has none of the keys; of others nothing is heard.
    let bitmap = 0b11;
    let (op, code) = (Op::MgetReply as u8, Code::NotOwner as u8);
    let refusal =
        Header { op, code, flags: 0, key_len: 0, count: 0, bitmap, payload_len: 0, ..header };
    let mut reply = Vec::new();
    wire::emit(&mut reply, &refusal, &[]);
    world.client.handle_packet(world.now, SERVICE, &reply);
    let mut flags = BTreeSet::new();
    while world.client.in_flight() > 0 {
        world.now = world.client.poll_timeout().unwrap();
        world.client.handle_timeout(world.now);
        for datagram in world.sent() {
            flags.insert(datagram.first_chunk::<HEADER_LEN>().unwrap().flags());
            world.answer(&datagram);
        }
        if let Some((_, outcome)) = world.client.poll_outcome() {
            assert!(matches!(outcome, Outcome::Done(_)));
        }
    }
    assert_eq!(flags, BTreeSet::from([0]));
}
