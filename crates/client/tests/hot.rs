//! What a client does when a copy of a hot key is no good.

use client::{Client, ClientConfig, Request};
use cluster::{HotPolicy, Keyspace, KeyspaceId, KeyspaceKind};
use machine::{Instant, Rng};
use std::sync::Arc;
use std::time::Duration;
use wire::{Code, Endpoint, Entry, Header, Op, Packet, flag};

const SERVICE: Endpoint = Endpoint { addr: [1; 16], port: 7700 };
const START: Instant = Instant(1_000_000_000_000);

fn header(datagram: &[u8]) -> Header {
    Header::read(Packet::parse(datagram).expect("clients send sound packets").header())
}

/// The answer to a read that says that this node has nothing to show for the first key.
fn not_here(request: &[u8]) -> Vec<u8> {
    let asked = header(request);
    let op = Op::from_wire(asked.op).expect("clients send sound packets");
    let echo = Header { op: op.reply() as u8, flags: 0, key_len: 0, count: 0, ..asked };
    let (mut payload, mut out) = (Vec::new(), Vec::new());
    if op == Op::Get {
        wire::emit(&mut out, &Header { code: Code::NotHere as u8, ..echo }, &[]);
    } else {
        wire::push_mget_entry(&mut payload, 0, Code::NotHere as u8, &Entry::default());
        wire::emit(&mut out, &Header { bitmap: 1, ..echo }, &[&payload]);
    }
    out
}

#[test]
fn what_a_copy_cannot_answer_is_asked_at_home_at_once_and_then_in_time() {
    let kind = KeyspaceKind::Hash;
    let (id, hot) = (KeyspaceId(1), HotPolicy::Replicate);
    let keyspace = Arc::new(Keyspace { id, name: "k".into(), kind, seed: 7, replicas: 1, hot });
    let keys: &[&[u8]] = &[b"hot", b"cold"];
    for request in [Request::Get { key: b"hot" }, Request::Mget { keys }] {
        let mut now = START;
        let config = ClientConfig::new(SERVICE, 77);
        let mut client = Client::new(config, Rng::new(1));
        client.start(now, &keyspace, request).unwrap();
        let first = client.poll_transmit().unwrap().payload.to_vec();
        assert_eq!(header(&first).flags & flag::AT_HOME, 0);
        let mut ask_again = |client: &mut Client, datagram: &[u8]| {
            client.handle_packet(now, SERVICE, &not_here(datagram));
            assert_eq!(client.poll_outcome(), None);
            let at = client.poll_timeout().unwrap();
            let waited = at.since(now);
            now = now.max(at);
            client.handle_timeout(now);
            (waited, client.poll_transmit().unwrap().payload.to_vec())
        };
        let (waited, again) = ask_again(&mut client, &first);
        assert_eq!(waited, Duration::ZERO);
        assert_ne!(header(&again).flags & flag::AT_HOME, 0);
        assert_eq!(header(&again).seq, header(&first).seq);
        // At home it is the switch that has to learn something first.
        let (waited, again) = ask_again(&mut client, &again);
        assert!(waited > Duration::ZERO);
        assert_ne!(header(&again).flags & flag::AT_HOME, 0);
    }
}
