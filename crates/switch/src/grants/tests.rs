//! What is remembered of requests, and for how long.

use super::*;
use wire::{DelegationId, Version};

fn at(secs: u64) -> Instant {
    Instant::from_unix_ms(1_000_000 + secs * 1_000)
}

fn who(client: u64, seq: u64) -> Who {
    Who { client, seq }
}

fn grant(delegation: u64, version: u64) -> Grant {
    let (chain, chain_len) = wire::chain_bytes([4, 5]);
    Grant {
        delegation: DelegationId::new(delegation),
        version: Version::new(version),
        chain,
        chain_len,
    }
}

fn give(grants: &Grants, now: Instant, who: Who, delegation: u64, version: u64) -> Option<u64> {
    let older = |grant: &Grant| grant.delegation < DelegationId::new(delegation);
    grants
        .note(now, who, older, || Some(grant(delegation, version)))
        .map(|grant| grant.version)
        .map(Version::get)
}

#[test]
fn a_copy_is_given_what_the_first_was() {
    let grants = Grants::default();
    assert!(!grants.any());
    assert_eq!(grants.meet(at(0), who(7, 5), 3), Met::New);
    assert!(!grants.any(), "who has no grant is not remembered");
    assert_eq!(give(&grants, at(0), who(7, 5), 2, 41), Some(41));
    assert!(grants.any());
    assert_eq!(grants.meet(at(0), who(7, 5), 3), Met::Granted(grant(2, 41)));
    assert_eq!(give(&grants, at(0), who(7, 5), 2, 42), Some(41), "another thread was first");
    assert_eq!(give(&grants, at(0), who(7, 4), 2, 43), Some(43));
    assert_eq!(grants.meet(at(0), who(8, 5), 3), Met::New, "another client");
    assert_eq!(
        give(&grants, at(0), who(7, 5), 1, 9),
        Some(41),
        "late word of an earlier delegation"
    );
    assert_eq!(give(&grants, at(0), who(7, 5), 3, 70), Some(70), "home says that 41 never was");
    assert_eq!(grants.meet(at(0), who(7, 5), 3), Met::Granted(grant(3, 70)));
    assert_eq!(grants.meet(at(0), who(7, 4), 3), Met::Granted(grant(2, 43)));
}

#[test]
fn without_a_grant_to_give_nothing_is_remembered() {
    let grants = Grants::default();
    assert_eq!(grants.note(at(0), who(7, 5), |_| false, || None), None);
    assert!(!grants.any());
}

#[test]
fn below_the_low_water_mark_requests_have_ended() {
    let grants = Grants::default();
    for seq in [9, 5, 7] {
        assert_eq!(give(&grants, at(0), who(7, seq), 2, 40 + seq), Some(40 + seq));
    }
    assert_eq!(grants.meet(at(0), who(7, 9), 6), Met::Granted(grant(2, 49)));
    assert_eq!(grants.meet(at(0), who(7, 5), 5), Met::Stale, "the mark does not fall");
    assert_eq!(give(&grants, at(0), who(7, 5), 2, 99), None, "a late answer to what has ended");
    assert_eq!(grants.grants.load(Ordering::Relaxed), 2);
    assert_eq!(grants.meet(at(0), who(7, 20), 20), Met::New);
    assert_eq!(grants.grants.load(Ordering::Relaxed), 0);
    assert_eq!(grants.meet(at(0), who(7, 9), 6), Met::Stale);
    assert!(grants.any(), "copies of what has ended are still told from new requests");
}

#[test]
fn a_silent_client_is_forgotten_and_its_room_with_it() {
    let grants = Grants::default();
    give(&grants, at(0), who(7, 5), 2, 41);
    give(&grants, at(0), who(8, 1), 2, 42);
    grants.sweep(at(0));
    grants.meet(at(300), who(8, 1), 1);
    grants.sweep(at(599));
    assert_eq!(grants.meet(at(300), who(7, 5), 3), Met::Granted(grant(2, 41)));
    grants.sweep(at(899));
    assert_eq!(grants.clients.load(Ordering::Relaxed), 2, "all were heard 599 s ago at most");
    grants.sweep(at(900));
    assert_eq!(grants.clients.load(Ordering::Relaxed), 2, "it was looked for a second ago");
    grants.sweep(at(960));
    assert!(!grants.any());
    assert_eq!(grants.grants.load(Ordering::Relaxed), 0);
}

#[test]
fn a_full_table_gives_nothing_and_loses_nothing() {
    let grants = Grants::default();
    give(&grants, at(0), who(7, 5), 2, 41);
    grants.grants.store(GRANTS_MAX, Ordering::Relaxed);
    assert_eq!(give(&grants, at(0), who(7, 6), 2, 42), None);
    assert_eq!(give(&grants, at(0), who(8, 6), 2, 42), None);
    assert_eq!(give(&grants, at(0), who(7, 5), 2, 42), Some(41));
    assert_eq!(give(&grants, at(0), who(7, 5), 3, 50), Some(50), "that takes no room");
    grants.grants.store(1, Ordering::Relaxed);
    grants.clients.store(CLIENTS_MAX, Ordering::Relaxed);
    assert_eq!(give(&grants, at(0), who(8, 6), 2, 42), None);
    assert_eq!(give(&grants, at(0), who(7, 6), 2, 43), Some(43), "a known client has room");
}

#[test]
fn a_client_that_has_said_goodbye_makes_room_and_its_late_copies_are_told_from_new_requests() {
    let grants = Grants::remembering(2);
    for client in 1..=100 {
        assert_eq!(give(&grants, at(client), who(client, 5), 2, 40 + client), Some(40 + client));
        grants.end(at(client), client);
        grants.end(at(client), 1_000 + client);
    }
    assert_eq!(grants.clients.load(Ordering::Relaxed), 0);
    assert_eq!(grants.grants.load(Ordering::Relaxed), 0);
    for client in [1, 100] {
        assert!(grants.any());
        assert_eq!(grants.meet(at(100), who(client, 5), 3), Met::Stale);
        assert_eq!(grants.meet(at(100), who(client, 6), 3), Met::Stale);
        assert_eq!(give(&grants, at(100), who(client, 5), 3, 99), None, "a late answer");
    }
    assert_eq!(grants.meet(at(100), who(1_001, 5), 3), Met::New, "who had none is not remembered");
    assert_eq!(give(&grants, at(100), who(201, 1), 2, 200), Some(200));
    grants.sweep(at(650));
    assert_eq!(grants.meet(at(650), who(40, 5), 3), Met::New, "long after all its copies");
    assert_eq!(grants.meet(at(650), who(60, 5), 3), Met::Stale);
    grants.sweep(at(720));
    assert!(!grants.any());
}

#[test]
fn where_there_is_no_room_for_goodbyes_clients_stay_what_they_were() {
    let grants = Grants::default();
    give(&grants, at(0), who(7, 5), 2, 41);
    grants.ended.store(ENDED_MAX, Ordering::Relaxed);
    grants.end(at(0), 7);
    assert_eq!(grants.meet(at(0), who(7, 5), 3), Met::Granted(grant(2, 41)));
}
