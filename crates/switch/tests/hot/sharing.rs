//! Several threads of one switch.

use crate::rack::{
    INCARNATION, KEYHASH, NOTHING, Says, TAIL, at, copied, get, lease, order, prove, reply,
    started, tables, warm,
};
use cluster::{HotCount, Selection, SwitchControl as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use switch::{Directory, Pipeline};
use wire::{Op, Revision};

fn threads<const N: usize>() -> [Pipeline; N] {
    choosing(Selection::Random)
}

fn choosing<const N: usize>(selection: Selection) -> [Pipeline; N] {
    let directory = Arc::new(Directory::new(INCARNATION));
    std::array::from_fn(|_| {
        let mut pipeline = Pipeline::sharing(INCARNATION, directory.clone());
        started(&mut pipeline, 3, selection);
        pipeline
    })
}

/// Enough for the kernel to take a thread delegated at each place between two instructions that
/// matter.
const VERSIONS: u64 = 200_000;

#[test]
fn a_version_that_one_thread_let_through_is_the_floor_of_another() {
    let [mut lets_through, mut reads, mut orders] = threads();
    prove(&mut lets_through, 1, 0);
    let (send, receive) = mpsc::sync_channel(64);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(move || {
            let ops = [Op::PutReply, Op::GetReply, Op::HotPublish];
            for (version, op) in (1..=VERSIONS).zip(ops.into_iter().cycle()) {
                reply(&mut lets_through, at(0), Says { op, version, ..NOTHING });
                copied(&mut lets_through, 1, version);
                send.send(version).expect("somebody reads until the end");
            }
        });
        // Tables change meanwhile.
        let (over, orders) = (&over, &mut orders);
        scope.spawn(move || {
            for revision in 2.. {
                let readers = 1 + u16::try_from(revision % 3).unwrap();
                orders.install_hot(&order(revision, 1, readers, Selection::Random)).unwrap();
                if over.load(Ordering::Acquire) {
                    return;
                }
            }
        });
        let mut last = 0;
        for version in receive {
            let stamped = get(&mut reads, at(0));
            assert!(stamped.hot && stamped.generation == 1);
            if stamped.node != TAIL {
                assert!(stamped.floor >= version.max(last), "{} < {version}", stamped.floor);
                last = stamped.floor;
            }
        }
        over.store(true, Ordering::Release);
        assert!(last > VERSIONS / 2, "copies were hardly asked: {last}");
    });
}

#[test]
fn who_sees_a_proof_sees_what_it_proves() {
    let rounds = 40_000;
    let [mut proves, mut reads] = threads();
    let (stays, next_generation) = mpsc::sync_channel::<u64>(1);
    thread::scope(|scope| {
        scope.spawn(move || {
            for generation in next_generation {
                // Who takes the entry for proven before it is raised finds the floor 0 at node 1.
                (1..=3).for_each(|node| {
                    copied(&mut proves, node, if node == 1 { 0 } else { generation })
                });
                prove(&mut proves, generation, generation);
            }
        });
        for generation in 2..2 + rounds {
            reads.install_hot(&order(generation, generation, 3, Selection::Random)).unwrap();
            stays.send(generation).expect("the other thread waits for it");
            loop {
                let stamped = get(&mut reads, at(0));
                assert_eq!(stamped.generation, generation);
                if stamped.node != TAIL {
                    assert_eq!(
                        stamped.floor, generation,
                        "a copy was asked, so the proof was there"
                    );
                    break;
                }
            }
        }
        drop(stays);
    });
}

#[test]
fn what_one_thread_learns_or_forgets_the_others_do() {
    let [mut first, mut second] = threads();
    warm(&mut first, 3, 7);
    let stamped = get(&mut second, at(0));
    assert_eq!((stamped.floor, stamped.node == TAIL), (7, false));
    second.install_hot(&order(2, 2, 3, Selection::Random)).unwrap();
    assert_eq!(first.hot_revision(), Revision::new(2));
    let stamped = get(&mut first, at(0));
    assert_eq!((stamped.node, stamped.generation), (TAIL, 2));
    let end = at(3_600_000_000);
    first.renew(end, &lease(end, 1_000));
    first.install_hot(&order(3, 3, 3, Selection::Random)).unwrap();
    second.renew(end, &lease(end, 1_000));
    assert_eq!(second.hot_revision(), Revision::new(3), "the second thread forgets nothing again");
    let mut standby = tables(2, 4, &[TAIL]);
    standby.active = false;
    second.install(&standby).unwrap();
    assert!(!get(&mut first, end).hot, "this one still forwards, as if no key were hot");
}

