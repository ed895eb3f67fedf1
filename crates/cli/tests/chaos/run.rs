//! One run: a cluster, its users, what goes wrong, and what must be true of what the users saw.

use crate::ballast;
use crate::cluster::{COMPLETE_WAIT_MAX, Cluster, Size};
use crate::faults::{Faults, are_few};
use crate::folder::Folder;
use crate::rotation;
use crate::script::{Cast, REPLICAS, Script};
use crate::user::User;
use client::Options;
use lab::plane::Plane;
use lab::user::{HASHED, ORDERED, Spaces};
use machine::{Instant, Rng};
use sim::check::{History, Key, Op, OpKind, draw_html, draw_text};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testkit::flag::RaiseOnDrop;
use testkit::skip;
use wire::Version;

/// Five nodes for chains of three: there is always somebody to replace a lost one.
const NODES: u8 = 5;
const CLIENTS: u8 = 3;
/// Users of one client share its socket and its numbering of requests.
const USERS_PER_CLIENT: usize = 2;
/// How long a user waits for an answer while things go wrong; each draws its own.
const PATIENCE_MS: std::ops::Range<u64> = 200..3_000;
/// How long a user waits once all is mended. Whoever is not answered by then never will be.
const PATIENCE_WHEN_MENDED: Duration = Duration::from_secs(30);
/// Requests of each user once all is mended.
const REQUESTS_WHEN_MENDED: u32 = 30;

/// What a run was like.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) done: usize,
    pub(crate) unknown: usize,
    /// Faults that took place, by kind.
    pub(crate) faults: BTreeMap<&'static str, usize>,
    /// Reads that caches answered.
    pub(crate) cache_hits: u64,
    /// How long it took until every chain was complete again after the last fault.
    pub(crate) complete_after: Duration,
    /// What was wrong; nothing if all is well.
    pub(crate) failures: Vec<String>,
}

/// What kind of cluster a run has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// What the switches are.
    pub(crate) plane: Plane,
    pub(crate) caches: u8,
    /// Whether everybody has a certificate and packets are in envelopes; all of it is replaced
    /// again and again.
    pub(crate) secured: bool,
}

/// Runs a cluster of this kind, with faults for so long. On failure the folder stays.
pub(crate) fn run(test: &str, seed: u64, kind: Kind, faults_for: Duration) -> Report {
    let folder = Folder::new(&format!("seed-{seed}"));
    let Kind { plane, caches, secured } = kind;
    let size = Size { plane, caches, secured, ..Size::new(NODES, CLIENTS) };
    let mut cluster = Cluster::start(size, &keyspaces(plane, caches, seed), folder);
    if let Err(why) = cluster.hosts().has_links() {
        skip::report(&format!("{test}: faults of the network"), why);
    }
    let mut report = Report::new(seed);
    let calm = spaces(&cluster, 0, PATIENCE_WHEN_MENDED);
    ballast::load(calm.hashed());
    let mut users = users(seed, &cluster);
    let mended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Users stop also if what goes on here panics.
        let _mended = RaiseOnDrop(&mended);
        let rotating = cluster.certs().map(|certs| {
            let mended = &mended;
            scope.spawn(move || rotation::go_on(&certs, mended))
        });
        for user in &mut users {
            let mended = &mended;
            scope.spawn(move || {
                while !mended.load(Ordering::Relaxed) {
                    user.ask();
                }
            });
        }
        play(&mut cluster, faults_for, &mut report);
        mended.store(true, Ordering::Relaxed);
        if let Some(rotating) = rotating {
            report.faults.extend(rotating.join().expect("its panic has ended the test"));
        }
    });
    if report.failures.is_empty() {
        finish(&mut cluster, &mut users, &mut report);
        report.failures.extend(ballast::check(calm.hashed()).err());
        if plane == Plane::Xdp && cluster.in_kernel() == 0 {
            report.failures.push("nothing was switched in the kernel".to_owned());
        }
        if plane.has_content() && cluster.by_address() == 0 {
            report.failures.push("nothing came by the addresses of keys".to_owned());
        }
    }
    let mut history = History::default();
    for user in users.into_iter().map(User::seen) {
        report.done += user.done;
        report.unknown += user.unknown;
        history.merge(user.history);
    }
    judge(history, &cluster.folder, &mut report);
    report.demand_activity(faults_for);
    if caches > 0 {
        report.demand_cache_hits();
    }
    if !report.failures.is_empty() {
        cluster.folder.keep();
    }
    report
}

