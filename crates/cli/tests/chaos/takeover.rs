//! Three controllers on three hosts, with a member of their etcd each, lose the one that leads: how
//! long it takes until another one has decided something, and what clients notice of it.

use crate::cluster::{Cluster, Size, has_links};
use crate::etcd;
use crate::folder::Folder;
use crate::probes::{Asked, SMALL, Setting, percentile, while_asked};
use client::Options;
use cluster::{HotPolicy, KeyspaceKind};
use console::admin::Admin;
use controller::KeyspaceSpec;
use lab::links::Link;
use lab::place::Place;
use lab::redundant::{Controllers, Role};
use machine::Instant;
use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// How many there are.
pub(crate) const SITES: u8 = 3;
/// What is asked, of a cluster with so many.
pub(crate) const SETTING: Setting =
    Setting { size: Size { controllers: Controllers::Sites(SITES), ..SMALL.size }, ..SMALL };

/// How long requests are measured before each fault.
const BEFORE: Duration = Duration::from_secs(1);
/// How long from a fault on, if it takes no longer until something has been decided: what another
/// leader decides first would be seen by then.
const AFTER: Duration = Duration::from_secs(3);
/// How long a decision may take before the test gives up.
const DECIDED_WAIT_MAX: Duration = Duration::from_secs(30);
/// How long one try of it may take, and between two.
const TRY_MAX: Duration = Duration::from_millis(500);
const TRY_AGAIN: Duration = Duration::from_millis(10);

/// How long anybody may be silent: longer than a request waits for its answer.
const ASKED_WAIT_MAX: Duration = Duration::from_secs(30);

/// What becomes of the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `kill -9`.
    Killed,
    /// SIGSTOP.
    Stopped,
    /// Nobody reaches its host. The member of etcd there does not lead the etcd.
    CutOff,
    /// The same, and it does.
    CutOffWithEtcd,
}

/// All of them.
pub(crate) const FAULTS: [Fault; 4] =
    [Fault::Killed, Fault::Stopped, Fault::CutOff, Fault::CutOffWithEtcd];

/// What came of a kind of fault, time after time.
#[derive(Debug)]
pub(crate) struct Takeovers {
    fault: Fault,
    /// From the fault until a keyspace that was asked for had been decided on for good.
    pub(crate) decided: Vec<Duration>,
    /// And until it was served.
    served: Vec<Duration>,
    /// Requests before the faults, and from then on.
    before: Vec<Asked>,
    after: Vec<Asked>,
}

/// Has etcd led by whom the fault wants, and says which controller leads then: etcd stands still
/// for a moment when it is led by another one, so that may have changed.
fn prepare(cluster: &mut Cluster, fault: Fault) -> u8 {
    loop {
        let leads = leader(cluster);
        match fault {
            Fault::Killed | Fault::Stopped => return leads,
            Fault::CutOff => etcd::lead(cluster, (leads + 1) % SITES),
            Fault::CutOffWithEtcd => etcd::lead(cluster, leads),
        }
        if leader(cluster) == leads {
            return leads;
        }
    }
}

/// Whether there can be such a cluster here.
pub(crate) fn can_be() -> Result<(), String> {
    has_links()?;
    let there = etcd::is_there();
    there.then_some(()).ok_or("there is no etcd: apt-get install etcd-server".into())
}

/// Takes the leader away so many times for each fault, and back again, while clients ask.
pub(crate) fn measure(times: usize, folder: Folder) -> Vec<Takeovers> {
    let deadline = Options::default().deadline;
    while_asked(&SETTING, folder, deadline, |cluster, requests| {
        let measured = FAULTS.map(|fault| {
            let mut takeovers = Takeovers {
                fault,
                decided: Vec::new(),
                served: Vec::new(),
                before: Vec::new(),
                after: Vec::new(),
            };
            for _ in 0..times {
                takeovers.take(cluster, requests);
            }
            println!("{takeovers}");
            takeovers
        });
        measured.into()
    })
}

/// Waits until all is well, and says which controller leads.
pub(crate) fn leader(cluster: &mut Cluster) -> u8 {
    cluster.become_complete(format_args!("before somebody leads"));
    let admins = cluster.admins();
    let asked = move |at: SocketAddr| {
        let answer = ureq::get(format!("http://{at}/v1/status")).call();
        answer.is_ok_and(|it| it.status().is_success())
    };
    let leads = cluster.at_the_desk(move || admins.iter().position(|at| asked(*at)));
    u8::try_from(leads.expect("one leads")).expect("few")
}

/// A keyspace that a test asks for.
fn keyspace(name: String) -> KeyspaceSpec {
    let (kind, hot) = (KeyspaceKind::Hash, HotPolicy::default());
    KeyspaceSpec { name, kind, partitions: 1, replicas: 3, splits: Vec::new(), hot }
}

