//! Scripts against a chain of three nodes on a network that does what it is told.

mod batch;
mod bounds;
mod clock;
mod content;
mod delegations;
mod directory;
mod early;
mod hot;
mod lending;
mod making;
mod noted;
mod numbers;
mod reconfigure;
mod returning;
mod room;
mod samples;
mod scans;
mod sessions;
mod shares;
mod syncing;
mod updates;
mod vacating;
mod verify;

use crate::{Node, NodeConfig, TrackerConfig};
use cluster::{
    Assignment, ClusterId, Epoch, HotPolicy, Incarnation, Keyspace, KeyspaceId, KeyspaceKind,
    Lease, Map, Match, NodeId, NodeSpec, Partition, PartitionId, Settled, StoreId,
};
use machine::Instant;
use noted::Noted;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use wire::{
    Body, CasBody, Code, DropReason, Endpoint, Header, IncrBody, KeyReply, Op, Packet, PutBody,
    RangeBody, Revision, flag,
};

const CLIENT: u64 = 77;
const MS: Duration = Duration::from_millis(1);
/// Requests per second that nodes say they can serve.
const RATE: u32 = 70_000;

fn port(port: u16) -> Endpoint {
    Endpoint { addr: [1; 16], port }
}

const SWITCH: u16 = 1;
const CACHE: u16 = 50;
const KS: KeyspaceId = KeyspaceId(1);

/// A reply as the client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reply {
    op: Op,
    code: Code,
    version: u64,
    payload: Vec<u8>,
    header: Header,
}

fn config(incarnation: u64, rate: u32) -> NodeConfig {
    let (incarnation, tracker) = (Incarnation(incarnation), TrackerConfig::default());
    NodeConfig { shard: 0, shards: 1, incarnation, rate, tracker }
}

struct Chain {
    now: Instant,
    map: Map,
    nodes: Vec<Node<Noted>>,
    /// Datagrams between nodes that wait to be delivered: from, to, bytes.
    wires: VecDeque<(Endpoint, Endpoint, Vec<u8>)>,
    replies: Vec<Reply>,
    /// What nodes have sent a cache.
    to_cache: Vec<Vec<u8>>,
    seq: u64,
    /// What requests say of how far the client's oldest one is behind.
    lag: u16,
}

impl Chain {
    fn new(count: u16) -> Self {
        Self::of(count, KeyspaceKind::Range { prefix: Vec::new() })
    }

    fn of(count: u16, kind: KeyspaceKind) -> Self {
        let nodes: Vec<_> = (0..count)
            .map(|id| NodeSpec { id: NodeId(id), endpoint: port(100 + id), shards: 1 })
            .collect();
        let map = Map {
            caches: Vec::new(),
            handing_over: false,
            fences: Vec::new(),
            revision: Revision::new(1),
            cluster: ClusterId(1),
            active_switch: 0,
            copy_bytes_per_s: 1 << 30,
            keyspaces: vec![Keyspace {
                id: KS,
                name: "k".into(),
                kind,
                seed: 3,
                replicas: 3,
                hot: HotPolicy::default(),
                content: None,
            }],
            partitions: vec![Partition {
                id: PartitionId(1),
                keyspace: KS,
                first: Match::MIN,
                last: Match::MAX,
                epoch: Epoch(4),
                chain: nodes.iter().map(|n| n.id).collect(),
                since: nodes.iter().map(|_| Revision::new(1)).collect(),
                open: true,
                ..Partition::default()
            }],
            nodes,
        };
        map.check().unwrap();
        let now = Instant::from_unix_ms(1_000_000);
        let mut chain = Self {
            now,
            nodes: (0..count)
                .map(|id| Node::new(config(id.into(), RATE), Noted::new(id), now))
                .collect(),
            map,
            wires: VecDeque::new(),
            replies: Vec::new(),
            to_cache: Vec::new(),
            seq: 0,
            lag: 0,
        };
        chain.install();
        chain
    }

    /// A node ends and starts anew, with what its engine has kept.
    fn restart(&mut self, index: usize) {
        let engine = self.nodes.remove(index).into_engine();
        let node = Node::new(config(index as u64, RATE), engine, self.now);
        self.nodes.insert(index, node);
        self.install_at(index);
    }

    fn install(&mut self) {
        for index in 0..self.nodes.len() {
            self.install_at(index);
        }
    }

    /// Gives a node what the map says, and a lease that outlasts every test.
    fn install_at(&mut self, index: usize) {
        let id = u16::try_from(index).unwrap();
        let (now, revision, store) = (self.now, self.map.revision, StoreId(id.into()));
        let assignment: Assignment = self.map.assignment(NodeId(id), store, port(SWITCH));
        let node = &mut self.nodes[index];
        node.install(now, &assignment);
        let lease = Lease {
            cluster: cluster::ClusterId(1),
            incarnation: Incarnation(id.into()),
            revision,
            from: now,
            duration_ms: 1 << 40,
        };
        node.renew(&lease);
        node.renew_direct(&lease);
        self.drain(index);
    }

