//! Every datagram that this crate makes is told in full, byte for byte.

use super::*;
use crate::layout::{
    ChainStepBody, ChainWriteBody, Code, Effect, Header as Author, Op, PutBody, SinceBody, flag,
    hop_flag,
};
use crate::number::Version;
use std::string::{String, ToString};
use std::vec;

/// Names and bytes of what is said, with a word for what is no field.
fn said(datagram: &[u8], delivered: Option<bool>) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    dissect(datagram, delivered, &mut |item| {
        let (name, bytes): (String, &[u8]) = match item {
            Item::Field { field, bytes, sure: true } => (field.name.to_string(), bytes),
            Item::Field { field, bytes, sure: false } => (field.name.to_string() + "?", bytes),
            Item::Bytes { name, bytes } => (name.to_string(), bytes),
            Item::Begin(name) => (name.to_string() + ":", &[]),
            Item::End => return,
            Item::Missing(name) => (name.to_string() + " is missing", &[]),
            Item::Left(bytes) => ("left".to_string(), bytes),
        };
        all.push((name, bytes.to_vec()));
    });
    all
}

fn names(datagram: &[u8], delivered: Option<bool>) -> Vec<String> {
    said(datagram, delivered).into_iter().map(|(name, _)| name).collect()
}

fn has(datagram: &[u8], delivered: Option<bool>, name: &str) -> bool {
    names(datagram, delivered).iter().any(|it| it == name)
}

fn datagram(header: &Author, parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    crate::emit(&mut out, header, parts);
    out
}

fn put(hop_flags: u8, flags: u8) -> Vec<u8> {
    let header = Author { op: Op::Put as u8, hop_flags, flags, key_len: 3, ..Author::default() };
    let since = SinceBody { since: Version::new(4), next: 9 }.to_bytes();
    let since = if flags & flag::SINCE != 0 { &since[..] } else { &[] };
    datagram(&header, &[&PutBody { expiry_ms: 5 }.to_bytes(), b"key", b"value", since])
}

#[test]
fn a_put_is_told_to_its_last_byte() {
    let says = said(&put(0, flag::SINCE), None);
    let payload = says.iter().skip_while(|it| it.0 != "put:").cloned().collect::<Vec<_>>();
    let number = |n: u64| n.to_be_bytes().to_vec();
    let expected = [
        ("put:", vec![]),
        ("expiry_ms", number(5)),
        ("key", b"key".to_vec()),
        ("value", b"value".to_vec()),
        ("since:", vec![]),
        ("since", number(4)),
        ("next", number(9)),
    ];
    assert_eq!(payload, expected.map(|(name, bytes)| (name.to_string(), bytes)));
}

#[test]
fn the_steps_of_a_batch_do_not_stand_for_the_write_that_they_are_in() {
    let write = ChainWriteBody { effect: Effect::Batch as u8, ..ChainWriteBody::default() };
    let step = ChainStepBody { effect: Effect::Put as u8, key_len: 3, ..ChainStepBody::default() };
    let header = Author { op: Op::ChainWrite as u8, key_len: 3, ..Author::default() };
    let payload = [&write.to_bytes()[..], &step.to_bytes(), b"key"].concat();
    let told = names(&datagram(&header, &[&payload]), None);
    assert_eq!(told.last().map(String::as_str), Some("value"), "{told:?}");
    assert_eq!(told.iter().filter(|it| *it == "key").count(), 1, "{told:?}");
}

#[test]
fn an_overlay_is_shown_where_it_applies_and_hides_what_it_lies_over() {
    let home = put(0, 0);
    assert!(has(&home, None, "directory_clock") && !has(&home, None, "delegation"));
    for hidden in ["bitmap", "node", "load"] {
        assert!(!has(&home, None, hidden), "{hidden} lies under the moment");
    }
    let delegated = put(hop_flag::GRANTED, 0);
    assert!(has(&delegated, None, "delegation") && !has(&delegated, None, "directory_clock"));
    assert!(has(&delegated, None, "readers"));
    let range = datagram(&Author { op: Op::Range as u8, ..Author::default() }, &[&[0; 4]]);
    assert!(has(&range, None, "match_end") && !has(&range, None, "keyhash"));
}

