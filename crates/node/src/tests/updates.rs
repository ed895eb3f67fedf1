//! Scripts of updates: retries, conditions, increments, deletes and ends of values.

use super::*;
use wire::Version;

#[test]
fn a_retry_is_answered_and_not_applied() {
    let mut chain = Chain::new(3);
    let seq = chain.put(b"a", b"1");
    chain.lag = 1; // The client has not heard of the first one yet.
    chain.put_again(seq, b"a", b"1", 0);
    chain.settle();
    chain.only_reply();
    chain.put(b"a", b"2");
    chain.settle();
    chain.only_reply();
    chain.put_again(seq, b"a", b"1", 0);
    chain.settle();
    assert_eq!(chain.only_reply().version, 1, "the first outcome is told again");
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"2"[..]));
    assert_eq!(chain.nodes[0].counters().duplicates, 2);
}

#[test]
fn a_request_below_the_low_water_mark_is_dropped() {
    let mut chain = Chain::new(3);
    for value in [b"1", b"2", b"3"] {
        chain.put(b"a", value);
        chain.settle();
    }
    chain.replies.clear();
    chain.put_again(1, b"a", b"1", 0);
    chain.settle();
    assert!(chain.replies.is_empty());
    assert_eq!(chain.nodes[0].counters().dropped(DropReason::StaleRequest), 1);
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"3"[..]));
}

#[test]
fn a_superseded_write_is_answered_and_changes_nothing() {
    let mut chain = Chain::new(2);
    chain.put(b"a", b"old");
    chain.put(b"a", b"new");
    chain.deliver_wire(1); // The newer one arrives first.
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"new"[..]));
    chain.settle();
    assert_eq!(chain.replies.iter().map(|r| r.version).collect::<Vec<_>>(), [2, 1]);
    chain.replies.clear();
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"new"[..]));
    assert_eq!(chain.nodes[1].counters().superseded, 1);
}

#[test]
fn a_read_modify_write_waits_for_its_base() {
    let mut chain = Chain::new(2);
    chain.incr(b"n", 5);
    chain.incr(b"n", 2);
    chain.deliver_wire(1);
    assert_eq!(chain.nodes[1].counters().dropped(DropReason::OutOfOrder), 1);
    assert_eq!(chain.get(b"n"), None, "5 + 2 must not be seen while 5 can still be lost");
    chain.settle();
    chain.pass(Duration::from_millis(500));
    chain.settle();
    assert_eq!(chain.get(b"n").as_deref(), Some(&b"7"[..]));
}

#[test]
fn incr_refuses_what_is_no_number_and_says_when_it_overflows() {
    let mut chain = Chain::new(3);
    chain.put(b"text", b"x1");
    chain.settle();
    chain.replies.clear();
    chain.incr(b"text", 1);
    chain.settle();
    assert_eq!(chain.only_reply().code, Code::NotANumber);
    chain.put(b"max", i64::MAX.to_string().as_bytes());
    chain.settle();
    chain.replies.clear();
    chain.incr(b"max", 1);
    chain.settle();
    assert_eq!(chain.only_reply().code, Code::Overflow);
    chain.incr(b"new", -3);
    chain.settle();
    assert_eq!(chain.only_reply().payload, (-3i64).to_be_bytes());
}