#[test]
fn each_thread_counts_for_itself_and_the_sum_is_reported() {
    let [mut first, mut second] = threads();
    warm(&mut first, 3, 7);
    get(&mut first, at(0));
    get(&mut second, at(0));
    crate::rack::get_at_home(&mut second, at(0));
    crate::rack::ask(&mut second, at(0), Op::Incr, 0);
    let mut sum = first.counters_ref().clone();
    sum.merge(second.counters_ref());
    let wanted = HotCount {
        keyspace: crate::rack::KEYSPACE,
        keyhash: KEYHASH,
        reads: 3,
        spread: 2,
        writes: 1,
    };
    assert_eq!(sum.report(None, Revision::new(1), Revision::new(1)).hot, [wanted]);
    // One is in the next generation already.
    second.install_hot(&order(2, 2, 3, Selection::Random)).unwrap();
    get(&mut second, at(0));
    for (one, other) in [(&first, &second), (&second, &first)] {
        let mut sum = one.counters_ref().clone();
        sum.merge(other.counters_ref());
        let wanted = HotCount { reads: 1, spread: 0, writes: 0, ..wanted };
        assert_eq!(
            sum.report(None, Revision::new(1), Revision::new(2)).hot,
            [wanted],
            "the newer generation is what counts"
        );
    }
}

/// How many of so many reads go to each of the three readers.
fn asks(pipeline: &mut Pipeline, at_us: u64, reads: usize) -> [usize; 4] {
    let mut asked = [0; 4];
    for _ in 0..reads {
        asked[usize::from(get(pipeline, at(at_us)).node)] += 1;
    }
    asked
}

fn says(pipeline: &mut Pipeline, at_us: u64, node: u16, load: u16, rate: u32) {
    // Another operation, which says nothing about the key.
    reply(pipeline, at(at_us), Says { op: Op::RangeReply, node, load, rate, ..NOTHING });
}

#[test]
fn what_nodes_report_to_one_thread_the_others_choose_by() {
    let [mut hears, mut chooses] = choosing(Selection::Reported);
    warm(&mut hears, 3, 7);
    (1..=3).for_each(|node| says(&mut hears, 0, node, u16::from(node != 2), 0));
    let [_, first, second, third] = asks(&mut chooses, 0, 300);
    assert!(second > 150 && first < 75 && third < 75, "of two the second, if it is one");

    let [mut hears, mut chooses] = choosing(Selection::Predicted);
    warm(&mut hears, 3, 7);
    (1..=3).for_each(|node| says(&mut hears, 0, node, if node == 2 { 0 } else { 100 }, 1_000));
    let [_, first, second, third] = asks(&mut chooses, 0, 90);
    assert!(second > 40 && first + third < 50, "none has less to do than it has reported");

    let [mut hears, mut chooses] = choosing(Selection::Predicted);
    warm(&mut hears, 3, 7);
    (1..=3).for_each(|node| says(&mut hears, 0, node, 0, if node == 2 { 100 } else { 1_000 }));
    let slow = asks(&mut chooses, 0, 210)[2];
    assert!((5..=15).contains(&slow), "it takes ten times as long there: {slow}");
}

#[test]
fn what_one_thread_has_sent_the_others_know() {
    let [mut sends, mut chooses] = choosing(Selection::Predicted);
    prove(&mut sends, 1, 7);
    copied(&mut sends, 1, 7);
    (1..=3).for_each(|node| says(&mut sends, 0, node, 0, 1_000));
    assert_eq!(asks(&mut sends, 0, 60), [0, 60, 0, 0], "nobody else holds it");
    // Which is passed on in the next tick.
    says(&mut sends, 2_000, 1, 0, 1_000);
    (2..=3).for_each(|node| copied(&mut sends, node, 7));
    (2..=3).for_each(|node| says(&mut sends, 2_000, node, 0, 1_000));
    let [home, first, ..] = asks(&mut chooses, 4_000, 60);
    assert_eq!((home, first), (0, 0), "it has more than 50 to do, the others 30 each at the end");
}
