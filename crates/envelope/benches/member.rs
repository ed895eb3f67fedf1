//! What envelopes cost a node and a user-space switch, in nanoseconds per packet:
//! `cargo bench -p keyway-envelope --bench member [-- --json]`.
//!
//! Requests come from so many clients in turn, each with keys of its own.

use envelope::{
    ENVELOPE_LEN, MemberEnvelopes, MemberRole, PassNumber, Period, Ring, RingPorts, Secret,
};
use serde_json::json;
use std::hint::black_box;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use wire::{Endpoint, Header, Op};

const KEY: [u8; 16] = *b"user000000000042";
const VALUE_BYTES: usize = 128;
/// Packets in a round: short enough to run undisturbed now and then.
const PACKETS: u64 = 20_000;
/// The best of so many is what it costs.
const ROUNDS: u32 = 100;

const SWITCH: &str = "10.0.0.1:7700";
const NODE: &str = "10.0.0.2:7700";

fn main() {
    let json = std::env::args().any(|argument| argument == "--json");
    if !json {
        println!("GETs of {} byte keys, values of {VALUE_BYTES} bytes", KEY.len());
    }
    for clients in [1, 64, 4096] {
        let mut bed = Bed::new(clients);
        let opens = bed.time(Bed::open);
        let seals = bed.time(Bed::seal);
        if json {
            let row = json!({
                "benchmark": "envelope", "clients": clients, "open_ns": opens, "seal_ns": seals,
            });
            println!("{row}");
        } else {
            println!("{clients:>5} clients: open {opens:>6.1} ns, seal {seals:>6.1} ns");
        }
    }
}

/// A node, what comes to it, and what it answers.
struct Bed {
    node: MemberEnvelopes,
    switch: Endpoint,
    requests: Vec<Vec<u8>>,
    replies: Vec<Vec<u8>>,
}

impl Bed {
    fn new(clients: u64) -> Self {
        let (mut node, mut peer) = (member(), member());
        let client = |number: u64| PassNumber::new(0, number + 1).expect("in range").client(1);
        let request = |number| {
            let packet = packet(Op::Get, client(number), KEY.len(), &[&KEY]);
            let envelope = peer.seal(at(NODE), &packet).expect("it has keys");
            [&envelope[..], &packet].concat()
        };
        let reply =
            |number| packet(Op::GetReply, client(number), 0, &[&[0; 8], &[b'v'; VALUE_BYTES]]);
        let requests = (0..clients).map(request).collect();
        let replies = (0..clients).map(reply).collect();
        node.end_turn();
        Self { node, switch: at(SWITCH), requests, replies }
    }

    fn open(&mut self, number: usize) {
        let request = self.requests.get_mut(number).expect("one of the clients'");
        let opened = self.node.open(self.switch, request);
        assert!(black_box(opened).is_ok_and(|packet| packet.len() > ENVELOPE_LEN));
    }

    fn seal(&mut self, number: usize) {
        let reply = self.replies.get(number).expect("one of the clients'");
        assert!(black_box(self.node.seal(self.switch, reply)).is_some());
    }

    /// Nanoseconds of one: the least of the rounds.
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    fn time(&mut self, one: impl Fn(&mut Self, usize)) -> f64 {
        let clients = self.requests.len();
        let mut least = Duration::MAX;
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            let mut number = 0;
            for _ in 0..PACKETS {
                one(self, number);
                number = if number + 1 == clients { 0 } else { number + 1 };
            }
            least = least.min(begun.elapsed());
        }
        least.as_nanos() as f64 / PACKETS as f64
    }
}

fn member() -> MemberEnvelopes {
    let mut it = MemberEnvelopes::new(MemberRole::Node);
    it.set_keys(&Secret::new([7; 32]).key_set(Period(1_000_003), true));
    let ports = |at: &str| RingPorts { first: at.parse().expect("an address"), ports: 1 };
    it.set_ring(Ring::new(&[ports(SWITCH), ports(NODE)], None));
    it
}

fn at(text: &str) -> Endpoint {
    text.parse::<SocketAddr>().expect("an address").into()
}

fn packet(op: Op, client: u64, key_len: usize, parts: &[&[u8]]) -> Vec<u8> {
    let key_len = u16::try_from(key_len).expect("a short key");
    let header = Header { op: op as u8, keyspace: 1, client, seq: 1, key_len, ..Header::default() };
    let mut out = Vec::new();
    wire::emit(&mut out, &header, parts);
    out
}
