//! The directory of a shard: a node of this build goes on where one of the build that left it has
//! stopped.

use crate::{archive, records};
use cluster::{
    ClusterId, Epoch, HotPolicy, Incarnation, Keyspace, KeyspaceId, KeyspaceKind, Lease, Map,
    Match, NodeId, NodeSpec, Partition, PartitionId, StoreId,
};
use machine::Instant;
use node::engine::{Engine as _, KeyRef};
use node::{Node, NodeConfig, TrackerConfig};
use runtime::store::{FjallEngine, SHARD_STORE_FORMAT, ShardIdentity, SyncPolicy};
use std::path::Path;
use wire::{
    Body, ChainWrite, Code, Endpoint, Header, IncrBody, KeyReply, Op, Packet, PutBody, Revision,
    Version,
};

const KEYSPACE: KeyspaceId = KeyspaceId(0x8001);
const SHARD: ShardIdentity = ShardIdentity { node: NodeId(1), shard: 0, shards: 1 };
const STORE: StoreId = StoreId(0xab);
const NOW_MS: u64 = 1_800_000_000_000;
const EXPIRY_MS: u64 = 1_900_000_000_000;
/// Whose outcomes are on record, and who has said goodbye.
const CLIENT: u64 = 77;
const GONE: u64 = 78;
const SWITCH: Endpoint = Endpoint { addr: [1; 16], port: 1 };
/// Up to there the node is alone; from there on it is the head before a node that is silent.
const ALONE: u128 = 0x6fff_ffff_ffff_ffff_ffff_ffff_ffff_ffff;

fn map() -> Map {
    let node = |id: u16| NodeSpec {
        id: NodeId(id),
        endpoint: Endpoint { addr: [1; 16], port: 100 + id },
        shards: 1,
    };
    let partition = |id: u32, first: u128, last: u128, chain: &[u16]| Partition {
        id: PartitionId(id),
        keyspace: KEYSPACE,
        first: Match(first),
        last: Match(last),
        epoch: Epoch(4),
        chain: chain.iter().copied().map(NodeId).collect(),
        since: chain.iter().map(|_| Revision::new(1)).collect(),
        open: true,
        ..Partition::default()
    };
    let kind = KeyspaceKind::Range { prefix: Vec::new() };
    let hot = HotPolicy::default();
    Map {
        caches: Vec::new(),
        revision: Revision::new(90),
        cluster: ClusterId(0xc1),
        copy_bytes_per_s: 1_000,
        nodes: vec![node(1), node(2)],
        keyspaces: vec![Keyspace {
            id: KEYSPACE,
            name: "k".into(),
            kind,
            seed: 3,
            replicas: 2,
            hot,
            content: None,
        }],
        partitions: vec![partition(1, 0, ALONE, &[1]), partition(2, ALONE + 1, u128::MAX, &[1, 2])],
        ..Map::default()
    }
}

/// An answer, or what goes to the other node.
#[derive(Debug)]
struct Sent {
    header: Header,
    datagram: Vec<u8>,
}

impl Sent {
    fn code(&self) -> Code {
        Code::from_wire(self.header.code).expect("it is sent")
    }

    fn version(&self) -> Version {
        KeyReply::of(&self.header).version
    }

    fn body(&self) -> Body<'_> {
        Packet::parse(&self.datagram).and_then(|it| it.body()).expect("it is sent")
    }

    fn value(&self) -> &[u8] {
        match self.body() {
            Body::GetReply(entry) => entry.value,
            other => panic!("{other:?}"),
        }
    }
}

struct Running {
    node: Node<FjallEngine>,
    map: Map,
}

impl Running {
    fn start(dir: &Path, incarnation: u64) -> Self {
        let engine = FjallEngine::open(dir, SHARD, STORE, SyncPolicy::Always);
        let engine = engine.expect("it is understood");
        let incarnation = Incarnation(incarnation);
        let tracker = TrackerConfig::default();
        let config = NodeConfig { shard: 0, shards: 1, incarnation, rate: 0, tracker };
        let node = Node::new(config, engine, now());
        Self { node, map: map() }
    }

