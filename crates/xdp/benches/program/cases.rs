//! Tables and packets.

use crate::addresses::{APART, CLIENT, HOT_KEYS, KEY_LEN, NODES_NET, NODES_PORT, SCATTER};
use cluster::{
    CacheId, CacheSpec, Delegation, Epoch, HotEntry, HotOrder, Incarnation, KeyspaceId, Match,
    NodeId, NodeSpec, Partition, PartitionId, Selection, SwitchTables,
};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::Range;
use wire::{
    CacheRule, CacheRules, Code, DelegationId, Endpoint, Generation, Header, MgetKey, Op, Revision,
    hop_flag,
};

/// The service address.
pub(crate) const SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 9, 9, 9), 7700);
pub(crate) const REPLICAS: u16 = 3;
pub(crate) const KEY: &[u8; KEY_LEN] = b"user567890123456";
pub(crate) const VALUE_LEN: usize = 100;

/// A hash keyspace in equal partitions, chains going round the nodes.
pub(crate) fn tables(revision: u64, partitions: u32, nodes: u16) -> SwitchTables {
    let width = u128::MAX / u128::from(partitions) + 1;
    let chain = |place: u32| {
        let head = u16::try_from(place % u32::from(nodes)).expect("below a u16");
        let hops = 0..REPLICAS.min(nodes);
        hops.map(|hop| NodeId((head + hop) % nodes)).collect()
    };
    let partition = |place: u32| {
        let first = u128::from(place) * width;
        Partition {
            id: PartitionId(place + 1),
            keyspace: KeyspaceId(1),
            first: Match(first),
            last: Match(first.wrapping_add(width - 1)),
            epoch: Epoch(1),
            chain: chain(place),
            open: true,
            ..Partition::default()
        }
    };
    SwitchTables {
        fenced: Vec::new(),
        caches: vec![CacheSpec { id: CACHE, endpoint: cache(), shards: 1 }],
        cluster: cluster::ClusterId(0),
        revision: Revision::new(revision),
        active: true,
        nodes: (0..nodes).map(node).collect(),
        partitions: (0..partitions).map(partition).collect(),
    }
}

/// Where the cache is, which has no keys at first.
pub(crate) fn cache() -> Endpoint {
    SocketAddr::from((Ipv4Addr::new(10, 3, 0, 1), 7800)).into()
}

/// Its id.
pub(crate) const CACHE: CacheId = CacheId(1);

/// What the cache says so that it has these keys, which are the next of its rules.
pub(crate) fn rules(keys: Range<u32>) -> Vec<u8> {
    let mut payload = Vec::new();
    for key in keys.clone() {
        let keyhash = scattered(key);
        let rule = CacheRule { adds: true, keyspace: 1, keyhash, match_bits: None };
        CacheRules::push(&mut payload, &rule);
    }
    let mut out = Vec::new();
    let node = CACHE.0;
    let seq = keys.start.into();
    wire::emit(&mut out, &Header { node, seq, ..header(Op::CacheRules) }, &[&payload]);
    out
}

/// The hash of a key that the cache holds.
fn scattered(key: u32) -> u64 {
    let mix = |hash: u64| hash ^ hash >> 32;
    mix(mix((u64::from(key) + 1).wrapping_mul(SCATTER)).wrapping_mul(SCATTER))
}

fn node(id: u16) -> NodeSpec {
    let endpoint = Endpoint::from(SocketAddr::from((node_addr(id), NODES_PORT)));
    NodeSpec { id: NodeId(id), endpoint, shards: 1 }
}

fn node_addr(id: u16) -> Ipv4Addr {
    let [high, low] = id.to_be_bytes();
    let [a, b] = NODES_NET;
    Ipv4Addr::new(a, b, high, low)
}

/// Copies of each hot key.
pub(crate) const READERS: u16 = 8;
/// Number of the hot keys' generation, and of the delegation of each.
const GENERATION: u64 = 1;

