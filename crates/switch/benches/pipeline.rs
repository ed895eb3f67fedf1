//! Nanoseconds per packet through the pipeline, beside a loop that only copies the same packets
//! into the outbox: `cargo bench -p keyway-switch --bench pipeline [-- --json]`.
//!
//! Rounds of both loops alternate, so that what disturbs one disturbs the other. Each packet gets
//! a fresh random match value in both, as a receive buffer would bring it.

use cluster::{
    Epoch, HotEntry, HotOrder, Incarnation, KeyspaceId, Lease, Match, NodeId, NodeSpec, Partition,
    PartitionId, Selection, SwitchControl as _, SwitchTables,
};
use machine::{Outbox, Rng};
use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use switch::{Pipeline, Tables};
use wire::{
    Endpoint, Fields as _, Generation, HEADER_LEN, Header, HotAnswer, MgetKey, MgetSlotBody, Op,
    RangeBody, RangeInterval, Revision, Version, hop_flag,
};

const NOW: machine::Instant = machine::Instant::from_unix_ms(1);
const ROUNDS: usize = 21;
const PACKETS_PER_ROUND: usize = 100_000;
/// Datagrams between two visits to the socket.
const BATCH: usize = 64;
const NODES: u16 = 16;
const REPLICAS: u16 = 3;
const KEY: &[u8] = b"user0123456789";
const VALUE_LEN: usize = 100;
/// Hot keys, and readers of each.
const HOT_KEYS: u64 = 1_024;
const READERS: u16 = 8;
const INCARNATION: Incarnation = Incarnation(1);
/// Partitions that each RANGE meets.
const RANGE_SPAN: usize = 8;

/// One kind of packet: how it looks, and what each new one of it changes.
struct Load {
    name: &'static str,
    /// Whether there are hot keys.
    hot: bool,
    from: Endpoint,
    datagram: Vec<u8>,
    refresh: fn(&mut [u8], &mut Matches),
}

/// Random match values, drawn beforehand.
struct Matches {
    values: Vec<u128>,
    next: usize,
    /// Match values that a RANGE covers.
    span: u128,
}

impl Matches {
    fn new(rng: &mut Rng, partitions: usize) -> Self {
        let draw = |_| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        let span = (u128::MAX / partitions as u128) * (RANGE_SPAN as u128 - 1);
        Self { values: (0..4096).map(draw).collect(), next: 0, span }
    }

    fn next(&mut self) -> u128 {
        self.next = (self.next + 1) % self.values.len();
        self.values.get(self.next).copied().expect("below the length")
    }
}

/// Nanoseconds per packet: least and median of the rounds.
struct Figure {
    min: f64,
    median: f64,
}

impl Figure {
    fn of(mut rounds: Vec<f64>) -> Self {
        rounds.sort_by(f64::total_cmp);
        let at = |place: usize| rounds.get(place).copied().expect("some rounds");
        Self { min: at(0), median: at(rounds.len() / 2) }
    }
}

fn main() {
    let json = std::env::args().any(|arg| arg == "--json");
    if !json {
        println!(
            "{ROUNDS} rounds of {PACKETS_PER_ROUND} packets, {NODES} nodes, chains of {REPLICAS}, \
             key {} B, value {VALUE_LEN} B, RANGE over {RANGE_SPAN} partitions",
            KEY.len()
        );
        println!("ns per packet, min (median); ratio of the minima to copying alone\n");
        println!("partitions  packet     pipeline          copy              ratio");
    }
    for partitions in [128, 4096] {
        for load in loads() {
            let (pipeline, copy) = measure(partitions, &load);
            let ratio = pipeline.min / copy.min;
            if json {
                println!(
                    "{{\"partitions\":{partitions},\"packet\":\"{}\",\"ns_min\":{:.1},\
                     \"ns_median\":{:.1},\"copy_ns_min\":{:.1},\"copy_ns_median\":{:.1},\
                     \"ratio\":{ratio:.2},\"rounds\":{ROUNDS},\"packets\":{PACKETS_PER_ROUND},\
                     \"nodes\":{NODES},\"replicas\":{REPLICAS}}}",
                    load.name, pipeline.min, pipeline.median, copy.min, copy.median
                );
            } else {
                println!(
                    "{partitions:>10}  {:<9} {:>7.1} ({:>7.1}) {:>7.1} ({:>7.1}) {ratio:>7.2}",
                    load.name, pipeline.min, pipeline.median, copy.min, copy.median
                );
            }
        }
    }
    directory(json);
}

