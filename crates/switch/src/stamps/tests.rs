//! What is remembered of requests, and for how long.

use super::*;

fn at(secs: u64) -> Instant {
    Instant::from_unix_ms(1_000_000 + secs * 1_000)
}

fn who(client: u64, seq: u64) -> Who {
    Who { client, seq }
}

fn stamp(trip: u64, version: u64) -> Stamp {
    let (chain, chain_len) = wire::chain_bytes([4, 5]);
    Stamp { trip, version, chain, chain_len }
}

fn give(stamps: &Stamps, now: Instant, who: Who, trip: u64, version: u64) -> Option<u64> {
    let older = |stamp: &Stamp| stamp.trip < trip;
    stamps.note(now, who, older, || Some(stamp(trip, version))).map(|stamp| stamp.version)
}

#[test]
fn a_copy_is_given_what_the_first_was() {
    let stamps = Stamps::default();
    assert!(!stamps.any());
    assert_eq!(stamps.meet(at(0), who(7, 5), 3), Met::New);
    assert!(!stamps.any(), "who has no stamp is not remembered");
    assert_eq!(give(&stamps, at(0), who(7, 5), 2, 41), Some(41));
    assert!(stamps.any());
    assert_eq!(stamps.meet(at(0), who(7, 5), 3), Met::Stamped(stamp(2, 41)));
    assert_eq!(give(&stamps, at(0), who(7, 5), 2, 42), Some(41), "another thread was first");
    assert_eq!(give(&stamps, at(0), who(7, 4), 2, 43), Some(43));
    assert_eq!(stamps.meet(at(0), who(8, 5), 3), Met::New, "another client");
    assert_eq!(give(&stamps, at(0), who(7, 5), 1, 9), Some(41), "late word of an earlier trip");
    assert_eq!(give(&stamps, at(0), who(7, 5), 3, 70), Some(70), "home says that 41 never was");
    assert_eq!(stamps.meet(at(0), who(7, 5), 3), Met::Stamped(stamp(3, 70)));
    assert_eq!(stamps.meet(at(0), who(7, 4), 3), Met::Stamped(stamp(2, 43)));
}

#[test]
fn without_a_stamp_to_give_nothing_is_remembered() {
    let stamps = Stamps::default();
    assert_eq!(stamps.note(at(0), who(7, 5), |_| false, || None), None);
    assert!(!stamps.any());
}

#[test]
fn below_the_low_water_mark_requests_have_ended() {
    let stamps = Stamps::default();
    for seq in [9, 5, 7] {
        assert_eq!(give(&stamps, at(0), who(7, seq), 2, 40 + seq), Some(40 + seq));
    }
    assert_eq!(stamps.meet(at(0), who(7, 9), 6), Met::Stamped(stamp(2, 49)));
    assert_eq!(stamps.meet(at(0), who(7, 5), 5), Met::Stale, "the mark does not fall");
    assert_eq!(give(&stamps, at(0), who(7, 5), 2, 99), None, "a late answer to what has ended");
    assert_eq!(stamps.stamps.load(Ordering::Relaxed), 2);
    assert_eq!(stamps.meet(at(0), who(7, 20), 20), Met::New);
    assert_eq!(stamps.stamps.load(Ordering::Relaxed), 0);
    assert_eq!(stamps.meet(at(0), who(7, 9), 6), Met::Stale);
    assert!(stamps.any(), "copies of what has ended are still told from new requests");
}

#[test]
fn a_silent_client_is_forgotten_and_its_room_with_it() {
    let stamps = Stamps::default();
    give(&stamps, at(0), who(7, 5), 2, 41);
    give(&stamps, at(0), who(8, 1), 2, 42);
    stamps.sweep(at(0));
    stamps.meet(at(300), who(8, 1), 1);
    stamps.sweep(at(599));
    assert_eq!(stamps.meet(at(300), who(7, 5), 3), Met::Stamped(stamp(2, 41)));
    stamps.sweep(at(899));
    assert_eq!(stamps.clients.load(Ordering::Relaxed), 2, "all were heard 599 s ago at most");
    stamps.sweep(at(900));
    assert_eq!(stamps.clients.load(Ordering::Relaxed), 2, "it was looked for a second ago");
    stamps.sweep(at(960));
    assert!(!stamps.any());
    assert_eq!(stamps.stamps.load(Ordering::Relaxed), 0);
}

#[test]
fn a_full_table_gives_nothing_and_loses_nothing() {
    let stamps = Stamps::default();
    give(&stamps, at(0), who(7, 5), 2, 41);
    stamps.stamps.store(STAMPS_MAX, Ordering::Relaxed);
    assert_eq!(give(&stamps, at(0), who(7, 6), 2, 42), None);
    assert_eq!(give(&stamps, at(0), who(8, 6), 2, 42), None);
    assert_eq!(give(&stamps, at(0), who(7, 5), 2, 42), Some(41));
    assert_eq!(give(&stamps, at(0), who(7, 5), 3, 50), Some(50), "that takes no room");
    stamps.stamps.store(1, Ordering::Relaxed);
    stamps.clients.store(CLIENTS_MAX, Ordering::Relaxed);
    assert_eq!(give(&stamps, at(0), who(8, 6), 2, 42), None);
    assert_eq!(give(&stamps, at(0), who(7, 6), 2, 43), Some(43), "a known client has room");
}