    fn keyspace(&self) -> &Keyspace {
        self.map.keyspaces.first().expect("there is one")
    }

    /// Gives it what the map says, and a lease; what it sends to the other node then.
    fn install(&mut self, incarnation: u64) -> Vec<Sent> {
        let assignment = self.map.assignment(NodeId(1), STORE, SWITCH);
        self.node.install(now(), &assignment);
        let incarnation = Incarnation(incarnation);
        let (cluster, revision) = (self.map.cluster, self.map.revision);
        self.node.renew(&Lease {
            incarnation,
            cluster,
            revision,
            from: now(),
            duration_ms: 1 << 30,
        });
        self.drain()
    }

    fn drain(&mut self) -> Vec<Sent> {
        self.node.flush().expect("there is room");
        while self.node.is_syncing() {
            let wait = self.node.engine_mut().sync_job().expect("it has begun");
            self.node.end_sync(now(), wait()).expect("there is room");
            self.node.flush().expect("there is room");
        }
        let mut sent = Vec::new();
        while let Some(it) = self.node.poll_transmit() {
            let packet = Packet::parse(it.payload).expect("it is sent");
            let header = Header::read(packet.header());
            sent.push(Sent { header, datagram: it.payload.to_vec() });
        }
        sent
    }

    fn ask(&mut self, (client, seq): (u64, u64), op: Op, key: &[u8], fixed: &[u8]) -> Vec<Sent> {
        let keyspace = self.keyspace();
        let at = keyspace.match_value(key);
        let partition = self.map.partitions.iter().find(|it| at <= it.last).expect("all is held");
        let key_len = if op == Op::Goodbye { 0 } else { key.len() };
        let mut header = Header {
            partition: partition.id.0,
            epoch: partition.epoch.0,
            reply_addr: [9; 16],
            reply_port: 9,
            match_value: at.0,
            keyhash: keyspace.keyhash(key),
            op: op as u8,
            keyspace: KEYSPACE.0,
            key_len: u16::try_from(key_len).expect("short"),
            client,
            seq,
            // It still waits for its first one.
            lag: u16::try_from(seq - 1).expect("few"),
            ..Header::default()
        };
        header.set_chain(partition.chain.iter().map(|id| id.0));
        let mut datagram = Vec::new();
        let fixed_first: &[&[u8]] = match op {
            Op::Put => &[&PutBody { expiry_ms: EXPIRY_MS }.to_bytes(), key, fixed],
            Op::Incr => &[fixed, key],
            Op::Goodbye => &[],
            _ => &[key],
        };
        wire::emit(&mut datagram, &header, fixed_first);
        self.node.handle_packet(now(), SWITCH, 0, &datagram);
        self.drain()
    }

    fn only(&mut self, id: (u64, u64), op: Op, key: &[u8], fixed: &[u8]) -> Sent {
        let mut sent = self.ask(id, op, key, fixed);
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }
}

fn now() -> Instant {
    Instant::from_unix_ms(NOW_MS)
}

fn three() -> [u8; 8] {
    IncrBody { delta: 3 }.to_bytes()
}

/// What there is to find.
fn leave(dir: &Path) {
    let mut running = Running::start(dir, 5);
    assert!(running.install(5).is_empty());
    running.only((CLIENT, 1), Op::Put, b"apple", b"red");
    running.only((CLIENT, 2), Op::Put, b"cherry", b"dark");
    running.only((CLIENT, 3), Op::Del, b"cherry", &[]);
    running.only((CLIENT, 4), Op::Incr, b"count", &three());
    running.only((GONE, 1), Op::Incr, b"count", &three());
    assert!(running.ask((GONE, 2), Op::Goodbye, b"count", &[]).is_empty(), "nobody waits for it");
    running.only((CLIENT, 5), Op::Put, b"pear", b"green");
    running.only((CLIENT, 6), Op::Incr, b"quinces", &three());
    assert_eq!(running.node.pending(), 2, "the node behind it is silent");
}