#[test]
fn cas_compares_versions_or_values() {
    let mut chain = Chain::new(3);
    let cas = |chain: &mut Chain, flags, expect_version, expect: &[u8], value: &[u8]| {
        let seq = chain.next();
        let header = Header { flags, ..chain.stamped(Op::Cas, b"c", seq) };
        let expect_len = u16::try_from(expect.len()).unwrap();
        let fixed = CasBody { expiry_ms: 0, expect_version, expect_len };
        chain.send(&header, &[&fixed.to_bytes(), b"c", expect, value]);
        chain.settle();
        let reply = chain.only_reply();
        (reply.code, reply.version)
    };
    assert_eq!(cas(&mut chain, 0, Version::new(5), b"", b"x"), (Code::CasMismatch, 0));
    let (code, version) = cas(&mut chain, 0, Version::NONE, b"", b"one");
    assert_eq!(code, Code::Ok);
    assert_eq!(cas(&mut chain, 0, Version::NONE, b"", b"x"), (Code::CasMismatch, version));
    assert_eq!(
        cas(&mut chain, flag::CAS_VALUE, Version::NONE, b"two", b"x"),
        (Code::CasMismatch, version)
    );
    let (code, _) = cas(&mut chain, flag::CAS_VALUE, Version::NONE, b"one", b"two");
    assert_eq!(code, Code::Ok);
    assert_eq!(chain.get(b"c").as_deref(), Some(&b"two"[..]));
}

#[test]
fn a_cas_deletes_or_keeps_the_value_that_it_expects() {
    let mut chain = Chain::new(3);
    let cas = |chain: &mut Chain, flags, expiry_ms, expect_version, expect: &[u8]| {
        let seq = chain.next();
        let header = Header { flags, ..chain.stamped(Op::Cas, b"c", seq) };
        let expect_len = u16::try_from(expect.len()).unwrap();
        let fixed = CasBody { expiry_ms, expect_version, expect_len };
        chain.send(&header, &[&fixed.to_bytes(), b"c", expect]);
        chain.settle();
        let reply = chain.only_reply();
        (reply.code, reply.version)
    };
    let (delete, keep) = (flag::CAS_DELETE, flag::CAS_KEEP_VALUE);
    assert_eq!(
        cas(&mut chain, delete, 0, Version::new(7), b""),
        (Code::CasMismatch, 0),
        "there is nothing"
    );
    assert_eq!(cas(&mut chain, delete, 0, Version::NONE, b"").0, Code::BadRequest, "of nothing");
    assert_eq!(cas(&mut chain, keep, 0, Version::NONE, b"").0, Code::BadRequest, "of nothing");
    chain.put(b"c", b"one");
    chain.settle();
    let first = chain.only_reply().version;
    let far = chain.now.unix_ms() + 3_600_000;
    let (code, touched) = cas(&mut chain, keep, far, Version::new(first), b"");
    assert!(code == Code::Ok && touched > first, "a touch is a write");
    assert_eq!(chain.get(b"c").as_deref(), Some(&b"one"[..]));
    assert_eq!(cas(&mut chain, delete, 0, Version::new(first), b""), (Code::CasMismatch, touched));
    let by_value = delete | flag::CAS_VALUE;
    assert_eq!(cas(&mut chain, by_value, 0, Version::NONE, b"two"), (Code::CasMismatch, touched));
    assert_eq!(
        cas(&mut chain, by_value | keep, 0, Version::NONE, b"one").0,
        Code::BadRequest,
        "not both"
    );
    let (code, deleted) = cas(&mut chain, by_value, 0, Version::NONE, b"one");
    assert!(code == Code::Ok && deleted > touched);
    assert_eq!(chain.get(b"c"), None);
    let again = cas(&mut chain, 0, 0, Version::new(deleted), b"");
    assert_eq!(again, (Code::CasMismatch, 0), "a tombstone is no value");
    let (code, _) = cas(&mut chain, 0, 0, Version::NONE, b"");
    assert_eq!(code, Code::Ok, "that there is no value holds whatever the tombstone is");
    assert_eq!(chain.get(b"c").as_deref(), Some(&b""[..]));
}

#[test]
fn a_failed_cas_is_answered_only_after_what_it_saw_is_committed() {
    let mut chain = Chain::new(2);
    chain.put(b"c", b"seen");
    let seq = chain.next();
    let header = chain.stamped(Op::Cas, b"c", seq);
    let fixed = CasBody::default();
    chain.send(&header, &[&fixed.to_bytes(), b"c", b"x"]);
    chain.deliver_wire(1); // The CAS overtakes the PUT that it saw.
    assert!(chain.replies.is_empty());
    chain.settle();
    chain.pass(Duration::from_millis(500));
    chain.settle();
    let codes: Vec<_> = chain.replies.iter().map(|r| (r.op, r.code)).collect();
    assert_eq!(codes, [(Op::PutReply, Code::Ok), (Op::CasReply, Code::CasMismatch)]);
}

