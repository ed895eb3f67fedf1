//! What one client may have of the places that all share.

use super::*;
use crate::replica::pending::PENDING_MAX;

#[test]
fn a_full_queue_says_overloaded_and_records_nothing() {
    let mut chain = Chain::new(2);
    for n in 0..5_000u64 {
        chain.put(format!("k{n}").as_bytes(), b"v");
    }
    assert_eq!(chain.nodes[0].pending(), PENDING_MAX / 2, "what one client may have");
    let refused = 5_000 - chain.nodes[0].pending();
    assert_eq!(chain.replies.len(), refused);
    assert!(chain.replies.iter().all(|r| r.code == Code::Overloaded));
    chain.settle();
    assert_eq!(chain.get(b"k4999"), None);
    assert_eq!(chain.get(b"k0").as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_client_whose_writes_wait_leaves_places_for_those_of_others() {
    let mut chain = Chain::new(2);
    for n in 0..5_000u64 {
        chain.put(format!("k{n}").as_bytes(), b"v");
    }
    chain.replies.clear();
    let others = PENDING_MAX / 2 - 1; // The last place is for an expired value's tombstone.
    for client in 1_000..1_000 + others as u64 {
        chain.put_as(client, &client.to_be_bytes());
    }
    assert_eq!(chain.replies.len(), 0, "nobody is refused");
    assert_eq!(chain.nodes[0].pending(), PENDING_MAX - 1);
    chain.put_as(9, b"one more");
    assert_eq!(chain.only_reply().code, Code::Overloaded);
    chain.settle();
    chain.replies.clear();
    chain.put(b"again", b"v");
    chain.settle();
    assert_eq!(chain.only_reply().code, Code::Ok);
}