#[test]
fn what_depends_on_the_way_is_unsure_while_nobody_says_it() {
    let header = Author {
        op: Op::PutReply as u8,
        code: Code::Delegated as u8,
        chain_len: 0,
        ..Author::default()
    };
    let reply = datagram(&header, &[]);
    assert!(
        has(&reply, Some(true), "reply_directory_clock")
            && !has(&reply, Some(true), "reply_delegation")
    );
    assert!(
        has(&reply, Some(false), "reply_delegation")
            && !has(&reply, Some(false), "reply_directory_clock")
    );
    assert!(has(&reply, None, "reply_directory_clock?") && has(&reply, None, "reply_delegation?"));
}

#[test]
fn the_header_is_told_without_gaps() {
    // Nothing lies over anything in a message of a chain.
    let header = Author { op: Op::ChainCommit as u8, chain_len: 8, ..Author::default() };
    let bytes = datagram(&header, &[]);
    let told: Vec<u8> = said(&bytes, None).into_iter().flat_map(|it| it.1).collect();
    assert_eq!(told, bytes);
}

#[test]
fn bytes_cut_anywhere_are_told_as_far_as_they_go() {
    let whole = put(0, flag::SINCE);
    for len in 0..whole.len() {
        let says = said(&whole[..len], None);
        let is_missing = |it: &(String, Vec<u8>)| it.0.ends_with(" is missing");
        assert_eq!(says.iter().filter(|it| is_missing(it)).count(), 1, "{len} bytes: {says:?}");
        if len >= HEADER_LEN {
            let told: usize =
                says.iter().skip_while(|it| it.0 != "put:").map(|it| it.1.len()).sum();
            assert!(len < HEADER_LEN + PutBody::LEN || told == len - HEADER_LEN, "{len}: {says:?}");
        }
    }
}

#[test]
fn what_the_header_has_no_room_for_is_left() {
    let mut bytes = put(0, 0);
    bytes.extend_from_slice(b"more");
    assert_eq!(said(&bytes, None).last(), Some(&("left".to_string(), b"more".to_vec())));
}

#[test]
fn what_follows_a_part_that_is_damaged_is_left_with_it() {
    let header = Author { op: Op::Batch as u8, flags: flag::SINCE, ..Author::default() };
    let payload = [7; 60];
    let told = said(&datagram(&header, &[&payload]), None);
    let told: Vec<u8> =
        told.into_iter().skip_while(|it| it.0 != "batch_step:").flat_map(|it| it.1).collect();
    assert_eq!(told, payload);
}

#[test]
fn datagrams_that_were_not_cut_yet_are_told_apart() {
    let (one, two) = (put(0, 0), put(hop_flag::GRANTED, 0));
    let both = [&one[..], &two[..], &one[..100]].concat();
    let found: Vec<&[u8]> = datagrams(&both).collect();
    assert_eq!(found, [&one[..], &two[..], &one[..100]]);
    assert_eq!(datagrams(b"other").collect::<Vec<_>>(), [b"other"]);
    assert_eq!(datagrams(&[]).count(), 0);
}

#[test]
fn no_bytes_make_it_panic_or_run_away() {
    let mut bytes = put(0, 0);
    bytes.resize(HEADER_LEN + 200, 0xff);
    let mut state = 1u32;
    for round in 0..500 {
        for byte in &mut bytes[2..] {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if state >> 28 == 0 || round == 0 {
                *byte = (state >> 16) as u8;
            }
        }
        for op in Op::ALL {
            bytes[92] = op as u8;
            assert!(said(&bytes, Some(round % 2 == 0)).len() < 1_000);
        }
        if round % 50 != 0 {
            bytes[93..100].fill(0);
        }
    }
}
