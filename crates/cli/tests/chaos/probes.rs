//! Threads that read and write some keys all the time, and say what became of each request.

use crate::cluster::{Cluster, Size};
use crate::folder::Folder;
use crate::watch::Watch;
use client::blocking::Space;
use client::{Options, Outcome, PutOptions};
use machine::Instant;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use testkit::flag::RaiseOnDrop;

/// What is asked, and of whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) size: Size,
    pub(crate) keyspace: &'static str,
    /// Keys, spread over the partitions; each is read by one thread and written by another.
    pub(crate) keys: u8,
    /// How long a thread rests between two requests: what is measured is late by this at most, and
    /// the machine is not measured instead of Keyway.
    pub(crate) rest: Duration,
}

pub(crate) const NODES: u8 = 3;

/// Every chain has all three nodes.
pub(crate) const SMALL: Setting = Setting {
    size: Size::new(NODES, 2),
    keyspace: "[[keyspace]]\nname = \"default\"\nkind = \"hash\"\npartitions = 6\nreplicas = 3\n",
    keys: 8,
    rest: Duration::from_millis(5),
};

impl Setting {
    /// How many threads ask.
    pub(crate) fn probers(&self) -> usize {
        2 * usize::from(self.keys)
    }

    /// What a thread asks for: keys whose first bytes are far from each other.
    pub(crate) fn key(&self, prober: usize) -> Vec<u8> {
        let first = prober / 2 * 256 / usize::from(self.keys);
        [&[u8::try_from(first).expect("below 256")], &b"-key"[..]].concat()
    }
}

/// A request, and what became of it.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Who asked.
    pub(crate) prober: usize,
    pub(crate) called: Instant,
    pub(crate) returned: Instant,
    /// Why it failed, if it did.
    pub(crate) failure: Option<String>,
}

/// Starts a cluster, and has it asked all the time while `work` does something to it. Each request
/// waits for its answer for as long as `deadline`.
pub(crate) fn while_asked<T>(
    setting: &Setting,
    folder: Folder,
    deadline: Duration,
    work: impl FnOnce(&mut Cluster, &Receiver<Asked>) -> T,
) -> T {
    let mut cluster = Cluster::start(setting.size, setting.keyspace, folder);
    let options = Options { deadline, ..Options::default() };
    let watch = cluster.watch.clone();
    let spaces: Vec<Space> = (0..setting.size.clients)
        .map(|host| cluster.client(host, options.clone()).keyspace("default").expect("all is up"))
        .collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (sender, requests) = channel();
        for prober in 0..setting.probers() {
            let space = &spaces[prober % spaces.len()];
            let (stop, watch, sender) = (&stop, &watch, sender.clone());
            scope.spawn(move || probe((setting, prober), space, watch, stop, &sender));
        }
        // Ends the probers also if the test fails, or they would be waited for in vain.
        let _stop = RaiseOnDrop(&stop);
        work(&mut cluster, &requests)
    })
}

/// Even probers read a key, odd ones write it.
pub(crate) fn is_read(prober: usize) -> bool {
    prober.is_multiple_of(2)
}

fn probe(
    (setting, prober): (&Setting, usize),
    space: &Space,
    watch: &Watch,
    stop: &AtomicBool,
    asked: &Sender<Asked>,
) {
    let key = setting.key(prober);
    while !stop.load(Ordering::Relaxed) {
        let called = watch.now();
        let failure = if is_read(prober) {
            why_not(&space.get(&key))
        } else {
            why_not(&space.put(&key, b"value", PutOptions::default()))
        };
        let returned = watch.now();
        if asked.send(Asked { prober, called, returned, failure }).is_err() {
            return;
        }
        watch.wait_until(returned + setting.rest);
    }
}

fn why_not<T: fmt::Debug>(outcome: &Outcome<T>) -> Option<String> {
    (!outcome.is_done()).then(|| format!("{outcome:?}"))
}

/// The least of these times that this part of them does not exceed.
pub(crate) fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    let place = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(place).copied().expect("something was measured")
}

#[test]
fn a_percentile_is_one_of_the_times() {
    let times: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
    let at = |percent| percentile(&times, percent).as_millis();
    assert_eq!([at(50), at(99), at(100)], [100, 198, 200]);
    assert_eq!(percentile(&times[..1], 99), times[0]);
}
