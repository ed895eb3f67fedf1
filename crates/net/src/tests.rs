//! Batches over loopback: nothing is changed, lost or mixed up on the way through our buffers.

mod bundles;
mod sources;

use super::*;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use proptest::prelude::*;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use wire::Endpoint;

const V4: &str = "127.0.0.1:0";
const V6: &str = "[::1]:0";

fn bind(at: &str) -> Socket {
    Socket::bind(at.parse().unwrap()).unwrap()
}

fn endpoint(socket: &Socket) -> Endpoint {
    socket.local().into()
}

/// Waits until there is something to receive.
fn await_some(socket: &Socket) {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    let patience = PollTimeout::from(10_000u16);
    assert_eq!(poll(&mut fds, patience), Ok(1), "nothing more comes");
}

/// Receives until `count` datagrams have come.
fn collect(socket: &Socket, count: usize) -> Vec<(Endpoint, Vec<u8>)> {
    let mut inbound = Inbound::new(socket.family());
    let mut all = Vec::new();
    while all.len() < count {
        if inbound.receive(socket).unwrap() == 0 {
            await_some(socket);
        }
        all.extend(inbound.iter_mut().map(|it| (it.from, it.payload.to_vec())));
    }
    all
}

fn payload(size: usize) -> Vec<u8> {
    (0..size).map(|at| u8::try_from((at * 31 + size) % 251).unwrap()).collect()
}

fn round_trip_of_every_size(at: &str) {
    let (sender, receiver) = (bind(at), bind(at));
    let mut outbound = Outbound::new(sender.family());
    let mut size = 0;
    while size <= wire::PACKET_MAX {
        let first = size;
        while size <= wire::PACKET_MAX && !outbound.is_full() {
            outbound.push(endpoint(&receiver), &payload(size));
            size += 1;
        }
        assert_eq!(outbound.send(&sender), 0);
        let came = collect(&receiver, size - first);
        for ((from, bytes), expected) in came.into_iter().zip(first..) {
            assert_eq!(from, endpoint(&sender));
            assert_eq!(bytes, payload(expected), "a datagram of {expected} bytes");
        }
    }
}

#[test]
fn datagrams_of_every_size_arrive_whole_and_in_order_over_ipv4() {
    round_trip_of_every_size(V4);
}

#[test]
fn datagrams_of_every_size_arrive_whole_and_in_order_over_ipv6() {
    round_trip_of_every_size(V6);
}

#[test]
fn a_datagram_over_the_limit_shows_as_one() {
    let receiver = bind(V4);
    let sender = std::net::UdpSocket::bind(V4).unwrap();
    sender.send_to(&[7; 9000], receiver.local()).unwrap();
    let came = collect(&receiver, 1);
    assert!(came[0].1.len() > wire::PACKET_MAX);
}

#[test]
fn a_dual_stack_socket_speaks_both_with_ipv4_mapped() {
    let both = bind("[::]:0");
    let old = bind(V4);
    let to_both: SocketAddr = format!("127.0.0.1:{}", both.local().port()).parse().unwrap();

    let mut outbound = Outbound::new(old.family());
    outbound.push(to_both.into(), b"ping");
    outbound.send(&old);
    let came = collect(&both, 1);
    assert_eq!(came[0], (endpoint(&old), b"ping".to_vec()));

    let mut outbound = Outbound::new(both.family());
    outbound.push(came[0].0, b"pong");
    outbound.send(&both);
    let came = collect(&old, 1);
    assert_eq!(came[0], (to_both.into(), b"pong".to_vec()));
}

