//! Small histories whose verdict anybody can tell.

use crate::make::{at, cas, del, incr, op, put, read, until};
use sim::check::linear::{STEPS_MAX, check};
use sim::check::properties::{Promise, breaches};
use sim::check::{History, Key, Op, OpKind, Verdict};
use wire::Version;

fn good(what: &str, ops: &[Op]) {
    assert_eq!(check(ops, 0).verdict, Verdict::Linearizable, "{what}: {:?}", check(ops, 0));
    assert_eq!(breaches(ops), [], "{what}");
}

fn bad(what: &str, ops: &[Op]) {
    let finding = check(ops, 0);
    assert_eq!(finding.verdict, Verdict::Violation, "{what}");
    assert!(!finding.why.is_empty() && !finding.culprits.is_empty(), "{what}: {finding:?}");
}

#[test]
fn reads_see_the_newest_write_that_was_answered() {
    good("nothing was written", &[op(1, 2, read(None))]);
    good("write, then read", &[op(1, 2, put(5)), op(3, 4, read(5))]);
    bad("stale read", &[op(1, 2, put(5)), op(3, 4, put(6)), op(5, 6, read(5))]);
    bad("a value that nobody wrote", &[op(1, 2, put(5)), op(3, 4, read(7))]);
    bad("a value before its write", &[op(1, 2, read(5)), op(3, 4, put(5))]);
    bad("an acknowledged write is gone", &[op(1, 2, put(5)), op(3, 4, read(None))]);
}

#[test]
fn what_overlaps_may_take_effect_in_any_order() {
    let two = [op(1, 9, put(5)), op(2, 8, put(6))];
    good("either may be the last", &[two[0].clone(), two[1].clone(), op(10, 11, read(5))]);
    good("or the other", &[two[0].clone(), two[1].clone(), op(10, 11, read(6))]);
    let [a, b] = two;
    good("a read between", &[a.clone(), b.clone(), op(3, 4, read(6)), op(5, 6, read(5))]);
    let back = [a, b, op(3, 4, read(6)), op(5, 6, read(5)), op(10, 11, read(6))];
    bad("but not there and back again", &back);
    good(
        "a read overlaps two writes",
        &[op(1, 4, put(5)), op(5, 8, put(6)), op(2, 7, read(5)), op(9, 10, read(6))],
    );
}

#[test]
fn an_unknown_write_takes_effect_late_or_never() {
    let unknown = op(1, None, put(5));
    good("never", &[unknown.clone(), op(3, 4, read(None)), op(5, 6, read(None))]);
    good("late", &[unknown.clone(), op(3, 4, read(None)), op(5, 6, read(5))]);
    bad("and then it stays", &[unknown.clone(), op(3, 4, read(5)), op(5, 6, read(None))]);
    bad("not before it was asked for", &[op(1, 2, read(5)), op(3, None, put(5))]);
    let twice = [unknown, op(2, 3, put(6)), op(4, 5, read(5)), op(6, 7, put(7)), op(8, 9, read(5))];
    bad("and only once", &twice);
}

#[test]
fn deletes_stay_deleted() {
    good("deleted", &[op(1, 2, put(5)), op(3, 4, del(true)), op(5, 6, read(None))]);
    bad(
        "resurrected",
        &[op(1, 2, put(5)), op(3, 4, del(true)), op(5, 6, read(None)), op(7, 8, read(5))],
    );
    bad("found what was not there", &[op(1, 2, del(true))]);
    bad("did not find what was", &[op(1, 2, put(5)), op(3, 4, del(false))]);
}

