//! The machine by script: what it sends when, and how requests end.

mod addresses;
mod many;
mod silence;

use client::{
    CasReply, Client, ClientConfig, DelReply, Expect, Expiry, IncrReply, New, Outcome, Refusal,
    Reply, Request, StartError, Ticket, UnknownReason,
};
use cluster::{HotPolicy, Keyspace, KeyspaceId, KeyspaceKind, Mutant};
use machine::{Instant, Rng};
use proptest::prelude::*;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use wire::{
    Body, Code, DropReason, Endpoint, Entry, Fields as _, Header, KeyReply, Op, Packet,
    RangeInterval, Version,
};

const SERVICE: Endpoint = Endpoint { addr: [1; 16], port: 7700 };
const CLIENT: u64 = 77;
const START: Instant = Instant(1_000_000_000_000);
const MS: Duration = Duration::from_millis(1);
const GET: Request<'static> = Request::Get { key: b"k" };
const PUT: Request<'static> = Request::Put { key: b"k", value: b"v", expiry: Expiry::Never };

/// A machine with the script's hand on its clock and its network.
struct Script {
    client: Client,
    now: Instant,
    hash: Arc<Keyspace>,
    range: Arc<Keyspace>,
}

fn keyspace(kind: KeyspaceKind) -> Arc<Keyspace> {
    let (id, hot) = (KeyspaceId(1), HotPolicy::Off);
    Arc::new(Keyspace { id, name: "k".into(), kind, seed: 7, replicas: 1, hot, content: None })
}

impl Script {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut config = ClientConfig::new(SERVICE, CLIENT);
        change(&mut config);
        Self {
            client: Client::new(config, Rng::new(1)),
            now: START,
            hash: keyspace(KeyspaceKind::Hash),
            range: keyspace(KeyspaceKind::Range { prefix: Vec::new() }),
        }
    }

    fn start(&mut self, request: Request<'_>) -> Result<Ticket, StartError> {
        self.client.start(self.now, &self.hash, request)
    }

    fn scan(&mut self, limit: Option<usize>) -> Ticket {
        let (start, end) = (Bound::Unbounded, Bound::Unbounded);
        let request = Request::Range { start, end, reverse: false, limit, keys_only: false };
        self.client.start(self.now, &self.range, request).expect("a sound request")
    }

    /// Takes everything that is to be sent.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.client.poll_transmit().map(|it| it.payload.to_vec())).collect()
    }

    /// Takes everything that is to be sent, with the port that it goes to.
    fn sent_to(&mut self) -> Vec<(u16, Vec<u8>)> {
        let take = || self.client.poll_transmit().map(|it| (it.to.port, it.payload.to_vec()));
        std::iter::from_fn(take).collect()
    }

    /// Takes the only datagram that is to be sent.
    fn sent_one(&mut self) -> Vec<u8> {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1);
        sent.remove(0)
    }

    fn reply(&mut self, datagram: &[u8]) {
        self.client.handle_packet(self.now, SERVICE, datagram);
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    /// Goes on to the next timer; how long that took.
    fn next_timer(&mut self) -> Duration {
        let at = self.client.poll_timeout().expect("something waits");
        let span = at.since(self.now);
        self.now = self.now.max(at);
        self.client.handle_timeout(self.now);
        span
    }

    fn outcome(&mut self) -> Option<Outcome<Reply>> {
        self.client.poll_outcome().map(|(_, outcome)| outcome)
    }
}

/// The answer to a request: its header echoed, with this code and payload.
fn answer(request: &[u8], code: Code, version: u64, payload: &[u8]) -> Vec<u8> {
    answer_with(request, payload, |header| {
        header.code = code as u8;
        KeyReply { version: Version::new(version) }.put(header);
    })
}

fn answer_with(request: &[u8], payload: &[u8], change: impl FnOnce(&mut Header)) -> Vec<u8> {
    let packet = Packet::parse(request).expect("clients send sound packets");
    let echo = Header::read(packet.header());
    let op = packet.op().reply() as u8;
    let mut header = Header { op, flags: 0, key_len: 0, count: 0, ..echo };
    change(&mut header);
    let mut out = Vec::new();
    wire::emit(&mut out, &header, &[payload]);
    out
}

fn header(datagram: &[u8]) -> Header {
    Header::read(Packet::parse(datagram).expect("clients send sound packets").header())
}