#[test]
fn a_datagram_that_cannot_be_sent_is_counted_and_stops_no_other() {
    let (sender, receiver) = (bind(V4), bind(V4));
    let unreachable: SocketAddr = "[2001:db8::1]:9".parse().unwrap();
    let mut outbound = Outbound::new(sender.family());
    outbound.push(unreachable.into(), b"lost");
    outbound.push(endpoint(&receiver), b"one");
    outbound.push(unreachable.into(), b"lost");
    outbound.push(endpoint(&receiver), b"two");
    assert_eq!(outbound.send(&sender), 2);
    let came = collect(&receiver, 2);
    let came: Vec<&[u8]> = came.iter().map(|(_, bytes)| bytes.as_slice()).collect();
    assert_eq!(came, [b"one", b"two"]);
}

#[test]
fn sending_to_a_port_where_nobody_listens_disturbs_nothing() {
    let (sender, receiver) = (bind(V4), bind(V4));
    let nobody = {
        let gone = bind(V4);
        endpoint(&gone)
    };
    let mut outbound = Outbound::new(sender.family());
    outbound.push(nobody, b"lost");
    outbound.send(&sender);
    let mut inbound = Inbound::new(sender.family());
    assert_eq!(inbound.receive(&sender).unwrap(), 0);
    outbound.push(endpoint(&receiver), b"found");
    outbound.send(&sender);
    assert_eq!(collect(&receiver, 1)[0].1, b"found");
}

#[test]
fn a_group_shares_its_address_with_its_members_alone() {
    let group = Socket::bind_group(V4.parse().unwrap(), 3).unwrap();
    let at = group[0].local();
    assert_eq!(group.len(), 3);
    assert!(group.iter().all(|member| member.local() == at));
    assert!(Socket::bind(at).is_err());
    assert!(Socket::bind_group(at, 2).is_err(), "another group would take half of the packets");
}

#[test]
fn every_datagram_to_a_group_reaches_one_member() {
    let group = Socket::bind_group(V4.parse().unwrap(), 2).unwrap();
    let mut sent = 0;
    for _ in 0..32 {
        let sender = bind(V4);
        let mut outbound = Outbound::new(sender.family());
        outbound.push(endpoint(&group[0]), b"x");
        outbound.send(&sender);
        sent += 1;
    }
    let mut came = 0;
    for member in &group {
        came += Inbound::new(member.family()).receive(member).unwrap();
    }
    assert_eq!(came, sent);
}

/// Sends datagrams of these sizes to these receivers in one batch; each must get its own, whole
/// and in order, and nothing else.
fn one_batch(at: &str, sizes: &[(usize, usize)]) {
    let (sender, receivers) = (bind(at), [bind(at), bind(at), bind(at)]);
    let mut outbound = Outbound::new(sender.family());
    let datagram = |number: usize, size: usize| {
        let mut bytes = payload(size);
        bytes.iter_mut().for_each(|byte| *byte ^= u8::try_from(number).unwrap());
        bytes
    };
    let mut expected = [const { Vec::new() }; 3];
    for (number, (receiver, size)) in sizes.iter().enumerate() {
        outbound.push(endpoint(&receivers[*receiver]), &datagram(number, *size));
        expected[*receiver].push(datagram(number, *size));
    }
    assert_eq!(outbound.send(&sender), 0);
    assert!(!outbound.is_full());
    for (receiver, expected) in receivers.iter().zip(expected) {
        let came = collect(receiver, expected.len());
        let came: Vec<Vec<u8>> = came.into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(came, expected);
        assert_eq!(Inbound::new(receiver.family()).receive(receiver).unwrap(), 0);
    }
}

#[test]
fn a_batch_of_the_largest_datagrams_is_more_than_one_message_and_arrives() {
    for at in [V4, V6] {
        one_batch(at, &[(0, wire::PACKET_MAX); BATCH_MAX]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_receiver_gets_its_datagrams_of_a_mixed_batch_in_order(
        // Few sizes, so that many are alike; 0 and the largest among them.
        sizes in proptest::collection::vec(
            (0..3usize, prop::sample::select(vec![0, 1, 120, 121, 600, wire::PACKET_MAX])),
            0..=BATCH_MAX,
        ),
        at in prop::sample::select(vec![V4, V6]),
    ) {
        one_batch(at, &sizes);
    }
}
