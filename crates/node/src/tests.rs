//! Scripts against a chain of three nodes on a network that does what it is told.

mod batch;
mod directory;
mod hot;
mod reconfigure;
mod trips;
mod vacating;

use crate::engine::memory::MemoryEngine;
use crate::{Node, NodeConfig};
use cluster::{
    Assignment, ClusterId, Epoch, HotPolicy, Keyspace, KeyspaceId, KeyspaceKind, Lease, Life, Map,
    Match, NodeId, NodeSpec, Partition, PartitionId, StoreId,
};
use machine::Instant;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use wire::{
    Body, CasBody, Code, DropReason, Endpoint, Header, IncrBody, Op, Packet, PutBody, RangeBody,
    flag,
};

const CLIENT: u64 = 77;
const MS: Duration = Duration::from_millis(1);
/// Requests per second that nodes say they can serve.
const RATE: u32 = 70_000;

fn port(port: u16) -> Endpoint {
    Endpoint { addr: [1; 16], port }
}

const SWITCH: u16 = 1;
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

struct Chain {
    now: Instant,
    map: Map,
    nodes: Vec<Node<MemoryEngine>>,
    /// Datagrams between nodes that wait to be delivered: from, to, bytes.
    wires: VecDeque<(Endpoint, Endpoint, Vec<u8>)>,
    replies: Vec<Reply>,
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
            revision: 1,
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
            }],
            partitions: vec![Partition {
                id: PartitionId(1),
                keyspace: KS,
                first: Match::MIN,
                last: Match::MAX,
                epoch: Epoch(4),
                chain: nodes.iter().map(|n| n.id).collect(),
                since: nodes.iter().map(|_| 1).collect(),
                joining: false,
                open: true,
            }],
            nodes,
        };
        map.check().unwrap();
        let now = Instant::from_unix_ms(1_000_000);
        let (shard, shards, rate) = (0, 1, RATE);
        let config = |id: u16| NodeConfig { shard, shards, life: Life(id.into()), rate };
        let mut chain = Self {
            now,
            nodes: (0..count)
                .map(|id| Node::new(config(id), MemoryEngine::new(StoreId(id.into())), now))
                .collect(),
            map,
            wires: VecDeque::new(),
            replies: Vec::new(),
            seq: 0,
            lag: 0,
        };
        chain.install();
        chain
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
        node.renew(&Lease { life: Life(id.into()), revision, from: now, duration_ms: 1 << 40 });
        self.drain(index);
    }

    /// A header as the switch stamps it.
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
        if op.is_write() {
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
            assert_eq!((header.client, header.reply_port), (CLIENT, 9));
            self.replies.push(Reply {
                op: packet.op(),
                code: Code::from_wire(header.code).unwrap(),
                version: header.object_version,
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
        let write = Op::from_wire(header.op).unwrap().is_write();
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
        (reply.code == Code::Ok).then(|| reply.payload[8..].to_vec())
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
fn a_retry_is_answered_and_not_applied() {
    let mut chain = Chain::new(3);
    let seq = chain.put(b"a", b"1");
    chain.lag = 1; // The client has not heard of the first one yet.
    chain.put_again(seq, b"a", b"1", 0);
    chain.settle();
    chain.only_reply();
    chain.put(b"a", b"2");
    chain.settle();
    chain.only_reply();
    chain.put_again(seq, b"a", b"1", 0);
    chain.settle();
    assert_eq!(chain.only_reply().version, 1, "the first outcome is told again");
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"2"[..]));
    assert_eq!(chain.nodes[0].counters().duplicates, 2);
}

#[test]
fn a_request_below_the_low_water_mark_is_dropped() {
    let mut chain = Chain::new(3);
    for value in [b"1", b"2", b"3"] {
        chain.put(b"a", value);
        chain.settle();
    }
    chain.replies.clear();
    chain.put_again(1, b"a", b"1", 0);
    chain.settle();
    assert!(chain.replies.is_empty());
    assert_eq!(chain.nodes[0].counters().dropped(DropReason::StaleRequest), 1);
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"3"[..]));
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
fn a_superseded_write_is_answered_and_changes_nothing() {
    let mut chain = Chain::new(2);
    chain.put(b"a", b"old");
    chain.put(b"a", b"new");
    chain.deliver_wire(1); // The newer one arrives first.
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"new"[..]));
    chain.settle();
    assert_eq!(chain.replies.iter().map(|r| r.version).collect::<Vec<_>>(), [2, 1]);
    chain.replies.clear();
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"new"[..]));
    assert_eq!(chain.nodes[1].counters().superseded, 1);
}