#[test]
fn every_operation_ends_with_what_its_reply_says() {
    let done = |request: Request<'_>, code, version, payload: &[u8]| {
        let mut script = Script::new();
        script.start(request).unwrap();
        let sent = script.sent_one();
        script.reply(&answer(&sent, code, version, payload));
        script.outcome().unwrap().done().unwrap()
    };
    let Reply::Get(Some(value)) =
        done(GET, Code::Ok, 4, b"\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\x05value")
    else {
        panic!()
    };
    assert_eq!(
        (&value.value[..], value.version, value.expiry_ms),
        (&b"value"[..], Version::new(4), 9)
    );
    assert_eq!(value.ttl_ms(), Some(4));
    assert_eq!(done(GET, Code::NotFound, 4, &[0; 16]), Reply::Get(None));
    assert_eq!(done(PUT, Code::Ok, 4, b""), Reply::Put { version: Version::new(4) });
    let del = Request::Del { key: b"k" };
    let deleted = |existed| Reply::Del(DelReply { existed, version: Version::new(4) });
    assert_eq!(done(del, Code::Ok, 4, b""), deleted(true));
    assert_eq!(done(del, Code::NotFound, 4, b""), deleted(false));
    let expect = Expect::Value(b"old");
    let cas = Request::Cas { key: b"k", expect, new: New::Value(b"new"), expiry: Expiry::Keep };
    assert_eq!(
        done(cas, Code::Ok, 4, b""),
        Reply::Cas(CasReply::Written { version: Version::new(4) })
    );
    let mismatch = Reply::Cas(CasReply::Mismatch { version: Version::new(3) });
    assert_eq!(done(cas, Code::CasMismatch, 3, b""), mismatch);
    let incr = Request::Incr { key: b"k", delta: -5 };
    let sum = (-3i64).to_be_bytes();
    let added = Reply::Incr(IncrReply::Sum { sum: -3, version: Version::new(4) });
    assert_eq!(done(incr, Code::Ok, 4, &sum), added);
    assert_eq!(done(incr, Code::NotANumber, 4, &sum), Reply::Incr(IncrReply::NotANumber));
    assert_eq!(done(incr, Code::Overflow, 4, &sum), Reply::Incr(IncrReply::Overflow));
}

#[test]
fn requests_say_on_the_wire_what_was_asked() {
    let mut script = Script::new();
    let in_a_second = Expiry::In(Duration::from_secs(1));
    script.start(Request::Put { key: b"k", value: b"v", expiry: in_a_second }).unwrap();
    let expect = Expect::Value(b"old");
    let new = New::Value(b"v");
    script.start(Request::Cas { key: b"k", expect, new, expiry: Expiry::Keep }).unwrap();
    script.start(Request::Incr { key: b"k", delta: -5 }).unwrap();
    let sent = script.sent();
    let body = |n: usize| Packet::parse(&sent[n]).unwrap().body().unwrap();
    assert_eq!(body(0), Body::Put { expiry_ms: wire::expiry::span(1_000), key: b"k", value: b"v" });
    assert_eq!(body(1), Body::Cas { expiry_ms: 0, key: b"k", expect, new });
    assert_eq!(header(&sent[1]).flags, wire::flag::CAS_VALUE | wire::flag::KEEP_EXPIRY);
    assert_eq!(body(2), Body::Incr { delta: -5, key: b"k" });
    for (datagram, seq) in sent.iter().zip(1..) {
        let header = header(datagram);
        assert_eq!((header.client, header.seq), (CLIENT, seq));
        assert_eq!(header.match_value, script.hash.match_value(b"k").0);
        assert_eq!(header.keyhash, script.hash.keyhash(b"k"));
    }
}

#[test]
fn describe_gives_the_keyspace() {
    let mut script = Script::new();
    script.client.describe(script.now, "users").unwrap();
    let sent = script.sent_one();
    let fixed = wire::DescribeReplyBody { seed: 9, id: 3, kind: 1 }.to_bytes();
    script.reply(&answer(&sent, Code::Ok, 0, &[&fixed[..], b"user"].concat()));
    let kind = KeyspaceKind::Range { prefix: b"user".to_vec() };
    let want = Keyspace {
        id: KeyspaceId(3),
        name: "users".into(),
        kind,
        seed: 9,
        replicas: 0,
        hot: HotPolicy::default(),
        content: None,
    };
    assert_eq!(script.outcome(), Some(Outcome::Done(Reply::Describe(want))));
}

