//! What a client does when the head may have forgotten it.

use client::{Client, ClientConfig, Expiry, Outcome, Reply, Request, UnknownReason};
use cluster::{HotPolicy, Keyspace, KeyspaceId, KeyspaceKind};
use machine::{Instant, Rng};
use std::sync::Arc;
use std::time::Duration;
use wire::{Body, Code, Endpoint, Header, KeyReply, Op, Packet, SinceBody, Version, flag};

const SERVICE: Endpoint = Endpoint { addr: [1; 16], port: 7700 };
const KEPT: Duration = Duration::from_millis(wire::SESSION_KEPT_MS as u64);
const PUT: Request<'_> = Request::Put { key: b"k", value: b"v", expiry: Expiry::Never };

struct Script {
    now: Instant,
    client: Client,
}

impl Script {
    fn new() -> Self {
        let now = Instant(1_000_000_000_000);
        Self { now, client: Client::new(ClientConfig::new(SERVICE, 77), Rng::new(1)) }
    }

    /// What is sent, by now or as soon as something is.
    fn sent(&mut self) -> (Header, Vec<u8>) {
        loop {
            if let Some(datagram) = self.client.poll_transmit() {
                let datagram = datagram.payload.to_vec();
                let packet = Packet::parse(&datagram).expect("clients send sound packets");
                let Body::Put { key: b"k", value: b"v", .. } = packet.body().expect("sound") else {
                    panic!("it is the same write");
                };
                return (Header::read(packet.header()), datagram);
            }
            self.now = self.now.max(self.client.poll_timeout().expect("it waits"));
            self.client.handle_timeout(self.now);
        }
    }

    fn start(&mut self) -> (Header, Vec<u8>) {
        let kind = KeyspaceKind::Hash;
        let (id, hot) = (KeyspaceId(1), HotPolicy::Replicate);
        let keyspace =
            Keyspace { id, name: "k".into(), kind, seed: 7, replicas: 1, hot, content: None };
        self.client.start(self.now, &Arc::new(keyspace), PUT).expect("there is room");
        self.sent()
    }

    fn answer(&mut self, asked: &Header, code: Code, version: u64) {
        let op = Op::PutReply as u8;
        let mut header = Header { op, code: code as u8, flags: 0, key_len: 0, ..*asked };
        KeyReply { version: Version::new(version) }.put(&mut header);
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, &[]);
        self.client.handle_packet(self.now, SERVICE, &datagram);
    }

    fn outcome(&mut self) -> Option<Outcome<Reply>> {
        self.client.poll_outcome().map(|(_, outcome)| outcome)
    }
}

fn since(datagram: &[u8]) -> Option<SinceBody> {
    let packet = Packet::parse(datagram).expect("clients send sound packets");
    wire::since_of(packet.header(), packet.payload())
}

#[test]
fn a_client_that_may_be_forgotten_says_at_once_what_it_was_told() {
    let mut script = Script::new();
    let (first, bytes) = script.start();
    assert_eq!(since(&bytes), None);
    script.now = script.now + Duration::from_millis(1);
    let before = script.now;
    script.answer(&first, Code::NoSession, 40);
    let (again, bytes) = script.sent();
    assert_eq!((again.seq, script.now), (first.seq, before));
    assert_eq!(since(&bytes), Some(SinceBody { since: Version::new(40), next: 2 }));
    // The answer to another copy of the first says nothing of this one.
    script.answer(&first, Code::NoSession, 50);
    let (third, bytes) = script.sent();
    assert!(third.seq == first.seq && script.now > before);
    assert_eq!(since(&bytes), Some(SinceBody { since: Version::new(40), next: 2 }));
    script.answer(&first, Code::Ok, 60);
    assert_eq!(script.outcome(), Some(Outcome::Done(Reply::Put { version: Version::new(60) })));
    let (next, _) = script.start();
    assert_eq!(next.flags & flag::SINCE, 0);
}

#[test]
fn nobody_knows_of_a_write_that_is_older_than_what_heads_remember() {
    for (age, knows) in [(KEPT - Duration::from_millis(1), true), (KEPT, false)] {
        let mut script = Script::new();
        let (first, _) = script.start();
        script.now = script.now + age;
        script.answer(&first, Code::NoSession, 40);
        let unknown = Outcome::Unknown(UnknownReason::Uncertain);
        assert_eq!(script.outcome(), (!knows).then_some(unknown));
    }
}

#[test]
fn a_write_that_no_node_had_room_for_ends_as_overloaded() {
    let mut script = Script::new();
    let (mut asked, _) = script.start();
    let begun = script.now;
    let outcome = loop {
        script.answer(&asked, Code::Overloaded, 0);
        script.now = script.now.max(script.client.poll_timeout().unwrap());
        script.client.handle_timeout(script.now);
        if let Some(outcome) = script.outcome() {
            break outcome;
        }
        asked = script.sent().0;
    };
    assert_eq!(outcome, Outcome::Unknown(UnknownReason::Overloaded));
    assert!(script.now.since(begun) >= Duration::from_secs(5));
    assert!(outcome.into_result().unwrap_err().to_string().contains("overloaded"));
}

/// Where goodbyes are sent to: keyspace and match value of each.
fn goodbyes(client: &mut Client) -> Vec<(u16, u128)> {
    let mut all = Vec::new();
    while let Some(datagram) = client.poll_transmit() {
        let packet = Packet::parse(datagram.payload).expect("clients send sound packets");
        let header = Header::read(packet.header());
        assert_eq!((packet.op(), packet.body()), (Op::Goodbye, Ok(Body::Goodbye)));
        assert_eq!((header.client, datagram.to), (77, SERVICE));
        all.push((header.keyspace, header.match_value));
    }
    all
}

#[test]
fn a_client_that_ends_says_so_where_it_has_written() {
    let mut script = Script::new();
    let mut at = Vec::new();
    for partition in [3, 4, 3] {
        let (asked, _) = script.start();
        at.push((asked.keyspace, asked.match_value));
        script.answer(&Header { partition, ..asked }, Code::Ok, 5);
        assert!(matches!(script.outcome(), Some(Outcome::Done(_))));
    }
    script.client.say_goodbye(script.now);
    assert_eq!(goodbyes(&mut script.client), at[1..], "once in each partition");
}

#[test]
fn a_client_that_has_nothing_there_or_something_on_its_way_says_nothing() {
    let mut script = Script::new();
    script.client.say_goodbye(script.now);
    let (asked, _) = script.start();
    script.answer(&asked, Code::Overloaded, 0);
    script.client.say_goodbye(script.now);
    assert_eq!(goodbyes(&mut script.client), []);
    script.answer(&asked, Code::Ok, 5);
    script.client.say_goodbye(script.now);
    assert_eq!(goodbyes(&mut script.client), [], "nobody has taken the outcome");
    assert!(script.outcome().is_some());
    script.client.say_goodbye(script.now);
    assert_eq!(goodbyes(&mut script.client), [(asked.keyspace, asked.match_value)]);
}