    /// A header as the switch grants it.
    fn stamped(&self, op: Op, key: &[u8], seq: u64) -> Header {
        let keyspace = &self.map.keyspaces[0];
        let partition = &self.map.partitions[0];
        let mut header = Header {
            partition: partition.id.0,
            epoch: partition.epoch.0,
            reply_addr: [9; 16],
            reply_port: 9,
            match_value: keyspace.match_value(key).0,
            keyhash: keyspace.keyhash(key),
            op: op as u8,
            keyspace: KS.0,
            key_len: u16::try_from(key.len()).unwrap(),
            client: CLIENT,
            seq,
            lag: self.lag,
            ..Header::default()
        };
        let chain = partition.chain.iter().map(|id| id.0);
        if op.is_for_head() {
            header.set_chain(chain);
        } else {
            header.set_chain(partition.tail().map(|id| id.0));
        }
        header
    }

    fn deliver(&mut self, to: usize, from: Endpoint, datagram: &[u8]) {
        let now = self.now;
        self.nodes[to].handle_packet(now, from, 0, datagram);
        self.drain(to);
    }

    fn drain(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.flush().unwrap();
        let from = self.map.nodes[index].endpoint;
        while let Some(datagram) = node.poll_transmit() {
            if datagram.to == port(CACHE) {
                self.to_cache.push(datagram.payload.to_vec());
                continue;
            }
            if datagram.to != port(SWITCH) {
                self.wires.push_back((from, datagram.to, datagram.payload.to_vec()));
                continue;
            }
            let packet = Packet::parse(datagram.payload).unwrap();
            packet.body().unwrap();
            let header = Header::read(packet.header());
            if header.client == 0 {
                // From node to node: the switch sends it on.
                let to = Endpoint { addr: header.reply_addr, port: header.reply_port };
                self.wires.push_back((port(SWITCH), to, datagram.payload.to_vec()));
                continue;
            }
            assert_eq!(header.reply_port, 9);
            self.replies.push(Reply {
                op: packet.op(),
                code: Code::from_wire(header.code).unwrap(),
                version: KeyReply::of(&header).version.get(),
                payload: packet.payload().to_vec(),
                header,
            });
        }
    }

    fn deliver_wire(&mut self, at: usize) {
        let (from, to, bytes) = self.wires.remove(at).unwrap();
        let index = self.map.nodes.iter().position(|n| n.endpoint == to).unwrap();
        self.deliver(index, from, &bytes);
    }

    /// Delivers everything between nodes until nothing is on the way.
    fn settle(&mut self) {
        while !self.wires.is_empty() {
            self.deliver_wire(0);
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        for index in 0..self.nodes.len() {
            let now = self.now;
            self.nodes[index].handle_timeout(now);
            self.drain(index);
        }
    }

    fn send(&mut self, header: &Header, parts: &[&[u8]]) {
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, header, parts);
        let write = Op::from_wire(header.op).unwrap().is_for_head();
        let partition = &self.map.partitions[0];
        let to = if write { partition.head() } else { partition.tail() };
        self.deliver(usize::from(to.unwrap().0), port(SWITCH), &datagram);
    }

    fn next(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> u64 {
        let seq = self.next();
        self.put_again(seq, key, value, 0);
        seq
    }

    fn put_again(&mut self, seq: u64, key: &[u8], value: &[u8], expiry_ms: u64) {
        let header = self.stamped(Op::Put, key, seq);
        self.send(&header, &[&PutBody { expiry_ms }.to_bytes(), key, value]);
    }

    /// The first write of another client.
    fn put_as(&mut self, client: u64, key: &[u8]) {
        let header = Header { client, ..self.stamped(Op::Put, key, 1) };
        self.send(&header, &[&PutBody { expiry_ms: 0 }.to_bytes(), key, b"v"]);
    }

    fn del(&mut self, key: &[u8]) {
        let seq = self.next();
        let header = self.stamped(Op::Del, key, seq);
        self.send(&header, &[key]);
    }

    fn incr(&mut self, key: &[u8], delta: i64) {
        let seq = self.next();
        let header = self.stamped(Op::Incr, key, seq);
        self.send(&header, &[&IncrBody { delta: delta.cast_unsigned() }.to_bytes(), key]);
    }

    fn get(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let seq = self.next();
        let header = self.stamped(Op::Get, key, seq);
        self.send(&header, &[key]);
        let reply = self.replies.pop().unwrap();
        assert_eq!(reply.op, Op::GetReply);
        (reply.code == Code::Ok).then(|| reply.payload[wire::GetReplyBody::LEN..].to_vec())
    }

    fn get_code(&mut self, key: &[u8]) -> Code {
        let seq = self.next();
        let header = self.stamped(Op::Get, key, seq);
        self.send(&header, &[key]);
        self.replies.pop().unwrap().code
    }

    fn only_reply(&mut self) -> Reply {
        assert_eq!(self.replies.len(), 1, "{:?}", self.replies);
        self.replies.pop().unwrap()
    }
}

#[test]
fn answers_say_what_the_node_can_serve() {
    let mut chain = Chain::new(2);
    chain.put(b"k", b"v");
    chain.run();
    let seq = chain.next();
    let header = chain.stamped(Op::Get, b"k", seq);
    chain.send(&header, &[b"k"]);
    assert_eq!(chain.replies.len(), 2, "of the write and of the read");
    for Reply { header, .. } in &chain.replies {
        let (rate, _) = header.chain.split_first_chunk().unwrap();
        assert_eq!((header.chain_len, u32::from_be_bytes(*rate)), (0, RATE));
    }
}

#[test]
fn a_write_is_answered_by_the_tail_and_read_there() {
    let mut chain = Chain::new(3);
    chain.put(b"a", b"1");
    assert!(chain.replies.is_empty(), "nothing is answered before the tail has it");
    assert_eq!(chain.get(b"a"), None);
    chain.settle();
    let reply = chain.only_reply();
    assert_eq!((reply.op, reply.code, reply.version), (Op::PutReply, Code::Ok, 1));
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"1"[..]));
    assert_eq!(chain.nodes.iter().map(Node::pending).sum::<usize>(), 0);
}