#[test]
fn a_request_is_sent_again_byte_for_byte_but_for_lag_and_tag() {
    let mut script = Script::new();
    script.start(GET).unwrap();
    script.start(PUT).unwrap();
    let first = script.sent();
    assert_eq!((header(&first[0]).lag, header(&first[1]).lag), (0, 1));
    // The older one ends: the low-water mark moves, and the copy says so.
    script.reply(&answer(&first[0], Code::NotFound, 0, &[0; 16]));
    script.next_timer();
    let copy = script.sent_one();
    assert_eq!(header(&copy), Header { lag: 0, ..header(&first[1]) });
    assert!(Packet::parse(&copy).unwrap().body().is_ok());
    script.reply(&answer(&first[1], Code::Ok, 5, b""));
    assert_eq!(script.client.counters().retransmits, 1);
    assert_eq!(script.client.poll_timeout(), None);
}

#[test]
fn waits_double_until_the_deadline_and_then_the_outcome_is_unknown() {
    let mut script = Script::new();
    script.start(PUT).unwrap();
    let request = script.sent_one();
    let mut last = Duration::ZERO;
    let outcome = loop {
        let wait = script.next_timer();
        if let Some(outcome) = script.outcome() {
            break outcome;
        }
        assert!(wait <= MS * 125 && (wait > last || wait >= MS * 100), "{last:?} {wait:?}");
        last = wait;
        assert_eq!(script.sent().len(), 1);
    };
    assert_eq!(outcome, Outcome::Unknown(UnknownReason::NoAnswer));
    assert_eq!(script.now.since(START), Duration::from_secs(5));
    // Whatever comes now changes nothing.
    script.reply(&answer(&request, Code::Ok, 5, b""));
    assert_eq!(script.outcome(), None);
    assert_eq!(script.client.counters().dropped(DropReason::UnknownRequest), 1);
    assert_eq!(script.client.counters().unknown, 1);
}

#[test]
fn a_refusal_is_final_and_stays_apart_from_unknown() {
    let mut script = Script::new();
    script.start(PUT).unwrap();
    let request = script.sent_one();
    script.reply(&answer(&request, Code::BadMatch, 0, b""));
    let outcome = script.outcome().unwrap();
    assert!(outcome.is_refused() && !outcome.is_unknown() && !outcome.is_done());
    assert_eq!(outcome, Outcome::Refused(Refusal::BadMatch));
    assert_eq!(script.client.poll_timeout(), None);
}

#[test]
fn doubled_damaged_and_foreign_replies_are_dropped_and_counted() {
    let mut script = Script::new();
    script.start(GET).unwrap();
    let get = script.sent_one();
    let reply = answer(&get, Code::Ok, 5, &[&[0; 16][..], b"v"].concat());
    let mut damaged = reply.clone();
    *damaged.last_mut().unwrap() ^= 1;
    script.reply(&damaged);
    script.reply(&answer_with(&get, &[], |header| header.op = Op::PutReply as u8));
    script.reply(&answer_with(&get, &[0; 16], |header| header.client += 1));
    script.reply(&answer_with(&get, &[0; 16], |header| header.seq += 1));
    script.reply(&answer_with(&get, &[0; 16], |header| header.code = Code::CasMismatch as u8));
    script.reply(&get);
    assert_eq!(script.outcome(), None);
    script.reply(&reply);
    script.reply(&reply);
    assert!(script.outcome().unwrap().is_done());
    assert_eq!(script.outcome(), None);
    let drops: Vec<_> = script.client.counters().drops().filter(|(_, n)| *n > 0).collect();
    let want = [
        (DropReason::BadOp, 1),
        (DropReason::BadBody, 1),
        (DropReason::BadTag, 1),
        (DropReason::UnknownRequest, 4),
    ];
    assert_eq!(drops, want);
    assert_eq!(script.client.counters().replies, 1);
}