/// A full directory: how long it takes to install, anew and with all keys kept, and its memory.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn directory(json: bool) {
    let orders = [1, 2].map(|revision| hot_order(revision, wire::HOT_KEYS_MAX as u64));
    let mut pipeline = Pipeline::new(INCARNATION);
    pipeline.install(&tables(128)).expect("sound tables");
    let before = resident_bytes();
    let mut bytes = 0.0;
    let [fresh_ms, kept_ms] = orders.map(|order| {
        let start = Instant::now();
        pipeline.install_hot(&order).expect("a sound order");
        let took = start.elapsed().as_secs_f64() * 1e3;
        if order.revision == Revision::new(1) {
            bytes = (resident_bytes() - before) as f64 / wire::HOT_KEYS_MAX as f64;
        }
        took
    });
    if json {
        println!(
            "{{\"hot_keys\":{},\"bytes_per_entry\":{bytes:.0},\"install_ms\":{fresh_ms:.1},\
             \"install_kept_ms\":{kept_ms:.1}}}",
            wire::HOT_KEYS_MAX
        );
    } else {
        println!(
            "\n{} hot keys: {bytes:.0} bytes of memory for each, with one thread's counters; \
             installed in {fresh_ms:.1} ms, again with all of them kept in {kept_ms:.1} ms",
            wire::HOT_KEYS_MAX
        );
    }
}

/// Memory of this process.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.expect("a number of KiB") * 1024
}

/// The pipeline and the loop that only copies, alternating.
fn measure(partitions: usize, load: &Load) -> (Figure, Figure) {
    let mut pipeline = Pipeline::new(INCARNATION);
    pipeline.renew(
        NOW,
        &Lease {
            cluster: cluster::ClusterId(0),
            incarnation: INCARNATION,
            revision: Revision::NONE,
            from: NOW,
            duration_ms: u64::MAX,
        },
    );
    let tables = Tables::compile(&tables(partitions)).expect("sound tables");
    pipeline.install_compiled(Arc::new(tables));
    if load.hot {
        warm(&mut pipeline);
    }
    let mut matches = Matches::new(&mut Rng::new(1), partitions);
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        with.push(round(load, &mut matches, |datagram, out| {
            pipeline.process(NOW, load.from, datagram, out).expect("nothing is dropped");
        }));
        without.push(round(load, &mut matches, |datagram, out| {
            out.push_copy(load.from, datagram);
        }));
    }
    let dropped: u64 = pipeline.counters_ref().dropped().map(|(_, n)| n).sum();
    assert_eq!(dropped, 0, "every part of every packet was sent");
    (Figure::of(with), Figure::of(without))
}

/// Nanoseconds per packet of one round.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn round(load: &Load, matches: &mut Matches, mut take: impl FnMut(&mut [u8], &mut Outbox)) -> f64 {
    let mut out = Outbox::default();
    let mut buffers = vec![load.datagram.clone(); BATCH];
    let rounds = PACKETS_PER_ROUND / BATCH;
    let start = Instant::now();
    for _ in 0..rounds {
        for datagram in &mut buffers {
            (load.refresh)(datagram, matches);
            take(datagram, &mut out);
        }
        while let Some(datagram) = out.pop() {
            black_box(datagram);
        }
    }
    start.elapsed().as_secs_f64() * 1e9 / (rounds * BATCH) as f64
}

