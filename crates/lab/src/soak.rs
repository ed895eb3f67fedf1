//! Everything at once for a long time: users, faults, and a look at what processes take meanwhile.

mod faults;
mod growth;
mod ledger;
mod notes;
mod user;

use crate::hosts::Hosts;
use crate::plane::Plane;
use crate::process::{pause, this_binary};
use crate::redundant::{Controllers, RedundantCluster, Role, Spec};
use crate::user::{HASHED, ORDERED, Spaces};
use anyhow::{Context, Result, anyhow};
use client::Options;
use client::blocking::Client;
use console::admin::Admin;
use console::chart::grouped;
use console::note;
use faults::{CACHES, Faults, NODES};
use growth::{Figures, Growth, Sample};
use ledger::Ledger;
use machine::Instant;
use notes::Notes;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Builder;
use std::time::Duration;
use user::User;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct SoakPlan {
    /// For how long.
    pub lasts: Duration,
    pub seed: u64,
    /// Where everything lies.
    pub dir: PathBuf,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Report {
    pub seconds: u64,
    seed: u64,
    /// Requests that were answered, and whose outcome nobody knows.
    pub answered: u64,
    pub unknown: u64,
    /// Keys whose histories fit one order.
    pub keys_judged: u64,
    /// Clients that came for one increment.
    pub visitors: u64,
    pub faults: BTreeMap<String, u64>,
    /// What this machine does not allow.
    pub skipped: Vec<&'static str>,
    pub processes: BTreeMap<String, Grown>,
    pub failures: Vec<String>,
}

/// The most that a process took in both halves of the time after it had got warm.
#[derive(Debug, Serialize)]
pub struct Grown {
    pub early: Figures,
    pub late: Figures,
}

/// What nodes may take of memory each; they are to stay well below.
const MAX_MEMORY: &str = "512m";
/// Users of native clients, and of each gateway.
const USERS: usize = 4;
const WRITERS_PER_GATEWAY: usize = 2;
const GATEWAYS: u8 = 2;
/// How long a user waits for an answer: shorter than what stays of keys are given.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a cluster may take to start, or to be complete once all is mended.
const COMPLETE_WAIT_MAX: Duration = Duration::from_secs(90);
/// Samples are a minute apart, or so that there are as many.
const SAMPLE_EVERY_MAX: Duration = Duration::from_secs(60);
const SAMPLES_MIN: u32 = 30;
const TURN: Duration = Duration::from_millis(20);

/// Runs a soak. What is wrong with the cluster is in the report; an error is about the soak itself.
pub fn run(plan: &SoakPlan) -> Result<Report> {
    let spec = spec()?;
    let hosts = Hosts::on_loopback(&RedundantCluster::places(&spec));
    let mut cluster = RedundantCluster::start(spec, hosts, &plan.dir)?;
    let admin = Admin::new(&cluster.admins(), Duration::from_secs(1));
    wait_until_complete(&mut cluster, &admin).context("the cluster does not start")?;
    (0..GATEWAYS).try_for_each(|index| cluster.revive(Role::Gateway(index)))?;
    let notes = Arc::new(Notes::new());
    let visitors = Visitors::default();
    let mut soak = Soak { plan, notes: Arc::clone(&notes), admin, samples: Vec::new() };
    let client = connect(&cluster)?;
    let mut faults = Faults::new(plan.seed, notes.now());
    let writers = std::thread::scope(|scope| -> Result<Vec<Ledger>> {
        let _over = EndOnDrop(&notes);
        for index in 0..USERS {
            let spaces = Spaces::of(&connect(&cluster)?);
            let spaces = spaces.map_err(|why| anyhow!("no keyspace: {why}"))?;
            let user = User::new((plan.seed, index), Arc::clone(&notes), spaces);
            Builder::new().name(format!("user-{index}")).spawn_scoped(scope, || user.run())?;
        }
        let mut writers = Vec::new();
        for index in 0..WRITERS_PER_GATEWAY * usize::from(GATEWAYS) {
            let gateway = u8::try_from(index).expect("few") % GATEWAYS;
            let at = cluster.gateway(gateway);
            let writer = Ledger::new((plan.seed, index), Arc::clone(&notes), at);
            let name = format!("writer-{index}");
            writers.push(Builder::new().name(name).spawn_scoped(scope, || writer.run())?);
        }
        let visit = cluster.visitor(&["incr", VISITS, "--timeout", "3s"]);
        scope.spawn(|| visitors.run(visit, &notes));
        scope.spawn(|| notes.judge(&client));
        soak.play(&mut cluster, &mut faults)?;
        notes.over.store(true, Ordering::Relaxed);
        let joined = writers.into_iter().map(|it| it.join().map_err(|_| anyhow!("a writer died")));
        joined.collect()
    })?;
    soak.finish(&mut cluster, &client, writers, &visitors);
    Ok(soak.report(faults, &visitors))
}

fn spec() -> Result<Spec> {
    let keyspaces = format!(
        "[[keyspace]]\nname = \"{HASHED}\"\nkind = \"hash\"\npartitions = 8\nreplicas = 3\n\
         hot = \"cache\"\n\n[[keyspace]]\nname = \"{ORDERED}\"\nkind = \"range\"\nprefix = \"k\"\n\
         splits = [\"k3\", \"k6\"]\npartitions = 3\nreplicas = 3\n"
    );
    Ok(Spec {
        program: this_binary()?,
        nodes: NODES,
        caches: CACHES,
        clients: GATEWAYS,
        plane: Plane::User,
        controllers: Controllers::Pair,
        of_switches: String::new(),
        of_controllers: String::new(),
        of_nodes: format!("max_memory = \"{MAX_MEMORY}\""),
        secured: false,
        keyspaces,
    })
}

/// All that work in a soak end also if it panics or fails.
struct EndOnDrop<'a>(&'a Notes);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

