//! Many requests of one author, which have no future each.

use crate::{Service, block_on};
use client::asynchronous::{Client, Inbox};
use client::{
    Expiry, Options, Outcome, PutOptions, Refusal, Reply, Request, StartError, UnknownReason,
};
use std::future::poll_fn;

/// Waits for the outcomes of all requests that were begun, and puts them in the order of their
/// numbers.
async fn collect(inbox: &Inbox, count: usize) -> Vec<(u64, Outcome<Reply>)> {
    let (mut all, mut some) = (Vec::new(), Vec::new());
    while all.len() < count {
        poll_fn(|context| inbox.poll_outcomes(context, &mut some)).await;
        assert!(!some.is_empty(), "who is woken finds something");
        all.append(&mut some);
    }
    all.sort_by_key(|(number, _)| *number);
    all
}

#[test]
fn requests_that_are_begun_together_are_answered_by_their_numbers() {
    let service = Service::start();
    block_on(async {
        let options = Options { in_flight_max: 64, ..Options::default() };
        let client = Client::connect(service.address, options).await.unwrap();
        let users = client.keyspace("users").await.unwrap();
        let inbox = Inbox::new(&users);
        let key = |number: u64| number.to_be_bytes();
        let mut opening = inbox.open();
        for number in 0..64 {
            let (key, value) = (&key(number)[..], &key(number)[..]);
            let put = Request::Put { key, value, expiry: Expiry::Never };
            assert!(opening.begin(number, put), "there is room");
        }
        assert!(!opening.begin(64, Request::Get { key: b"k" }), "and no more of it");
        drop(opening);
        let written = collect(&inbox, 64).await;
        assert!(written.iter().all(|(_, it)| matches!(it, Outcome::Done(Reply::Put { .. }))));
        let mut opening = inbox.open();
        for number in 0..64 {
            assert!(opening.begin(number + 100, Request::Get { key: &key(number) }));
        }
        drop(opening);
        for (number, outcome) in collect(&inbox, 64).await {
            let Outcome::Done(Reply::Get(Some(found))) = outcome else { panic!("{outcome:?}") };
            assert_eq!(found.value, key(number - 100));
        }
        // What cannot be sent has its outcome all the same.
        assert!(inbox.open().begin(7, Request::Get { key: b"" }));
        let refused = Outcome::Refused(Refusal::NotSent(StartError::EmptyKey));
        assert_eq!(collect(&inbox, 1).await, [(7, refused)]);
    });
}

#[test]
fn who_waits_for_outcomes_is_told_when_the_client_ends() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let service = Service::start();
    let inbox = runtime.block_on(async {
        let client = Client::connect(service.address, Options::default()).await.unwrap();
        Inbox::new(&client.keyspace("users").await.unwrap())
    });
    drop(service);
    assert!(inbox.open().begin(1, Request::Get { key: b"k" }));
    drop(runtime);
    assert!(inbox.open().begin(2, Request::Get { key: b"k" }));
    let ended = block_on(collect(&inbox, 2));
    let unknown = Outcome::Unknown(UnknownReason::Closed);
    assert_eq!(ended, [(1, unknown), (2, Outcome::Refused(Refusal::Closed))]);
}

#[test]
fn reads_of_one_key_that_were_not_sent_yet_are_one_request() {
    let service = Service::start();
    block_on(async {
        let options = Options { in_flight_max: 2, ..Options::default() };
        let client = Client::connect(service.address, options).await.unwrap();
        let users = client.keyspace("users").await.unwrap();
        assert!(users.put(b"k", b"v", PutOptions::default()).await.is_done());
        let (one, other) = (Inbox::new(&users), Inbox::new(&users));
        let read =
            |inbox: &Inbox, number, key: &[u8]| inbox.open().begin(number, Request::Get { key });
        // More than two requests would find no room.
        assert!((0..20).all(|number| read(&one, number, b"k") && read(&other, number, b"k")));
        assert!(read(&one, 20, b"other") && !read(&one, 21, b"third"));
        let is_value = |(_, it): &(u64, Outcome<Reply>)| {
            let Outcome::Done(Reply::Get(Some(found))) = it else { return false };
            found.value == b"v"
        };
        let told = collect(&one, 21).await;
        assert!(told[..20].iter().all(is_value), "{told:?}");
        assert_eq!(told[20], (20, Outcome::Done(Reply::Get(None))));
        assert!(collect(&other, 20).await.iter().all(is_value));
        // What was sent is shared no more: nobody would answer this one.
        assert!(read(&one, 30, b"k"));
        assert!(collect(&one, 1).await.iter().all(is_value));
    });
}
