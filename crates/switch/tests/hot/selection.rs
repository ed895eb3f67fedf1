//! Who is chosen among those that hold the newest version.

use crate::rack::{
    NOTHING, Says, TAIL, ask, at, copied, get, mget, new, prove, range, reply, tables, warm,
};
use cluster::{Selection, SwitchControl as _};
use std::collections::BTreeMap;
use switch::Pipeline;
use wire::Op;

/// Which nodes take so many GETs, one every so many microseconds.
fn shares(pipeline: &mut Pipeline, from_us: u64, count: u64, every_us: u64) -> BTreeMap<u16, u64> {
    let mut shares = BTreeMap::new();
    for number in 0..count {
        let node = get(pipeline, at(from_us + number * every_us)).node;
        *shares.entry(node).or_default() += 1;
    }
    shares
}

/// A node reports how busy it is.
fn report(pipeline: &mut Pipeline, node: u16, load: u16, rate: u32) {
    // Another operation, which says nothing about the key.
    reply(pipeline, at(0), Says { op: Op::RangeReply, node, load, rate, ..NOTHING });
}

#[test]
fn at_random_all_holders_take_the_same_share() {
    let mut pipeline = new(10, Selection::Random);
    warm(&mut pipeline, 10, 7);
    let shares = shares(&mut pipeline, 0, 10_000, 0);
    assert_eq!(shares.len(), 10);
    assert!(shares.values().all(|n| (850..1_150).contains(n)), "{shares:?}");
}

#[test]
fn more_readers_than_there_are_candidates_take_the_same_share_as_well() {
    let mut pipeline = new(500, Selection::Random);
    warm(&mut pipeline, 500, 7);
    let shares = shares(&mut pipeline, 0, 50_000, 0);
    assert_eq!(shares.len(), 500);
    assert!(shares.values().all(|n| (50..170).contains(n)), "{shares:?}");
    (65..=500).for_each(|node| copied(&mut pipeline, node, 8));
    prove(&mut pipeline, 1, 8);
    let later = self::shares(&mut pipeline, 0, 50_000, 0);
    assert_eq!(later.keys().filter(|node| **node != TAIL).min(), Some(&65), "who has it is asked");
    assert!(later.get(&TAIL).is_none_or(|n| *n < 500), "1 in 3,700 looks at none that has");
}

#[test]
fn of_few_readers_the_one_that_holds_it_is_found() {
    for selection in [Selection::Random, Selection::Reported, Selection::Predicted] {
        let mut pipeline = new(4, selection);
        prove(&mut pipeline, 1, 7);
        copied(&mut pipeline, 3, 7);
        assert_eq!(shares(&mut pipeline, 0, 200, 0), BTreeMap::from([(3, 200)]));
    }
}

#[test]
fn when_few_of_many_hold_it_the_tail_helps_out() {
    let mut pipeline = new(64, Selection::Random);
    prove(&mut pipeline, 1, 7);
    copied(&mut pipeline, 3, 7);
    let shares = shares(&mut pipeline, 0, 6_400, 0);
    let (spread, home) = (shares[&3], shares[&TAIL]);
    assert_eq!(spread + home, 6_400);
    assert!((300..500).contains(&spread), "4 of 64 are looked at: {spread}");
}

#[test]
fn the_shorter_of_two_reported_queues_is_taken() {
    let mut pipeline = new(2, Selection::Reported);
    warm(&mut pipeline, 2, 7);
    report(&mut pipeline, 1, 9, 0);
    report(&mut pipeline, 2, 3, 0);
    assert_eq!(shares(&mut pipeline, 0, 100, 0), BTreeMap::from([(2, 100)]));
    report(&mut pipeline, 2, 10, 0);
    assert_eq!(shares(&mut pipeline, 0, 100, 0), BTreeMap::from([(1, 100)]));
}

#[test]
fn without_rates_what_was_sent_and_not_answered_counts() {
    let mut pipeline = new(2, Selection::Predicted);
    warm(&mut pipeline, 2, 7);
    assert_eq!(shares(&mut pipeline, 0, 100, 0), BTreeMap::from([(1, 50), (2, 50)]));
    for _ in 0..10 {
        report(&mut pipeline, 2, 0, 0);
    }
    assert_eq!(shares(&mut pipeline, 0, 10, 0), BTreeMap::from([(2, 10)]));
    for _ in 0..10 {
        let (node, floor) = mget(&mut pipeline, at(0));
        assert!(node != TAIL && floor == Some(7));
    }
    assert_eq!(shares(&mut pipeline, 0, 10, 0), BTreeMap::from([(1, 5), (2, 5)]));
}

