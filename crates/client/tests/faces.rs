//! Both faces over real sockets, against a service of one thread that answers on loopback. Nothing
//! sleeps: the service ends when its socket is told to, every wait is for an answer.

use client::{
    CasReply, Expect, Expiry, IncrReply, LookupError, New, NotDone, Options, Outcome, PutOptions,
    Refusal, ScanOptions, StartError, UnknownReason, Value,
};
use cluster::{Keyspace, KeyspaceKind};
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Bound;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use wire::{Body, Code, Entry, Header, KeyReply, Op, Packet, RangeInterval, Version};

mod faces {
    mod inbox;
}

/// A whole cluster in one thread. It loses every seventh request and answers every fifth twice.
struct Service {
    address: SocketAddr,
    /// Goodbyes that it has heard.
    goodbyes: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

/// Written by version number `1`, the value, where it stands.
type Store = BTreeMap<Vec<u8>, (u64, Vec<u8>)>;

impl Service {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback is there");
        let address = socket.local_addr().expect("it is bound");
        let (heard, goodbyes) = channel();
        let thread = std::thread::spawn(move || {
            let (mut store, mut version) = (Store::new(), 0);
            let mut buffer = [0; wire::PACKET_MAX];
            for number in 1u64.. {
                let (len, from) = socket.recv_from(&mut buffer).expect("loopback stays up");
                let Some(datagram) = buffer.get(..len).filter(|it| !it.is_empty()) else { return };
                if Packet::parse(datagram).is_ok_and(|it| it.op() == Op::Goodbye) {
                    heard.send(()).expect("the service outlives its thread");
                    continue;
                }
                if number.is_multiple_of(7) {
                    continue;
                }
                let reply = answer(&mut store, &mut version, datagram);
                for _ in 0..1 + u32::from(number.is_multiple_of(5)) {
                    socket.send_to(&reply, from).expect("loopback stays up");
                }
            }
        });
        Self { address, goodbyes, thread: Some(thread) }
    }

    /// Waits until a client has said goodbye.
    fn wait_for_goodbye(&self) {
        self.goodbyes.recv_timeout(Duration::from_secs(20)).expect("it is said");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // An empty datagram ends it.
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback is there");
        socket.send_to(&[], self.address).expect("loopback stays up");
        let thread = self.thread.take().expect("it is dropped once");
        assert!(thread.join().is_ok() || std::thread::panicking());
    }
}

/// What a compare-and-set leaves of an old value.
fn swapped(old: Vec<u8>, new: New<'_>) -> Option<Vec<u8>> {
    match new {
        New::Value(value) => Some(value.to_vec()),
        New::Same => Some(old),
        New::Nothing => None,
    }
}

