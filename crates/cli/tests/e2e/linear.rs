//! What a multiget takes for each of its keys, however many they are: with processes and datagrams.

use crate::config::{Cluster, Shape};
use crate::processes::Processes;
use client::PutOptions;
use client::blocking::Space;
use std::time::{Duration, Instant};

/// Keys of the largest multiget; as many are read by each size in a round.
const KEYS: usize = 10_000;

/// Keys of the multigets that are compared.
const SIZES: [usize; 3] = [100, 1_000, KEYS];

/// How many times as long as with the smallest multiget a key may take with the largest.
const TIMES_MAX: f64 = 1.5;

/// Rounds: other work on the machine spoils some, and the best of each size says what is.
const ROUNDS_MAX: usize = 20;
const ROUNDS_MIN: usize = 5;

/// How long all keys take, read by so many at once.
fn read_all(space: &Space, keys: &[Vec<u8>], at_once: usize) -> Duration {
    let began = now();
    for chunk in keys.chunks(at_once) {
        for outcome in space.mget(chunk) {
            let value = outcome.into_result().expect("every key is answered");
            assert!(value.is_some_and(|value| value.value.len() == 100), "every key has a value");
        }
    }
    began.elapsed()
}

#[expect(clippy::disallowed_methods, reason = "what real processes take is measured")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn a_key_of_a_large_multiget_takes_no_longer_than_one_of_a_small_one() {
    let cluster = Cluster::with(Shape { nodes: 3, switches: 1, standby: false });
    let processes = Processes::start(cluster, &[1, 2, 3]);
    let space = processes.space();
    let keys: Vec<Vec<u8>> = (0..KEYS).map(|key| format!("user{key:012}").into_bytes()).collect();
    let entries: Vec<(&[u8], [u8; 100])> = keys.iter().map(|key| (&key[..], [b'v'; 100])).collect();
    let written = space.mset(&entries, PutOptions::default());
    assert!(written.into_iter().all(|it| it.into_result().is_ok()), "every key is written");

    let (mut best, mut times) = ([f64::MAX; SIZES.len()], f64::MAX);
    for round in 0..ROUNDS_MAX {
        let took = SIZES.map(|at_once| read_all(&space, &keys, at_once).as_secs_f64());
        let us = took.map(|took| took * 1e6 / KEYS as f64);
        println!("round {round}: us of a key by multigets of {SIZES:?} keys: {us:.2?}");
        for (best, us) in best.iter_mut().zip(us) {
            *best = best.min(us);
        }
        let [small, .., large] = best;
        times = large / small;
        if round + 1 >= ROUNDS_MIN && times <= TIMES_MAX {
            break;
        }
    }
    println!("the best of each: {best:.2?}; {times:.2} times as long with the most keys");
    assert!(times <= TIMES_MAX, "a key takes {times:.2} times as long: {best:?}");
}