#[test]
fn ask_again_is_asked_again_soon_under_the_same_number_and_never_an_outcome() {
    for code in [Code::StaleEpoch, Code::NotOwner, Code::NotServing, Code::Closed] {
        let mut script = Script::new();
        script.start(PUT).unwrap();
        let first = script.sent_one();
        for round in 0..5 {
            script.reply(&answer(&first, code, 0, b""));
            // A second copy of the answer does not bring the next question forward, or put it off.
            let at = script.client.poll_timeout();
            script.reply(&answer(&first, code, 0, b""));
            assert_eq!(script.client.poll_timeout(), at);
            assert_eq!(script.outcome(), None);
            let wait = script.next_timer();
            assert!(wait <= MS * 2 * (1 << round), "{round}: {wait:?}");
            assert_eq!(header(&script.sent_one()), header(&first));
        }
        script.reply(&answer(&first, Code::Ok, 9, b""));
        assert_eq!(script.outcome(), Some(Outcome::Done(Reply::Put { version: Version::new(9) })));
    }
}

#[test]
fn a_write_that_was_told_to_ask_again_until_its_deadline_is_unknown() {
    let mut script = Script::new();
    script.start(PUT).unwrap();
    let first = script.sent_one();
    let outcome = loop {
        script.reply(&answer(&first, Code::NotOwner, 0, b""));
        script.next_timer();
        if let Some(outcome) = script.outcome() {
            break outcome;
        }
    };
    assert!(outcome.is_unknown());
}

#[test]
fn a_mutant_client_takes_a_stale_answer_to_a_write_for_final() {
    for code in [Code::StaleEpoch, Code::NotOwner, Code::Closed] {
        let mut script = Script::new();
        script.client.mutant(Mutant::StaleIsFinal);
        script.start(PUT).unwrap();
        let write = script.sent_one();
        script.reply(&answer(&write, code, 0, b""));
        assert!(script.outcome().unwrap().is_refused());
        script.start(GET).unwrap();
        let read = script.sent_one();
        script.reply(&answer(&read, code, 0, b""));
        assert_eq!(script.outcome(), None);
    }
}

#[test]
fn no_more_requests_start_than_may_wait() {
    let mut script = Script::with(|config| config.in_flight_max = 3);
    for n in 0..3 {
        assert_eq!(script.start(PUT), Ok(Ticket(n)));
    }
    assert_eq!(script.start(GET), Err(StartError::Busy));
    let sent = script.sent();
    script.reply(&answer(&sent[1], Code::Ok, 1, b""));
    assert_eq!(script.start(GET), Err(StartError::Busy), "until the outcome is taken");
    assert_eq!(script.client.poll_outcome().unwrap().0, Ticket(1));
    assert_eq!(script.start(GET), Ok(Ticket(3)));
}

#[test]
fn a_read_without_answer_does_not_hold_the_low_water_mark_back() {
    let mut script = Script::with(|config| config.deadline = Duration::from_secs(3_600));
    script.start(GET).unwrap();
    script.sent();
    let mut copies = 0;
    for n in 0..200_000u64 {
        script.start(PUT).unwrap();
        let sent = script.sent();
        // Three times the window was full: the read went on under another number.
        copies += sent.iter().filter(|it| header(it).op == Op::Get as u8).count();
        script.reply(&answer(sent.last().unwrap(), Code::Ok, n, b""));
        assert!(script.outcome().unwrap().is_done());
    }
    assert_eq!((script.client.in_flight(), copies), (1, 3));
    script.next_timer();
    let copy = script.sent_one();
    script.reply(&answer(&copy, Code::NotFound, 0, &[0; 16]));
    assert_eq!(script.outcome(), Some(Outcome::Done(Reply::Get(None))));
}

#[test]
fn a_write_without_answer_holds_the_window_and_says_busy() {
    let mut script = Script::new();
    script.start(PUT).unwrap();
    let stuck = script.sent_one();
    let mut answered = 0u32;
    while script.start(GET).is_ok() {
        let sent = script.sent_one();
        script.reply(&answer(&sent, Code::NotFound, 0, &[0; 16]));
        assert!(script.outcome().unwrap().is_done());
        answered += 1;
    }
    assert_eq!(answered, u32::from(u16::MAX));
    script.reply(&answer(&stuck, Code::Ok, 1, b""));
    assert!(script.start(GET).is_ok());
}

