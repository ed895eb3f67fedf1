//! Random tables and random datagrams.

use cluster::{Epoch, KeyspaceId, Match, NodeId, NodeSpec, Partition, PartitionId, SwitchTables};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::Index;
use wire::{
    Endpoint, HEADER_LEN, Header, KeyReply, MgetKey, Op, RangeBody, RangeInterval, Revision,
    Version,
};

/// An IPv4 endpoint.
pub fn endpoint(host: u8, port: u16) -> Endpoint {
    Endpoint::from(std::net::SocketAddr::from(([10, 0, 0, host], port)))
}

/// One partition as drawn: where it begins, its chain, its epoch.
pub type Bound = (u128, Vec<Index>, u32);

/// A keyspace: bounds, crowded into a corner by `narrow` bits.
pub fn any_bounds() -> impl Strategy<Value = Vec<Bound>> {
    let bound = (any::<u128>(), vec(any::<Index>(), 1..=4), any::<u32>());
    (vec(bound, 1..12), prop_oneof![Just(0u32), 0u32..127]).prop_map(|(mut bounds, narrow)| {
        for (at, ..) in &mut bounds {
            *at >>= narrow;
        }
        bounds
    })
}

/// Partitions that publish a keyspace, with these bounds.
pub fn partitions(keyspace: u16, mut bounds: Vec<Bound>, nodes: &[NodeId]) -> Vec<Partition> {
    bounds.sort_by_key(|bound| bound.0);
    bounds.dedup_by_key(|bound| bound.0);
    if let Some(bound) = bounds.first_mut() {
        bound.0 = 0;
    }
    let lasts = bounds.iter().skip(1).map(|bound| bound.0 - 1).chain([u128::MAX]);
    let lasts: Vec<u128> = lasts.collect();
    let ids = (0u32..).map(|i| PartitionId(1 + 2 * i + u32::from(keyspace == HASH)));
    let rows = bounds.into_iter().zip(lasts).zip(ids);
    rows.map(|(((first, chain, epoch), last), id)| Partition {
        id,
        keyspace: KeyspaceId(keyspace),
        first: Match(first),
        last: Match(last),
        epoch: Epoch(epoch),
        has_learner: chain.len() > 1 && epoch % 4 == 0,
        chain: chain.iter().map(|node| *node.get(nodes)).collect(),
        open: true,
        ..Partition::default()
    })
    .collect()
}

/// Keyhashes below this are drawn often.
pub const HASHES: u64 = 4;
/// Client ids and sequence numbers below these are drawn often.
pub const CLIENTS: u64 = 3;
pub const REQUESTS: u64 = 8;
/// A hash keyspace.
pub const HASH: u16 = 1;
/// A range keyspace.
pub const RANGE: u16 = 40_000;

/// Tables of two keyspaces side by side over 1 to 8 nodes of 1 to 3 shards. In some of them a
/// partition or a node is missing, or a node is fenced.
pub fn any_tables() -> impl Strategy<Value = SwitchTables> {
    let nodes = btree_map(0u16..1024, 1u16..=3, 1..=8);
    let missing = || proptest::option::weighted(0.3, any::<Index>());
    let wrong = [missing(), missing(), missing()];
    (nodes, any_bounds(), any_bounds(), wrong, 1u64..100).prop_map(
        |(nodes, hash, range, [no_partition, no_node, fenced], revision)| {
            let ids: Vec<NodeId> = nodes.keys().copied().map(NodeId).collect();
            let mut partitions =
                [partitions(HASH, hash, &ids), partitions(RANGE, range, &ids)].concat();
            // Two nodes share each host, on ports that touch.
            let specs = nodes.into_iter().zip(0u8..).map(|((id, shards), place)| NodeSpec {
                id: NodeId(id),
                endpoint: endpoint(place / 2, 9000 + 3 * u16::from(place % 2)),
                shards,
            });
            let mut nodes: Vec<NodeSpec> = specs.collect();
            if let Some(place) = no_partition {
                partitions.remove(place.index(partitions.len()));
            }
            if let Some(place) = no_node {
                nodes.remove(place.index(nodes.len()));
            }
            SwitchTables {
                cluster: cluster::ClusterId(0),
                revision: Revision::new(revision),
                active: true,
                nodes,
                caches: Vec::new(),
                fenced: fenced.map(|place| *place.get(&ids)).into_iter().collect(),
                partitions,
            }
        },
    )
}

/// A match value: anything, or a bound of some partition give or take one.
type DrawnMatch = Result<u128, (Index, bool, u8)>;