/// Has a keyspace made by one of these controllers, as soon as one can; when it had been decided
/// on, and when it was served.
pub(crate) fn decide(cluster: &Cluster, name: String, by: Vec<SocketAddr>) -> [Instant; 2] {
    let watch = Arc::clone(&cluster.watch);
    cluster.at_the_desk(move || {
        let (admin, spec) = (Admin::new(&by, TRY_MAX), keyspace(name));
        let give_up = watch.now() + DECIDED_WAIT_MAX;
        loop {
            match admin.create(&spec) {
                Ok(()) => break,
                // It was made although that was not answered in time.
                Err(why) if why.message().contains("there is a keyspace") => break,
                Err(why) => assert!(watch.now() < give_up, "{}", why.message()),
            }
            watch.wait_until(watch.now() + TRY_AGAIN);
        }
        let decided = watch.now();
        let served = admin.wait_served(&spec.name, DECIDED_WAIT_MAX);
        served.unwrap_or_else(|why| panic!("it is not served: {}", why.message()));
        [decided, watch.now()]
    })
}

impl Takeovers {
    fn take(&mut self, cluster: &mut Cluster, requests: &Receiver<Asked>) {
        let fault = self.fault;
        let leads = prepare(cluster, fault);
        let watch = Arc::clone(&cluster.watch);
        let begun = watch.now();
        watch.wait_until(begun + BEFORE);
        let others = (0..).zip(cluster.admins()).filter(|(index, _)| *index != leads);
        let others = others.map(|(_, at)| at).collect();
        let name = format!("{fault:?}-{}", self.decided.len());
        let gone = watch.now();
        take_away(cluster, fault, leads);
        let [decided, served] = decide(cluster, name, others);
        self.decided.push(decided.since(gone));
        self.served.push(served.since(gone));
        watch.wait_until(gone + AFTER);
        let end = watch.now();
        bring_back(cluster, fault, leads);
        for it in until_all_ask_again(requests, end) {
            match it.called {
                at if (begun..gone).contains(&at) => self.before.push(it),
                at if (gone..end).contains(&at) => self.after.push(it),
                _ => {}
            }
        }
    }

    /// Requests that failed.
    pub(crate) fn failed(&self) -> usize {
        self.before.iter().chain(&self.after).filter(|it| it.failure.is_some()).count()
    }

    /// The time that 99 of 100 requests did not exceed, before and after the faults.
    pub(crate) fn p99(&self) -> [Duration; 2] {
        [&self.before, &self.after].map(|asked| percentile(&times(asked), 99))
    }
}

/// All that was asked until everybody has asked once more: what was asked before has its answer by
/// then, or none.
fn until_all_ask_again(requests: &Receiver<Asked>, end: Instant) -> Vec<Asked> {
    let (mut all, mut waiting) = (Vec::new(), (0..SETTING.probers()).collect::<BTreeSet<_>>());
    while !waiting.is_empty() {
        let asked = requests.recv_timeout(ASKED_WAIT_MAX).expect("everybody goes on asking");
        if asked.called >= end {
            waiting.remove(&asked.prober);
        }
        all.push(asked);
    }
    all
}

fn times(asked: &[Asked]) -> Vec<Duration> {
    asked.iter().map(|it| it.returned.since(it.called)).collect()
}

fn take_away(cluster: &mut Cluster, fault: Fault, leads: u8) {
    match fault {
        Fault::Killed => cluster.kill(Role::Controller(leads)),
        Fault::Stopped => cluster.stop(Role::Controller(leads)),
        Fault::CutOff | Fault::CutOffWithEtcd => {
            let site = Place::Site(leads);
            let others = cluster.hosts().places().into_iter().filter(|it| *it != site);
            let cut = |from, to| Link { from, to, lost_percent: 100 };
            let ways = |it| [cut(it, site), cut(site, it)];
            cluster.set_links(&others.flat_map(ways).collect::<Vec<_>>());
        }
    }
}

fn bring_back(cluster: &mut Cluster, fault: Fault, led: u8) {
    match fault {
        Fault::Killed => cluster.revive(Role::Controller(led)),
        Fault::Stopped => cluster.go_on(Role::Controller(led)),
        Fault::CutOff | Fault::CutOffWithEtcd => cluster.set_links(&[]),
    }
}

impl fmt::Display for Takeovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<14} {} times", format!("{:?}", self.fault), self.decided.len())?;
        for (what, times) in [("decided", &self.decided), ("served", &self.served)] {
            let ms = |percent| percentile(times, percent).as_millis();
            let (least, p50, p90, max) = (ms(0), ms(50), ms(90), ms(100));
            write!(f, "  {what}: least {least}, p50 {p50}, p90 {p90}, max {max} ms")?;
        }
        for (what, asked) in [("before", &self.before), ("after", &self.after)] {
            let times = times(asked);
            let ms = |percent| percentile(&times, percent).as_secs_f64() * 1e3;
            let failed = asked.iter().filter(|it| it.failure.is_some()).count();
            let (count, p50, p99, max) = (asked.len(), ms(50), ms(99), ms(100));
            write!(f, "  {what}: {count} requests, {failed} failed, ")?;
            write!(f, "p50 {p50:.1}, p99 {p99:.1}, max {max:.1} ms")?;
        }
        let asked = || self.before.iter().chain(&self.after);
        let failure = asked().find_map(|it| it.failure.as_ref());
        failure.map_or(Ok(()), |why| write!(f, "; {why}"))
    }
}
