//! What is remembered of clients, and for how long.

use super::*;
use wire::{Code, Op};

const DONE: Outcome = Outcome {
    origin: Op::Put,
    code: Code::Ok,
    version: Version::new(9),
    result: wire::ChainResult::NONE,
};

fn record(sessions: &mut Sessions, now: Instant, client: u64, seq: u64, floor: u64) -> Vec<u64> {
    sessions.record(now, (client, seq), floor, DONE.version, DONE)
}

#[test]
fn an_outcome_lasts_until_the_low_water_mark_passes_it() {
    let mut sessions = Sessions::default();
    let now = Instant(0);
    assert_eq!(sessions.standing(7, 1), Standing::New);
    assert!(record(&mut sessions, now, 7, 1, 1).is_empty());
    assert!(record(&mut sessions, now, 7, 2, 1).is_empty());
    assert_eq!(sessions.standing(7, 1), Standing::Known(DONE));
    assert_eq!(record(&mut sessions, now, 7, 5, 3), [1, 2]);
    assert_eq!(sessions.standing(7, 2), Standing::Ended);
    assert_eq!(sessions.standing(7, 4), Standing::New);
    assert_eq!(sessions.outcomes, 1);
}

#[test]
fn a_silent_client_is_forgotten_in_the_end() {
    let mut sessions = Sessions::default();
    record(&mut sessions, Instant(0), 7, 1, 1);
    assert!(sessions.end_idle(Instant(0) + IDLE_MAX / 2).is_empty());
    assert_eq!(sessions.end_idle(Instant(0) + IDLE_MAX + HEARD_STEP), [(7, 1)]);
    assert_eq!((sessions.len(), sessions.outcomes), (0, 0));
    assert!(sessions.remembers(7, 1), "nothing was forgotten before its time");
}

#[test]
fn whoever_was_heard_longest_ago_is_forgotten_first_and_nobody_too_soon() {
    let mut sessions = Sessions::default();
    let at = |ms| Instant(0) + Duration::from_millis(ms);
    record(&mut sessions, at(0), 7, 1, 1);
    record(&mut sessions, at(200), 8, 1, 1);
    record(&mut sessions, at(400), 7, 2, 1);
    assert!(
        sessions
            .forget(at(200) + KEPT, Version::new(9), |_| false, MaybeMutant::default())
            .is_empty()
    );
    let later = at(300) + KEPT;
    assert!(
        sessions.forget(later, Version::new(8), |_| false, MaybeMutant::default()).is_empty(),
        "not stable"
    );
    let later = later + KEPT + HEARD_STEP;
    let gone =
        sessions.forget(later, Version::new(9), |client| client == 7, MaybeMutant::default());
    assert_eq!((gone, sessions.forgotten()), (vec![(8, 1)], Version::new(9)));
    assert!(sessions.remembers(7, 3), "it was never forgotten");
    assert!(!sessions.remembers(8, 1));
    record(&mut sessions, later, 8, 4, 1);
    assert!(!sessions.remembers(8, 5), "what it sent before may have been forgotten");
    sessions.knows_from(8, 5);
    assert!(sessions.remembers(8, 5) && !sessions.remembers(8, 4));
}

#[test]
fn a_client_that_never_moves_its_mark_has_so_many_outcomes_and_no_more() {
    let mut sessions = Sessions::default();
    for seq in 1..=OUTCOMES_MAX as u64 {
        assert!(sessions.has_room(7, 2));
        record(&mut sessions, Instant(0), 7, seq, 1);
    }
    assert!(!sessions.has_room(7, 2) && sessions.is_laden(7, 2));
    assert!(sessions.has_room(8, 2));
}

#[test]
fn the_clients_of_a_pass_have_as_many_sessions_and_outcomes_as_they_leave_free() {
    let mut sessions = Sessions::default();
    let of_pass = |seat: u64| 7 << wire::CLIENT_SEAT_BITS | seat;
    for seat in 0..5 {
        assert!(sessions.has_room(of_pass(seat), 10));
        record(&mut sessions, Instant(0), of_pass(seat), 1, 1);
    }
    assert!(!sessions.has_room(of_pass(5), 10) && sessions.is_laden(of_pass(5), 10));
    assert!(sessions.has_room(of_pass(4), 10), "who is there goes on");
    for client in 1..=5 {
        assert!(sessions.has_room(client, 10), "others find room");
        record(&mut sessions, Instant(0), client, 1, 1);
    }
    assert!(!sessions.has_room(6, 10) && !sessions.is_laden(6, 10), "somebody goes for it");
    for seat in 0..4 {
        for seq in 2..=OUTCOMES_MAX as u64 {
            record(&mut sessions, Instant(0), of_pass(seat), seq, 1);
        }
    }
    assert!(!sessions.has_room(of_pass(4), 10) && sessions.is_laden(of_pass(4), 10));
    assert!(sessions.has_room(1, 10));
    (0..5).for_each(|seat| drop(sessions.end(Instant(0), of_pass(seat), MaybeMutant::default())));
    assert!(sessions.has_room(of_pass(5), 10), "nothing is kept of who has gone");
}

#[test]
fn a_client_is_counted_with_all_its_outcomes() {
    let mut sessions = Sessions::default();
    (1..=1_000).for_each(|client| drop(record(&mut sessions, Instant(0), client, 1, 1)));
    assert_eq!(sessions.bytes(), 200_000, "one outcome each");
    (2..=1_001).for_each(|seq| drop(record(&mut sessions, Instant(0), 1, seq, 1)));
    assert_eq!(sessions.bytes(), 240_000, "one client with a thousand more");
}
