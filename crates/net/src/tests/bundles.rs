//! Bundles over loopback: what has gone the kernel's way as one is cut where it must be.

use super::*;
use crate::overflow::Overflow;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrIn, SockaddrIn6, sendmsg};
use std::io::IoSlice;
use std::os::fd::AsRawFd as _;

/// Sends bytes as one message that is datagrams of this size, the last perhaps shorter.
fn send_bundle(sender: &Socket, to: SocketAddr, bytes: &[u8], segment: u16) {
    let (slices, extras) = ([IoSlice::new(bytes)], [ControlMessage::UdpGsoSegments(&segment)]);
    let (fd, flags) = (sender.as_raw_fd(), MsgFlags::empty());
    let sent = match to {
        SocketAddr::V4(to) => sendmsg(fd, &slices, &extras, flags, Some(&SockaddrIn::from(to))),
        SocketAddr::V6(to) => sendmsg(fd, &slices, &extras, flags, Some(&SockaddrIn6::from(to))),
    };
    assert_eq!(sent, Ok(bytes.len()));
}

/// Receives a batch, with how many waited behind each datagram.
fn batch(inbound: &mut Inbound, receiver: &Socket) -> Vec<(Endpoint, u16, Vec<u8>)> {
    let count = inbound.receive(receiver).unwrap();
    let announced: Vec<Vec<u8>> = inbound.payloads().map(<[u8]>::to_vec).collect();
    let received = inbound.iter_mut().map(|it| (it.from, it.waiting, it.payload.to_vec()));
    let batch: Vec<_> = received.collect();
    assert_eq!(batch.len(), count);
    assert!(batch.iter().map(|(.., payload)| payload).eq(&announced));
    batch
}

fn cut_where_it_must_be(at: &str) {
    let (sender, receiver) = (bind(at), bind(at));
    let mut inbound = Inbound::new(receiver.family());
    // The last one shorter, of one byte, as long as the others, and alone.
    for (size, segment) in [(2_500, 600), (1_201, 600), (1_200, 600), (1, 600), (64, 1)] {
        let bytes = payload(size);
        send_bundle(&sender, receiver.local(), &bytes, segment);
        let came = batch(&mut inbound, &receiver);
        let chunks: Vec<&[u8]> = bytes.chunks(segment.into()).collect();
        let payloads: Vec<&[u8]> = came.iter().map(|(.., payload)| &**payload).collect();
        assert_eq!(payloads, chunks, "{size} bytes by {segment}");
        assert!(came.iter().all(|(from, ..)| *from == endpoint(&sender)));
        assert_eq!(inbound.end, 1, "it came as one message");
    }
}

#[test]
fn a_bundle_comes_as_one_message_and_is_cut_where_it_must_be_over_ipv4() {
    cut_where_it_must_be(V4);
}

#[test]
fn a_bundle_comes_as_one_message_and_is_cut_where_it_must_be_over_ipv6() {
    cut_where_it_must_be(V6);
}

#[test]
fn an_ipv4_bundle_to_a_dual_stack_socket_is_cut_where_it_must_be() {
    let (sender, receiver) = (bind(V4), bind("[::]:0"));
    let to = SocketAddr::from(([127, 0, 0, 1], receiver.local().port()));
    send_bundle(&sender, to, &payload(1_000), 300);
    let came = batch(&mut Inbound::new(receiver.family()), &receiver);
    let sizes: Vec<usize> = came.iter().map(|(.., payload)| payload.len()).collect();
    assert_eq!(sizes, [300, 300, 300, 100]);
    assert!(came.iter().all(|(from, ..)| *from == endpoint(&sender)));
}

#[test]
fn a_batch_is_bounded_and_the_next_one_goes_on_where_it_ended() {
    let (sender, receiver) = (bind(V4), bind(V4));
    let mut outbound = Outbound::new(sender.family());
    // The ninth bundle is one datagram short of the second batch's end.
    let counts = [60, 60, 60, 60, 60, 60, 60, 60, 31, 20];
    let all = counts.iter().sum::<usize>();
    for (bundle, count) in (0..).zip(counts) {
        for _ in 0..count {
            outbound.push(endpoint(&receiver), &[bundle]);
        }
        outbound.send(&sender);
    }
    let mut inbound = Inbound::new(receiver.family());
    let batches: Vec<_> = (0..4).map(|_| batch(&mut inbound, &receiver)).collect();
    let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
    assert_eq!(sizes, [BATCH_MAX, BATCH_MAX, all - 2 * BATCH_MAX, 0]);
    // What is here and belongs to later batches waits, too.
    let waiting: Vec<u16> = batches.iter().flatten().map(|(_, waiting, _)| *waiting).collect();
    assert_eq!(waiting, (0..u16::try_from(all).unwrap()).rev().collect::<Vec<u16>>());
    let bundles = batches.iter().flatten().map(|(.., payload)| payload[0]);
    let sent = (0..).zip(counts).flat_map(|(bundle, count)| vec![bundle; count]);
    assert!(bundles.eq(sent));
}