fn answer(store: &mut Store, version: &mut u64, datagram: &[u8]) -> Vec<u8> {
    let packet = Packet::parse(datagram).expect("clients send sound packets");
    let body = packet.body().expect("clients send sound bodies");
    let echo = Header::read(packet.header());
    let op = packet.op().reply() as u8;
    let mut reply = Header { op, flags: 0, key_len: 0, count: 0, ..echo };
    let mut payload = Vec::new();
    *version += 1;
    let mut code = Code::Ok;
    match body {
        Body::Describe { name: b"users" } => {
            payload.extend(wire::DescribeReplyBody { seed: 7, id: 3, kind: 1 }.to_bytes());
        }
        Body::Describe { .. } => code = Code::UnknownKeyspace,
        Body::Get { key } => {
            payload.extend([0; 16]);
            match store.get(key) {
                Some((version, value)) => {
                    KeyReply { version: Version::new(*version) }.put(&mut reply);
                    payload.extend(value);
                }
                None => code = Code::NotFound,
            }
        }
        Body::Put { key, value, .. } => {
            KeyReply { version: Version::new(*version) }.put(&mut reply);
            store.insert(key.to_vec(), (*version, value.to_vec()));
        }
        Body::Cas { key, expect, new, .. } => {
            let found = store.get(key).map_or(0, |(version, _)| *version);
            KeyReply { version: Version::new(found) }.put(&mut reply);
            if expect == Expect::Version(Version::new(found)) {
                KeyReply { version: Version::new(*version) }.put(&mut reply);
                let old = store.remove(key).unwrap_or_default().1;
                store.extend(swapped(old, new).map(|new| (key.to_vec(), (*version, new))));
            } else {
                code = Code::CasMismatch;
            }
        }
        Body::Del { key } => {
            KeyReply { version: Version::new(*version) }.put(&mut reply);
            if store.remove(key).is_none() {
                code = Code::NotFound;
            }
        }
        Body::Incr { delta, .. } => {
            payload.extend(delta.to_be_bytes());
        }
        Body::Mget(keys) => {
            for (index, key) in (0u8..).zip(keys.iter()) {
                let entry = store.get(key.key);
                let code = if entry.is_some() { Code::Ok } else { Code::NotFound };
                let value = entry.map_or(&[][..], |(_, value)| value);
                let entry = Entry { version: Version::new(1), expiry_ms: 0, now_ms: 0, value };
                wire::push_mget_entry(&mut payload, index, code as u8, &entry);
            }
        }
        Body::Range { start, .. } => scan(store, start, &mut reply, &mut payload),
        other => panic!("clients do not send {other:?}"),
    }
    reply.code = code as u8;
    if packet.op() == Op::Range {
        let RangeInterval { last, .. } = RangeInterval::of(&echo);
        RangeInterval { first: reply.match_value, last }.put(&mut reply);
    }
    let mut out = Vec::new();
    wire::emit(&mut out, &reply, &[if code.is_decided() { &payload } else { &[] }]);
    out
}

/// At most three entries at a time, so that the client asks on.
fn scan(store: &Store, start: &[u8], reply: &mut Header, payload: &mut Vec<u8>) {
    let from = if start.is_empty() { Bound::Unbounded } else { Bound::Excluded(start.to_vec()) };
    let mut found = store.range((from, Bound::Unbounded)).peekable();
    while reply.count < 3 {
        let Some((key, (version, value))) = found.next() else { break };
        let entry = Entry { version: Version::new(*version), expiry_ms: 0, now_ms: 0, value };
        wire::push_range_entry(payload, key, Some(&entry));
        reply.count += 1;
    }
    if found.peek().is_some() {
        reply.flags = wire::flag::PARTIAL;
    }
}

fn impatient() -> Options {
    Options { deadline: Duration::from_millis(80), ..Options::default() }
}

/// An address where nobody listens, which the system says to those who ask.
fn nobody() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback is there");
    socket.local_addr().expect("it is bound")
}

fn is_users(keyspace: &Keyspace) -> bool {
    keyspace.name == "users" && keyspace.kind == KeyspaceKind::Range { prefix: Vec::new() }
}

fn bytes(found: Option<Value>) -> Option<Vec<u8>> {
    found.map(|it| it.value)
}