/// Both keyspaces. With caches these hold what is hot of the one that is hashed; of every fourth
/// seed, nodes may copy it as well.
fn keyspaces(plane: Plane, caches: u8, seed: u64) -> String {
    let hot = match (caches, seed % 4) {
        (0, _) => "replicate",
        (_, 0) => "either",
        _ => "cache",
    };
    let hashed = format!(
        "[[keyspace]]\nname = \"{HASHED}\"\nkind = \"hash\"\npartitions = 4\n\
         replicas = {REPLICAS}\nhot = \"{hot}\"\n\n"
    );
    if plane.has_content() {
        return hashed;
    }
    format!(
        "{hashed}[[keyspace]]\nname = \"{ORDERED}\"\nkind = \"range\"\nprefix = \"k\"\n\
         splits = [\"k2\", \"k5\"]\npartitions = 3\nreplicas = {REPLICAS}\n"
    )
}

/// Users of a few clients, each with a patience of its own.
fn users(seed: u64, cluster: &Cluster) -> Vec<User> {
    let mut rng = Rng::new(seed).fork("patience");
    let mut users = Vec::new();
    for host in 0..CLIENTS {
        let patience = PATIENCE_MS.start + rng.below(PATIENCE_MS.end - PATIENCE_MS.start);
        let spaces = spaces(cluster, host, Duration::from_millis(patience));
        for _ in 0..USERS_PER_CLIENT {
            let watch = Arc::clone(&cluster.watch);
            users.push(User::new(seed, users.len(), watch, spaces.clone()));
        }
    }
    users
}

fn spaces(cluster: &Cluster, host: u8, deadline: Duration) -> Spaces {
    let client = cluster.client(host, Options { deadline, ..Options::default() });
    let spaces = if cluster.has_content() { Spaces::without_order } else { Spaces::of };
    spaces(&client).expect("the cluster is up")
}

/// Round after round, until the time is over. Everything is mended then.
pub(crate) fn play(cluster: &mut Cluster, faults_for: Duration, report: &mut Report) {
    let links = cluster.hosts().has_links().is_ok();
    let caches = cluster.caches();
    let bridge = cluster.has_bridge();
    let cast = Cast { nodes: NODES, caches, clients: cluster.clients(), bridge, links };
    let (mut script, mut faults) = (Script::new(report.seed, cast), Faults::default());
    let begun = cluster.watch.now();
    let (mut forgot, mut hits) = (false, CacheHits::default());
    let goes_on = |cluster: &Cluster, faults: &Faults| {
        let (since, few) = (cluster.watch.now().since(begun), faults.are_few_for(faults_for));
        since < faults_for || few && since < faults_for * LONGER_MAX
    };
    while goes_on(cluster, &faults) && report.failures.is_empty() {
        let round = script.next_round();
        let complete = if round.forgets() || forgot {
            cluster.wait_until_complete(COMPLETE_WAIT_MAX).map(|_| ())
        } else {
            Ok(())
        };
        forgot = round.forgets();
        let played = complete.and_then(|()| faults.play(cluster, &round));
        report.failures.extend(played.err());
        report.cache_hits += hits.more(cluster);
    }
    report.faults = faults.counts;
}

/// What each cache has counted of the reads that it answered, by its id.
#[derive(Debug, Default)]
struct CacheHits(BTreeMap<u8, u64>);

impl CacheHits {
    /// Reads that were answered since it was asked last. Of a cache that was killed meanwhile only
    /// what it has answered since then is known.
    fn more(&mut self, cluster: &Cluster) -> u64 {
        let more = (1..=cluster.caches()).filter_map(|id| {
            let now = cluster.cache_hits(id)?;
            let before = self.0.insert(id, now).unwrap_or(0);
            Some(now.checked_sub(before).unwrap_or(now))
        });
        more.sum()
    }
}