fn hot_order(revision: u64, count: u64) -> HotOrder {
    let key = |keyhash: u64| HotEntry {
        keyspace: KeyspaceId(1),
        key: KEY.to_vec(),
        keyhash: machine::mix(1 + keyhash),
        match_value: Match(0),
        generation: Generation::new(1),
        first: u16::try_from(keyhash % u64::from(NODES)).expect("below the number of nodes"),
        readers: READERS,
        delegation: None,
    };
    HotOrder {
        revision: Revision::new(revision),
        switch: INCARNATION,
        selection: Selection::Predicted,
        places: (0..NODES).map(|id| Some((NodeId(id), INCARNATION))).collect(),
        keys: (0..count).map(key).collect(),
        ..HotOrder::default()
    }
}

/// Makes keys hot, proven, and held by all their readers.
fn warm(pipeline: &mut Pipeline) {
    let order = hot_order(1, HOT_KEYS);
    pipeline.install_hot(&order).expect("a sound order");
    let mut out = Outbox::default();
    for key in &order.keys {
        let nodes = order.readers(key).map(|(node, _)| (Op::HotCopied, node));
        for (op, node) in nodes.chain([(Op::GetReply, NodeId(0))]) {
            let mut datagram = reply(op, node, 9, key.keyhash);
            let from = endpoint(u8::try_from(node.0).expect("few nodes"), 9000);
            pipeline.process(NOW, from, &mut datagram, &mut out).expect("nothing is dropped");
        }
    }
}

/// A reply for a hot key; that to a GET proves it.
fn reply(op: Op, node: NodeId, version: u64, keyhash: u64) -> Vec<u8> {
    let client = endpoint(200, 40_000);
    let mut header = Header {
        op: op as u8,
        hop_flags: hop_flag::NEWEST,
        keyspace: 1,
        node: node.0,
        keyhash,
        reply_addr: client.addr,
        reply_port: client.port,
        ..Header::default()
    };
    HotAnswer { version: Version::new(version), generation: Generation::new(1) }.put(&mut header);
    let mut datagram = Vec::new();
    wire::emit(&mut datagram, &header, &[&[0; 8], &[b'v'; VALUE_LEN]]);
    datagram
}

fn loads() -> [Load; 11] {
    let client = endpoint(200, 40_000);
    let node = endpoint(3, 9000);
    let header = Header { keyspace: 1, client: 7, seq: 1, ..Header::default() };
    let key_len = u16::try_from(KEY.len()).expect("a short key");
    let make = |header: Header, parts: &[&[u8]]| {
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, parts);
        datagram
    };
    let single = Header { key_len, ..header };
    let get = make(Header { op: Op::Get as u8, ..single }, &[KEY]);
    let put = make(Header { op: Op::Put as u8, ..single }, &[&[0; 8], KEY, &[b'v'; VALUE_LEN]]);
    let reply = reply(Op::GetReply, NodeId(3), 9, 0);
    let [mget8, mget32] = [8, 32].map(|count| mget(&header, count));
    let limit = RangeBody { limit: 100 }.to_bytes();
    let range = make(Header { op: Op::Range as u8, count: 32, ..header }, &[&limit]);
    let load = |name, hot, from, datagram: &[u8], refresh: fn(&mut [u8], &mut Matches)| {
        let datagram = datagram.to_vec();
        Load { name, hot, from, datagram, refresh }
    };
    [
        load("get", false, client, &get, refresh_single),
        load("get-cold", true, client, &get, refresh_single),
        load("get-hot", true, client, &get, refresh_hot),
        load("put", false, client, &put, refresh_single),
        load("put-hot", true, client, &put, refresh_hot),
        load("reply", false, node, &reply, refresh_single),
        load("reply-hot", true, node, &reply, refresh_hot),
        load("mget8", false, client, &mget8, refresh_mget),
        load("mget8-hot", true, client, &mget8, refresh_hot_mget),
        load("mget32", false, client, &mget32, refresh_mget),
        load("range", false, client, &range, refresh_range),
    ]
}