#[test]
fn blocking_calls_end_with_what_the_service_says() {
    let service = Service::start();
    let client = client::blocking::Client::connect(service.address, Options::default()).unwrap();
    let users = client.keyspace("users").unwrap();
    assert!(is_users(&users.keyspace()));
    let missing = client.keyspace("nothing").unwrap_err();
    assert_eq!(missing, LookupError::NoSuchKeyspace("nothing".into()));

    assert_eq!(users.get(b"a"), Outcome::Done(None));
    let options = PutOptions { expiry: Expiry::In(Duration::from_secs(60)) };
    let version = users.put(b"a", b"1", options).done().unwrap();
    let found = users.get(b"a").done().unwrap().unwrap();
    assert_eq!((found.value, found.version), (b"1".to_vec(), version));
    let stale = Expect::Version(version.next());
    let mismatch = users.cas(b"a", stale, b"2", PutOptions::default());
    assert_eq!(mismatch, Outcome::Done(CasReply::Mismatch { version }));
    let swapped = users.cas(b"a", Expect::Version(version), b"2", PutOptions::default());
    assert!(matches!(swapped, Outcome::Done(CasReply::Written { .. })));
    let Outcome::Done(CasReply::Written { version }) = swapped else { panic!("{swapped:?}") };
    let expect = Expect::Version(version);
    let touched = users.cas(b"a", expect, New::Same, options).done().unwrap();
    let CasReply::Written { version } = touched else { panic!("{touched:?}") };
    let expect = Expect::Version(version);
    let gone = users.cas(b"a", expect, New::Nothing, PutOptions::default());
    assert!(matches!(gone, Outcome::Done(CasReply::Written { .. })));
    assert_eq!(users.get(b"a"), Outcome::Done(None));
    let added = users.incr(b"n", -4).done().unwrap();
    assert!(matches!(added, IncrReply::Sum { sum: -4, .. }));
    let too_large = users.put(&[1; 1_000], &[0; 2_000], PutOptions::default());
    assert_eq!(too_large, Outcome::Refused(Refusal::KeyTooLongForBig));

    let keys: Vec<Vec<u8>> = (b'a'..=b'z').map(|byte| vec![byte]).collect();
    for key in &keys {
        assert!(users.put(key, key, PutOptions::default()).is_done());
    }
    let found = users.mget(&[&b"z"[..], b"none", b"a"]);
    let found: Vec<_> = found.into_iter().map(|it| bytes(it.done().unwrap())).collect();
    assert_eq!(found, [Some(b"z".to_vec()), None, Some(b"a".to_vec())]);
    assert!(users.mget::<&[u8]>(&[]).is_empty());
    let many: Vec<[u8; 4]> = (0..3_000u32).map(u32::to_be_bytes).collect();
    let entries: Vec<(&[u8], &[u8])> = many.iter().map(|it| (&it[..], &it[2..])).collect();
    assert!(users.mset(&entries, PutOptions::default()).iter().all(Outcome::is_done));
    let found = users.within(Duration::from_secs(60)).mget(&many);
    for (key, found) in many.iter().zip(found) {
        assert_eq!(bytes(found.done().unwrap()).as_deref(), Some(&key[2..]));
    }
    assert!(users.mdel(&many).iter().all(Outcome::is_done));
    assert_eq!(users.mget(&many), vec![Outcome::Done(None); many.len()]);
    let all = users.scan(ScanOptions::default()).done().unwrap();
    assert!(all.iter().map(|(key, _)| key).eq(&keys));
    let some = ScanOptions { limit: Some(5), ..ScanOptions::default() };
    assert_eq!(users.scan(some).done().unwrap().len(), 5);
    assert!(users.del(b"a").is_done());
    assert_eq!(users.get(b"a"), Outcome::Done(None));
}

#[test]
fn many_threads_share_one_blocking_client_of_which_few_requests_may_be_in_flight() {
    let service = Service::start();
    let options = Options { in_flight_max: 2, ..Options::default() };
    let client = client::blocking::Client::connect(service.address, options).unwrap();
    let users = client.keyspace("users").unwrap();
    drop(client);
    std::thread::scope(|scope| {
        for thread in 0u8..8 {
            let users = users.clone();
            scope.spawn(move || {
                for n in 0u8..50 {
                    let key = [thread, n];
                    assert!(users.put(&key, &[n], PutOptions::default()).is_done());
                    assert_eq!(bytes(users.get(&key).done().unwrap()), Some(vec![n]));
                    assert!(users.mget::<&[u8]>(&[]).is_empty());
                }
            });
        }
    });
}

