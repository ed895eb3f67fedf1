//! ReplicaRecords that are lost, and what was held there: forgotten in pieces, whatever happens
//! meanwhile.

use super::*;
use crate::engine::{Area, Engine as _, KeyRef, Record};
use cluster::NodeReport;
use wire::{Revision, Version};

const LOST: PartitionId = PartitionId(1);
const KEPT: PartitionId = PartitionId(2);
/// Match values of the one end before it, those of the other begin with it.
const MIDDLE: u8 = 0x80;
const RECORDS: u32 = 1_000;
const PIECES: usize = 4;

/// A node by itself, and the map that it is to follow.
struct World {
    now: Instant,
    map: Map,
    node: Option<Node<Noted>>,
    seq: u64,
}

impl World {
    /// It has a replica record in both partitions, and holds a lot in one and a record in the
    /// other.
    pub(super) fn new() -> Self {
        let mut map = Chain::new(2).map;
        let mut kept = map.partitions[0].clone();
        kept.chain.truncate(1);
        kept.since.truncate(1);
        let mut lost = kept.clone();
        (kept.id, kept.first) = (KEPT, Match(u128::from(MIDDLE) << 120));
        (lost.id, lost.last) = (LOST, Match(kept.first.0 - 1));
        map.partitions = vec![lost, kept];
        map.check().unwrap();
        let engine = Noted::new(0);
        let mut world = Self { now: Instant::from_unix_ms(1_000_000), map, node: None, seq: 0 };
        world.start(engine);
        world.follow();
        for n in 0..RECORDS {
            assert_eq!(world.ask(Op::Put, &n.to_be_bytes()), Code::Ok);
        }
        assert_eq!(world.ask(Op::Put, &[MIDDLE]), Code::Ok);
        world
    }

    fn start(&mut self, engine: Noted) {
        self.node = Some(Node::new(config(0, 0), engine, self.now));
    }

    fn restart(&mut self) {
        let engine = self.node.take().unwrap().into_engine();
        self.start(engine);
    }

    fn node(&mut self) -> &mut Node<Noted> {
        self.node.as_mut().unwrap()
    }

    /// Gives it the map and a lease, and lets that become durable.
    fn follow(&mut self) {
        let (now, revision) = (self.now, self.map.revision);
        let assignment = self.map.assignment(NodeId(0), StoreId(0), port(SWITCH));
        let lease = Lease {
            cluster: cluster::ClusterId(1),
            incarnation: Incarnation(0),
            revision,
            from: now,
            duration_ms: 1 << 40,
        };
        self.node().install(now, &assignment);
        self.node().renew(&lease);
        self.node().flush().unwrap();
    }

    /// ReplicaRecords somebody in the partition that was lost or is to be.
    fn replica_record(&mut self, id: u16) {
        self.map.revision = self.map.revision.next(0);
        let lost = &mut self.map.partitions[0];
        lost.epoch.0 += 1;
        (lost.chain, lost.since) = (vec![NodeId(id)], vec![self.map.revision]);
        self.map.check().unwrap();
    }

    /// Lets it do what it wants to do next; says how much later that is.
    fn turn(&mut self) -> Duration {
        let at = self.node().poll_timeout().unwrap();
        let waited = at.since(self.now);
        self.now = self.now.max(at);
        let now = self.now;
        self.node().handle_timeout(now);
        self.node().flush().unwrap();
        waited
    }

    /// Lets it do all that it still has to.
    fn live(&mut self) {
        for _ in 0..100 {
            self.turn();
        }
    }

    /// What it answers to a request by the map.
    fn ask(&mut self, op: Op, key: &[u8]) -> Code {
        self.seq += 1;
        let keyspace = &self.map.keyspaces[0];
        let at = keyspace.match_value(key);
        let partition = self.map.partitions.iter().find(|p| p.holds(at)).unwrap();
        let mut header = Header {
            partition: partition.id.0,
            epoch: partition.epoch.0,
            reply_addr: [9; 16],
            reply_port: 9,
            match_value: at.0,
            keyhash: keyspace.keyhash(key),
            op: op as u8,
            keyspace: KS.0,
            key_len: u16::try_from(key.len()).unwrap(),
            client: CLIENT,
            seq: self.seq,
            ..Header::default()
        };
        header.set_chain(partition.chain.iter().map(|id| id.0));
        let put = PutBody { expiry_ms: 0 }.to_bytes();
        let parts: &[&[u8]] = if op == Op::Put { &[&put, key, b"value"] } else { &[key] };
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, parts);
        let now = self.now;
        self.node().handle_packet(now, port(SWITCH), 0, &datagram);
        self.node().flush().unwrap();
        let reply = self.node().poll_transmit().expect("it answers at once");
        let header = Header::read(Packet::parse(reply.payload).unwrap().header());
        Code::from_wire(header.code).unwrap()
    }

    fn report(&mut self) -> NodeReport {
        let now = self.now;
        self.node().report(now)
    }

    fn vacating(&mut self) -> Vec<PartitionId> {
        self.report().vacating
    }

    fn pieces(&mut self) -> Vec<usize> {
        self.node().engine().pieces.clone()
    }

    /// It has forgotten what it held of the one partition, and of that alone.
    fn assert_forgotten(&mut self) {
        assert_eq!(self.vacating(), []);
        assert_eq!(self.node().engine().len(), 1);
        assert_eq!(self.ask(Op::Get, &[MIDDLE]), Code::Ok);
        let pieces = self.pieces().len();
        self.live();
        self.restart();
        self.follow();
        self.live();
        assert_eq!(self.pieces().len(), pieces, "it does not forget twice");
    }
}

