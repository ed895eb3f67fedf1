//! What clients see while there is no controller: nothing, for as long as leases last.

use crate::cluster::Cluster;
use crate::folder::Folder;
use crate::probes::{Asked, SMALL, percentile, while_asked};
use client::Options;
use lab::links::Link;
use lab::place::Place;
use lab::redundant::Role;
use std::fmt;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// How long requests are measured with a controller, before each time without one.
const BEFORE: Duration = Duration::from_secs(4);
/// How long there is none: most of a lease of ten seconds, which began with the last report, and is
/// cut short by what clocks may differ.
pub(crate) const AWAY: Duration = Duration::from_secs(8);
/// How long requests are measured once it is back: what it decides first would be seen by then.
const AFTER: Duration = Duration::from_secs(2);
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

/// Requests with a controller, and those from when it was gone until it had been back for a while.
#[derive(Debug)]
pub(crate) struct Absence {
    reason: Reason,
    with: Vec<Asked>,
    without: Vec<Asked>,
}

/// Takes the controllers away once for each reason, and back again, while clients ask.
pub(crate) fn measure(folder: Folder) -> Vec<Absence> {
    let deadline = Options::default().deadline;
    while_asked(&SMALL, folder, deadline, |cluster, requests| {
        let absences = REASONS.map(|reason| {
            cluster.become_complete(format_args!("before {reason:?}"));
            absence(cluster, requests, reason, deadline)
        });
        absences.into()
    })
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
            let times: Vec<Duration> =
                asked.iter().map(|it| it.returned.since(it.called)).collect();
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
