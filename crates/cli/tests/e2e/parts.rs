//! Partitions that are split and merged under load: nothing that was acknowledged is lost or done
//! twice.

use crate::processes::{Processes, node};
use crate::recovery::durable;
use client::blocking::Space;
use client::{IncrReply, ScanOptions};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use testkit::flag::RaiseOnDrop;

const KEYS: usize = 200;
const WRITERS: usize = 4;

fn key(number: usize) -> String {
    format!("k{number:03}")
}

/// Adds to its share of the counters until it is told to end. Gives back what was acknowledged.
fn count(space: &Space, writer: usize, ends: &AtomicBool) -> Vec<i64> {
    let mut sums = vec![0; KEYS];
    while !ends.load(Ordering::Relaxed) {
        for number in (writer..KEYS).step_by(WRITERS) {
            let outcome = space.incr(key(number).as_bytes(), 1).into_result();
            let IncrReply::Sum { sum, .. } = outcome.expect("the cluster serves") else {
                panic!("{} is a number", key(number));
            };
            sums[number] += 1;
            assert_eq!(sum, sums[number], "each counts once");
        }
    }
    sums
}

/// Counts in the keyspace `counted` while this is done; gives the sums that were acknowledged.
pub(crate) fn while_counting(
    processes: &mut Processes,
    change: impl FnOnce(&mut Processes),
) -> Vec<i64> {
    let spaces: Vec<Space> = (0..WRITERS).map(|_| processes.space_of("counted")).collect();
    let ends = &AtomicBool::new(false);
    let sums = thread::scope(|scope| {
        let writers: Vec<_> = (0..)
            .zip(&spaces)
            .map(|(writer, space)| scope.spawn(move || count(space, writer, ends)))
            .collect();
        {
            // They end also if this fails.
            let _ends = RaiseOnDrop(ends);
            change(processes);
        }
        let all = writers.into_iter().map(|it| it.join().expect("a writer ends"));
        all.reduce(|all, some| all.iter().zip(some).map(|(a, b)| a + b).collect()).unwrap()
    });
    assert!(sums.iter().all(|sum| *sum > 0), "all keys were written: {sums:?}");
    sums
}

/// The partitions of the keyspace, in the order of their keys.
fn parts(status: &Value) -> Vec<u64> {
    let spaces = status["keyspaces"].as_array().unwrap();
    let ours = spaces.iter().find(|it| it["name"] == "counted").unwrap();
    ours["partitions"].as_array().unwrap().iter().map(|it| it["id"].as_u64().unwrap()).collect()
}

fn split(processes: &Processes, part: u64, at: &str) -> [u64; 2] {
    let before = parts(&processes.wait_replicated());
    let place = before.iter().position(|it| *it == part).unwrap();
    processes.ask(&format!("placement split {part} --at {at}")).expect(0);
    let status = processes.wait("it is split", |status| parts(status).len() > before.len());
    let after = parts(&status);
    [after[place], after[place + 1]]
}

/// Whether the counters in the keyspace `counted` have these sums.
pub(crate) fn check(space: &Space, sums: &[i64]) {
    let found = space.scan(ScanOptions::default()).into_result().expect("it is scanned");
    let text = |bytes| String::from_utf8(bytes).expect("ours are text");
    let found = found.into_iter().map(|(key, entry)| (text(key), text(entry.value)));
    let found: Vec<(String, i64)> =
        found.map(|(key, value)| (key, value.parse().expect("a number"))).collect();
    let wanted: Vec<(String, i64)> =
        sums.iter().enumerate().map(|(number, sum)| (key(number), *sum)).collect();
    assert_eq!(found, wanted);
}

/// Some writes come between two changes.
pub(crate) fn pause() {
    thread::park_timeout(Duration::from_millis(300));
}

#[test]
fn a_partition_is_split_and_merged_under_load_and_every_increment_counts_once() {
    let (cluster, _directory) = durable(3);
    let mut processes = Processes::start(cluster, &[1, 2, 3]);
    processes.ask("keyspace create counted --range --prefix k --partitions 1").expect(0);
    let only = parts(&processes.wait_replicated());
    let refused = processes.ask(&format!("placement split {}", only[0]));
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("say where to cut it (--at KEY)"), "{refused:?}");

    let sums = while_counting(&mut processes, |processes| {
        pause();
        let [first, second] = split(processes, only[0], "k100");
        pause();
        let [_, _] = split(processes, second, "k150");
        let [one, other] = split(processes, first, "k050");
        pause();
        processes.ask(&format!("placement merge {one} {other}")).expect(0);
        processes.wait("they are merged", |status| parts(status).len() == 3);
        pause();
    });
    check(&processes.space_of("counted"), &sums);

    // What was made is on disk: also if all end at once.
    let roles: Vec<String> = (1..=3).map(node).collect();
    roles.iter().for_each(|role| processes.kill(role));
    roles.iter().for_each(|role| drop(processes.run(role)));
    assert_eq!(parts(&processes.wait_replicated()).len(), 3);
    check(&processes.space_of("counted"), &sums);
    let apart = parts(&processes.wait_replicated());
    let refused = processes.ask(&format!("placement merge {} {}", apart[0], apart[2]));
    assert!(refused.stderr.contains("right before or after"), "{refused:?}");
}