#[test]
fn a_swap_may_delete_or_keep_what_it_finds() {
    let start = op(1, 2, put(5));
    let deletes = |written: bool| op(3, 4, cas(5, None, written));
    good("deleted", &[start.clone(), deletes(true), op(5, 6, read(None))]);
    bad("still there", &[start.clone(), deletes(true), op(5, 6, read(5))]);
    bad("deleted something else", &[op(1, 2, put(6)), deletes(true)]);
    bad("though it found another", &[op(1, 2, put(6)), deletes(false), op(5, 6, read(None))]);
    let unknown = op(3, None, cas(6, None, None));
    let via = [start.clone(), op(3, None, put(6)), unknown.clone(), op(5, 6, read(None))];
    good("after another write of unknown outcome", &via);
    bad("not without it", &[start.clone(), unknown, op(5, 6, read(None))]);
    let ends = |written: Option<bool>| {
        let (expect, value) = (Some(5), Some(5));
        OpKind::Cas { expect, at: None, value, expiry_ms: 10, written }
    };
    let touch = op(3, 4, ends(Some(true)));
    good("it goes in time", &[start.clone(), touch.clone(), op(11, 12, read(None))]);
    bad("not before", &[start.clone(), touch.clone(), op(5, 6, read(None))]);
    bad("and not after", &[start.clone(), touch, op(11, 12, read(5))]);
    let maybe = op(3, None, ends(None));
    good("perhaps", &[start.clone(), maybe.clone(), op(11, 12, read(5))]);
    good("or perhaps not", &[start.clone(), maybe, op(11, 12, read(None))]);
}

/// Writes that make a value of nothing and nothing of it, of which nobody knows whether they took
/// effect, lead round and round.
#[test]
fn unknown_swaps_there_and_back_are_not_followed_for_ever() {
    let all = (1..=30).flat_map(|value| {
        [op(3, None, cas(None, value, None)), op(3, None, cas(value, None, None))]
    });
    let all: Vec<Op> = all.collect();
    let history =
        |begin: Op| [&[begin][..], &all, &[op(5, 6, read(1)), op(7, 8, read(2))]].concat();
    good("from nothing", &history(op(1, 2, read(None))));
    bad("from what nobody takes away", &history(op(1, 2, put(100))));
    let steps = [op(1, 2, read(None)), op(1, 2, put(100))].map(|it| check(&history(it), 0).steps);
    assert!(steps.iter().all(|steps| *steps < 10_000), "{steps:?}");
}

/// Ways without round trips can be many, too.
#[test]
fn a_search_gives_up_in_the_middle_of_looking_for_a_way() {
    let swaps = (1..=20).flat_map(|from| (1..=20).map(move |to| (from, to)));
    let swaps = swaps.filter(|(from, to)| from != to);
    let swaps = swaps.map(|(from, to)| op(3, None, cas(from, to, None)));
    let history: Vec<Op> =
        [op(1, 2, put(100))].into_iter().chain(swaps).chain([op(5, 6, read(1))]).collect();
    let finding = check(&history, 0);
    assert_eq!(finding.verdict, Verdict::Exhausted, "{finding:?}");
    assert!(finding.steps <= 4 * (STEPS_MAX + 1_000), "{} steps", finding.steps);
}

#[test]
fn a_version_tells_two_writes_of_one_value_apart() {
    let swap = |expect, at, value, written| {
        let (expect, value) = (Some(expect), Some(value));
        OpKind::Cas { expect, at: Some(at), value, expiry_ms: 0, written: Some(written) }
    };
    let touched = [at(1, op(1, 2, put(5))), at(3, op(3, 4, swap(5, Version::new(1), 5, true)))];
    let with = |last: Op| [touched[0].clone(), touched[1].clone(), last];
    good(
        "another version, the same value",
        &with(at(3, op(5, 6, swap(5, Version::new(1), 6, false)))),
    );
    bad("a version of before", &with(at(1, op(5, 6, swap(5, Version::new(2), 6, false)))));
    bad("it found nothing", &with(op(5, 6, swap(5, Version::new(1), 6, false))));
}

#[test]
fn a_comparison_is_one_step() {
    good("it fits", &[op(1, 2, put(5)), op(3, 4, cas(5, 6, true)), op(5, 6, read(6))]);
    good("it does not", &[op(1, 2, put(5)), op(3, 4, cas(4, 6, false)), op(5, 6, read(5))]);
    good(
        "one of two",
        &[
            op(1, 2, put(5)),
            op(3, 9, cas(5, 6, true)),
            op(4, 8, cas(5, 7, false)),
            op(10, 11, read(6)),
        ],
    );
    bad(
        "both of two",
        &[
            op(1, 2, put(5)),
            op(3, 9, cas(5, 6, true)),
            op(4, 8, cas(5, 7, true)),
            op(10, 11, read(6)),
        ],
    );
    bad("it fits and was refused", &[op(1, 2, put(5)), op(3, 4, cas(5, 6, false))]);
    good("create", &[op(1, 2, cas(None, 6, true)), op(3, 4, read(6))]);
}

