//! Tables and packets.

use crate::addresses::{CLIENT, NODES_NET, NODES_PORT};
use cluster::{Epoch, KeyspaceId, Match, NodeId, NodeSpec, Partition, PartitionId, SwitchTables};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use wire::{Endpoint, Header, MgetKey, Op};

/// The service address.
pub(crate) const SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 9, 9, 9), 7700);
pub(crate) const REPLICAS: u16 = 3;
pub(crate) const KEY: &[u8] = b"user567890123456";
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
        revision,
        active: true,
        nodes: (0..nodes).map(node).collect(),
        partitions: (0..partitions).map(partition).collect(),
    }
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

/// A request for one key.
pub(crate) fn get() -> Vec<u8> {
    datagram(Op::Get, KEY.len(), 0, &[KEY])
}

pub(crate) fn put() -> Vec<u8> {
    datagram(Op::Put, KEY.len(), 0, &[&[0; 8], KEY, &[b'v'; VALUE_LEN]])
}

/// An answer to the client.
pub(crate) fn reply() -> Vec<u8> {
    datagram(Op::GetReply, 0, 0, &[&[0; 8], &[b'v'; VALUE_LEN]])
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
