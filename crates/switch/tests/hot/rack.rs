//! A switch with one partition and one hot key.

use cluster::{
    Epoch, HotEntry, HotOrder, Incarnation, KeyspaceId, Lease, Match, NodeId, NodeSpec, Partition,
    PartitionId, Selection, SwitchControl as _, SwitchTables,
};
use machine::{Instant, Outbox};
use std::net::SocketAddr;
use switch::Pipeline;
use wire::{
    Code, Endpoint, Fields as _, Generation, HEADER_LEN, Header, HotAnswer, HotGet, HotMget,
    MgetKey, NodeReply, Op, RangeBody, RangeInterval, Revision, Version, flag, hop_flag,
};

pub(crate) const INCARNATION: Incarnation = Incarnation(5);
pub(crate) const KEYSPACE: KeyspaceId = KeyspaceId(1);
pub(crate) const KEYHASH: u64 = 0xfeed;
/// The key's tail, which is no reader of it.
pub(crate) const TAIL: u16 = 0;

pub(crate) fn at(us: u64) -> Instant {
    Instant(1_000_000_000 + us * 1_000)
}

pub(crate) fn endpoint(node: u16) -> Endpoint {
    let [high, low] = node.to_be_bytes();
    Endpoint::from(SocketAddr::from(([10, 0, high, low], 9000)))
}

/// So many nodes, one partition with this chain.
pub(crate) fn tables(revision: u64, nodes: u16, chain: &[u16]) -> SwitchTables {
    let spec = |id| NodeSpec { id: NodeId(id), endpoint: endpoint(id), shards: 1 };
    let partition = Partition {
        id: PartitionId(1),
        keyspace: KEYSPACE,
        first: Match::MIN,
        last: Match::MAX,
        epoch: Epoch(1),
        chain: chain.iter().copied().map(NodeId).collect(),
        open: true,
        ..Partition::default()
    };
    let nodes = (0..nodes).map(spec).collect();
    SwitchTables {
        fenced: Vec::new(),
        caches: Vec::new(),
        cluster: cluster::ClusterId(0),
        revision: Revision::new(revision),
        active: true,
        nodes,
        partitions: vec![partition],
    }
}

/// The key with the nodes from 1 on for readers.
pub(crate) fn order(
    revision: u64,
    generation: u64,
    readers: u16,
    selection: Selection,
) -> HotOrder {
    let key = HotEntry {
        keyspace: KEYSPACE,
        key: b"key".to_vec(),
        keyhash: KEYHASH,
        match_value: Match(0),
        generation: Generation::new(generation),
        first: 1,
        readers,
        delegation: None,
    };
    let places = (0..=readers).map(|id| Some((NodeId(id), Incarnation(1)))).collect();
    HotOrder {
        revision: Revision::new(revision),
        switch: INCARNATION,
        selection,
        places,
        keys: vec![key],
        ..HotOrder::default()
    }
}

pub(crate) fn lease(from: Instant, duration_ms: u64) -> Lease {
    Lease {
        cluster: cluster::ClusterId(0),
        incarnation: INCARNATION,
        revision: Revision::NONE,
        from,
        duration_ms,
    }
}

/// A pipeline at work for so many readers; the key is hot in generation 1.
pub(crate) fn started(pipeline: &mut Pipeline, readers: u16, selection: Selection) {
    pipeline.install(&tables(1, readers + 1, &[TAIL])).unwrap();
    pipeline.renew(at(0), &lease(at(0), 3_600_000));
    pipeline.install_hot(&order(1, 1, readers, selection)).unwrap();
}

pub(crate) fn new(readers: u16, selection: Selection) -> Pipeline {
    let mut pipeline = Pipeline::new(INCARNATION);
    started(&mut pipeline, readers, selection);
    pipeline
}

/// How a read left the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamped {
    pub(crate) node: u16,
    pub(crate) hot: bool,
    pub(crate) floor: u64,
    pub(crate) generation: u64,
}

pub(crate) fn one(
    pipeline: &mut Pipeline,
    now: Instant,
    from: Endpoint,
    mut bytes: Vec<u8>,
) -> Vec<u8> {
    let mut out = Outbox::default();
    pipeline.process(now, from, &mut bytes, &mut out).expect("nothing is dropped");
    let sent = out.pop().expect("one comes out").payload.to_vec();
    assert!(out.is_empty(), "one comes out");
    sent
}