fn mget(header: &Header, count: usize) -> Vec<u8> {
    let header = Header { op: Op::Mget as u8, ..*header };
    let keys = (0..count).map(|_| MgetKey { match_value: 0, keyhash: 0, key: KEY });
    let mut datagram = Vec::new();
    wire::emit_mget(&mut datagram, &header, keys);
    datagram
}

fn header(datagram: &mut [u8]) -> (&mut [u8; HEADER_LEN], &mut [u8]) {
    datagram.split_first_chunk_mut().expect("a whole datagram")
}

fn refresh_single(datagram: &mut [u8], matches: &mut Matches) {
    header(datagram).0.set_match_value(matches.next());
}

fn refresh_mget(datagram: &mut [u8], matches: &mut Matches) {
    let (header, payload) = header(datagram);
    header.set_bitmap(u32::MAX);
    let (slots, _) = payload.as_chunks_mut::<{ MgetSlotBody::LEN }>();
    for slot in slots.iter_mut().take(header.count().into()) {
        let (at, _) = slot.split_at_mut(16);
        at.copy_from_slice(&matches.next().to_be_bytes());
    }
}

fn refresh_hot(datagram: &mut [u8], matches: &mut Matches) {
    refresh_single(datagram, matches);
    let (header, _) = header(datagram);
    header.set_keyhash(hot_keyhash(matches));
    // The lower half is what tells a hot key from others with its hash.
    header.set_match_value(header.match_value() >> 64 << 64);
}

/// That of one of the hot keys.
fn hot_keyhash(matches: &Matches) -> u64 {
    machine::mix(1 + matches.next as u64 % HOT_KEYS)
}

fn refresh_hot_mget(datagram: &mut [u8], matches: &mut Matches) {
    refresh_mget(datagram, matches);
    let (header, payload) = header(datagram);
    let (slots, _) = payload.as_chunks_mut::<{ MgetSlotBody::LEN }>();
    for slot in slots.iter_mut().take(header.count().into()) {
        matches.next();
        let (place, keyhash) = slot.split_at_mut(16);
        place.iter_mut().skip(8).for_each(|byte| *byte = 0);
        keyhash.copy_from_slice(&hot_keyhash(matches).to_be_bytes());
    }
}

fn refresh_range(datagram: &mut [u8], matches: &mut Matches) {
    let (header, _) = header(datagram);
    let first = matches.next().min(u128::MAX - matches.span);
    RangeInterval { first, last: first + matches.span }.write(header);
}

fn endpoint(host: u8, port: u16) -> Endpoint {
    Endpoint::from(SocketAddr::from(([10, 0, 0, host], port)))
}

/// A hash keyspace in equal partitions, chains going round the nodes.
fn tables(partitions: usize) -> SwitchTables {
    let hosts = (0..NODES).zip(0u8..);
    let nodes = hosts.map(|(id, host)| NodeSpec {
        id: NodeId(id),
        endpoint: endpoint(host, 9000),
        shards: 1,
    });
    let width = u128::MAX / partitions as u128 + 1;
    let partition = |place: u128| Partition {
        id: PartitionId(u32::try_from(place).expect("few partitions") + 1),
        keyspace: KeyspaceId(1),
        first: Match(place * width),
        last: Match((place * width).wrapping_add(width - 1)),
        epoch: Epoch(1),
        chain: (0..REPLICAS)
            .map(|hop| (u16::try_from(place).expect("few partitions") + hop) % NODES)
            .map(NodeId)
            .collect(),
        open: true,
        ..Partition::default()
    };
    SwitchTables {
        fenced: Vec::new(),
        caches: Vec::new(),
        cluster: cluster::ClusterId(0),
        revision: Revision::new(1),
        active: true,
        nodes: nodes.collect(),
        partitions: (0..partitions as u128).map(partition).collect(),
    }
}