#[test]
fn what_was_held_is_forgotten_in_pieces_and_another_partition_is_served_meanwhile() {
    let mut world = World::new();
    world.replica_record(1);
    world.follow();
    assert_eq!((world.vacating(), world.pieces().len()), (vec![LOST], 0));
    assert_eq!(world.ask(Op::Get, &[0; 4]), Code::NotOwner);
    let mut turns = 0;
    while world.vacating() == [LOST] {
        assert_eq!(world.ask(Op::Get, &[MIDDLE]), Code::Ok);
        assert_eq!(world.ask(Op::Put, &[MIDDLE]), Code::Ok);
        let waited = world.turn();
        assert!(waited <= 5 * MS, "{waited:?}");
        turns += 1;
        assert!(turns < 100, "it comes to an end");
    }
    let pieces = world.pieces();
    assert_eq!(pieces.len(), PIECES);
    assert!(pieces.iter().all(|at_most| *at_most == 256), "{pieces:?}");
    world.assert_forgotten();
}

#[test]
fn nothing_is_forgotten_before_it_is_durable_why_and_no_end_is_told_before_it_is_durable() {
    let mut world = World::new();
    world.replica_record(1);
    let now = world.now;
    let assignment = world.map.assignment(NodeId(0), StoreId(0), port(SWITCH));
    world.node().install(now, &assignment);
    for ms in 1..100 {
        world.node().handle_timeout(now + ms * MS);
    }
    assert!(world.pieces().is_empty());
    world.node().flush().unwrap();
    world.now = now + 100 * MS;
    for piece in 1..=PIECES {
        assert_eq!(world.vacating(), [LOST]);
        world.now = world.now + 5 * MS;
        let now = world.now;
        world.node().handle_timeout(now);
        assert_eq!((world.pieces().len(), world.vacating()), (piece, vec![LOST]));
        world.node().flush().unwrap();
    }
    assert_eq!(world.vacating(), []);
}

#[test]
fn a_node_that_is_started_anew_in_the_middle_forgets_again() {
    let mut world = World::new();
    world.replica_record(1);
    world.follow();
    while world.pieces().len() < 2 {
        world.turn();
    }
    // It stopped with something left: what a durable engine would still show of the rest.
    let engine = world.node.as_mut().unwrap().engine_mut();
    let area = Area {
        keyspace: KS,
        partition: LOST,
        ordered: true,
        first: Match::MIN,
        last: world.map.partitions[0].last,
    };
    while engine.memory.clear_on(&area, 1).is_break() {}
    let at = KeyRef {
        keyspace: KS,
        partition: LOST,
        ordered: true,
        match_value: Match(0),
        keyhash: 0,
        key: b"",
    };
    engine.write(
        &at,
        &Record { version: Version::new(1), expiry_ms: 0, tombstone: false, value: b"" },
    );
    world.restart();
    assert_eq!((world.report().revision, world.vacating()), (Revision::NONE, vec![]));
    world.follow();
    assert_eq!(world.vacating(), [LOST], "its replica_record was still on record");
    while world.vacating() == [LOST] {
        world.turn();
    }
    world.assert_forgotten();
}

#[test]
fn a_node_that_is_seated_anew_in_the_middle_forgets_the_rest_first() {
    let mut world = World::new();
    world.replica_record(1);
    world.follow();
    while world.pieces().is_empty() {
        world.turn();
    }
    world.replica_record(0);
    world.follow();
    assert_eq!((world.vacating(), world.pieces()), (vec![], vec![256, usize::MAX]));
    assert_eq!(world.node().engine().len(), 1);
    for n in 0..RECORDS {
        assert_eq!(world.ask(Op::Get, &n.to_be_bytes()), Code::NotFound);
    }
    assert_eq!(world.ask(Op::Put, &[0; 4]), Code::Ok);
    world.live();
    assert_eq!(world.ask(Op::Get, &[0; 4]), Code::Ok, "what came after stays");
    assert_eq!(world.pieces().len(), 2);
}