/// All hot keys, in the first order for this incarnation of the switch, at home or under
/// delegations.
pub(crate) fn hot_order(switch: Incarnation, nodes: u16, delegations: bool) -> HotOrder {
    let replicas = u8::try_from(REPLICAS).expect("a short chain");
    let delegation = Delegation { number: DelegationId::new(GENERATION), replicas, copies: 0 };
    let key = |key: u16| HotEntry {
        keyspace: KeyspaceId(1),
        key: key.to_be_bytes().into(),
        keyhash: hash(key),
        match_value: Match(0), // What the program's packets have in its lower half.
        generation: Generation::new(GENERATION),
        first: key % nodes,
        readers: READERS,
        delegation: delegations.then_some(delegation),
    };
    HotOrder {
        revision: Revision::new(GENERATION),
        switch,
        selection: Selection::Predicted,
        places: (0..nodes).map(|node| Some((NodeId(node), Incarnation(1)))).collect(),
        keys: (0..HOT_KEYS).map(key).collect(),
        ..HotOrder::default()
    }
}

/// The hash of a hot key.
fn hash(key: u16) -> u64 {
    u64::from(key) * u64::from(APART)
}

/// What a node says of a hot key so that others are asked, too: that it holds version 0, the first
/// one also that no other was ever committed.
pub(crate) fn warm(key: u16, node: u16) -> (Ipv4Addr, Vec<u8>) {
    let op = if node == 0 { Op::GetReply } else { Op::HotCopied };
    let mut header = Header { node, keyhash: hash(key), ..header(op) };
    header.hop_flags = hop_flag::NEWEST;
    header.chain[8..].copy_from_slice(&GENERATION.to_be_bytes());
    let mut out = Vec::new();
    wire::emit(&mut out, &header, &[]);
    (node_addr(node), out)
}

/// What the home of a hot key says so that its delegation begins.
pub(crate) fn left(key: u16) -> (Ipv4Addr, Vec<u8>) {
    let code = Code::Delegated as u8;
    let mut header = Header { code, keyhash: hash(key), ..header(Op::PutReply) };
    header.chain[8..].copy_from_slice(&GENERATION.to_be_bytes());
    let mut out = Vec::new();
    wire::emit(&mut out, &header, &[]);
    (node_addr(0), out)
}

/// Which key a packet is about, as bpf/bench.bpf.c knows it.
#[derive(Clone, Copy)]
pub(crate) enum Of {
    /// None: the packet stays as it is. There are no hot keys then.
    Nothing,
    /// One that is not hot.
    Cold,
    /// A hot one.
    Hot,
    /// A hot one, of which a reply shows a newer version each time.
    Raised,
    /// One under a delegation, in a write that is another one each time.
    NewWrite,
    /// One under a delegation, in a write that is the same each time.
    SameWrite,
    /// One that the cache holds.
    Cached,
}

/// A request for one key.
pub(crate) fn get(of: Of) -> Vec<u8> {
    datagram(Op::Get, KEY.len(), of as u8, &[KEY])
}

pub(crate) fn put(of: Of) -> Vec<u8> {
    datagram(Op::Put, KEY.len(), of as u8, &[&[0; 8], KEY, &[0; VALUE_LEN]])
}

/// An answer to the client.
pub(crate) fn reply(of: Of) -> Vec<u8> {
    datagram(Op::GetReply, 0, of as u8, &[&[0; 8], &[b'v'; VALUE_LEN]])
}

pub(crate) fn mget(keys: u8) -> Vec<u8> {
    let mut out = Vec::new();
    let slots = (0..keys).map(|_| MgetKey { match_value: 0, keyhash: 0, key: KEY });
    wire::emit_mget(&mut out, &header(Op::Mget), slots);
    out
}

/// A packet that stands for this many parts.
pub(crate) fn parts(count: u8) -> Vec<u8> {
    datagram(Op::Mget, 0, count, &[])
}

fn datagram(op: Op, key_len: usize, count: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let key_len = u16::try_from(key_len).expect("a short key");
    wire::emit(&mut out, &Header { key_len, count, ..header(op) }, parts);
    out
}

fn header(op: Op) -> Header {
    let client = Endpoint::from(SocketAddr::from(CLIENT));
    Header {
        op: op as u8,
        keyspace: 1,
        client: 7,
        seq: 1,
        reply_addr: client.addr,
        reply_port: client.port,
        ..Header::default()
    }
}
