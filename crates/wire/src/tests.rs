//! Round trips of every kind of packet, and no panic on any damage to one.

use super::*;
use crate::number::Version;
use proptest::prelude::*;
use std::vec::Vec;

fn put(key: &[u8], value: &[u8]) -> Vec<u8> {
    let header = Header {
        op: Op::Put as u8,
        keyspace: 3,
        key_len: u16::try_from(key.len()).unwrap(),
        client: 0x0102_0304_0506_0708,
        seq: 9,
        match_value: 77,
        ..Header::default()
    };
    let mut out = Vec::new();
    emit(&mut out, &header, &[&PutBody { expiry_ms: 5 }.to_bytes(), key, value]);
    out
}

#[test]
fn golden_bytes() {
    let datagram = put(b"key", b"value");
    assert_eq!(datagram.len(), HEADER_LEN + 8 + 3 + 5);
    assert_eq!(&datagram[..4], b"KW\x01\x00");
    assert_eq!(&datagram[92..100], &[0x02, 0, 0, 3, 0, 3, 0, 16]);
    assert_eq!(&datagram[100..108], &[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(&datagram[120..], b"\0\0\0\0\0\0\0\x05keyvalue");
}

#[test]
fn what_is_emitted_parses_back() {
    let datagram = put(b"key", b"value");
    let packet = Packet::parse(&datagram).unwrap();
    assert_eq!(packet.op(), Op::Put);
    assert_eq!(packet.header().match_value(), 77);
    let body = packet.body().unwrap();
    assert_eq!(body, Body::Put { expiry_ms: 5, key: b"key", value: b"value" });
}

#[test]
fn every_truncation_is_refused() {
    let datagram = put(b"key", b"value");
    for len in 0..datagram.len() {
        let reason = Packet::parse(&datagram[..len]).map(|_| ()).unwrap_err();
        let want = if len < HEADER_LEN { DropReason::Truncated } else { DropReason::BadLength };
        assert_eq!(reason, want, "len {len}");
    }
}

#[test]
fn every_flipped_bit_under_the_tag_is_noticed() {
    let datagram = put(b"key", b"value");
    for bit in END_TO_END_AT * 8..datagram.len() * 8 {
        let mut damaged = datagram.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let outcome = Packet::parse(&damaged).and_then(|p| p.body().map(|_| ()));
        assert!(outcome.is_err(), "bit {bit}");
    }
}

#[test]
fn a_switch_may_rewrite_the_hop_part_and_the_slots() {
    let keys = [&b"a"[..], b"bb", b"ccc"];
    let slots = keys.iter().map(|key| MgetKey { match_value: 1, keyhash: 2, key });
    let mut datagram = Vec::new();
    let header = Header { op: Op::Mget as u8, bitmap: 0b111, ..Header::default() };
    emit_mget(&mut datagram, &header, slots);
    for byte in &mut datagram[8..END_TO_END_AT] {
        *byte ^= 0x01;
    }
    for byte in &mut datagram[HEADER_LEN..HEADER_LEN + 3 * MgetSlotBody::LEN] {
        *byte ^= 0xff;
    }
    let (header, _) = datagram.split_first_chunk_mut().unwrap();
    header.set_chain_len(0);
    header.set_chain_pos(0);
    let Body::Mget(found) = Packet::parse(&datagram).unwrap().body().unwrap() else { panic!() };
    assert!(found.iter().map(|k| k.key).eq(keys));
}

#[test]
fn match_end_lies_over_keyhash_and_object_version() {
    let mut header = Header { op: Op::Range as u8, ..Header::default() };
    let interval = RangeInterval { first: 7, last: 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff };
    interval.put(&mut header);
    let mut bytes = [0; HEADER_LEN];
    header.write(&mut bytes);
    assert_eq!((RangeInterval::of(&header), RangeInterval::read(&bytes)), (interval, interval));
    assert_eq!(bytes.keyhash(), 0x0011_2233_4455_6677);
}

/// Reads and writes a message in a packet and in a header, which has to come to the same.
macro_rules! agree {
    ($bytes:ident, $other:ident: $($message:ident)*) => {$(
        let says = $message::read(&$bytes);
        prop_assert_eq!($message::of(&Header::read(&$bytes)), says);
        let (mut packet, mut header) = ($other, Header::read(&$other));
        says.write(&mut packet);
        says.put(&mut header);
        prop_assert_eq!($message::read(&packet), says);
        prop_assert_eq!(Header::read(&packet), header);
    )*};
}

fn any_entries() -> impl Strategy<Value = Vec<(Vec<u8>, Option<Vec<u8>>)>> {
    let key = proptest::collection::vec(any::<u8>(), 1..20);
    let value = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..30));
    proptest::collection::vec((key, value), 0..15)
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1600)) {
        if let Ok(packet) = Packet::parse(&bytes) {
            let _ = packet.body();
        }
    }

    #[test]
    fn a_message_says_the_same_in_a_packet_and_in_a_header(
        bytes in proptest::array::uniform2(proptest::collection::vec(any::<u8>(), HEADER_LEN)),
    ) {
        let [bytes, other] = bytes.map(|it| <[u8; HEADER_LEN]>::try_from(it).unwrap());
        agree!(bytes, other: HotGet HotAnswer GrantedPut HomeWrite ClientWrite DelegatedReply);
        agree!(bytes, other: ClientReply KeyReply NoSession NodeReply RangeInterval HotMget);
        agree!(bytes, other: GroupedMget HotCopy HotCopied DelegationFound);
        agree!(bytes, other: DelegationCommit DelegationDurable CacheCopy);
        agree!(bytes, other: ChainWrite ChainOffer ChainAnswer ChainStable ChainExpire RunPart);
    }

    #[test]
    fn a_sound_header_over_arbitrary_bytes_never_panics(
        op in 0..Op::ALL.len(),
        count in any::<u8>(),
        bitmap in any::<u32>(),
        flags in any::<u8>(),
        key_len in 0u16..40,
        payload in proptest::collection::vec(any::<u8>(), 40..300),
    ) {
        let op = Op::ALL[op] as u8;
        let header = Header { op, count, bitmap, flags, key_len, ..Header::default() };
        let mut out = Vec::new();
        emit(&mut out, &header, &[&payload]);
        match Packet::parse(&out).unwrap().body() {
            Ok(Body::Mget(keys)) => prop_assert_eq!(keys.iter().count(), usize::from(count)),
            Ok(Body::MgetReply(entries)) => {
                prop_assert_eq!(entries.iter().count(), bitmap.count_ones() as usize);
            }
            Ok(_) | Err(DropReason::BadBody) => {}
            Err(other) => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn header_round_trip(
        partition in any::<u32>(), match_value in any::<u128>(), keyhash in any::<u64>(),
        object_version in any::<u64>().prop_map(Version::new), seq in any::<u64>(),
        chain in any::<[u8; 16]>(),
        reply_addr in any::<[u8; 16]>(), lag in any::<u16>(), code in any::<u8>(),
    ) {
        let header = Header {
            partition, match_value, keyhash, object_version, seq, chain, reply_addr, lag, code,
            ..Header::default()
        };
        let mut bytes = [0xff; HEADER_LEN];
        header.write(&mut bytes);
        prop_assert_eq!(Header::read(&bytes), header);
    }

    #[test]
    fn mget_round_trip(keys in proptest::collection::vec(
        proptest::collection::vec(any::<u8>(), 1..12), 1..=MGET_KEYS_MAX)
    ) {
        let slots = keys.iter().map(|key| MgetKey {
            match_value: u128::from(key[0]),
            keyhash: key.len() as u64,
            key,
        });
        let mut out = Vec::new();
        let header = Header { op: Op::Mget as u8, ..Header::default() };
        let len = emit_mget(&mut out, &header, slots.clone());
        prop_assert_eq!(len, HEADER_LEN + mget_len(keys.iter().map(Vec::len)));
        let Body::Mget(found) = Packet::parse(&out).unwrap().body().unwrap() else { panic!() };
        prop_assert!(found.iter().eq(slots));
    }

    #[test]
    fn range_entries_round_trip(entries in any_entries()) {
        let mut payload = Vec::new();
        for (key, value) in &entries {
            let dated = |value| Entry { version: Version::new(4), expiry_ms: 5, now_ms: 0, value };
            let entry = value.as_deref().map(dated);
            push_range_entry(&mut payload, key, entry.as_ref());
        }
        let count = u8::try_from(entries.len()).unwrap();
        let header = Header { op: Op::RangeReply as u8, count, ..Header::default() };
        let mut out = Vec::new();
        emit(&mut out, &header, &[&payload]);
        let packet = Packet::parse(&out).unwrap();
        let Body::RangeReply(found) = packet.body().unwrap() else { panic!() };
        let found: Vec<_> = found
            .iter()
            .map(|(key, entry)| (key.to_vec(), entry.map(|e| e.value.to_vec())))
            .collect();
        prop_assert_eq!(found, entries);
    }

    #[test]
    fn a_damaged_packet_is_refused_or_differs_only_in_the_hop_part(
        at in 0usize..136, bit in 0u8..8,
    ) {
        let datagram = put(b"key", b"value");
        let mut damaged = datagram.clone();
        damaged[at] ^= 1 << bit;
        if let Ok(packet) = Packet::parse(&damaged) && packet.body().is_ok() {
            prop_assert!((8..END_TO_END_AT).contains(&at) || at == 3);
        }
    }
}