#[test]
fn a_read_modify_write_waits_for_its_base() {
    let mut chain = Chain::new(2);
    chain.incr(b"n", 5);
    chain.incr(b"n", 2);
    chain.deliver_wire(1);
    assert_eq!(chain.nodes[1].counters().dropped(DropReason::OutOfOrder), 1);
    assert_eq!(chain.get(b"n"), None, "5 + 2 must not be seen while 5 can still be lost");
    chain.settle();
    chain.pass(Duration::from_millis(500));
    chain.settle();
    assert_eq!(chain.get(b"n").as_deref(), Some(&b"7"[..]));
}

#[test]
fn incr_refuses_what_is_no_number_and_says_when_it_overflows() {
    let mut chain = Chain::new(3);
    chain.put(b"text", b"x1");
    chain.settle();
    chain.replies.clear();
    chain.incr(b"text", 1);
    chain.settle();
    assert_eq!(chain.only_reply().code, Code::NotANumber);
    chain.put(b"max", i64::MAX.to_string().as_bytes());
    chain.settle();
    chain.replies.clear();
    chain.incr(b"max", 1);
    chain.settle();
    assert_eq!(chain.only_reply().code, Code::Overflow);
    chain.incr(b"new", -3);
    chain.settle();
    assert_eq!(chain.only_reply().payload, (-3i64).to_be_bytes());
}

#[test]
fn cas_compares_versions_or_values() {
    let mut chain = Chain::new(3);
    let cas = |chain: &mut Chain, flags, expect_version, expect: &[u8], value: &[u8]| {
        let seq = chain.next();
        let header = Header { flags, ..chain.stamped(Op::Cas, b"c", seq) };
        let expect_len = u16::try_from(expect.len()).unwrap();
        let fixed = CasBody { expiry_ms: 0, expect_version, expect_len };
        chain.send(&header, &[&fixed.to_bytes(), b"c", expect, value]);
        chain.settle();
        let reply = chain.only_reply();
        (reply.code, reply.version)
    };
    assert_eq!(cas(&mut chain, 0, 5, b"", b"x"), (Code::CasMismatch, 0));
    let (code, version) = cas(&mut chain, 0, 0, b"", b"one");
    assert_eq!(code, Code::Ok);
    assert_eq!(cas(&mut chain, 0, 0, b"", b"x"), (Code::CasMismatch, version));
    assert_eq!(cas(&mut chain, flag::CAS_VALUE, 0, b"two", b"x"), (Code::CasMismatch, version));
    let (code, _) = cas(&mut chain, flag::CAS_VALUE, 0, b"one", b"two");
    assert_eq!(code, Code::Ok);
    assert_eq!(chain.get(b"c").as_deref(), Some(&b"two"[..]));
}

