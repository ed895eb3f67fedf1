//! The machine by script: what it sends when, and how requests end.

use client::{
    CasReply, Client, ClientConfig, DelReply, Expect, Expiry, IncrReply, New, Outcome, Refusal,
    Reply, Request, StartError, Ticket, UnknownReason,
};
use cluster::{HotPolicy, Keyspace, KeyspaceId, KeyspaceKind, Plant};
use machine::{Instant, Rng};
use proptest::prelude::*;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use wire::{Body, Code, DropReason, Endpoint, Entry, Fields as _, Header, Op, Packet};

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
    Arc::new(Keyspace { id, name: "k".into(), kind, seed: 7, replicas: 1, hot })
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
        header.object_version = version;
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

/// The answer to a RANGE: these keys, and an interval of match values given by first bytes.
fn piece(request: &[u8], (first, last): (u8, u8), keys: &[&[u8]], flags: u8) -> Vec<u8> {
    let mut payload = Vec::new();
    for key in keys {
        let entry = Entry { version: 1, expiry_ms: 0, value: b"v" };
        wire::push_range_entry(&mut payload, key, Some(&entry));
    }
    answer_with(request, &payload, |header| {
        header.count = keys.len() as u8;
        header.flags = flags;
        header.match_value = u128::from(first) << 120;
        header.set_match_end(u128::from(last) << 120 | (u128::MAX >> 8));
    })
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
    let Reply::Get(Some(value)) = done(GET, Code::Ok, 4, b"\0\0\0\0\0\0\0\x09value") else {
        panic!()
    };
    assert_eq!((&value.value[..], value.version, value.expiry_ms), (&b"value"[..], 4, 9));
    assert_eq!(done(GET, Code::NotFound, 4, &[0; 8]), Reply::Get(None));
    assert_eq!(done(PUT, Code::Ok, 4, b""), Reply::Put { version: 4 });
    let del = Request::Del { key: b"k" };
    let deleted = |existed| Reply::Del(DelReply { existed, version: 4 });
    assert_eq!(done(del, Code::Ok, 4, b""), deleted(true));
    assert_eq!(done(del, Code::NotFound, 4, b""), deleted(false));
    let expect = Expect::Value(b"old");
    let cas = Request::Cas { key: b"k", expect, new: New::Value(b"new"), expiry: Expiry::Keep };
    assert_eq!(done(cas, Code::Ok, 4, b""), Reply::Cas(CasReply::Written { version: 4 }));
    let mismatch = Reply::Cas(CasReply::Mismatch { version: 3 });
    assert_eq!(done(cas, Code::CasMismatch, 3, b""), mismatch);
    let incr = Request::Incr { key: b"k", delta: -5 };
    let sum = (-3i64).to_be_bytes();
    let added = Reply::Incr(IncrReply::Sum { sum: -3, version: 4 });
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
    assert_eq!(body(0), Body::Put { expiry_ms: 1_001_000, key: b"k", value: b"v" });
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
    script.reply(&answer(&first[0], Code::NotFound, 0, &[0; 8]));
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
    let reply = answer(&get, Code::Ok, 5, b"\0\0\0\0\0\0\0\0v");
    let mut damaged = reply.clone();
    *damaged.last_mut().unwrap() ^= 1;
    script.reply(&damaged);
    script.reply(&answer_with(&get, &[], |header| header.op = Op::PutReply as u8));
    script.reply(&answer_with(&get, &[0; 8], |header| header.client += 1));
    script.reply(&answer_with(&get, &[0; 8], |header| header.seq += 1));
    script.reply(&answer_with(&get, &[0; 8], |header| header.code = Code::CasMismatch as u8));
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
        assert_eq!(script.outcome(), Some(Outcome::Done(Reply::Put { version: 9 })));
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
fn a_planted_client_takes_a_stale_answer_to_a_write_for_final() {
    for code in [Code::StaleEpoch, Code::NotOwner, Code::Closed] {
        let mut script = Script::new();
        script.client.plant(Plant::StaleIsFinal);
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
fn overload_slows_down_what_is_asked_next_and_answers_speed_it_up_again() {
    let mut script = Script::new();
    for _ in 0..6 {
        script.start(PUT).unwrap();
        while script.client.counters().datagrams == script.client.counters().overloaded {
            script.next_timer();
        }
        for sent in script.sent() {
            script.reply(&answer(&sent, Code::Overloaded, 0, b""));
        }
    }
    let before = script.client.counters().datagrams;
    script.start(PUT).unwrap();
    assert_eq!(script.client.counters().datagrams, before, "it is held back");
    while script.client.in_flight() > 0 {
        script.next_timer();
        for sent in script.sent() {
            script.reply(&answer(&sent, Code::Ok, 1, b""));
        }
        while let Some(outcome) = script.outcome() {
            assert!(outcome.is_done());
        }
    }
    // Nothing holds once answers have come for a while.
    for _ in 0..60 {
        script.pass(MS * 300);
        script.start(GET).unwrap();
        let sent = script.sent_one();
        script.reply(&answer(&sent, Code::NotFound, 0, &[0; 8]));
        assert!(script.outcome().unwrap().is_done());
    }
}

#[test]
fn an_outage_does_not_become_a_storm_and_nobody_starves() {
    let mut script = Script::new();
    let mut copies = vec![0u32; 2_001];
    for _ in 0..2_000 {
        script.start(GET).unwrap();
    }
    while script.client.in_flight() > 0 {
        for sent in script.sent() {
            copies[usize::try_from(header(&sent).seq).unwrap()] += 1;
        }
        script.next_timer();
        while script.outcome().is_some() {}
    }
    assert!(copies[1..].iter().all(|n| *n >= 4), "each is sent, and sent again three times");
    // Three granted retries each; saved up, a tenth, and 100 for each of five seconds.
    let retries: u32 = copies.iter().sum::<u32>() - 2_000;
    assert!(retries <= 3 * 2_000 + 200 + 200 + 500, "{retries}");
}

#[test]
fn sixteen_requests_are_asked_for_all_through_an_outage_of_two_seconds() {
    let mut script = Script::new();
    for _ in 0..100 {
        script.start(PUT).unwrap();
        let sent = script.sent_one();
        script.pass(MS);
        script.reply(&answer(&sent, Code::Ok, 1, b""));
        assert!(script.outcome().unwrap().is_done());
    }
    let outage = script.now + MS * 2_000;
    for _ in 0..16 {
        script.start(PUT).unwrap();
    }
    while script.client.poll_timeout().unwrap() < outage {
        script.next_timer();
        script.sent();
    }
    assert_eq!(script.client.counters().postponed, 0);
    // Whoever is back now hears of all of them within one wait.
    let mut heard = std::collections::BTreeSet::new();
    while script.client.poll_timeout().unwrap() < outage + MS * 125 {
        script.next_timer();
        heard.extend(script.sent().iter().map(|sent| header(sent).seq));
    }
    assert_eq!(heard.len(), 16);
}

/// Two switches, of which some answer, until all requests have ended or a while has passed; when
/// each copy left, and to whom.
fn play(script: &mut Script, answers: impl Fn(Instant, u16) -> bool) -> Vec<(Duration, u16)> {
    let (start, mut copies) = (script.now, Vec::new());
    while script.client.in_flight() > 0 && script.now < start + MS * 4_000 {
        for (to, request) in script.sent_to() {
            copies.push((script.now.since(start), to));
            if answers(script.now, to) {
                script.pass(MS / 10);
                script.reply(&answer(&request, Code::Ok, 1, b""));
                assert!(script.outcome().is_some_and(|it| it.is_done()));
            }
        }
        if script.client.in_flight() > 0 {
            script.next_timer();
        }
    }
    copies
}

fn with_two_switches() -> Script {
    let second = Endpoint { port: 7701, ..SERVICE };
    Script::with(|config| config.services = vec![SERVICE, second])
}

#[test]
fn when_nothing_is_heard_everything_goes_to_the_next_address_and_stays_there() {
    let mut script = with_two_switches();
    for _ in 0..5 {
        script.start(PUT).unwrap();
    }
    let copies = play(&mut script, |_, to| to == 7701);
    assert_eq!(script.client.in_flight(), 0);
    let asked_first = copies.iter().filter(|(at, _)| *at < MS * 100);
    assert!(asked_first.into_iter().all(|(_, to)| *to == 7700));
    let (moved, _) = copies.iter().find(|(_, to)| *to == 7701).unwrap();
    assert!(*moved <= MS * 250, "{moved:?}");
    assert!(copies.iter().all(|(at, to)| at < moved || *to == 7701));
    for _ in 0..50 {
        script.pass(MS * 1_000);
        script.start(PUT).unwrap();
        assert!(play(&mut script, |_, to| to == 7701).iter().all(|(_, to)| *to == 7701));
    }
    assert_eq!(script.client.counters().moves, 1);
}

#[test]
fn after_the_last_address_comes_the_first_again_and_each_is_asked_in_turn() {
    let mut script = with_two_switches();
    script.start(PUT).unwrap();
    let copies = play(&mut script, |_, _| false);
    let moves = copies.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    assert!(moves >= 20, "{moves} moves");
    // Whichever of them is back, it is asked within two waits.
    for address in [7700, 7701] {
        let asked = copies.iter().filter(|(_, to)| *to == address).map(|(at, _)| *at);
        let asked: Vec<Duration> = asked.collect();
        assert!(asked.windows(2).all(|pair| pair[1] - pair[0] <= MS * 260), "{asked:?}");
    }
}

#[test]
fn while_any_answer_comes_nothing_moves_however_long_one_request_waits() {
    let mut script = with_two_switches();
    script.start(PUT).unwrap();
    let stuck = header(&script.sent_one()).seq;
    for _ in 0..300 {
        script.start(GET).unwrap();
        for (to, request) in script.sent_to() {
            assert_eq!(to, 7700);
            if header(&request).seq != stuck {
                script.reply(&answer(&request, Code::NotFound, 0, &[0; 8]));
            }
        }
        let until = script.now + MS * 10;
        while script.client.poll_timeout().is_some_and(|at| at <= until) {
            script.next_timer();
        }
        script.now = until;
    }
    assert_eq!(script.client.counters().moves, 0);
}

#[test]
fn an_idle_hour_is_no_silence() {
    let mut script = with_two_switches();
    for _ in 0..20 {
        script.start(PUT).unwrap();
        let sent = script.sent_one();
        script.reply(&answer(&sent, Code::Ok, 1, b""));
        assert!(script.outcome().unwrap().is_done());
        script.pass(Duration::from_secs(3_600));
    }
    // Two copies are lost after all that quiet.
    script.start(PUT).unwrap();
    let asked_at = script.now;
    let copies = play(&mut script, |now, _| now.since(asked_at) >= MS * 12);
    assert!(copies.len() >= 3 && copies.iter().all(|(_, to)| *to == 7700), "{copies:?}");
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
    script.reply(&answer(&copy, Code::NotFound, 0, &[0; 8]));
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
        script.reply(&answer(&sent, Code::NotFound, 0, &[0; 8]));
        assert!(script.outcome().unwrap().is_done());
        answered += 1;
    }
    assert_eq!(answered, u32::from(u16::MAX));
    script.reply(&answer(&stuck, Code::Ok, 1, b""));
    assert!(script.start(GET).is_ok());
}

#[test]
fn a_multiget_asks_again_only_for_the_keys_still_missing() {
    let mut script = Script::new();
    let keys: Vec<&[u8]> = vec![b"a", b"b", b"c", b"d"];
    script.start(Request::Mget { keys: &keys, within: None }).unwrap();
    let first = script.sent_one();
    assert_eq!(header(&first).bitmap, 0b1111);
    let reply = |bitmap: u32, codes: &[(u8, Code)]| {
        let mut payload = Vec::new();
        for (index, code) in codes {
            let entry = Entry { version: 1, expiry_ms: 0, value: b"v" };
            wire::push_mget_entry(&mut payload, *index, *code as u8, &entry);
        }
        answer_with(&first, &payload, |header| header.bitmap = bitmap)
    };
    script.reply(&reply(0b0101, &[(2, Code::Ok), (0, Code::NotFound)]));
    script.reply(&reply(0b0001, &[(0, Code::Ok)]));
    assert_eq!(script.client.counters().dropped(DropReason::UnknownRequest), 1);
    script.next_timer();
    let second = script.sent_one();
    assert_eq!((header(&second).bitmap, header(&second).seq), (0b1010, 1));
    script.reply(&reply(0b0010, &[(1, Code::NotOwner)]));
    assert!(script.next_timer() <= MS * 2);
    assert_eq!(header(&script.sent_one()).bitmap, 0b1010);
    script.reply(&reply(0b0010, &[(1, Code::TooLarge)]));
    while script.client.in_flight() > 0 {
        script.next_timer();
        let Some(outcome) = script.outcome() else { continue };
        let Outcome::Done(Reply::Mget(outcomes)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(outcomes[0], Outcome::Done(None));
        assert_eq!(outcomes[1], Outcome::Refused(Refusal::TooLarge));
        assert!(matches!(&outcomes[2], Outcome::Done(Some(value)) if value.value == b"v"));
        assert_eq!(outcomes[3], Outcome::Unknown(UnknownReason::NoAnswer));
    }
}

#[test]
fn a_scan_asks_again_only_for_what_is_not_covered_under_new_numbers() {
    let mut script = Script::new();
    script.scan(None);
    let first = script.sent_one();
    script.reply(&piece(&first, (0x20, 0x3f), &[b"\x20", b"\x30"], 0));
    script.reply(&piece(&first, (0x80, 0xff), &[b"\x90"], 0));
    assert!(script.sent().is_empty());
    script.next_timer();
    let asked: Vec<(u64, u128, u128)> = script
        .sent()
        .iter()
        .map(|sent| {
            let header = header(sent);
            (header.seq, header.match_value >> 120, header.match_end() >> 120)
        })
        .collect();
    assert_eq!(asked, [(2, 0x00, 0x1f), (3, 0x40, 0x7f)]);
    // A late answer to the old number is no longer taken; the same to the new one is.
    script.reply(&piece(&first, (0x00, 0x1f), &[b"\x01"], 0));
    assert_eq!(script.client.counters().dropped(DropReason::UnknownRequest), 1);
    let renumbered = |seq, to, keys: &[&[u8]]| {
        let mut request = first.clone();
        let (bytes, _) = request.split_first_chunk_mut::<{ wire::HEADER_LEN }>().unwrap();
        bytes.set_seq(seq);
        piece(&request, to, keys, 0)
    };
    script.reply(&renumbered(3, (0x40, 0x7f), &[]));
    script.reply(&renumbered(2, (0x00, 0x1f), &[b"\x01"]));
    let Some(Outcome::Done(Reply::Range(entries))) = script.outcome() else { panic!() };
    let keys: Vec<&[u8]> = entries.iter().map(|(key, _)| &key[..]).collect();
    assert_eq!(keys, [b"\x01", b"\x20", b"\x30", b"\x90"]);
    assert_eq!(script.client.poll_timeout(), None);
}

#[test]
fn a_partial_answer_that_goes_nowhere_is_dropped() {
    let mut script = Script::new();
    script.scan(None);
    let first = script.sent_one();
    script.reply(&piece(&first, (0x00, 0xff), &[b"\x20"], wire::flag::PARTIAL));
    let second = script.sent_one();
    assert_eq!(header(&second).flags & wire::flag::START_EXCLUSIVE, wire::flag::START_EXCLUSIVE);
    for keys in [&[][..], &[&b"\x20"[..]]] {
        script.reply(&piece(&second, (0x20, 0xff), keys, wire::flag::PARTIAL));
    }
    script.reply(&piece(&second, (0x20, 0xff), &[b"\x40", b"\x30"], 0));
    script.reply(&piece(&second, (0xff, 0x20), &[], 0));
    assert_eq!(script.client.counters().dropped(DropReason::BadBody), 4);
    assert!(script.sent().is_empty());
    assert_eq!(script.outcome(), None);
}

#[test]
fn a_scan_over_what_the_client_may_hold_is_refused() {
    let mut script = Script::with(|config| config.result_bytes_max = 100);
    script.scan(None);
    let first = script.sent_one();
    script.reply(&piece(&first, (0x00, 0xff), &[b"\x20", b"\x21"], 0));
    let outcome = script.outcome().unwrap();
    assert_eq!(outcome, Outcome::Refused(Refusal::ResultTooLarge { bytes_max: 100 }));
    assert_eq!((script.client.in_flight(), script.client.poll_timeout()), (0, None));
}

#[test]
fn a_scan_lives_as_long_as_it_makes_progress() {
    let mut script = Script::new();
    script.scan(None);
    for byte in 1..100 {
        let request = script.sent_one();
        script.pass(Duration::from_secs(1));
        script.reply(&piece(&request, (byte - 1, 0xff), &[&[byte]], wire::flag::PARTIAL));
    }
    let before = script.now;
    let outcome = loop {
        if let Some(outcome) = script.outcome() {
            break outcome;
        }
        script.next_timer();
    };
    assert_eq!(outcome, Outcome::Unknown(UnknownReason::NoAnswer));
    assert_eq!(script.now.since(before), Duration::from_secs(5));
}

#[test]
fn what_cannot_be_sent_is_refused_with_its_size_and_the_limit() {
    let mut script = Script::new();
    let long = vec![7; 1_400];
    let put = |value| Request::Put { key: b"key", value, expiry: Expiry::Never };
    let cas = |expect, new| Request::Cas { key: b"k", expect, new, expiry: Expiry::Never };
    let (half, nothing) = (&long[..700], cas(Expect::Version(0), New::Nothing));
    let cas = cas(Expect::Value(half), New::Value(half));
    let keys = vec![&b"k"[..]; client::MANY_KEYS_MAX + 1];
    let (start, end) = (Bound::Unbounded, Bound::Unbounded);
    let cases = [
        (put(&long), "3 + 1400 bytes; use at most 1280"),
        (Request::Get { key: &long }, "1400 bytes; use at most 1024"),
        (Request::Get { key: b"" }, "empty"),
        (nothing, "only a value that is there"),
        (cas, "a datagram of 1539 bytes and 1472 is the most"),
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
        let expect = Expect::Version(0);
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
                    header.set_match_end(last);
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
