//! Nanoseconds per packet through the pipeline, beside a loop that only copies the same packets
//! into the outbox: `cargo bench -p keyway-switch --bench pipeline [-- --json]`.
//!
//! Rounds of both loops alternate, so that what disturbs one disturbs the other. Each packet gets
//! a fresh random match value in both, as a receive buffer would bring it.

use cluster::{
    Epoch, KeyspaceId, Lease, Life, Match, NodeId, NodeSpec, Partition, PartitionId,
    SwitchControl as _, SwitchTables,
};
use machine::{Outbox, Rng};
use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use switch::{Pipeline, Tables};
use wire::{Endpoint, Fields as _, HEADER_LEN, Header, MgetKey, MgetSlotBody, Op, RangeBody};

const NOW: machine::Instant = machine::Instant::from_unix_ms(1);
const ROUNDS: usize = 21;
const PACKETS_PER_ROUND: usize = 100_000;
/// Datagrams between two visits to the socket.
const BATCH: usize = 64;
const NODES: u16 = 16;
const REPLICAS: u16 = 3;
const KEY: &[u8] = b"user0123456789";
const VALUE_LEN: usize = 100;
/// Partitions that each RANGE meets.
const RANGE_SPAN: usize = 8;

/// One kind of packet: how it looks, and what each new one of it changes.
struct Load {
    name: &'static str,
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
        println!("partitions  packet   pipeline          copy              ratio");
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
                    "{partitions:>10}  {:<7} {:>7.1} ({:>7.1}) {:>7.1} ({:>7.1}) {ratio:>7.2}",
                    load.name, pipeline.min, pipeline.median, copy.min, copy.median
                );
            }
        }
    }
}

/// The pipeline and the loop that only copies, alternating.
fn measure(partitions: usize, load: &Load) -> (Figure, Figure) {
    let mut pipeline = Pipeline::new(Life(1));
    pipeline.renew(&Lease { life: Life(1), revision: 0, from: NOW, duration_ms: u64::MAX });
    let tables = Tables::compile(&tables(partitions)).expect("sound tables");
    pipeline.install_compiled(Arc::new(tables));
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

fn loads() -> [Load; 6] {
    let client = endpoint(200, 40_000);
    let header = Header { keyspace: 1, client: 7, seq: 1, ..Header::default() };
    let key_len = u16::try_from(KEY.len()).expect("a short key");
    let make = |header: Header, parts: &[&[u8]]| {
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, parts);
        datagram
    };
    let single = Header { key_len, ..header };
    let value = [b'v'; VALUE_LEN];
    let mut reply = Header { op: Op::GetReply as u8, node: 3, load: 9, ..single };
    (reply.reply_addr, reply.reply_port) = (client.addr, client.port);
    let range = Header { op: Op::Range as u8, count: 32, ..header };
    let limit = RangeBody { limit: 100 }.to_bytes();
    [
        Load {
            name: "get",
            from: client,
            datagram: make(Header { op: Op::Get as u8, ..single }, &[KEY]),
            refresh: refresh_single,
        },
        Load {
            name: "put",
            from: client,
            datagram: make(Header { op: Op::Put as u8, ..single }, &[&[0; 8], KEY, &value]),
            refresh: refresh_single,
        },
        Load {
            name: "reply",
            from: endpoint(3, 9000),
            datagram: make(Header { key_len: 0, ..reply }, &[&[0; 8], &value]),
            refresh: refresh_single,
        },
        Load { name: "mget8", from: client, datagram: mget(&header, 8), refresh: refresh_mget },
        Load { name: "mget32", from: client, datagram: mget(&header, 32), refresh: refresh_mget },
        Load {
            name: "range",
            from: client,
            datagram: make(range, &[&limit]),
            refresh: refresh_range,
        },
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

fn refresh_range(datagram: &mut [u8], matches: &mut Matches) {
    let (header, _) = header(datagram);
    let first = matches.next().min(u128::MAX - matches.span);
    header.set_match_value(first);
    header.set_match_end(first + matches.span);
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
        revision: 1,
        active: true,
        nodes: nodes.collect(),
        partitions: (0..partitions as u128).map(partition).collect(),
    }
}