#[test]
fn a_cas_deletes_or_keeps_the_value_that_it_expects() {
    let mut chain = Chain::new(3);
    let cas = |chain: &mut Chain, flags, expiry_ms, expect_version, expect: &[u8]| {
        let seq = chain.next();
        let header = Header { flags, ..chain.stamped(Op::Cas, b"c", seq) };
        let expect_len = u16::try_from(expect.len()).unwrap();
        let fixed = CasBody { expiry_ms, expect_version, expect_len };
        chain.send(&header, &[&fixed.to_bytes(), b"c", expect]);
        chain.settle();
        let reply = chain.only_reply();
        (reply.code, reply.version)
    };
    let (delete, keep) = (flag::CAS_DELETE, flag::CAS_KEEP_VALUE);
    assert_eq!(cas(&mut chain, delete, 0, 7, b""), (Code::CasMismatch, 0), "there is nothing");
    assert_eq!(cas(&mut chain, delete, 0, 0, b"").0, Code::BadRequest, "of nothing");
    assert_eq!(cas(&mut chain, keep, 0, 0, b"").0, Code::BadRequest, "of nothing");
    chain.put(b"c", b"one");
    chain.settle();
    let first = chain.only_reply().version;
    let far = chain.now.unix_ms() + 3_600_000;
    let (code, touched) = cas(&mut chain, keep, far, first, b"");
    assert!(code == Code::Ok && touched > first, "a touch is a write");
    assert_eq!(chain.get(b"c").as_deref(), Some(&b"one"[..]));
    assert_eq!(cas(&mut chain, delete, 0, first, b""), (Code::CasMismatch, touched));
    let by_value = delete | flag::CAS_VALUE;
    assert_eq!(cas(&mut chain, by_value, 0, 0, b"two"), (Code::CasMismatch, touched));
    assert_eq!(cas(&mut chain, by_value | keep, 0, 0, b"one").0, Code::BadRequest, "not both");
    let (code, deleted) = cas(&mut chain, by_value, 0, 0, b"one");
    assert!(code == Code::Ok && deleted > touched);
    assert_eq!(chain.get(b"c"), None);
    let again = cas(&mut chain, 0, 0, deleted, b"");
    assert_eq!(again, (Code::CasMismatch, 0), "a tombstone is no value");
    let (code, _) = cas(&mut chain, 0, 0, 0, b"");
    assert_eq!(code, Code::Ok, "that there is no value holds whatever the tombstone is");
    assert_eq!(chain.get(b"c").as_deref(), Some(&b""[..]));
}

#[test]
fn a_failed_cas_is_answered_only_after_what_it_saw_is_committed() {
    let mut chain = Chain::new(2);
    chain.put(b"c", b"seen");
    let seq = chain.next();
    let header = chain.stamped(Op::Cas, b"c", seq);
    let fixed = CasBody::default();
    chain.send(&header, &[&fixed.to_bytes(), b"c", b"x"]);
    chain.deliver_wire(1); // The CAS overtakes the PUT that it saw.
    assert!(chain.replies.is_empty());
    chain.settle();
    chain.pass(Duration::from_millis(500));
    chain.settle();
    let codes: Vec<_> = chain.replies.iter().map(|r| (r.op, r.code)).collect();
    assert_eq!(codes, [(Op::PutReply, Code::Ok), (Op::CasReply, Code::CasMismatch)]);
}

#[test]
fn a_deleted_key_stays_deleted_after_its_tombstone_is_collected() {
    let mut chain = Chain::new(2);
    chain.put(b"d", b"1");
    let late = chain.wires.front().cloned().unwrap();
    chain.settle();
    chain.del(b"d");
    chain.settle();
    chain.del(b"d");
    chain.settle();
    let codes: Vec<_> = chain.replies.drain(..).map(|r| r.code).collect();
    assert_eq!(codes, [Code::Ok, Code::Ok, Code::NotFound]);
    for _ in 0..70 {
        chain.pass(Duration::from_secs(1));
        chain.settle();
    }
    for node in &chain.nodes {
        assert_eq!(node.counters().collected, 1);
        assert_eq!(crate::engine::Engine::len(node.engine()), 0);
    }
    chain.wires.push_back(late); // A duplicate of the first write, over a minute old.
    chain.settle();
    assert_eq!(chain.get(b"d"), None);
    chain.put(b"d", b"2");
    chain.settle();
    assert_eq!(chain.get(b"d").as_deref(), Some(&b"2"[..]), "later versions are higher still");
}

#[test]
fn an_expired_value_is_not_seen_again_and_removed_when_asked_for() {
    let mut chain = Chain::new(3);
    let at = chain.now.unix_ms() + 50;
    let seq = chain.next();
    chain.put_again(seq, b"e", b"5", at);
    chain.settle();
    chain.replies.clear();
    chain.now = chain.now + 49 * MS;
    assert_eq!(chain.get(b"e").as_deref(), Some(&b"5"[..]));
    chain.now = chain.now + MS;
    assert_eq!(chain.get_code(b"e"), Code::Expiring);
    chain.settle(); // The tail has told the head.
    assert_eq!(chain.get_code(b"e"), Code::NotFound);
    assert_eq!(chain.nodes[0].counters().expired, 1);
    assert_eq!(chain.nodes[1].counters().expired, 0, "only the head expires");
}