#[test]
fn a_blocking_client_that_nobody_answers_says_unknown_and_lives_on() {
    let client = client::blocking::Client::connect(nobody(), impatient()).unwrap();
    for _ in 0..2 {
        let error = client.keyspace("users").unwrap_err();
        let unknown = NotDone::Unknown(UnknownReason::NoAnswer);
        assert_eq!(error, LookupError::NotDone(unknown));
        assert!(error.to_string().contains("is the service address right"), "{error}");
    }
}

#[test]
fn a_client_goes_on_to_the_service_address_that_answers() {
    let service = Service::start();
    let both = [nobody(), service.address];
    let client = client::blocking::Client::connect(&both[..], Options::default()).unwrap();
    let users = client.keyspace("users").unwrap();
    assert!(users.put(b"a", b"1", PutOptions::default()).is_done());
    block_on(async {
        let connecting = client::asynchronous::Client::connect(both.to_vec(), Options::default());
        let users = connecting.await.unwrap().keyspace("users").await.unwrap();
        assert_eq!(bytes(users.get(b"a").await.done().unwrap()), Some(b"1".to_vec()));
    });
}

#[test]
fn addresses_that_one_socket_cannot_reach_are_refused_by_name() {
    let addresses = |texts: &[&str]| -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    };
    let nine = vec!["127.0.0.1:1"; 9];
    let cases = [
        (addresses(&["127.0.0.1:1", "[::1]:2"]), "both 127.0.0.1:1 and [::1]:2"),
        (addresses(&[]), "0 service addresses; give 1 to 8"),
        (addresses(&nine), "9 service addresses; give 1 to 8"),
    ];
    for (services, text) in cases {
        let error = client::blocking::Client::connect(services.clone(), Options::default());
        assert!(error.unwrap_err().to_string().contains(text), "{text}");
        block_on(async {
            let error = client::asynchronous::Client::connect(services, Options::default()).await;
            assert!(error.unwrap_err().to_string().contains(text), "{text}");
        });
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime can be built").block_on(future)
}

#[test]
fn async_calls_end_with_what_the_service_says() {
    let service = Service::start();
    block_on(async {
        let connecting = client::asynchronous::Client::connect(service.address, Options::default());
        let client = connecting.await.unwrap();
        let users = client.keyspace("users").await.unwrap();
        assert!(is_users(&users.keyspace()));
        let missing = client.keyspace("nothing").await.unwrap_err();
        assert_eq!(missing, LookupError::NoSuchKeyspace("nothing".into()));

        assert_eq!(users.get(b"a").await, Outcome::Done(None));
        let version = users.put(b"a", b"1", PutOptions::default()).await.done().unwrap();
        let expect = Expect::Version(version);
        let swapped = users.cas(b"a", expect, b"2", PutOptions::default()).await;
        assert!(matches!(swapped, Outcome::Done(CasReply::Written { .. })));
        assert!(matches!(users.incr(b"n", 3).await.done(), Some(IncrReply::Sum { sum: 3, .. })));
        assert!(users.put(b"b", b"3", PutOptions::default()).await.is_done());
        let found = users.mget(&[b"b", b"x", b"a"]).await;
        let found: Vec<_> = found.into_iter().map(|it| bytes(it.done().unwrap())).collect();
        assert_eq!(found, [Some(b"3".to_vec()), None, Some(b"2".to_vec())]);
        let all = users.scan(ScanOptions::default()).await.done().unwrap();
        assert_eq!(all.len(), 2);
        let entries = [(b"m", b"1"), (b"n", b"2"), (b"m", b"3")];
        let written = users.mset(&entries, PutOptions::default()).await;
        assert!(written.iter().all(Outcome::is_done) && written[0] == written[2]);
        let found = users.within(Duration::from_secs(60)).mget(&[b"m", b"n"]).await;
        let found: Vec<_> = found.into_iter().map(|it| bytes(it.done().unwrap())).collect();
        assert_eq!(found, [Some(b"3".to_vec()), Some(b"2".to_vec())]);
        assert!(users.mdel(&[b"m", b"n"]).await.iter().all(Outcome::is_done));
        assert!(users.del(b"a").await.is_done());
        assert!(users.scan(ScanOptions::default()).await.is_done());
        let refused = users.get(b"").await;
        assert_eq!(refused, Outcome::Refused(Refusal::NotSent(StartError::EmptyKey)));
    });
}

