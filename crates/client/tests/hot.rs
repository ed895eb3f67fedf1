//! What a client does when a copy of a hot key is no good, and when the key is delegated.

use client::{Client, ClientConfig, Expiry, Outcome, Reply, Request, UnknownReason};
use cluster::{HotPolicy, Keyspace, KeyspaceId, KeyspaceKind};
use machine::{Instant, Rng};
use std::sync::Arc;
use std::time::Duration;
use wire::{
    ClientReply, ClientWrite, Code, DirectoryClock, Endpoint, Entry, Header, KeyReply, Op, Packet,
    Version, flag,
};

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

fn keyspace() -> Arc<Keyspace> {
    let kind = KeyspaceKind::Hash;
    let (id, hot) = (KeyspaceId(1), HotPolicy::Replicate);
    Arc::new(Keyspace { id, name: "k".into(), kind, seed: 7, replicas: 1, hot, content: None })
}

#[test]
fn what_a_copy_cannot_answer_is_asked_at_home_at_once_and_then_in_time() {
    let keyspace = keyspace();
    let keys: &[&[u8]] = &[b"hot", b"cold"];
    for request in [Request::Get { key: b"hot" }, Request::Mget { keys, within: None }] {
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
            (waited, client.poll_transmit().expect("it was due").payload.to_vec())
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

#[test]
fn what_a_copy_cannot_answer_needs_no_budget() {
    let (keyspace, mut now) = (keyspace(), START);
    let mut client = Client::new(ClientConfig::new(SERVICE, 77), Rng::new(1));
    for _ in 0..300 {
        client.start(now, &keyspace, Request::Get { key: b"lost" }).unwrap();
    }
    // Nothing is heard, until there is nothing left to ask again with.
    while client.counters().postponed < 300 {
        now = now.max(client.poll_timeout().expect("they wait"));
        client.handle_timeout(now);
    }
    while client.poll_transmit().is_some() {}
    client.start(now, &keyspace, Request::Get { key: b"hot" }).unwrap();
    let asked = client.poll_transmit().unwrap().payload.to_vec();
    client.handle_packet(now, SERVICE, &not_here(&asked));
    client.handle_timeout(now);
    let mut again = Vec::new();
    while let Some(datagram) = client.poll_transmit() {
        again.push(header(datagram.payload));
    }
    let of_it = again.iter().filter(|it| it.seq == header(&asked).seq);
    assert_eq!(of_it.map(|it| it.flags & flag::AT_HOME).collect::<Vec<_>>(), [flag::AT_HOME]);
}

/// The reply to a request without a payload, as a switch lets it through in this moment.
fn reply(request: &[u8], code: Code, directory_clock: u64) -> Vec<u8> {
    let asked = header(request);
    let op = Op::from_wire(asked.op).expect("clients send sound packets").reply() as u8;
    let (flags, key_len, code) = (0, 0, code as u8);
    let mut header = Header { op, flags, key_len, code, ..asked };
    KeyReply { version: Version::new(5) }.put(&mut header);
    let mut out = Vec::new();
    wire::emit(&mut out, &header, &[]);
    let clock = DirectoryClock::new(directory_clock);
    ClientReply { clock }.write(out.first_chunk_mut().expect("a header"));
    out
}

fn directory_clock(request: &[u8]) -> u64 {
    ClientWrite::read(request.first_chunk().expect("a header")).first_sent.get()
}

/// The next datagram that the client sends, and how long it waits for that.
fn next(client: &mut Client, now: &mut Instant) -> (Duration, Vec<u8>) {
    let at = client.poll_timeout().expect("something waits").max(*now);
    let waited = at.since(*now);
    *now = at;
    client.handle_timeout(*now);
    (waited, client.poll_transmit().expect("it was due").payload.to_vec())
}

const PUT: Request<'_> = Request::Put { key: b"hot", value: b"v", expiry: Expiry::Never };

fn start(client: &mut Client, now: Instant, request: Request<'_>) -> Vec<u8> {
    client.start(now, &keyspace(), request).expect("there is room");
    client.poll_transmit().expect("it is sent at once").payload.to_vec()
}

#[test]
fn a_write_says_what_was_told_when_it_was_first_sent_and_so_do_its_copies() {
    let mut now = START;
    let mut client = Client::new(ClientConfig::new(SERVICE, 77), Rng::new(1));
    let first = start(&mut client, now, PUT);
    assert_eq!(directory_clock(&first), 0, "nothing was told yet");
    let other = start(&mut client, now, Request::Del { key: b"other" });
    client.handle_packet(now, SERVICE, &reply(&other, Code::Ok, 9));
    let later = start(&mut client, now, PUT);
    let del = start(&mut client, now, Request::Del { key: b"hot" });
    assert_eq!(
        (directory_clock(&later), directory_clock(&del)),
        (9, 0),
        "only what may be delegated needs it"
    );
    client.handle_packet(now, SERVICE, &reply(&del, Code::Ok, 4));
    let again = loop {
        let (_, again) = next(&mut client, &mut now);
        if header(&again).seq == header(&first).seq {
            break again;
        }
        assert_eq!((header(&again).seq, directory_clock(&again)), (header(&later).seq, 9));
    };
    assert_eq!(directory_clock(&again), 0, "a copy of the first may have been anywhere before");
    let last = start(&mut client, now, PUT);
    assert_eq!(directory_clock(&last), 9, "another switch may be behind");
    let forged = Header { client: 78, ..header(&last) };
    let mut stranger = Vec::new();
    wire::emit(&mut stranger, &Header { op: Op::PutReply as u8, key_len: 0, ..forged }, &[]);
    let clock = DirectoryClock::new(99);
    ClientReply { clock }.write(stranger.first_chunk_mut().expect("a header"));
    client.handle_packet(now, SERVICE, &stranger);
    assert_eq!(directory_clock(&start(&mut client, now, PUT)), 9, "that was for somebody else");
}

#[test]
fn a_write_whose_key_is_away_is_sent_again_at_once_and_then_in_time() {
    let mut now = START;
    let mut client = Client::new(ClientConfig::new(SERVICE, 77), Rng::new(1));
    let first = start(&mut client, now, PUT);
    client.handle_packet(now, SERVICE, &reply(&first, Code::Delegated, 9));
    let (waited, again) = next(&mut client, &mut now);
    assert_eq!(waited, Duration::ZERO);
    assert_eq!((header(&again).seq, directory_clock(&again)), (header(&first).seq, 0));
    assert_eq!(header(&again).flags, header(&first).flags);
    // The delegation is not known to the switch yet, or is over: both take their time.
    client.handle_packet(now, SERVICE, &reply(&again, Code::Delegated, 9));
    let (waited, again) = next(&mut client, &mut now);
    assert!(waited > Duration::ZERO);
    assert_eq!(client.poll_outcome(), None);
    client.handle_packet(now, SERVICE, &reply(&again, Code::Ok, 9));
    let outcome = client.poll_outcome().unwrap().1;
    assert_eq!(outcome, Outcome::Done(Reply::Put { version: Version::new(5) }));
}

#[test]
fn what_nobody_can_know_any_more_is_not_asked_for_again() {
    let now = START;
    let mut client = Client::new(ClientConfig::new(SERVICE, 77), Rng::new(1));
    let put = start(&mut client, now, PUT);
    client.handle_packet(now, SERVICE, &reply(&put, Code::Uncertain, 9));
    let outcome = client.poll_outcome().unwrap().1;
    assert_eq!(outcome, Outcome::Unknown(UnknownReason::Uncertain));
    assert_eq!((client.poll_timeout(), client.datagrams_in_flight()), (None, 0));
    let get = start(&mut client, now, Request::Get { key: b"hot" });
    client.handle_packet(now, SERVICE, &reply(&get, Code::Uncertain, 9));
    assert_eq!(client.poll_outcome(), None, "a read has no effect that could be in doubt");
}