fn connect(cluster: &RedundantCluster) -> Result<Client> {
    let options = Options { deadline: PATIENCE, ..Options::default() };
    Client::connect(&cluster.services()[..], options).context("cannot open a socket")
}

/// Waits until every chain is complete and every member is ready.
fn wait_until_complete(cluster: &mut RedundantCluster, admin: &Admin) -> Result<()> {
    let mut why = "nobody answers".to_owned();
    for _ in 0..COMPLETE_WAIT_MAX.as_millis() / LOOK_AGAIN.as_millis() {
        cluster.all_run()?;
        match admin.status() {
            Ok(status) if status.ready && status.replicated => return Ok(()),
            Ok(status) => {
                let (lack, closed) = (status.under_replicated, status.closed);
                why = format!("{lack} partitions lack nodes, {closed} are closed");
            }
            Err(failure) => why = failure.message(),
        }
        pause(LOOK_AGAIN);
    }
    Err(anyhow!("not complete within {} s: {why}", COMPLETE_WAIT_MAX.as_secs()))
}

const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A soak under way.
struct Soak<'a> {
    plan: &'a SoakPlan,
    notes: Arc<Notes>,
    admin: Admin,
    samples: Vec<Sample>,
}

impl Soak<'_> {
    /// Lets things go wrong and looks, until the time is over. Everything is mended then.
    fn play(&mut self, cluster: &mut RedundantCluster, faults: &mut Faults) -> Result<()> {
        let every = (self.plan.lasts / SAMPLES_MIN).min(SAMPLE_EVERY_MAX);
        let ends_at = self.notes.now() + self.plan.lasts;
        let mut sample_at = self.notes.now() + every;
        loop {
            let now = self.notes.now();
            if now >= ends_at {
                return faults.end(cluster);
            }
            faults.play(now, cluster)?;
            if now >= sample_at {
                self.look(now, cluster);
                sample_at = now + every;
            }
            if let Err(why) = cluster.all_run() {
                self.notes.fail(format!("{why:#}"));
                return faults.end(cluster);
            }
            pause(TURN);
        }
    }

    fn look(&mut self, now: Instant, cluster: &RedundantCluster) {
        let last = self.samples.last().map_or(0, |sample| sample.data);
        let stored = self.admin.status().ok().and_then(|status| {
            let all: Option<Vec<_>> = status.keyspaces.iter().map(|it| it.stored).collect();
            Some(all?.iter().map(|it| it.bytes).sum())
        });
        let of = cluster
            .processes()
            .filter_map(|(role, pid, data)| Some((role, Figures::of(pid, data.as_deref())?)));
        let at = now.since(self.notes.began);
        let sample = Sample { data: stored.unwrap_or(last), of: of.collect() };
        let sum = |of: fn(&Figures) -> u64| grouped(sample.of.values().map(of).sum());
        note!(
            "soak: {} s of {}; {} answered, {} unknown, {} keys judged, {} failures; {} bytes of \
             data, {} MiB of memory, {} descriptors, {} MiB of disk",
            at.as_secs(),
            self.plan.lasts.as_secs(),
            grouped(self.notes.answered.load(Ordering::Relaxed)),
            grouped(self.notes.unknown.load(Ordering::Relaxed)),
            grouped(self.notes.judged.load(Ordering::Relaxed)),
            self.notes.failures().len(),
            grouped(sample.data),
            sum(|it| it.memory >> 20),
            sum(|it| it.files),
            sum(|it| it.disk >> 20),
        );
        self.samples.push(sample);
    }

    /// Everything is mended: every chain becomes complete, and holds what was acknowledged.
    fn finish(
        &self,
        cluster: &mut RedundantCluster,
        client: &Client,
        writers: Vec<Ledger>,
        visitors: &Visitors,
    ) {
        if let Err(why) = wait_until_complete(cluster, &self.admin) {
            self.notes.fail(format!("{why:#}"));
        }
        writers.into_iter().for_each(Ledger::audit);
        visitors.audit(client, &self.notes);
        if let Err(why) = cluster.all_run() {
            self.notes.fail(format!("{why:#}"));
        }
        for what in growth::complaints(&self.samples) {
            self.notes.fail(what);
        }
        if self.notes.judged.load(Ordering::Relaxed) == 0 {
            self.notes.fail("nothing was judged: that is too short".to_owned());
        }
    }

    fn report(&self, faults: Faults, visitors: &Visitors) -> Report {
        let processes = growth::growth(&self.samples).into_iter();
        Report {
            seconds: self.notes.now().since(self.notes.began).as_secs(),
            seed: self.plan.seed,
            answered: self.notes.answered.load(Ordering::Relaxed),
            unknown: self.notes.unknown.load(Ordering::Relaxed),
            keys_judged: self.notes.judged.load(Ordering::Relaxed),
            visitors: visitors.done.load(Ordering::Relaxed),
            faults: faults.counts,
            skipped: vec!["steps of clocks: processes of one machine share its clock"],
            processes: processes
                .map(|(role, Growth { early, late })| (role.to_string(), Grown { early, late }))
                .collect(),
            failures: self.notes.failures(),
        }
    }
}