#[test]
fn many_futures_share_one_async_client_of_which_few_requests_may_be_in_flight() {
    let service = Service::start();
    block_on(async {
        let options = Options { in_flight_max: 2, ..Options::default() };
        let client = client::asynchronous::Client::connect(service.address, options).await.unwrap();
        let users = client.keyspace("users").await.unwrap();
        drop(client);
        let tasks: Vec<_> = (0u8..100)
            .map(|n| {
                let users = users.clone();
                tokio::spawn(async move {
                    assert!(users.put(&[n], &[n, n], PutOptions::default()).await.is_done());
                    assert!(users.mget::<&[u8]>(&[]).await.is_empty());
                    bytes(users.get(&[n]).await.done().unwrap())
                })
            })
            .collect();
        for (n, task) in (0u8..).zip(tasks) {
            assert_eq!(task.await.unwrap(), Some(vec![n, n]));
        }
    });
}

#[test]
fn an_async_client_that_nobody_answers_says_unknown() {
    block_on(async {
        let client = client::asynchronous::Client::connect(nobody(), impatient()).await.unwrap();
        let unknown = NotDone::Unknown(UnknownReason::NoAnswer);
        let error = client.keyspace("users").await.unwrap_err();
        assert_eq!(error, LookupError::NotDone(unknown));
    });
}

#[test]
fn the_task_of_an_async_client_ends_with_its_last_clone() {
    block_on(async {
        let client = client::asynchronous::Client::connect(nobody(), impatient()).await.unwrap();
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let other = client.clone();
        drop(client);
        assert!(other.keyspace("users").await.is_err());
        assert_eq!(tasks(), 1);
        drop(other);
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(tasks(), 0);
    });
}

#[test]
fn who_has_written_says_goodbye_with_the_last_clone_and_waits_for_nothing() {
    let service = Service::start();
    let blocking = client::blocking::Client::connect(service.address, Options::default()).unwrap();
    let users = blocking.keyspace("users").unwrap();
    assert!(users.incr(b"n", 1).is_done());
    drop(blocking);
    assert!(service.goodbyes.try_recv().is_err(), "the keyspace is a clone");
    drop(users);
    service.wait_for_goodbye();
    block_on(async {
        let options = Options::default();
        let client = client::asynchronous::Client::connect(service.address, options).await.unwrap();
        let users = client.keyspace("users").await.unwrap();
        assert!(users.incr(b"n", 1).await.is_done());
        drop((client, users));
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
    });
    service.wait_for_goodbye();
}

#[test]
fn who_has_written_says_goodbye_when_its_runtime_ends_first() {
    let service = Service::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    let users = runtime.block_on(async {
        let options = Options::default();
        let client = client::asynchronous::Client::connect(service.address, options).await.unwrap();
        let users = client.keyspace("users").await.unwrap();
        assert!(users.incr(b"n", 1).await.is_done());
        users
    });
    runtime.shutdown_background();
    service.wait_for_goodbye();
    drop(users);
}

#[test]
fn dropping_a_future_does_not_disturb_those_that_wait() {
    let service = Service::start();
    block_on(async {
        let options = Options { in_flight_max: 1, ..Options::default() };
        let client = client::asynchronous::Client::connect(service.address, options).await.unwrap();
        let users = client.keyspace("users").await.unwrap();
        for n in 0u8..20 {
            let dropped = users.get(b"never asked for long");
            let key = [n];
            let kept = users.put(&key, b"v", PutOptions::default());
            tokio::select! {
                biased;
                _ = dropped => {}
                () = tokio::task::yield_now() => {}
            }
            assert!(kept.await.is_done());
        }
    });
}
