//! Datagrams from addresses that are no interface's.

use super::{V6, bind, collect, endpoint, payload};
use crate::{BATCH_MAX, Outbound, Socket};
use std::net::SocketAddrV6;
use wire::Endpoint;

fn from(last: u8, port: u16) -> Endpoint {
    let mut addr = [0xfd; 16];
    addr[15] = last;
    Endpoint { addr, port }
}

/// A socket that receives at all addresses, with one of its own.
fn bind_everywhere() -> Socket {
    let own: SocketAddrV6 = "[::1]:0".parse().unwrap();
    Socket::bind_everywhere(own).unwrap()
}

#[test]
fn each_datagram_comes_from_where_it_is_said_to() {
    let (sender, receiver) = (bind_everywhere(), bind(V6));
    let port = sender.local().port();
    let mut outbound = Outbound::new(sender.family());
    let said = [Some(1), Some(2), None, Some(1), Some(3), None, Some(2)];
    for (number, last) in said.into_iter().enumerate() {
        let from = last.map(|last| from(last, port));
        outbound.push_from(from, endpoint(&receiver), &payload(100 + number));
    }
    assert_eq!(outbound.send(&sender), 0);
    let mut came = collect(&receiver, said.len());
    came.sort_by_key(|(_, bytes)| bytes.len());
    for ((number, last), (source, bytes)) in said.into_iter().enumerate().zip(came) {
        assert_eq!(bytes, payload(100 + number));
        let own = Endpoint::from(sender.local());
        assert_eq!(source, last.map_or(own, |last| from(last, port)), "datagram {number}");
    }
}

#[test]
fn bundles_have_one_source_each() {
    let (sender, receiver) = (bind_everywhere(), bind(V6));
    let port = sender.local().port();
    let mut outbound = Outbound::new(sender.family());
    let last_of = |number: usize| u8::try_from(number / 40).unwrap();
    for number in 0..BATCH_MAX {
        outbound.push_from(Some(from(last_of(number), port)), endpoint(&receiver), &payload(200));
    }
    assert_eq!(outbound.send(&sender), 0);
    let mut counts = [0; 7];
    for (source, bytes) in collect(&receiver, BATCH_MAX) {
        assert_eq!((bytes, source.port), (payload(200), port));
        counts[usize::from(source.addr[15])] += 1;
    }
    assert_eq!(counts, [40, 40, 40, 40, 40, 40, 16]);
}

#[test]
fn what_is_sent_to_any_address_of_the_machine_arrives() {
    let (receiver, sender) = (bind_everywhere(), bind(V6));
    let mut outbound = Outbound::new(sender.family());
    outbound.push(endpoint(&receiver), b"to its own");
    outbound.push_from(Some(from(1, 9)), endpoint(&receiver), b"what is said counts for nothing");
    assert_eq!(outbound.send(&sender), 0);
    let sources = collect(&receiver, 2).into_iter().map(|(source, _)| source);
    assert!(sources.into_iter().all(|source| source == endpoint(&sender)));
}