/// Clients that come for one increment of this key, each a process of its own.
#[derive(Debug, Default)]
struct Visitors {
    done: AtomicU64,
    pub unknown: AtomicU64,
}

const VISITS: &str = "visits";
/// Exit code of a command that was not answered, or could not be told how it ended.
const REFUSED: i32 = 3;

impl Visitors {
    fn run(&self, mut visit: std::process::Command, notes: &Notes) {
        while !notes.is_over() {
            match visit.status().map(|status| status.code()) {
                Ok(Some(0)) => drop(self.done.fetch_add(1, Ordering::Relaxed)),
                Ok(Some(REFUSED)) => {}
                Ok(_) => drop(self.unknown.fetch_add(1, Ordering::Relaxed)),
                Err(why) => return notes.fail(format!("a visitor does not start: {why}")),
            }
        }
    }

    /// The sum is of all that were told so, and perhaps of some that were told nothing.
    fn audit(&self, client: &Client, notes: &Notes) {
        let (done, unknown) = (&self.done, &self.unknown);
        let [done, unknown] = [done, unknown].map(|it| it.load(Ordering::Relaxed));
        let read = client.keyspace(HASHED).ok().and_then(|space| {
            let found = space.get(VISITS.as_bytes()).done()?;
            let text = found.map_or_else(|| b"0".to_vec(), |value| value.value);
            String::from_utf8(text).ok()?.parse::<u64>().ok()
        });
        if !read.is_some_and(|sum| (done..=done + unknown).contains(&sum)) {
            let what = format!("{done} visits acknowledged, {unknown} unknown");
            notes.fail(format!("{what}, the counter says {read:?}"));
        }
    }
}

/// Removes what a soak that went well leaves.
pub fn remove(dir: &Path) {
    std::fs::remove_dir_all(dir).ok();
}