/// Sends a request for the key through.
pub(crate) fn ask(pipeline: &mut Pipeline, now: Instant, op: Op, flags: u8) -> Stamped {
    let header = Header {
        op: op as u8,
        flags,
        keyspace: KEYSPACE.0,
        keyhash: KEYHASH,
        key_len: 3,
        ..Header::default()
    };
    let mut bytes = Vec::new();
    wire::emit(&mut bytes, &header, &[b"key"]);
    let sent = one(pipeline, now, endpoint(60_000), bytes);
    let header: &[u8; HEADER_LEN] = sent.first_chunk().unwrap();
    let HotGet { floor, generation } = HotGet::read(header);
    Stamped {
        node: u16::from_be_bytes([header.chain()[0], header.chain()[1]]),
        hot: header.hop_flags() & hop_flag::HOT != 0,
        floor: floor.get(),
        generation: generation.get(),
    }
}

pub(crate) fn get(pipeline: &mut Pipeline, now: Instant) -> Stamped {
    ask(pipeline, now, Op::Get, 0)
}

pub(crate) fn get_at_home(pipeline: &mut Pipeline, now: Instant) -> Stamped {
    ask(pipeline, now, Op::Get, flag::AT_HOME)
}

/// Sends an MGET of the key alone through: which node it goes to, and with which floor if to a
/// copy.
pub(crate) fn mget(pipeline: &mut Pipeline, now: Instant) -> (u16, Option<u64>) {
    let header = Header { op: Op::Mget as u8, keyspace: KEYSPACE.0, ..Header::default() };
    let at = u128::MAX << 64;
    let key = MgetKey { match_value: at, keyhash: KEYHASH, key: b"key" };
    let mut bytes = Vec::new();
    wire::emit_mget(&mut bytes, &Header { bitmap: 1, ..header }, [key].into_iter());
    let sent = one(pipeline, now, endpoint(60_000), bytes);
    let (header, payload) = sent.split_first_chunk::<HEADER_LEN>().unwrap();
    let slot = u128::from_be_bytes(*payload.first_chunk().unwrap());
    let floor = (HotMget::read(header).hot == 1).then(|| u64::try_from(slot).unwrap());
    assert!(floor.is_some() || slot == at, "a slot that nobody reads as a floor is left");
    (u16::from_be_bytes([header.chain()[0], header.chain()[1]]), floor)
}

/// Sends a RANGE over the whole partition through, in one piece.
pub(crate) fn range(pipeline: &mut Pipeline, now: Instant) {
    let mut header =
        Header { op: Op::Range as u8, keyspace: KEYSPACE.0, count: 1, ..Header::default() };
    RangeInterval { first: 0, last: u128::MAX }.put(&mut header);
    let mut bytes = Vec::new();
    wire::emit(&mut bytes, &header, &[&RangeBody { limit: 1 }.to_bytes()]);
    one(pipeline, now, endpoint(60_000), bytes);
}

/// What a node says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Says {
    pub(crate) op: Op,
    pub(crate) node: u16,
    pub(crate) version: u64,
    pub(crate) code: Code,
    pub(crate) generation: u64,
    /// In the reply to a write that is delegated.
    pub(crate) delegation: u64,
    pub(crate) newest: bool,
    pub(crate) load: u16,
    pub(crate) rate: u32,
}

pub(crate) const NOTHING: Says = Says {
    op: Op::PutReply,
    node: TAIL,
    version: 0,
    code: Code::Ok,
    generation: 0,
    delegation: 0,
    newest: false,
    load: 0,
    rate: 0,
};

/// Sends a reply through.
pub(crate) fn reply(pipeline: &mut Pipeline, now: Instant, says: Says) {
    let Says { op, node, version, code, generation, newest, load, rate, .. } = says;
    let mut bytes = [0; HEADER_LEN];
    let header = Header {
        op: op as u8,
        code: code as u8,
        keyspace: KEYSPACE.0,
        keyhash: KEYHASH,
        hop_flags: if newest { hop_flag::HOT | hop_flag::NEWEST } else { 0 },
        reply_port: 1,
        node,
        load,
        ..Header::default()
    };
    header.write(&mut bytes);
    let (version, generation) = (Version::new(version), Generation::new(generation));
    HotAnswer { version, generation }.write(&mut bytes);
    NodeReply { rate }.write(&mut bytes);
    one(pipeline, now, endpoint(node), bytes.to_vec());
}

pub(crate) fn prove(pipeline: &mut Pipeline, generation: u64, version: u64) {
    let says = Says { op: Op::GetReply, generation, version, newest: true, ..NOTHING };
    reply(pipeline, at(0), says);
}

pub(crate) fn copied(pipeline: &mut Pipeline, node: u16, version: u64) {
    reply(pipeline, at(0), Says { op: Op::HotCopied, node, version, ..NOTHING });
}

/// The key is proven at this version, and all readers hold it.
pub(crate) fn warm(pipeline: &mut Pipeline, readers: u16, version: u64) {
    prove(pipeline, 1, version);
    (1..=readers).for_each(|node| copied(pipeline, node, version));
}