#[test]
fn what_cannot_be_sent_is_refused_with_its_size_and_the_limit() {
    let mut script = Script::new();
    let long = vec![7; 1_400];
    let put = |value| Request::Put { key: b"key", value, expiry: Expiry::Never };
    let cas = |expect, new| Request::Cas { key: b"k", expect, new, expiry: Expiry::Never };
    let (half, nothing) = (&long[..700], cas(Expect::Version(Version::NONE), New::Nothing));
    let cas = cas(Expect::Value(half), New::Value(half));
    let keys = vec![&b"k"[..]; client::MANY_KEYS_MAX + 1];
    let (start, end) = (Bound::Unbounded, Bound::Unbounded);
    let cases = [
        (put(&long), "3 + 1400 bytes; use at most 1280"),
        (Request::Get { key: &long }, "1400 bytes; use at most 1024"),
        (Request::Get { key: b"" }, "empty"),
        (nothing, "only a value that is there"),
        (cas, "a datagram of 1555 bytes and 1448 is the most"),
        (Request::Mget { keys: &keys, within: None }, "1048577 keys in one request; use at most"),
        (Request::Range { start, end, reverse: false, limit: None, keys_only: false }, "no order"),
    ];
    for (request, text) in cases {
        let error = script.start(request).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    let error = script.client.describe(script.now, "").unwrap_err().to_string();
    assert!(error.contains("0 bytes; use 1 to 64"), "{error}");
    assert!(script.sent().is_empty() && script.client.in_flight() == 0);
    script.start(put(&long[..1_277])).unwrap();
    assert_eq!(script.sent_one().len(), 120 + 8 + 1_280);
}

#[test]
fn requests_for_nothing_end_at_once() {
    let mut script = Script::new();
    script.start(Request::Mget { keys: &[], within: None }).unwrap();
    assert_eq!(script.outcome(), Some(Outcome::Done(Reply::Mget(Vec::new()))));
    script.scan(Some(0));
    assert_eq!(script.outcome(), Some(Outcome::Done(Reply::Range(Vec::new()))));
    let (start, end) = (Bound::Excluded(&b"b"[..]), Bound::Included(&b"b"[..]));
    let request = Request::Range { start, end, reverse: false, limit: None, keys_only: false };
    script.client.start(script.now, &script.range.clone(), request).unwrap();
    assert_eq!(script.outcome(), Some(Outcome::Done(Reply::Range(Vec::new()))));
    assert!(script.sent().is_empty());
}

proptest! {
    #[test]
    fn no_reply_makes_it_panic_or_end_a_request_twice(
        replies in proptest::collection::vec(
            (0usize..8, any::<[u8; 5]>(), any::<u128>(), any::<u128>(),
             proptest::collection::vec(any::<u8>(), 0..60)),
            0..60,
        ),
    ) {
        let mut script = Script::new();
        let keys: Vec<&[u8]> = vec![b"a", b"b"];
        let expect = Expect::Version(Version::NONE);
        script.start(GET).unwrap();
        script.start(PUT).unwrap();
        script.start(Request::Del { key: b"k" }).unwrap();
        let (key, expiry) = (b"k", Expiry::Never);
        script.start(Request::Cas { key, expect, new: New::Value(b""), expiry }).unwrap();
        script.start(Request::Incr { key: b"k", delta: 1 }).unwrap();
        script.start(Request::Mget { keys: &keys, within: None }).unwrap();
        script.scan(None);
        script.scan(Some(3));
        let mut ended = std::collections::BTreeSet::new();
        let mut sent = Vec::new();
        for (which, [code, count, flags, bitmap, hop], first, last, payload) in replies {
            sent.extend(script.sent());
            let request: &Vec<u8> = &sent[sent.len() - 1 - which % sent.len()];
            let reply = answer_with(request, &payload, |header| {
                header.code = if code < 128 { code % 8 } else { 16 + code % 4 };
                header.count = count % 3;
                header.flags = flags;
                header.hop_flags = hop;
                header.bitmap = u32::from(bitmap % 4);
                header.match_value = first;
                if header.op == Op::RangeReply as u8 {
                    RangeInterval { first, last }.put(header);
                }
            });
            script.pass(MS / 10);
            script.reply(&reply);
            while let Some((ticket, _)) = script.client.poll_outcome() {
                prop_assert!(ended.insert(ticket));
            }
        }
        while script.client.in_flight() > 0 {
            script.next_timer();
            while let Some((ticket, _)) = script.client.poll_outcome() {
                prop_assert!(ended.insert(ticket));
            }
        }
        prop_assert_eq!(ended.len(), 8);
    }
}
