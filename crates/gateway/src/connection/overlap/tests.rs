//! The rule step by step.

mod worlds;

use super::*;
use crate::reply::Long;
use smallvec::smallvec;
use wire::Version;

fn key(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

/// The keys of these names, a character each.
fn keys(names: &str) -> NamedKeys {
    names.chars().map(|name| key(&name.to_string())).collect()
}

fn bulk(version: u64) -> Reply {
    Reply::bulk(version.to_string())
}

/// A reply that streams. Its length stands for the version.
fn long(version: u64) -> Reply {
    Reply::Long(Long::new(version, tokio::sync::mpsc::channel(1).1))
}

/// So many GETs of one key, which overlap.
fn gets(count: usize) -> UnderWay {
    let mut under_way = UnderWay::default();
    for _ in 0..count {
        assert!(!under_way.push(keys("k"), Kind::Get).1);
    }
    under_way
}

/// The first is carried out: what it is answered with, or `None` if it is run again.
fn carry_out(under_way: &mut UnderWay, reply: Reply, sights: Sights) -> Option<Reply> {
    under_way.end(under_way.first(), reply, sights);
    match under_way.answer() {
        Verdict::Answer(reply) => Some(reply),
        Verdict::Again => None,
    }
}

/// The commands whose turn has come.
fn turns(under_way: &mut UnderWay) -> Vec<u64> {
    std::iter::from_fn(|| under_way.next_turn()).map(|(number, _)| number).collect()
}

/// The same of a command about one key.
fn answer(under_way: &mut UnderWay, reply: Reply, seen: Seen) -> Option<Reply> {
    carry_out(under_way, reply, smallvec![seen])
}

#[test]
fn of_commands_about_one_key_only_reads_overlap() {
    let mut under_way = UnderWay::default();
    let mut come = |names, reads| {
        let kind = if reads { Kind::Get } else { Kind::Other };
        under_way.push(keys(names), kind)
    };
    assert_eq!(come("k", true), (Overlap::Apart, false));
    assert_eq!(come("o", false), (Overlap::Apart, false));
    assert_eq!(come("k", true), (Overlap::Beside(0), false));
    assert_eq!(come("k", true), (Overlap::Beside(2), false), "beside the last");
    assert_eq!(come("k", false), (Overlap::After(3), true), "a write waits for GETs");
    assert_eq!(come("k", true), (Overlap::After(4), true), "a GET waits for a write");
    assert_eq!(come("k", true), (Overlap::Beside(5), true), "also beside one that waits");
    assert_eq!(come("o", true), (Overlap::After(1), true));
    assert_eq!(come("t", false), (Overlap::Apart, false));
}

#[test]
fn a_command_about_several_keys_waits_for_the_last_of_each() {
    let mut under_way = UnderWay::default();
    let mut come = |names, kind| under_way.push(keys(names), kind).1;
    assert!(!come("a", Kind::Other));
    assert!(!come("b", Kind::Other));
    assert!(come("abc", Kind::Get), "2: for both writes");
    assert!(!come("c", Kind::Get), "3: beside it");
    assert!(come("b", Kind::Get), "4: beside it, and behind the write of its own key alone");
    assert!(!come("dd", Kind::Other), "5: for no other, and not for itself");
    assert!(come("cd", Kind::Other), "6: for reads and for a write");
    assert!(!come("ee", Kind::Get), "7");
    assert_eq!(under_way.keys(), 13);
    let begun: Vec<Vec<u64>> = (0..8)
        .map(|_| {
            carry_out(&mut under_way, Reply::Null, Sights::new());
            turns(&mut under_way)
        })
        .collect();
    assert_eq!(begun, [vec![], vec![2, 4], vec![], vec![], vec![], vec![6], vec![], vec![]]);
    assert_eq!(under_way.keys(), 0);
    assert!(under_way.last.is_empty(), "nothing is kept of those that are done");
    assert!(!under_way.push(keys("ab"), Kind::Other).1);
}

#[test]
fn of_an_mget_each_value_is_chosen_by_what_was_told_of_its_key() {
    let array = |versions: &[u64]| Reply::Array(versions.iter().copied().map(bulk).collect());
    let seen = |versions: &[u64]| -> Sights {
        versions.iter().map(|it| Seen::Version(Version::new(*it))).collect()
    };
    let mut under_way = UnderWay::default();
    for names in ["ab", "bcb", "c"] {
        under_way.push(keys(names), Kind::Get);
    }
    let mut told =
        |versions: &[u64]| carry_out(&mut under_way, array(versions), seen(versions)).unwrap();
    assert_eq!(told(&[1, 5]), array(&[1, 5]));
    assert_eq!(told(&[4, 7, 4]), array(&[5, 7, 5]), "one that it names twice, in both places");
    assert_eq!(told(&[6]), array(&[7]));
    // If one of its values cannot be chosen, it is run again.
    let mut under_way = UnderWay::default();
    for names in ["b", "ab"] {
        under_way.push(keys(names), Kind::Get);
    }
    assert_eq!(answer(&mut under_way, bulk(5), Seen::Version(Version::new(5))), Some(bulk(5)));
    let reply = Reply::Array(vec![bulk(1), Reply::Null]);
    let sights: Sights = smallvec![Seen::Version(Version::new(1)), Seen::Absent];
    assert_eq!(carry_out(&mut under_way, reply.clone(), sights.clone()), None);
    assert_eq!(carry_out(&mut under_way, reply.clone(), sights), Some(reply));
}

#[test]
fn nothing_waits_for_others_to_be_answered() {
    let mut under_way = UnderWay::default();
    for (names, kind) in [("o", Kind::Other), ("k", Kind::Get), ("k", Kind::Get)] {
        assert!(!under_way.push(keys(names), kind).1);
    }
    assert!(under_way.push(keys("k"), Kind::Other).1);
    let seen = |version| smallvec![Seen::Version(Version::new(version))];
    under_way.end(2, bulk(5), seen(5));
    assert!(turns(&mut under_way).is_empty(), "what 2 is answered with depends on 1");
    under_way.end(1, bulk(7), seen(7));
    assert_eq!(turns(&mut under_way), [3], "though 0 is not carried out yet");
    assert!(!under_way.push(keys("o"), Kind::Get).0.eq(&Overlap::Apart));
    under_way.end(3, Reply::OK, Sights::new());
    assert!(!under_way.push(keys("k"), Kind::Get).1, "all of its key is settled");
    under_way.end(0, Reply::OK, Sights::new());
    assert_eq!(turns(&mut under_way), [4]);
    let answers: [Verdict; 4] = std::array::from_fn(|_| under_way.answer());
    let expected = [Reply::OK, bulk(7), bulk(7), Reply::OK];
    assert_eq!(answers, expected.map(Verdict::Answer));
}

#[test]
fn what_has_to_be_run_again_holds_writes_up_until_it_is_settled() {
    let mut under_way = gets(2);
    assert!(under_way.push(keys("k"), Kind::Other).1);
    under_way.end(1, Reply::Null, smallvec![Seen::Absent]);
    under_way.end(0, bulk(7), smallvec![Seen::Version(Version::new(7))]);
    assert!(turns(&mut under_way).is_empty());
    assert_eq!(under_way.answer(), Verdict::Answer(bulk(7)));
    assert_eq!(under_way.answer(), Verdict::Again);
    under_way.end(1, bulk(8), smallvec![Seen::Version(Version::new(8))]);
    assert_eq!(turns(&mut under_way), [2]);
    assert_eq!(under_way.answer(), Verdict::Answer(bulk(8)));
}

#[test]
fn a_command_is_begun_when_the_last_that_it_waits_for_is_settled() {
    let mut under_way = gets(2);
    for kind in [Kind::Other, Kind::Get, Kind::Get] {
        assert!(under_way.push(keys("k"), kind).1);
    }
    let mut begun = || {
        answer(&mut under_way, Reply::Null, Seen::Absent);
        turns(&mut under_way)
    };
    let steps: [Vec<u64>; 4] = std::array::from_fn(|_| begun());
    assert!(steps[0].is_empty(), "a GET before it is under way");
    assert_eq!(steps[1], [2]);
    assert_eq!(steps[2], [3, 4], "both, and the write no second time");
    assert!(steps[3].is_empty());
    let place = under_way.push(keys("k"), Kind::Get);
    assert_eq!(place, (Overlap::Beside(4), false), "what it waited for is done");
}

#[test]
fn gets_that_wait_for_a_plain_set_that_was_not_sent_yet_tell_what_it_has_set() {
    let set_and_gets = |kind, reply: Reply| {
        let mut under_way = UnderWay::default();
        assert!(!under_way.push(keys("k"), kind).1);
        assert!(under_way.push(keys("k"), Kind::Get).1);
        under_way.note_sent(0);
        assert!(under_way.push(keys("k"), Kind::Get).1);
        under_way.end(0, reply, Sights::new());
        let (in_time, late) = (under_way.next_turn().unwrap(), under_way.next_turn().unwrap());
        assert_eq!((in_time.0, late), (1, (2, None)), "others may have written before it came");
        in_time.1
    };
    let told = set_and_gets(Kind::Set(key("new")), Reply::OK);
    assert_eq!(told, Some(Reply::bulk("new")));
    let unknown = Reply::error("ERR nobody answered");
    assert_eq!(set_and_gets(Kind::Set(key("new")), unknown), None, "it may not have taken effect");
    assert_eq!(set_and_gets(Kind::Other, Reply::OK), None);
}

#[test]
fn gets_behind_an_mget_are_carried_out_after_a_set() {
    let mut under_way = UnderWay::default();
    for (names, kind) in [
        ("k", Kind::Set(key("new"))),
        ("k", Kind::Get),
        ("ko", Kind::Get),
        ("k", Kind::Get),
        ("k", Kind::Get),
    ] {
        under_way.push(keys(names), kind);
    }
    under_way.end(0, Reply::OK, Sights::new());
    let told: Vec<Turn> = std::iter::from_fn(|| under_way.next_turn()).collect();
    assert_eq!(told[0], (1, Some(Reply::bulk("new"))));
    assert_eq!(told[1..], [(2, None), (3, None), (4, None)]);
}

#[test]
fn gets_of_a_set_that_another_carries_are_told_what_it_would_have_set_or_its_error() {
    let set = |value| Kind::Set(key(value));
    let told = |reply: Reply| {
        let mut under_way = UnderWay::default();
        for kind in [set("0"), set("1"), Kind::Get, Kind::Get, set("4"), Kind::Get, set("6")] {
            under_way.push(keys("k"), kind);
        }
        under_way.note_sent(0);
        under_way.push(keys("k"), Kind::Get);
        under_way.end(0, Reply::OK, Sights::new());
        assert_eq!(turns(&mut under_way), [6], "of all of them only the last is begun");
        under_way.note_sent(6);
        assert_eq!(under_way.end(6, reply, Sights::new()), [1, 4]);
        std::iter::from_fn(|| under_way.next_turn()).collect::<Vec<Turn>>()
    };
    let value = |text: &str| Some(Reply::bulk(text));
    let all = [(2, value("1")), (3, value("1")), (5, value("4")), (7, value("6"))];
    assert_eq!(told(Reply::OK), all);
    let error = || Reply::error("ERR nobody answered");
    let all = [(2, Some(error())), (3, Some(error())), (5, Some(error())), (7, None)];
    assert_eq!(told(error()), all, "a GET behind it is carried out");
}

#[test]
fn a_set_carries_none_that_something_but_gets_of_its_key_waits_for() {
    for (names, kind) in [("ko", Kind::Get), ("k", Kind::Other)] {
        let mut under_way = UnderWay::default();
        let mut come = |names, kind| under_way.push(keys(names), kind).1;
        assert!(!come("k", Kind::Set(key("0"))));
        assert!(come("k", Kind::Set(key("1"))));
        assert!(come(names, kind));
        assert!(come("k", Kind::Set(key("3"))));
        under_way.end(0, Reply::OK, Sights::new());
        assert_eq!(turns(&mut under_way), [1]);
    }
}

#[test]
fn of_sets_that_wait_for_each_other_only_the_last_is_begun() {
    let mut under_way = UnderWay::default();
    let mut come = |name: &str, kind| under_way.push(keys(name), kind);
    let set = |value| Kind::Set(key(value));
    assert_eq!(come("k", set("0")), (Overlap::Apart, false));
    assert_eq!(come("o", set("1")), (Overlap::Apart, false));
    assert_eq!(come("k", set("2")), (Overlap::After(0), true), "one is on its way already");
    assert_eq!(come("k", set("3")), (Overlap::After(2), true));
    assert_eq!(come("k", set("4")), (Overlap::After(3), true));
    assert_eq!(come("k", Kind::Get), (Overlap::After(4), true));
    assert_eq!(come("k", set("6")), (Overlap::After(5), true));
    assert_eq!(come("k", Kind::Other), (Overlap::After(6), true));
    assert_eq!(come("k", set("8")), (Overlap::After(7), true), "its reply may say what was there");
    assert_eq!(come("k", set("9")), (Overlap::After(8), true));
    let mut end = |number| {
        let carried = under_way.end(number, Reply::OK, Sights::new());
        (carried, std::iter::from_fn(|| under_way.next_turn()).collect::<Vec<Turn>>())
    };
    let value = |text: &str| Some(Reply::bulk(text));
    assert_eq!(end(0), (vec![], vec![(6, value("0"))]));
    assert_eq!(end(1), (vec![], vec![]));
    let told = vec![(5, value("4")), (7, value("6"))];
    assert_eq!(end(6), (vec![2, 3, 4], told), "a GET tells what the last before it has set");
    assert_eq!(end(5), (vec![], vec![]));
    assert_eq!(end(7), (vec![], vec![(9, None)]));
    assert_eq!(end(9), (vec![8], vec![]));
    for _ in 0..10 {
        assert_eq!(under_way.answer(), Verdict::Answer(Reply::OK));
    }
}

#[test]
fn a_get_that_read_an_older_version_tells_what_was_told_before() {
    let mut under_way = gets(5);
    let mut told =
        |version| answer(&mut under_way, bulk(version), Seen::Version(Version::new(version)));
    assert_eq!([7, 5, 9, 8, 9].map(&mut told), [7, 7, 9, 9, 9].map(|it| Some(bulk(it))));
    // Whoever comes when they are done is told what it read.
    let mut under_way = gets(1);
    assert_eq!(answer(&mut under_way, bulk(3), Seen::Version(Version::new(3))), Some(bulk(3)));
}

#[test]
fn where_one_has_no_version_the_later_get_is_run_again_once() {
    let mut under_way = gets(5);
    assert_eq!(answer(&mut under_way, bulk(7), Seen::Version(Version::new(7))), Some(bulk(7)));
    assert_eq!(answer(&mut under_way, Reply::Null, Seen::Absent), None);
    assert_eq!(answer(&mut under_way, Reply::Null, Seen::Absent), Some(Reply::Null));
    assert_eq!(answer(&mut under_way, Reply::Null, Seen::Absent), Some(Reply::Null));
    assert_eq!(answer(&mut under_way, bulk(7), Seen::Version(Version::new(7))), None);
    assert_eq!(answer(&mut under_way, bulk(8), Seen::Version(Version::new(8))), Some(bulk(8)));
    assert_eq!(answer(&mut under_way, bulk(6), Seen::Version(Version::new(6))), Some(bulk(8)));
}

#[test]
fn a_value_that_streams_is_read_by_one_get_at_a_time() {
    let mut under_way = gets(4);
    let first = long(7);
    assert_eq!(answer(&mut under_way, first.clone(), Seen::Version(Version::new(7))), Some(first));
    assert_eq!(answer(&mut under_way, Reply::Null, Seen::Unread), None);
    let second = long(7);
    assert_eq!(
        answer(&mut under_way, second.clone(), Seen::Version(Version::new(7))),
        Some(second)
    );
    // It cannot be told twice.
    assert_eq!(answer(&mut under_way, bulk(6), Seen::Version(Version::new(6))), None);
    assert_eq!(answer(&mut under_way, bulk(8), Seen::Version(Version::new(8))), Some(bulk(8)));
    assert_eq!(answer(&mut under_way, bulk(9), Seen::Version(Version::new(9))), Some(bulk(9)));
    // Also if none before it has told anything.
    let mut under_way = gets(2);
    let failed = Reply::error("ERR lost");
    assert_eq!(answer(&mut under_way, failed.clone(), Seen::Nothing), Some(failed));
    assert_eq!(answer(&mut under_way, Reply::Null, Seen::Unread), None);
}

#[test]
fn a_get_that_fails_is_answered_and_what_was_told_before_still_counts() {
    let mut under_way = gets(5);
    let failed = Reply::error("ERR lost");
    assert_eq!(answer(&mut under_way, bulk(7), Seen::Version(Version::new(7))), Some(bulk(7)));
    assert_eq!(answer(&mut under_way, failed.clone(), Seen::Nothing), Some(failed.clone()));
    assert_eq!(answer(&mut under_way, bulk(6), Seen::Version(Version::new(6))), Some(bulk(7)));
    // Also if it failed when it was run again.
    assert_eq!(answer(&mut under_way, Reply::Null, Seen::Absent), None);
    assert_eq!(answer(&mut under_way, failed.clone(), Seen::Nothing), Some(failed));
    assert_eq!(answer(&mut under_way, bulk(6), Seen::Version(Version::new(6))), Some(bulk(7)));
}