/// Everything is mended: every chain becomes complete, and every request is answered.
fn finish(cluster: &mut Cluster, users: &mut [User], report: &mut Report) {
    let begun = cluster.watch.now();
    std::thread::scope(|scope| {
        for (user, host) in users.iter_mut().zip((0..CLIENTS).cycle()) {
            user.be_sure(spaces(cluster, host, PATIENCE_WHEN_MENDED));
            scope.spawn(move || {
                for _ in 0..REQUESTS_WHEN_MENDED {
                    user.ask();
                }
                user.read_all();
            });
        }
        match cluster.wait_until_complete(COMPLETE_WAIT_MAX) {
            Ok(complete_at) => report.complete_after = complete_at.since(begun),
            Err(why) => report.failures.push(format!("the cluster is not complete: {why}")),
        }
    });
    // Once more, with nothing else going on.
    users.iter_mut().take(1).for_each(User::read_all);
    report.failures.extend(cluster.all_run().err());
}

/// Looks for what contradicts the promises, and draws it for people to look at.
fn judge(history: History, folder: &Folder, report: &mut Report) {
    let judgement = history.check(2 * CLOCK_OFF_MS);
    if !judgement.pictures.is_empty() {
        let title = format!("chaos, seed {}", report.seed);
        folder.write("violations.html", &draw_html(&title, &judgement.pictures));
        let text: Vec<String> = judgement.pictures.iter().map(draw_text).collect();
        folder.write("violations.txt", &text.join("\n"));
    }
    report.failures.extend(judgement.violations);
    if judgement.unchecked > 0 {
        let what = "keys have histories that the checker gave up on: too many outcomes are unknown";
        report.failures.push(format!("{} {what}", judgement.unchecked));
    }
}

impl Report {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            done: 0,
            unknown: 0,
            faults: BTreeMap::new(),
            cache_hits: 0,
            complete_after: Duration::ZERO,
            failures: Vec::new(),
        }
    }

    pub(crate) fn demand_activity(&mut self, faults_for: Duration) {
        let few = are_few(&self.faults, faults_for);
        if few || self.done as u128 * MS_PER_ANSWER_MAX < faults_for.as_millis() {
            self.failures.push("too little has happened to prove anything".into());
        }
    }

    fn demand_cache_hits(&mut self) {
        let hits = self.cache_hits;
        if hits * ANSWERS_PER_CACHE_HIT_MAX < self.done as u64 {
            self.failures.push(format!("caches answered {hits} reads: too few to prove anything"));
        }
    }
}

/// A run goes on for so many times as long if little has happened: rounds may have few faults.
const LONGER_MAX: u32 = 4;
/// Of so many answers caches must have given one, if there are some.
const ANSWERS_PER_CACHE_HIT_MAX: u64 = 100;
/// One answer in so many milliseconds of faults, of all users together.
const MS_PER_ANSWER_MAX: u128 = 50;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, done, unknown, faults, cache_hits, complete_after, failures } = self;
        let took_place: usize = faults.values().sum();
        writeln!(
            f,
            "seed {seed}: {took_place} faults, {done} requests answered, {unknown} unknown, \
             complete after {} ms",
            complete_after.as_millis()
        )?;
        if *cache_hits > 0 {
            writeln!(f, "  {cache_hits} reads answered by caches")?;
        }
        for (fault, times) in faults {
            writeln!(f, "  {times:>3} {fault}")?;
        }
        failures.iter().try_for_each(|failure| writeln!(f, "FAILED: {failure}"))
    }
}

/// How far a node may be off with the cluster's clock, either way: it knows that from messages,
/// which take their time. So a value may go as much before its time, and be seen as much after.
pub(crate) const CLOCK_OFF_MS: u64 = 20;

#[test]
fn a_run_with_a_write_that_is_gone_fails_and_shows_it() {
    let folder = Folder::new("judge");
    let op = |at: u64, kind, version| {
        let (called, returned) = (Instant(at), Some(Instant(at + 1)));
        Op { client: 0, called, returned, kind, version }
    };
    let key = Key { ordered: false, key: b"r0".to_vec() };
    let mut history = History::default();
    history.record(&key, op(1, OpKind::Put { value: 5, expiry_ms: 0 }, Version::new(1)));
    history.record(&key, op(3, OpKind::Read(Some(5)), Version::new(1)));
    let mut report = Report::new(1);
    judge(history.clone(), &folder, &mut report);
    assert!(report.failures.is_empty(), "{report}");
    history.record(&key, op(5, OpKind::Read(None), Version::NONE));
    judge(history, &folder, &mut report);
    assert_eq!(report.failures.len(), 1, "{report}");
    let picture = std::fs::read_to_string(folder.path().join("violations.txt"));
    assert!(picture.expect("it was drawn").contains("put 5"));
}
