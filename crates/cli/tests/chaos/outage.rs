//! For how long the keys of a chain are out of reach when one of its nodes is killed.

use crate::cluster::{Cluster, Size};
use crate::folder::Folder;
use crate::watch::{RaiseOnDrop, Watch};
use client::blocking::Space;
use client::{Options, PutOptions};
use lab::plane::Plane;
use lab::redundant::Role;
use machine::Instant;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Every chain has all three nodes: each loses its head, a middle or its tail in turn.
const SIZE: Size = Size { nodes: 3, clients: 2, plane: Plane::User };
const KEYSPACE: &str = "\
    [[keyspace]]\nname = \"default\"\nkind = \"hash\"\npartitions = 6\nreplicas = 3\n";
/// Keys, spread over the partitions; each is read by one thread and written by another.
const KEYS: u8 = 8;
/// How long a thread rests between two requests: what is measured is late by this at most, and the
/// machine is not measured instead of Keyway.
const REST: Duration = Duration::from_millis(5);
/// Nobody gives up: when an answer comes is what is asked.
const PATIENCE: Duration = Duration::from_secs(30);

/// What somebody who asks again and again has been answered.
#[derive(Clone, Copy, Debug)]
struct Answered {
    prober: usize,
    called: Instant,
    returned: Instant,
}

/// How long it took until a key answered again, once for each kill and key.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    reads: Vec<Duration>,
    writes: Vec<Duration>,
}

/// Kills nodes one after the other, each out of complete chains, and measures.
pub(crate) fn measure(kills: u8, folder: Folder) -> Outages {
    let mut cluster = Cluster::start(SIZE, KEYSPACE, folder);
    let options = Options { deadline: PATIENCE, ..Options::default() };
    let watch = cluster.watch.clone();
    let spaces: Vec<Space> = (0..SIZE.clients)
        .map(|host| cluster.client(host, options).keyspace("default").expect("all is up"))
        .collect();
    let (stop, mut outages) = (AtomicBool::new(false), Outages::default());
    std::thread::scope(|scope| {
        let (sender, answers) = channel();
        for prober in 0..2 * usize::from(KEYS) {
            let space = &spaces[prober % spaces.len()];
            let (stop, watch, sender) = (&stop, &watch, sender.clone());
            scope.spawn(move || probe(prober, space, watch, stop, &sender));
        }
        // Ends the probers also if the test fails, or they would be waited for in vain.
        let _stop = RaiseOnDrop(&stop);
        for kill in 0..kills {
            let complete = cluster.wait_until_complete(COMPLETE_WAIT_MAX);
            complete.unwrap_or_else(|why| panic!("before kill {kill}: {why}"));
            let victim = Role::Node(1 + kill % SIZE.nodes);
            let killed = watch.now();
            cluster.kill(victim);
            outages.take(killed, &answers);
            cluster.revive(victim);
        }
    });
    outages
}

/// Even probers read a key, odd ones write it.
fn is_read(prober: usize) -> bool {
    prober.is_multiple_of(2)
}

fn probe(
    prober: usize,
    space: &Space,
    watch: &Watch,
    stop: &AtomicBool,
    answers: &Sender<Answered>,
) {
    let key = format!("key-{}", prober / 2).into_bytes();
    while !stop.load(Ordering::Relaxed) {
        let called = watch.now();
        let done = if is_read(prober) {
            space.get(&key).is_done()
        } else {
            space.put(&key, b"value", PutOptions::default()).is_done()
        };
        let returned = watch.now();
        if done && answers.send(Answered { prober, called, returned }).is_err() {
            return;
        }
        watch.wait_until(returned + REST);
    }
}

impl Outages {
    /// Waits until everybody has been answered a request made after the kill.
    fn take(&mut self, killed: Instant, answers: &Receiver<Answered>) {
        let mut waiting: Vec<usize> = (0..2 * usize::from(KEYS)).collect();
        while !waiting.is_empty() {
            let answered = answers.recv_timeout(PATIENCE).expect("keys answer again");
            let Some(place) = waiting.iter().position(|it| *it == answered.prober) else {
                continue;
            };
            if answered.called >= killed {
                waiting.swap_remove(place);
                let times =
                    if is_read(answered.prober) { &mut self.reads } else { &mut self.writes };
                times.push(answered.returned.since(killed));
            }
        }
    }

    /// The time within which 99 of 100 keys answered again.
    pub(crate) fn p99(&self) -> Duration {
        percentile(&self.all(), 99)
    }

    fn all(&self) -> Vec<Duration> {
        self.reads.iter().chain(&self.writes).copied().collect()
    }
}

/// The least of these times that this part of them does not exceed.
pub(crate) fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    let place = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(place).copied().expect("something was measured")
}

impl fmt::Display for Outages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, times) in
            [("reads", &self.reads), ("writes", &self.writes), ("all", &self.all())]
        {
            let ms = |percent| percentile(times, percent).as_millis();
            let (p50, p99, max) = (ms(50), ms(99), ms(100));
            writeln!(f, "{what:<7} p50 {p50:>5} ms  p99 {p99:>5} ms  max {max:>5} ms")?;
        }
        Ok(())
    }
}

/// How long a chain may take to be complete again.
const COMPLETE_WAIT_MAX: Duration = Duration::from_secs(60);

#[test]
fn a_percentile_is_one_of_the_times() {
    let times: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
    let at = |percent| percentile(&times, percent).as_millis();
    assert_eq!([at(50), at(99), at(100)], [100, 198, 200]);
    assert_eq!(percentile(&times[..1], 99), times[0]);
}