#[test]
fn a_batch_is_left_behind_by_the_next_one_even_if_nobody_has_looked_at_it() {
    let (sender, receiver) = (bind(V4), bind(V4));
    for count in [64, 64, 64, BATCH_MAX - 3 * 64 - 4, 10] {
        send_bundle(&sender, receiver.local(), &payload(count), 1);
    }
    let mut inbound = Inbound::new(receiver.family());
    assert_eq!(inbound.receive(&receiver).unwrap(), BATCH_MAX);
    let next: Vec<Vec<u8>> =
        batch(&mut inbound, &receiver).into_iter().map(|(.., payload)| payload).collect();
    assert_eq!(next, payload(10)[4..].chunks(1).collect::<Vec<_>>());
    assert_eq!(inbound.receive(&receiver).unwrap(), 0);
    assert_eq!(inbound.iter_mut().count(), 0);
}

#[test]
fn a_bundle_that_lies_where_single_datagrams_lay_before_is_cut_all_the_same() {
    let (sender, receiver) = (bind(V4), bind(V4));
    let mut inbound = Inbound::new(receiver.family());
    for round in 0..4 {
        for size in [10, 20, 30] {
            send_bundle(&sender, receiver.local(), &payload(size), 1_000);
        }
        assert_eq!(batch(&mut inbound, &receiver).len(), 3, "round {round}");
        for size in [10, 20, 30] {
            send_bundle(&sender, receiver.local(), &payload(size), 10);
        }
        assert_eq!(batch(&mut inbound, &receiver).len(), 6, "round {round}");
    }
}

#[test]
fn each_datagram_of_a_bundle_that_is_over_the_limit_shows_as_such() {
    let (sender, receiver) = (bind(V4), bind(V4));
    let segment = wire::PACKET_MAX + 1;
    let bytes = payload(2 * segment + 100);
    send_bundle(&sender, receiver.local(), &bytes, segment.try_into().unwrap());
    let came = batch(&mut Inbound::new(receiver.family()), &receiver);
    let over: Vec<bool> =
        came.iter().map(|(.., payload)| payload.len() > wire::PACKET_MAX).collect();
    assert_eq!(over, [true, true, false]);
    assert_eq!(came[2].2, bytes[2 * segment..]);
}

#[test]
fn the_largest_message_there_is_arrives_whole() {
    let (sender, receiver) = (bind(V4), bind(V4));
    let alone = payload(65_507);
    send_bundle(&sender, receiver.local(), &alone, 65_507);
    // With a link's header, the most that passes a device in one piece.
    let bundle = payload(65_480);
    send_bundle(&sender, receiver.local(), &bundle, 1_472);
    let mut inbound = Inbound::new(receiver.family());
    let came = batch(&mut inbound, &receiver);
    assert_eq!((came.len(), inbound.end), (1 + 45, 2));
    assert_eq!(came[0].2, alone);
    assert_eq!(came[1..].iter().flat_map(|it| &it.2).copied().collect::<Vec<u8>>(), bundle);
}

#[test]
fn a_socket_that_wants_datagrams_apart_gets_them_apart() {
    let (sender, mut receiver) = (bind(V4), bind(V4));
    receiver.receive_apart().unwrap();
    let mut inbound = Inbound::new(receiver.family());
    for _ in 0..2 {
        send_bundle(&sender, receiver.local(), &payload(1_000), 300);
        assert_eq!(batch(&mut inbound, &receiver).len(), 4);
        assert_eq!(inbound.end, 4, "each came as a message");
    }
}

#[test]
fn bundles_that_find_no_room_are_counted() {
    let (sender, receiver) = (bind(V4), bind(V4));
    let overflow = Overflow::of([&receiver]).unwrap();
    for _ in 0..1_000 {
        send_bundle(&sender, receiver.local(), &[0; 64_000], 1_000);
    }
    assert!(overflow.count() > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn messages_of_many_senders_come_in_order_and_whole(
        // Who sends, how many bytes, and by how many they are cut.
        messages in proptest::collection::vec(
            (0..3usize, 1..4_000usize, prop::sample::select(vec![100u16, 101, 600, 1_472])),
            1..80,
        ),
        at in prop::sample::select(vec![V4, V6]),
    ) {
        let (senders, receiver) = ([bind(at), bind(at), bind(at)], bind(at));
        let mut expected = Vec::new();
        for (sender, size, segment) in messages {
            let (sender, bytes) = (&senders[sender], payload(size));
            send_bundle(sender, receiver.local(), &bytes, segment);
            let datagrams = bytes.chunks(segment.into());
            expected.extend(datagrams.map(|it| (endpoint(sender), it.to_vec())));
        }
        prop_assert_eq!(collect(&receiver, expected.len()), expected);
        prop_assert_eq!(Inbound::new(receiver.family()).receive(&receiver).unwrap(), 0);
    }
}