#[test]
fn what_is_said_of_copies_answers_no_request() {
    for op in [Op::HotCopied, Op::HotPublish] {
        let mut pipeline = new(2, Selection::Predicted);
        warm(&mut pipeline, 2, 7);
        assert_eq!(shares(&mut pipeline, 0, 20, 0), BTreeMap::from([(1, 10), (2, 10)]));
        let says = Says { op, node: 2, version: 7, ..NOTHING };
        (0..10).for_each(|_| reply(&mut pipeline, at(0), says));
        assert_eq!(shares(&mut pipeline, 0, 20, 0), BTreeMap::from([(1, 10), (2, 10)]));
        reply(&mut pipeline, at(0), Says { load: 40, ..says });
        assert_eq!(shares(&mut pipeline, 0, 20, 0), BTreeMap::from([(1, 20)]), "but of the load");
    }
}

#[test]
fn multigets_of_one_key_reach_all_that_hold_it_and_its_keys_are_counted() {
    for selection in [Selection::Random, Selection::Reported, Selection::Predicted] {
        let mut pipeline = new(4, selection);
        assert_eq!(mget(&mut pipeline, at(0)), (TAIL, None), "nobody holds it yet");
        warm(&mut pipeline, 4, 7);
        let mut shares: BTreeMap<u16, u64> = BTreeMap::new();
        for number in 0..400 {
            // All serve at the same rate, and wait for nothing.
            report(&mut pipeline, 1 + number % 4, 0, 1_000);
            let (node, floor) = mget(&mut pipeline, at(u64::from(number) * 1_000));
            assert_eq!(floor, Some(7));
            *shares.entry(node).or_default() += 1;
        }
        let fair = selection == Selection::Reported || shares.values().all(|n| *n > 50);
        assert!(fair && shares.len() > 1, "{selection:?}: {shares:?}");
        assert_eq!(pipeline.counters_ref().hot_keys(), [1, 400], "home and copies");
        get(&mut pipeline, at(0));
        assert_eq!(pipeline.counters_ref().hot_keys(), [1, 400], "a GET is no multiget");
    }
}

#[test]
fn a_piece_of_a_range_counts_at_its_tail() {
    let mut pipeline = new(3, Selection::Predicted);
    pipeline.install(&tables(2, 4, &[TAIL, 2, 3])).unwrap();
    warm(&mut pipeline, 3, 7);
    (0..10).for_each(|_| range(&mut pipeline, at(0)));
    assert_eq!(shares(&mut pipeline, 0, 12, 0), BTreeMap::from([(1, 6), (2, 6)]));
}

#[test]
fn a_write_counts_at_every_node_of_its_chain() {
    let mut pipeline = new(3, Selection::Predicted);
    pipeline.install(&tables(2, 4, &[TAIL, 2, 3])).unwrap();
    warm(&mut pipeline, 3, 7);
    for _ in 0..10 {
        ask(&mut pipeline, at(0), Op::Put, 0);
    }
    // Nodes 2 and 3 have 10 requests each; a read that looks at them alone goes to one of them.
    let shares = shares(&mut pipeline, 0, 12, 0);
    assert!(shares.get(&1).is_some_and(|n| *n >= 6), "{shares:?}");
}

#[test]
fn a_node_of_half_the_speed_takes_less_than_half_of_what_others_take() {
    let mut pipeline = new(4, Selection::Predicted);
    warm(&mut pipeline, 4, 7);
    for node in 1..=4 {
        report(&mut pipeline, node, 0, if node == 1 { 500 } else { 1_000 });
    }
    // 3300 a second, of 3500 that all of them can serve.
    let shares = shares(&mut pipeline, 0, 33_000, 303);
    let slow = shares[&1];
    let others = (33_000 - slow) / 3;
    assert!(slow * 100 < others * 50, "who is asked there waits longer: {shares:?}");
    assert!(slow * 100 > others * 30, "all that the others cannot take: {shares:?}");
}

#[test]
fn more_readers_are_looked_at_if_those_that_were_are_slow() {
    let mut pipeline = new(16, Selection::Predicted);
    warm(&mut pipeline, 16, 7);
    for node in 1..=16 {
        // However slow they are, no more than four are looked at.
        let (load, rate) = if node <= 8 { (60_000, 300) } else { (0, 1_000) };
        report(&mut pipeline, node, load, rate);
    }
    let shares = shares(&mut pipeline, 0, 10_000, 0);
    let slow: u64 = shares.range(..=8).map(|(_, n)| n).sum();
    assert!((200..600).contains(&slow), "4 of 16 are slow ones: 0.04, and two 0.23; {shares:?}");
}