fn any_place() -> impl Strategy<Value = DrawnMatch> {
    prop_oneof![
        1 => any::<u128>().prop_map(Ok),
        3 => (any::<Index>(), any::<bool>(), 0u8..3).prop_map(Err),
    ]
}

fn place(tables: &SwitchTables, keyspace: u16, drawn: &DrawnMatch) -> u128 {
    let (index, end, step) = match drawn {
        Ok(anywhere) => return *anywhere,
        Err(edge) => edge,
    };
    let inside = tables.partitions.iter().filter(|p| p.keyspace.0 == keyspace);
    let edges: Vec<Match> = inside.map(|p| if *end { p.last } else { p.first }).collect();
    let edge = if edges.is_empty() { 0 } else { index.get(&edges).0 };
    edge.wrapping_add(u128::from(*step)).wrapping_sub(1)
}

/// What is wrong with a datagram.
#[derive(Clone, Debug)]
pub enum Damage {
    None,
    Cut(Index),
    Flip(Index, u8),
    Count(u8),
}

/// Where from: replies mostly from a node, requests seldom.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    node: Index,
    shard: u16,
    client: u8,
    pub dice: u8,
}

impl Source {
    fn is_node(self, op: Op) -> bool {
        if op.is_reply() { self.dice < 224 } else { self.dice < 16 }
    }
}

/// One datagram as drawn.
#[derive(Clone, Debug)]
pub struct Draw {
    pub op: usize,
    pub from: Source,
    pub keyspace: u16,
    pub header: Header,
    places: Vec<DrawnMatch>,
    pub payload: Vec<u8>,
    pub damage: Damage,
    pub true_node: bool,
}

fn any_op() -> impl Strategy<Value = usize> {
    // The splits and hot keys are where most of the logic is.
    const OFTEN: [Op; 12] = [
        Op::Mget,
        Op::Mget,
        Op::Range,
        Op::Range,
        Op::Get,
        Op::GetReply,
        Op::HotCopied,
        Op::HotPublish,
        Op::Put,
        Op::Put,
        Op::Put,
        Op::PutReply,
    ];
    let often = (0..OFTEN.len()).prop_map(|place| {
        let same = |op: &Op| *op == OFTEN[place];
        Op::ALL.iter().position(same).expect("it is one of them")
    });
    prop_oneof![0..Op::ALL.len(), often]
}

fn any_header() -> impl Strategy<Value = Header> {
    let bitmap = prop_oneof![3 => Just(u32::MAX), 1 => Just(0), 1 => any::<u32>()];
    let port = prop_oneof![1 => Just(0u16), 5 => any::<u16>()];
    let count = prop_oneof![2 => 0u8..6, 1 => any::<u8>()];
    // What hot keys are known and judged by: few values, so that they meet.
    let chain = (any::<[u8; 16]>(), 0u8..8).prop_map(|(mut chain, generation)| {
        if generation < 6 {
            chain[8..].fill(0);
            chain[15] = generation;
        }
        chain
    });
    let keyhash = prop_oneof![3 => 0..HASHES, 1 => any::<u64>()];
    let version = prop_oneof![3 => 0u64..4, 1 => 255u64..259, 1 => any::<u64>()];
    let code = prop_oneof![3 => Just(0u8), 2 => Just(22u8), 2 => Just(23u8), 2 => any::<u8>()];
    let flags = prop_oneof![3 => Just(0u8), 2 => any::<u8>()];
    let client = prop_oneof![4 => 0..CLIENTS, 1 => any::<u64>()];
    let seq = prop_oneof![4 => 0..REQUESTS, 1 => any::<u64>()];
    let lag = prop_oneof![3 => 0u16..4, 1 => any::<u16>()];
    // SharedClock of the few orders that there are, too.
    let order = prop_oneof![2 => 0u16..6, 1 => any::<u16>()];
    let delegations = prop_oneof![2 => 0u16..4, 1 => any::<u16>()];
    (
        (any::<u8>(), any::<u32>(), any::<u32>(), bitmap, order, delegations),
        (any::<[u8; 16]>(), port, 0u8..=8, chain, keyhash, version),
        (flags, client, seq, lag, code, count),
    )
        .prop_map(|(a, b, c)| {
            let mut header = Header {
                hop_flags: a.0,
                partition: a.1,
                epoch: a.2,
                bitmap: a.3,
                node: a.4,
                load: a.5,
                reply_addr: b.0,
                reply_port: b.1,
                chain_len: b.2,
                chain_pos: b.2.saturating_sub(1),
                chain: b.3,
                keyhash: b.4,
                flags: c.0,
                client: c.1,
                seq: c.2,
                lag: c.3,
                code: c.4,
                count: c.5,
                ..Header::default()
            };
            KeyReply { version: Version::new(b.5) }.put(&mut header);
            header
        })
}