#[test]
fn a_chain_of_one_answers_at_once() {
    let mut chain = Chain::new(1);
    chain.put(b"a", b"1");
    assert_eq!(chain.only_reply().version, 1);
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"1"[..]));
}

#[test]
fn lost_hops_heal() {
    let mut chain = Chain::new(3);
    chain.put(b"a", b"1");
    let mut rng = machine::Rng::new(1);
    let mut rounds = 0;
    while chain.nodes.iter().map(Node::pending).sum::<usize>() > 0 {
        while !chain.wires.is_empty() {
            if rng.chance(1, 2) {
                chain.wires.pop_front();
            } else {
                chain.deliver_wire(0);
            }
        }
        chain.pass(Duration::from_millis(100));
        rounds += 1;
        assert!(rounds < 200, "does not heal");
    }
    assert!(chain.replies.iter().all(|r| r.version == 1) && !chain.replies.is_empty());
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"1"[..]));
    assert!(chain.nodes[0].counters().resends > 0);
}

#[test]
fn members_learn_how_long_their_successor_takes_from_what_they_sent_twice_as_well() {
    for members in [2, 3] {
        let mut chain = Chain::new(members);
        let resends_in = |chain: &mut Chain, ms: u32| {
            let before: u64 = chain.nodes.iter().map(|node| node.counters().resends).sum();
            chain.put(b"a", b"1");
            (0..ms).for_each(|_| chain.pass(MS));
            // Everything has only been late.
            chain.settle();
            chain.nodes.iter().map(|node| node.counters().resends).sum::<u64>() - before
        };
        for _ in 0..20 {
            resends_in(&mut chain, 1);
        }
        assert!(resends_in(&mut chain, 20) > 0, "it was quick");
        for _ in 0..30 {
            resends_in(&mut chain, 40);
        }
        assert_eq!(resends_in(&mut chain, 40), 0, "it is slow now");
    }
}

#[test]
fn what_is_stamped_wrongly_is_not_served() {
    let mut chain = Chain::new(2);
    let header = chain.stamped(Op::Get, b"a", 1);
    let put = PutBody::default().to_bytes();
    let write = chain.stamped(Op::Put, b"a", 2);
    for (header, want) in [
        (Header { epoch: 3, ..header }, Code::StaleEpoch),
        (Header { partition: 9, ..header }, Code::NotOwner),
        (Header { keyspace: 9, ..header }, Code::NotOwner),
        (Header { match_value: 1, ..header }, Code::BadMatch),
        (Header { keyhash: 1, ..header }, Code::BadMatch),
    ] {
        chain.send(&header, &[b"a"]);
        let reply = chain.only_reply();
        assert_eq!(reply.code, want);
    }
    chain.send(&Header { epoch: 5, ..write }, &[&put, b"a", b"v"]);
    assert_eq!(chain.only_reply().code, Code::StaleEpoch);
    chain.send(&Header { chain_len: 1, ..write }, &[&put, b"a", b"v"]);
    assert_eq!(chain.nodes[0].counters().dropped(DropReason::BadChain), 1);
    chain.settle();
    assert_eq!(chain.get(b"a"), None);
}

#[test]
fn chain_messages_are_taken_from_neighbours_only() {
    let mut chain = Chain::new(3);
    chain.put(b"a", b"1");
    let (_, _, bytes) = chain.wires.pop_front().unwrap();
    chain.deliver(1, port(55), &bytes);
    assert_eq!(chain.nodes[1].counters().dropped(DropReason::NotFromMember), 1);
    chain.deliver(2, port(100), &bytes);
    assert_eq!(chain.nodes[2].counters().dropped(DropReason::NotFromMember), 1);
    assert_eq!(chain.get(b"a"), None);
}