#[test]
fn increments_count_once() {
    let one = op(1, 2, incr(1, 1));
    good("one after the other", &[one.clone(), op(3, 4, incr(1, 2)), op(5, 6, read(2))]);
    bad("the same sum twice", &[one.clone(), op(3, 4, incr(1, 1))]);
    bad("applied twice", &[one.clone(), op(3, 4, read(2))]);
    bad("lost", &[one.clone(), op(3, 4, incr(1, 2)), op(5, 6, read(1))]);
    good("an unknown one counts", &[one.clone(), op(3, None, incr(1, None)), op(5, 6, read(2))]);
    good("or does not", &[one.clone(), op(3, None, incr(1, None)), op(5, 6, read(1))]);
    bad("but not twice", &[one, op(3, None, incr(1, None)), op(5, 6, read(3))]);
}

#[test]
fn expiry_is_an_end_and_no_beginning() {
    let short = op(1, 2, until(5, 10));
    good("before its time", &[short.clone(), op(5, 6, read(5))]);
    good("after its time", &[short.clone(), op(11, 12, read(None))]);
    bad("gone too early", &[short.clone(), op(5, 6, read(None))]);
    assert_eq!(
        check(&[short.clone(), op(5, 6, read(None))], 5).verdict,
        Verdict::Linearizable,
        "unless some clock is ahead by as much"
    );
    bad("back again", &[short, op(11, 12, read(None)), op(13, 14, read(5))]);
}

#[test]
fn versions_order_the_writes() {
    let (first, second) = (at(1, op(1, 9, put(5))), at(2, op(2, 8, put(6))));
    good("by their versions", &[first.clone(), second.clone(), at(2, op(10, 11, read(6)))]);
    bad("not against them", &[first, second, at(1, op(10, 11, read(5)))]);
    bad("a later write at an older version", &[at(2, op(1, 2, put(5))), at(1, op(3, 4, put(6)))]);
}

#[test]
fn the_promise_that_was_broken_is_named() {
    let named = |ops: &[Op]| breaches(ops).into_iter().map(|it| it.promise).collect::<Vec<_>>();
    let (one, two) = (at(1, op(1, 2, put(5))), at(2, op(3, 4, put(6))));
    let lost = [one.clone(), two, at(1, op(5, 6, read(5)))];
    assert_eq!(named(&lost), [Promise::Durable]);
    let vanished = [one, op(3, None, put(6)), at(2, op(5, 6, read(6))), at(1, op(7, 8, read(5)))];
    assert_eq!(named(&vanished), [Promise::NoDirtyRead]);
    let twice = [at(1, op(1, 2, incr(1, 1))), at(3, op(3, 4, read(2)))];
    assert_eq!(named(&twice), [Promise::ExactlyOnce]);
}

#[test]
fn a_whole_history_is_judged_key_by_key() {
    let key = |name: &str| Key { ordered: false, key: name.into() };
    let mut history = History::default();
    for ops in [op(1, 2, put(5)), op(3, 4, read(5))] {
        history.record(&key("kept"), ops);
    }
    for ops in [op(1, 2, put(5)), op(3, 4, put(6)), op(5, 6, read(6)), op(7, 8, read(5))] {
        history.record(&key("broken"), ops);
    }
    history.violation("a scan was out of order".into());
    let judgement = history.check(0);
    assert_eq!((judgement.violations.len(), judgement.unchecked), (2, 0));
    let picture = judgement.pictures.first().expect("one key is broken");
    assert_eq!(picture.key, "broken");
    assert!(picture.ops.len() <= 4 && !picture.culprits.is_empty(), "{picture:?}");
}