#[test]
fn a_deleted_key_stays_deleted_after_its_tombstone_is_collected() {
    let mut chain = Chain::new(2);
    chain.put(b"d", b"1");
    let late = chain.wires.front().cloned().unwrap();
    chain.settle();
    chain.del(b"d");
    chain.settle();
    chain.del(b"d");
    chain.settle();
    let codes: Vec<_> = chain.replies.drain(..).map(|r| r.code).collect();
    assert_eq!(codes, [Code::Ok, Code::Ok, Code::NotFound]);
    for _ in 0..70 {
        chain.pass(Duration::from_secs(1));
        chain.settle();
    }
    for node in &chain.nodes {
        assert_eq!(node.counters().collected, 1);
        assert_eq!(crate::engine::Engine::len(node.engine()), 0);
    }
    chain.wires.push_back(late); // A duplicate of the first write, over a minute old.
    chain.settle();
    assert_eq!(chain.get(b"d"), None);
    chain.put(b"d", b"2");
    chain.settle();
    assert_eq!(chain.get(b"d").as_deref(), Some(&b"2"[..]), "later versions are higher still");
}

/// A chain of so many members with a number that expires in 50 ms.
fn with_50_ms_to_live(members: u16) -> Chain {
    let mut chain = Chain::new(members);
    let at = chain.now.unix_ms() + 50;
    let seq = chain.next();
    chain.put_again(seq, b"e", b"5", at);
    chain.settle();
    chain
}

#[test]
fn an_expired_value_is_not_seen_again_and_removed_when_asked_for() {
    let mut chain = with_50_ms_to_live(3);
    chain.replies.clear();
    chain.now = chain.now + 49 * MS;
    assert_eq!(chain.get(b"e").as_deref(), Some(&b"5"[..]));
    chain.now = chain.now + MS;
    assert_eq!(chain.get_code(b"e"), Code::Expiring);
    chain.settle(); // The tail has told the head.
    assert_eq!(chain.get_code(b"e"), Code::NotFound);
    assert_eq!(chain.nodes[0].counters().expired, 1);
    assert_eq!(chain.nodes[1].counters().expired, 0, "only the head expires");
}

#[test]
fn an_expired_value_is_removed_without_anybody_asking() {
    let mut chain = with_50_ms_to_live(3);
    chain.pass(Duration::from_millis(100));
    chain.settle();
    assert_eq!(chain.nodes[0].counters().expired, 1);
    assert_eq!(chain.get_code(b"e"), Code::NotFound);
}

#[test]
fn an_update_that_was_in_time_outlives_the_value_it_was_computed_from() {
    let mut chain = with_50_ms_to_live(2);
    chain.incr(b"e", 1); // On its way when the value's time comes.
    chain.now = chain.now + 50 * MS;
    assert_eq!(chain.get_code(b"e"), Code::Expiring, "not found would be a lie");
    chain.replies.clear();
    chain.settle();
    assert_eq!(chain.only_reply().payload, 6i64.to_be_bytes());
}

#[test]
fn an_update_after_the_end_of_a_value_does_not_build_on_it() {
    let mut chain = with_50_ms_to_live(3);
    chain.replies.clear();
    chain.now = chain.now + 50 * MS;
    chain.incr(b"e", 1);
    chain.settle();
    assert_eq!(chain.only_reply().payload, 1i64.to_be_bytes());
    chain.now = chain.now + 100 * MS;
    assert_eq!(chain.get(b"e").as_deref(), Some(&b"1"[..]), "the new value does not expire");
}