#[test]
fn a_shards_store_on_record_is_gone_on_with() {
    let name = format!("shard-{SHARD_STORE_FORMAT}.txt");
    if records(&name) {
        let dir = tempfile::tempdir().expect("a folder of ours");
        leave(dir.path());
        archive::pack(dir.path(), &name);
    }
    let dir = tempfile::tempdir().expect("a folder of ours");
    archive::unpack(&name, dir.path());
    let mut running = Running::start(dir.path(), 6);
    let report = running.node.report(now());
    assert_eq!((report.store, report.cluster), (STORE, Some(ClusterId(0xc1))));
    assert_eq!((report.past, report.recorded), (vec![Incarnation(5)], Revision::new(90)));
    let record = running.node.on_record();
    let assignment = record.assignment.expect("it is on record");
    assert_eq!(*assignment, map().assignment(NodeId(1), STORE, SWITCH));

    let sent = running.install(6);
    values_are_there(&mut running);
    outcomes_are_there(&mut running);
    assert_eq!(running.node.pending(), 2);
    pending_writes_go_on(&mut running, sent);
}

fn values_are_there(running: &mut Running) {
    let apple = running.only((9, 1), Op::Get, b"apple", &[]);
    assert_eq!((apple.code(), apple.version()), (Code::Ok, Version::new(1)));
    let Body::GetReply(entry) = apple.body() else { panic!("{apple:?}") };
    assert_eq!((entry.value, entry.expiry_ms), (&b"red"[..], EXPIRY_MS));
    assert_eq!(running.only((9, 2), Op::Get, b"cherry", &[]).code(), Code::NotFound);
    let count = running.only((9, 3), Op::Get, b"count", &[]);
    assert_eq!(count.value(), b"6");
    let keyspace = running.keyspace();
    let cherry = KeyRef {
        keyspace: KEYSPACE,
        partition: PartitionId(1),
        ordered: true,
        match_value: keyspace.match_value(b"cherry"),
        keyhash: keyspace.keyhash(b"cherry"),
        key: b"cherry",
    };
    let tombstone =
        running.node.engine().read(&cherry, |it| it.map(|it| (it.tombstone, it.version)));
    assert_eq!(tombstone, Some((true, Version::new(3))));
    assert_eq!(running.node.engine().len(), 3, "with the tombstone");
}

/// What was answered is answered again, and takes no effect a second time.
fn outcomes_are_there(running: &mut Running) {
    for (seq, op, key, version) in
        [(1, Op::Put, &b"apple"[..], 1), (3, Op::Del, b"cherry", 3), (4, Op::Incr, b"count", 4)]
    {
        let fixed = if op == Op::Incr { &three()[..] } else { b"other" };
        let again = running.only((CLIENT, seq), op, key, fixed);
        let found = (again.code(), again.version());
        assert_eq!(found, (Code::Ok, Version::new(version)), "{seq}");
    }
    let count = running.only((9, 4), Op::Get, b"count", &[]);
    assert_eq!(count.value(), b"6");
    assert_eq!(running.node.sessions_ended(), 1);
    let late = running.ask((GONE, 1), Op::Incr, b"count", &three());
    assert!(late.is_empty(), "who has said goodbye is served no more: {late:?}");
}

/// They are sent to the next of the chain, as they were.
fn pending_writes_go_on(running: &mut Running, mut sent: Vec<Sent>) {
    let mut after = now();
    for _ in 0..100 {
        let Some(at) = running.node.poll_timeout().filter(|_| sent.is_empty()) else { break };
        after = after.max(at);
        running.node.handle_timeout(after);
        sent.extend(running.drain());
    }
    let writes: Vec<_> = sent
        .iter()
        .filter_map(|it| match it.body() {
            Body::ChainWrite { key, value, .. } => {
                let Header { client, seq, .. } = it.header;
                let version = ChainWrite::of(&it.header).version.get();
                Some((client, seq, version, key.to_vec(), value.to_vec()))
            }
            _ => None,
        })
        .collect();
    let expected = [(5, 1, &b"pear"[..], &b"green"[..]), (6, 2, b"quinces", b"3")];
    let expected = expected.map(|(seq, version, key, value): (u64, u64, &[u8], &[u8])| {
        (CLIENT, seq, version, key.to_vec(), value.to_vec())
    });
    assert_eq!(writes, expected);
}
