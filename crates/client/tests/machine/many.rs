//! Requests of many keys: only what is missing is asked for again.

use super::*;
use wire::{RangeInterval, Version};

/// The answer to a RANGE: these keys, and an interval of match values given by first bytes.
fn piece(request: &[u8], (first, last): (u8, u8), keys: &[&[u8]], flags: u8) -> Vec<u8> {
    let mut payload = Vec::new();
    for key in keys {
        let entry = Entry { version: Version::new(1), expiry_ms: 0, now_ms: 0, value: b"v" };
        wire::push_range_entry(&mut payload, key, Some(&entry));
    }
    answer_with(request, &payload, |header| {
        header.count = keys.len() as u8;
        header.flags = flags;
        let (first, last) = (u128::from(first) << 120, u128::from(last) << 120);
        RangeInterval { first, last: last | (u128::MAX >> 8) }.put(header);
    })
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
            let entry = Entry { version: Version::new(1), expiry_ms: 0, now_ms: 0, value: b"v" };
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
            let RangeInterval { first, last } = RangeInterval::of(&header);
            (header.seq, first >> 120, last >> 120)
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
