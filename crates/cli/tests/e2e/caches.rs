//! A cache that is killed and stopped while its keys are read and written: no read goes back.

use crate::config::Cluster;
use crate::processes::Processes;
use crate::silent::Stopped;
use client::PutOptions;
use client::blocking::Space;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use testkit::flag::RaiseOnDrop;
use testkit::program::free_addresses;

const CACHE: &str = "cache --id 1";
const KEYS: usize = 4;
const READERS: usize = 2;

/// How long a stopped cache does nothing: three of the leases that nodes give it.
const STOPPED: Duration = Duration::from_millis(900);

/// The newest value of each key that was acknowledged or read.
type Newest = [AtomicU64; KEYS];

fn key(number: usize) -> String {
    format!("k{number}")
}

/// Writes ever larger numbers until it is told to end.
fn write(space: &Space, newest: &Newest, ends: &AtomicBool) {
    let mut value = 0;
    while !ends.load(Ordering::Relaxed) {
        value += 1;
        let number = usize::try_from(value).expect("few") % KEYS;
        let text = value.to_string();
        let put = space.put(key(number).as_bytes(), text.as_bytes(), PutOptions::default());
        put.into_result().expect("the cluster serves");
        newest[number].fetch_max(value, Ordering::SeqCst);
        // Most of the time a key is only read.
        thread::park_timeout(Duration::from_millis(3));
    }
}

/// Reads until it is told to end: never what is older than what was known when it asked.
fn read(space: &Space, newest: &Newest, ends: &AtomicBool) -> u64 {
    let mut reads = 0;
    while !ends.load(Ordering::Relaxed) {
        for (number, newest) in newest.iter().enumerate() {
            let known = newest.load(Ordering::SeqCst);
            let found = space.get(key(number).as_bytes()).into_result().expect("it serves");
            let seen = found.map_or(0, |it| {
                String::from_utf8(it.value).expect("digits").parse().expect("a number")
            });
            assert!(seen >= known, "{}: {seen} after {known}", key(number));
            newest.fetch_max(seen, Ordering::SeqCst);
            reads += 1;
        }
    }
    reads
}

/// Reads that the cache has answered since it started.
fn hits(processes: &Processes) -> u64 {
    let ran = processes.ask("cache list --json");
    if ran.code == Some(0) { ran.json()["hits"].as_u64().unwrap_or(0) } else { 0 }
}

fn wait_for_hits(processes: &Processes) {
    let more = hits(processes) + 200;
    let answered = lab::hammer::wait(|| (hits(processes) >= more).then_some(()));
    assert!(answered.is_some(), "the cache answers nothing: {:?}", processes.ask("cache list"));
}

#[test]
fn a_cache_that_is_killed_or_stopped_shows_nothing_old_and_holds_nobody_up_for_long() {
    let mut cluster = Cluster::new();
    let [listen, admin] = free_addresses(2)[..] else { panic!("as many as asked for") };
    let cache = format!("\n[[cache]]\nid = 1\nlisten = \"{listen}\"\nadmin = \"{admin}\"\n");
    cluster.text.push_str(&cache);
    let mut processes = Processes::start(cluster, &[1, 2, 3]);
    processes.run(CACHE);
    processes.ask("keyspace create cached --hot cache --partitions 4").expect(0);
    processes.wait_replicated();
    let spaces: Vec<Space> = (0..=READERS).map(|_| processes.space_of("cached")).collect();
    let (newest, ends) = (Newest::default(), AtomicBool::new(false));
    let (newest, ends) = (&newest, &ends);
    thread::scope(|scope| {
        let _ends = RaiseOnDrop(ends);
        let [writer, readers @ ..] = &spaces[..] else { panic!("there are some") };
        scope.spawn(move || write(writer, newest, ends));
        for reader in readers {
            scope.spawn(move || read(reader, newest, ends));
        }
        wait_for_hits(&processes);
        for _ in 0..3 {
            processes.kill(CACHE);
            // Nobody waits for it for longer than its lease.
            thread::park_timeout(STOPPED);
            processes.run(CACHE);
            wait_for_hits(&processes);
            let stopped = Stopped::new(&processes, CACHE);
            thread::park_timeout(STOPPED);
            drop(stopped);
            wait_for_hits(&processes);
        }
    });
    let shown = processes.ask("cache list");
    shown.expect(0);
    let status = processes.ask("status");
    assert!(status.stdout.contains("cache 1"), "{status:?}");
    // Asked to end, it gives back what it was lent.
    processes.terminate(CACHE);
}
