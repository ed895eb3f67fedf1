//! Tests of [`super`]: who makes way for whom.

use super::*;

fn doors(most: usize) -> Arc<Doors> {
    Arc::new(Doors {
        most,
        _reserve: Reserve::new(0),
        ..Arc::into_inner(Doors::new(Security::Loopback)).unwrap()
    })
}

fn is_there(seat: &Seat) -> bool {
    seat.doors.lock().all.contains_key(&seat.id)
}

#[test]
fn those_who_ask_nothing_make_way_and_those_who_are_answered_do_not() {
    let doors = doors(3);
    let [known, busy, idle] = [(); 3].map(|()| doors.enter().unwrap());
    assert!(known.begin(Kind::Known) && busy.begin(Kind::Known));
    known.finish();
    let next = doors.enter().unwrap();
    assert!(!is_there(&idle) && is_there(&known), "the one that has asked nothing went");
    let last = doors.enter().unwrap();
    assert!(!is_there(&next) && is_there(&known) && is_there(&busy));
    assert!(last.begin(Kind::Known));
    let then = doors.enter().unwrap();
    assert!(!is_there(&known), "now it is the only one that can be spared");
    assert!(then.begin(Kind::Known));
    assert!(doors.enter().is_none(), "all are answered");
    assert_eq!(doors.turned_away.load(Ordering::Relaxed), 4);
    drop(last);
    assert!(doors.enter().is_some());
}

#[test]
fn controllers_have_places_of_their_own() {
    let doors = doors(2);
    let control: Vec<Seat> = (0..CONTROL_CONNECTIONS_MAX)
        .map(|_| {
            let seat = doors.enter().unwrap();
            assert!(seat.begin(Kind::Control));
            seat.finish();
            seat
        })
        .collect();
    let crowd: Vec<Seat> = (0..100).map(|_| doors.enter().unwrap()).collect();
    assert!(control.iter().all(is_there), "a crowd takes none of their places");
    assert_eq!(crowd.iter().filter(|seat| is_there(seat)).count(), 2);
    let another = doors.enter().unwrap();
    assert!(another.begin(Kind::Control));
    assert_eq!(control.iter().filter(|seat| is_there(seat)).count(), control.len() - 1);
    for seat in &control {
        seat.begin(Kind::Control);
    }
    let one_more = doors.enter().unwrap();
    assert!(!one_more.begin(Kind::Control), "all are answered");
}