/// Any datagram, sound or damaged.
pub fn any_draw() -> impl Strategy<Value = Draw> {
    let from = (any::<Index>(), 0u16..4, any::<u8>(), any::<u8>());
    let from = from.prop_map(|(node, shard, client, dice)| Source { node, shard, client, dice });
    let keyspace = prop_oneof![8 => Just(HASH), 8 => Just(RANGE), 1 => Just(2u16)];
    let damage = prop_oneof![
        8 => Just(Damage::None),
        1 => any::<Index>().prop_map(Damage::Cut),
        1 => (any::<Index>(), 0u8..8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        1 => any::<u8>().prop_map(Damage::Count),
    ];
    // Many PUTs without an expiry.
    let zeros = proptest::bool::weighted(0.75);
    let payload = (vec(any::<u8>(), 0..40), zeros).prop_map(|(mut payload, zeros)| {
        payload.iter_mut().take(if zeros { 8 } else { 0 }).for_each(|byte| *byte = 0);
        payload
    });
    let places = vec(any_place(), 2..34);
    (any_op(), from, keyspace, any_header(), places, payload, damage, any::<bool>()).prop_map(
        |(op, from, keyspace, header, places, payload, damage, true_node)| Draw {
            op,
            from,
            keyspace,
            header,
            places,
            payload,
            damage,
            true_node,
        },
    )
}

/// A client of this key's own: it is the same request only if it is of the same key.
pub fn client_of(header: &Header) -> u64 {
    let key = header.keyhash.wrapping_mul(2) + u64::from(header.keyspace == RANGE);
    key.wrapping_mul(CLIENTS).wrapping_add(header.client)
}

/// The lower half of the match value of the key with this hash.
pub fn low_of(keyhash: u64) -> u64 {
    keyhash.wrapping_mul(0x0101_0101_0101_0101)
}

/// The datagram that was drawn, as these tables make it.
pub fn datagram(tables: &SwitchTables, draw: &Draw) -> (Endpoint, Vec<u8>) {
    let op = Op::ALL[draw.op];
    let mut header = Header { op: op as u8, keyspace: draw.keyspace, ..draw.header };
    let mut places: Vec<u128> =
        draw.places.iter().map(|drawn| place(tables, draw.keyspace, drawn)).collect();
    // Most keys with a hash are the one that has it.
    let is_it = !draw.from.dice.is_multiple_of(8) && op != Op::Range;
    let at = |place: u128, keyhash: u64| match is_it && keyhash < HASHES {
        true => place >> 64 << 64 | u128::from(low_of(keyhash)),
        false => place,
    };
    header.match_value = at(places[0], header.keyhash);
    if matches!(op, Op::Put | Op::PutReply) {
        header.client = client_of(&header);
    }
    let mut from = endpoint(200, 1 + u16::from(draw.from.client));
    if draw.from.is_node(op) && !tables.nodes.is_empty() {
        let node = draw.from.node.get(&tables.nodes);
        if draw.true_node {
            header.node = node.id.0;
        }
        from = node.endpoint.with_port_offset(draw.from.shard).unwrap();
    }
    let mut bytes = Vec::new();
    match op {
        Op::Mget => {
            places.truncate(32);
            let keys = places.iter().zip((0..HASHES).cycle());
            let key = |(place, keyhash): (&u128, u64)| MgetKey {
                match_value: at(*place, keyhash),
                keyhash,
                key: b"key",
            };
            wire::emit_mget(&mut bytes, &header, keys.map(key));
        }
        Op::Range => {
            let (a, b) = (places[0], places[1]);
            let backwards = draw.from.dice < 16;
            let (first, last) = if backwards { (a.max(b), a.min(b)) } else { (a.min(b), a.max(b)) };
            RangeInterval { first, last }.put(&mut header);
            let fixed = RangeBody { limit: 9 }.to_bytes();
            wire::emit(&mut bytes, &header, &[&fixed, &draw.payload]);
        }
        _ => {
            wire::emit(&mut bytes, &header, &[&draw.payload]);
        }
    }
    match &draw.damage {
        Damage::None => {}
        Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Damage::Flip(at, bit) => {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        Damage::Count(count) => bytes[HEADER_LEN - 1] = *count,
    }
    (from, bytes)
}
