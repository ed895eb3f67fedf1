//! What clients see while there is no controller: nothing, for as long as leases last.

use crate::cluster::{Cluster, Size};
use crate::folder::Folder;
use crate::outage::percentile;
use crate::watch::{RaiseOnDrop, Watch};
use client::blocking::Space;
use client::{Options, Outcome, PutOptions};
use lab::links::Link;
use lab::place::Place;
use lab::plane::Plane;
use lab::redundant::Role;
use machine::Instant;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const SIZE: Size = Size { nodes: 3, clients: 2, plane: Plane::User };
const KEYSPACE: &str = "\
    [[keyspace]]\nname = \"default\"\nkind = \"hash\"\npartitions = 6\nreplicas = 3\n";
/// Half of them read, the others write; each has a key of its own.
const THREADS: usize = 16;
/// How long a thread rests between two requests.
const REST: Duration = Duration::from_millis(5);
/// How long requests are measured with a controller, before each time without one.
const BEFORE: Duration = Duration::from_secs(4);
/// How long there is none: most of a lease of ten seconds, which began with the last report, and is
/// cut short by what clocks may differ.
pub(crate) const AWAY: Duration = Duration::from_secs(8);
/// How long requests are measured once it is back: what it decides first would be seen by then.
const AFTER: Duration = Duration::from_secs(2);
/// How long the cluster may take to be complete, which it is all the time but at the start.
const COMPLETE_WAIT_MAX: Duration = Duration::from_secs(60);

/// Why there is no controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// `kill -9`.
    Killed,
    /// SIGSTOP.
    Stopped,
    /// Nobody reaches it, and it reaches nobody.
    CutOff,
}

/// All of them.
pub(crate) const REASONS: [Reason; 3] = [Reason::Killed, Reason::Stopped, Reason::CutOff];

/// What a request that was made at a time came to.
#[derive(Debug)]
struct Asked {
    called: Instant,
    took: Duration,
    /// Why it failed, if it did.
    failure: Option<String>,
}

/// Requests with a controller, and those from when it was gone until it had been back for a while.
#[derive(Debug)]
pub(crate) struct Absence {
    reason: Reason,
    with: Vec<Asked>,
    without: Vec<Asked>,
}

/// Takes the controllers away once for each reason, and back again, while clients ask.
pub(crate) fn measure(folder: Folder) -> Vec<Absence> {
    let mut cluster = Cluster::start(SIZE, KEYSPACE, folder);
    let options = Options::default();
    let watch = cluster.watch.clone();
    let spaces: Vec<Space> = (0..SIZE.clients)
        .map(|host| cluster.client(host, options).keyspace("default").expect("all is up"))
        .collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (sender, requests) = channel();
        for thread in 0..THREADS {
            let space = &spaces[thread % spaces.len()];
            let (stop, watch, sender) = (&stop, &watch, sender.clone());
            scope.spawn(move || ask(thread, space, watch, stop, &sender));
        }
        // Ends the threads also if the test fails, or they would be waited for in vain.
        let _stop = RaiseOnDrop(&stop);
        let absences = REASONS.map(|reason| {
            let complete = cluster.wait_until_complete(COMPLETE_WAIT_MAX);
            complete.unwrap_or_else(|why| panic!("before {reason:?}: {why}"));
            absence(&mut cluster, &requests, reason, options.deadline)
        });
        absences.into()
    })
}

fn ask(thread: usize, space: &Space, watch: &Watch, stop: &AtomicBool, asked: &Sender<Asked>) {
    let key = format!("key-{thread}").into_bytes();
    while !stop.load(Ordering::Relaxed) {
        let called = watch.now();
        let failure = if thread.is_multiple_of(2) {
            why_not(&space.get(&key))
        } else {
            why_not(&space.put(&key, b"value", PutOptions::default()))
        };
        let returned = watch.now();
        let request = Asked { called, took: returned.since(called), failure };
        if asked.send(request).is_err() {
            return;
        }
        watch.wait_until(returned + REST);
    }
}

fn why_not<T: fmt::Debug>(outcome: &Outcome<T>) -> Option<String> {
    (!outcome.is_done()).then(|| format!("{outcome:?}"))
}

fn absence(
    cluster: &mut Cluster,
    requests: &Receiver<Asked>,
    reason: Reason,
    deadline: Duration,
) -> Absence {
    let watch = cluster.watch.clone();
    let begun = watch.now();
    watch.wait_until(begun + BEFORE);
    let gone = watch.now();
    take_away(cluster, reason);
    watch.wait_until(gone + AWAY);
    bring_back(cluster, reason);
    let end = watch.now() + AFTER;
    // Whoever asked before the end has its answer, or none, by then.
    watch.wait_until(end + deadline);
    let asked = requests.try_iter().filter(|it| (begun..end).contains(&it.called));
    let (with, without) = asked.partition(|it| it.called < gone);
    Absence { reason, with, without }
}

/// Both controllers, the one that stands by too.
fn controllers(cluster: &Cluster) -> Vec<Role> {
    cluster.roles().into_iter().filter(|it| matches!(it, Role::Controller(_))).collect()
}

fn take_away(cluster: &mut Cluster, reason: Reason) {
    match reason {
        Reason::Killed => controllers(cluster).into_iter().for_each(|it| cluster.kill(it)),
        Reason::Stopped => controllers(cluster).into_iter().for_each(|it| cluster.stop(it)),
        Reason::CutOff => {
            let places = cluster.hosts().places();
            let others = places.into_iter().filter(|it| *it != Place::Controllers);
            let cut = |from, to| Link { from, to, lost_percent: 100 };
            let ways = |it| [cut(it, Place::Controllers), cut(Place::Controllers, it)];
            cluster.set_links(&others.flat_map(ways).collect::<Vec<_>>());
        }
    }
}

fn bring_back(cluster: &mut Cluster, reason: Reason) {
    match reason {
        Reason::Killed => controllers(cluster).into_iter().for_each(|it| cluster.revive(it)),
        Reason::Stopped => controllers(cluster).into_iter().for_each(|it| cluster.go_on(it)),
        Reason::CutOff => cluster.set_links(&[]),
    }
}

impl Absence {
    /// Requests without a controller.
    pub(crate) fn requests(&self) -> usize {
        self.without.len()
    }

    /// Requests that failed, with or without a controller.
    pub(crate) fn failed(&self) -> usize {
        self.with.iter().chain(&self.without).filter(|it| it.failure.is_some()).count()
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8?}", self.reason)?;
        for (what, asked) in [("with", &self.with), ("without", &self.without)] {
            let times: Vec<Duration> = asked.iter().map(|it| it.took).collect();
            let ms = |percent| percentile(&times, percent).as_secs_f64() * 1e3;
            write!(
                f,
                "  {what}: {} requests, {} failed, p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
                asked.len(),
                asked.iter().filter(|it| it.failure.is_some()).count(),
                ms(50),
                ms(99),
                ms(100)
            )?;
        }
        let asked = || self.with.iter().chain(&self.without);
        let failure = asked().find_map(|it| it.failure.as_ref());
        failure.map_or(Ok(()), |why| write!(f, "; {why}"))
    }
}
