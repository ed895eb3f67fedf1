//! Copies that a client has sent in vain: how it learns of them, and that no server drowns in them.

mod slow;

use client::{Client, ClientConfig, Request};
use cluster::{HotPolicy, Keyspace, KeyspaceId, KeyspaceKind};
use machine::{Instant, Rng};
use std::sync::Arc;
use wire::{Code, Endpoint, Header, Op, Packet};

const SERVICE: Endpoint = Endpoint { addr: [1; 16], port: 7700 };

/// The answer that there is no such key.
fn not_found(request: &[u8]) -> Vec<u8> {
    let asked = Header::read(Packet::parse(request).expect("clients send sound packets").header());
    let op = Op::from_wire(asked.op).expect("clients send sound packets").reply() as u8;
    let code = Code::NotFound as u8;
    let mut out = Vec::new();
    wire::emit(&mut out, &Header { op, code, flags: 0, key_len: 0, ..asked }, &[&[0; 16]]);
    out
}

#[test]
fn a_second_answer_shows_that_a_copy_was_sent_in_vain_and_a_doubled_one_does_not() {
    let (id, kind) = (KeyspaceId(1), KeyspaceKind::Hash);
    let hot = HotPolicy::Off;
    let keyspace =
        Arc::new(Keyspace { id, name: "k".into(), kind, seed: 7, replicas: 1, hot, content: None });
    let mut client = Client::new(ClientConfig::new(SERVICE, 77), Rng::new(1));
    let mut now = Instant(1_000_000_000_000);
    let sent = |client: &mut Client| client.poll_transmit().expect("it asks").payload.to_vec();

    client.start(now, &keyspace, Request::Get { key: b"k" }).unwrap();
    let first = sent(&mut client);
    now = client.poll_timeout().expect("it waits");
    client.handle_timeout(now);
    let copy = sent(&mut client);
    client.handle_packet(now, SERVICE, &not_found(&first));
    assert_eq!(client.counters().in_vain, 0, "one answer may be to either");
    client.handle_packet(now, SERVICE, &not_found(&copy));
    assert_eq!(client.counters().in_vain, 1);
    // There was no third copy: the network has doubled an answer.
    client.handle_packet(now, SERVICE, &not_found(&copy));
    assert_eq!(client.counters().in_vain, 1);

    client.start(now, &keyspace, Request::Get { key: b"k" }).unwrap();
    let only = sent(&mut client);
    for _ in 0..2 {
        client.handle_packet(now, SERVICE, &not_found(&only));
    }
    assert_eq!(client.counters().in_vain, 1);
}