#[test]
fn an_expired_value_is_removed_without_anybody_asking() {
    let mut chain = Chain::new(3);
    let at = chain.now.unix_ms() + 50;
    let seq = chain.next();
    chain.put_again(seq, b"e", b"5", at);
    chain.settle();
    chain.pass(Duration::from_millis(100));
    chain.settle();
    assert_eq!(chain.nodes[0].counters().expired, 1);
    assert_eq!(chain.get_code(b"e"), Code::NotFound);
}

#[test]
fn an_update_that_was_in_time_outlives_the_value_it_was_computed_from() {
    let mut chain = Chain::new(2);
    let at = chain.now.unix_ms() + 50;
    let seq = chain.next();
    chain.put_again(seq, b"e", b"5", at);
    chain.settle();
    chain.incr(b"e", 1); // On its way when the value's time comes.
    chain.now = chain.now + 50 * MS;
    assert_eq!(chain.get_code(b"e"), Code::Expiring, "not found would be a lie");
    chain.replies.clear();
    chain.settle();
    assert_eq!(chain.only_reply().payload, 6i64.to_be_bytes());
}

#[test]
fn an_update_after_the_end_of_a_value_does_not_build_on_it() {
    let mut chain = Chain::new(3);
    let at = chain.now.unix_ms() + 50;
    let seq = chain.next();
    chain.put_again(seq, b"e", b"5", at);
    chain.settle();
    chain.replies.clear();
    chain.now = chain.now + 50 * MS;
    chain.incr(b"e", 1);
    chain.settle();
    assert_eq!(chain.only_reply().payload, 1i64.to_be_bytes());
    chain.now = chain.now + 100 * MS;
    assert_eq!(chain.get(b"e").as_deref(), Some(&b"1"[..]), "the new value does not expire");
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

#[test]
fn a_full_queue_says_overloaded_and_records_nothing() {
    let mut chain = Chain::new(2);
    for n in 0..5_000u64 {
        chain.put(format!("k{n}").as_bytes(), b"v");
    }
    assert!(chain.nodes[0].pending() < crate::replica::PENDING_MAX);
    let refused = 5_000 - chain.nodes[0].pending();
    assert_eq!(chain.replies.len(), refused);
    assert!(chain.replies.iter().all(|r| r.code == Code::Overloaded));
    chain.settle();
    assert_eq!(chain.get(b"k4999"), None);
    assert_eq!(chain.get(b"k0").as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_scan_gives_pieces_that_follow_each_other() {
    let mut chain = Chain::new(1);
    for n in 0..100u64 {
        chain.put(format!("k{n:03}").as_bytes(), &[7; 100]);
    }
    chain.replies.clear();
    let mut start = b"k".to_vec();
    let mut flags = flag::END_OPEN;
    let mut keys = Vec::new();
    loop {
        let mut header = Header { flags, ..chain.stamped(Op::Range, &start, 1_000) };
        header.set_match_end(u128::MAX);
        chain.send(&header, &[&RangeBody { limit: 1_000 }.to_bytes(), &start]);
        let seq = chain.replies.len();
        assert_eq!(seq, 1);
        let reply = chain.replies.pop().unwrap();
        let partial = scan_reply(&reply, &mut keys);
        let Some(last) = keys.last().filter(|_| partial).cloned() else { break };
        start = last;
        flags |= flag::START_EXCLUSIVE;
    }
    let want: Vec<_> = (0..100).map(|n| format!("k{n:03}").into_bytes()).collect();
    assert_eq!(keys, want);
}

#[test]
fn a_hash_keyspace_is_scanned_in_the_order_of_match_values() {
    let mut chain = Chain::of(1, KeyspaceKind::Hash);
    for n in 0..100u64 {
        chain.put(format!("k{n:03}").as_bytes(), &[7; 100]);
    }
    chain.settle();
    chain.replies.clear();
    let keyspace = chain.map.keyspaces[0].clone();
    for (extra, pieces) in [(0, 11), (flag::KEYS_ONLY, 3)] {
        let (mut keys, mut start) = (Vec::<Vec<u8>>::new(), Vec::new());
        let mut flags = extra | flag::START_OPEN | flag::END_OPEN;
        for piece in 1.. {
            let mut header = Header { flags, ..chain.stamped(Op::Range, &start, 1_000) };
            header.match_value = if piece == 1 { 0 } else { header.match_value };
            header.set_match_end(u128::MAX);
            chain.send(&header, &[&RangeBody { limit: 1_000 }.to_bytes(), &start]);
            let reply = chain.only_reply();
            let mut rest = &reply.payload[..];
            while let Some((fixed, after)) = wire::RangeEntryBody::split(rest) {
                let (key, after) = after.split_at(usize::from(fixed.key_len));
                assert_eq!(fixed.value_len, if extra == 0 { 100 } else { 0 });
                keys.push(key.to_vec());
                rest = &after[usize::from(fixed.value_len)..];
            }
            if reply.header.flags & flag::PARTIAL == 0 {
                assert!(piece <= pieces, "{piece} pieces");
                break;
            }
            start = keys.last().unwrap().clone();
            flags = extra | flag::START_EXCLUSIVE | flag::END_OPEN;
        }
        let mut want: Vec<_> = (0..100).map(|n| format!("k{n:03}").into_bytes()).collect();
        want.sort_by_key(|key| keyspace.match_value(key));
        assert_eq!(keys, want);
    }
}

#[test]
fn a_count_is_of_the_keys_that_have_a_value() {
    let mut chain = Chain::of(2, KeyspaceKind::Hash);
    for n in 0..1_200u64 {
        chain.put(format!("k{n:04}").as_bytes(), &[7; 10]);
    }
    chain.settle();
    for n in 0..100u64 {
        chain.del(format!("k{n:04}").as_bytes());
    }
    chain.settle();
    chain.replies.clear();
    let (mut keys, mut start, mut pieces) = (0, Vec::new(), 0);
    let mut flags = flag::COUNT_ONLY | flag::START_OPEN | flag::END_OPEN;
    loop {
        let mut header = Header { flags, ..chain.stamped(Op::Range, &start, 1_000) };
        header.match_value = if start.is_empty() { 0 } else { header.match_value };
        header.set_match_end(u128::MAX);
        chain.send(&header, &[&RangeBody { limit: 1 }.to_bytes(), &start]);
        let reply = chain.only_reply();
        pieces += 1;
        assert_ne!(reply.header.flags & flag::COUNT_ONLY, 0);
        let (counted, rest) = wire::RangeCountBody::split(&reply.payload).unwrap();
        keys += counted.keys;
        if reply.header.flags & flag::PARTIAL == 0 {
            assert!(rest.is_empty() && reply.header.count == 0);
            break;
        }
        let (hole, key) = wire::RangeEntryBody::split(rest).unwrap();
        assert_eq!((hole.kind, reply.header.count), (1, 1));
        start = key.to_vec();
        flags = flag::COUNT_ONLY | flag::START_EXCLUSIVE | flag::END_OPEN;
    }
    assert_eq!((keys, pieces), (1_100, 3), "512 records at a time");
}

fn scan_reply(reply: &Reply, keys: &mut Vec<Vec<u8>>) -> bool {
    let mut datagram = Vec::new();
    let mut count = 0;
    let mut rest = &reply.payload[..];
    while let Some((fixed, after)) = wire::RangeEntryBody::split(rest) {
        count += 1;
        rest = &after[usize::from(fixed.key_len) + usize::from(fixed.value_len)..];
    }
    let header = Header { op: Op::RangeReply as u8, count, ..Header::default() };
    wire::emit(&mut datagram, &header, &[&reply.payload]);
    let Body::RangeReply(entries) = Packet::parse(&datagram).unwrap().body().unwrap() else {
        panic!()
    };
    keys.extend(entries.iter().map(|(key, _)| key.to_vec()));
    count < 100 && !entries.iter().any(|(key, _)| key == b"k099")
}
