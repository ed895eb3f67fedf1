//! One run of Redis clients before two gateways: what fails, and what must be true of what they
//! saw.

use crate::cluster::{COMPLETE_WAIT_MAX, Cluster, Size};
use crate::folder::Folder;
use crate::front::{EndOnDrop, Front, Phase};
use crate::redis_user::{Mutant, RedisUser};
use crate::run::{CLOCK_OFF_MS, Report, play};
use crate::script::REPLICAS;
use lab::place::Place;
use lab::user::HASHED;
use machine::Instant;
use sim::check::{History, Op, OpKind, draw_text};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;
use wire::Version;

const NODES: u8 = 5;
/// Each on a host of its own, with its users.
const GATEWAYS: u8 = 2;
const USERS_PER_GATEWAY: usize = 3;
const PORT: u16 = 6390;
/// Of so many keys, one may have a history that the checker gives up on.
const UNCHECKED_ONE_OF: usize = 20;

/// What goes wrong meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Everything.
    Faults,
    /// Nothing, but for this bug.
    Mutant(Mutant),
}

/// Runs clients for about this long.
pub(crate) fn run(seed: u64, trouble: Trouble, lasts: Duration) -> Report {
    let size = Size::new(NODES, GATEWAYS);
    let keyspace = format!(
        "[[keyspace]]\nname = \"{HASHED}\"\nkind = \"hash\"\npartitions = 4\n\
         replicas = {REPLICAS}\n"
    );
    let mut cluster = Cluster::start(size, &keyspace, Folder::new(&format!("redis-{seed}")));
    let mut report = Report::new(seed);
    let phase = Arc::new(Phase::default());
    let end = EndOnDrop(Arc::clone(&phase));
    let fronts: Vec<JoinHandle<Result<usize, String>>> =
        (0..GATEWAYS).map(|index| start_front(&cluster, index, seed, trouble, &phase)).collect();
    let users = start_users(&cluster, seed, trouble, &phase);
    match trouble {
        Trouble::Faults => play(&mut cluster, lasts, &mut report),
        Trouble::Mutant(_) => cluster.watch.wait_until(cluster.watch.now() + lasts),
    }
    phase.mended.store(true, Ordering::Relaxed);
    let begun = cluster.watch.now();
    match cluster.wait_until_complete(COMPLETE_WAIT_MAX) {
        Ok(complete_at) => report.complete_after = complete_at.since(begun),
        Err(why) => report.failures.push(format!("the cluster is not complete: {why}")),
    }
    phase.calm.store(true, Ordering::Relaxed);
    let users: Vec<RedisUser> =
        users.into_iter().map(|user| user.join().expect("users do not panic")).collect();
    drop(end);
    for front in fronts {
        match front.join().expect("they do not panic") {
            Ok(kills) => *report.faults.entry("gateway killed").or_default() += kills,
            Err(why) => report.failures.push(why),
        }
    }
    judge(users, &cluster.folder, &mut report);
    if trouble == Trouble::Faults {
        report.demand_activity(lasts);
        if report.faults.get("gateway killed").is_none_or(|kills| *kills < 2) {
            report.failures.push("gateways were hardly killed".into());
        }
        if !report.failures.is_empty() {
            cluster.folder.keep();
        }
    }
    report
}

fn front_at(cluster: &Cluster, index: u8) -> std::net::SocketAddr {
    // Every host has a loopback interface of its own, unless all share one.
    match cluster.hosts().has_links() {
        Ok(()) => (std::net::Ipv4Addr::LOCALHOST, PORT).into(),
        Err(_) => cluster.hosts().at(Place::Client(index), PORT),
    }
}

fn start_front(
    cluster: &Cluster,
    index: u8,
    seed: u64,
    trouble: Trouble,
    phase: &Arc<Phase>,
) -> JoinHandle<Result<usize, String>> {
    let front = Front {
        index: index.into(),
        seed,
        command: cluster.gateway(front_at(cluster, index)),
        logs: cluster.folder.path().join("logs"),
        watch: Arc::clone(&cluster.watch),
        phase: Arc::clone(phase),
        frail: trouble == Trouble::Faults,
    };
    // A thread that a host's thread starts is on that host.
    let host = cluster.hosts().host(Place::Client(index));
    host.run(move || std::thread::spawn(move || front.run()))
}

fn start_users(
    cluster: &Cluster,
    seed: u64,
    trouble: Trouble,
    phase: &Arc<Phase>,
) -> Vec<JoinHandle<RedisUser>> {
    let mutant = match trouble {
        Trouble::Mutant(mutant) => Some(mutant),
        Trouble::Faults => None,
    };
    let first: Instant = cluster.watch.now();
    let all = (0..USERS_PER_GATEWAY * usize::from(GATEWAYS)).zip((0..GATEWAYS).cycle());
    let start = |(user, gateway): (usize, u8)| {
        let (watch, phase) = (Arc::clone(&cluster.watch), Arc::clone(phase));
        let at = front_at(cluster, gateway);
        let user = RedisUser::new((seed, user), at, watch, phase, mutant);
        let host = cluster.hosts().host(Place::Client(gateway));
        host.run(move || std::thread::spawn(move || user.run(first)))
    };
    all.map(start).collect()
}

fn judge(users: Vec<RedisUser>, folder: &Folder, report: &mut Report) {
    let (mut history, mut appended) = (History::default(), BTreeMap::new());
    for user in users {
        report.done += user.done;
        report.unknown += user.unknown;
        report.failures.extend(user.failures);
        history.merge(user.history);
        for (key, seen) in user.appended {
            appended.entry(key).or_insert_with(crate::appended::Appended::default).merge(seen);
        }
    }
    for (key, seen) in appended {
        let found = seen.violations();
        report.failures.extend(found.into_iter().map(|what| format!("key {key}: {what}")));
    }
    for (key, ops) in history.keys() {
        if key.key.starts_with(b"t")
            && let Some(what) = resurrected(ops)
        {
            let key = String::from_utf8_lossy(&key.key);
            report.failures.push(format!("key {key}: {what}"));
        }
    }
    let keys = history.keys().count();
    let judgement = history.check(2 * CLOCK_OFF_MS);
    let text: Vec<String> = judgement.pictures.iter().map(draw_text).collect();
    folder.write("violations.txt", &text.join("\n"));
    report.failures.extend(judgement.violations);
    println!("{keys} keys, {} of them not decided", judgement.unchecked);
    if judgement.unchecked * UNCHECKED_ONE_OF > keys {
        report.failures.push(format!("{} of {keys} keys not decided", judgement.unchecked));
    }
}

/// A value whose time had come and that was seen again. The key is written once: whoever asks after
/// somebody saw it gone, which was after its write had been answered, must not find it.
fn resurrected(ops: &[Op]) -> Option<String> {
    let written = ops.iter().find(|op| matches!(op.kind, OpKind::Put { .. }))?;
    let gone = |op: &&Op| op.kind == OpKind::Read(None) && written.precedes(op);
    let gone = ops.iter().filter(gone).min_by_key(|op| op.returned)?;
    let back = |op: &&Op| matches!(op.kind, OpKind::Read(Some(_))) && gone.precedes(op);
    let back = ops.iter().find(back)?;
    Some(format!("a value came back after its time: [{gone}], and later [{back}]"))
}

#[test]
fn a_value_that_comes_back_is_found() {
    let op = |called, kind| {
        let (called, returned) = (Instant(called), Some(Instant(called + 1)));
        Op { client: 0, called, returned, kind, version: Version::NONE }
    };
    let put = op(1, OpKind::Put { value: 7, expiry_ms: 1 });
    let (gone, there) = (OpKind::Read(None), OpKind::Read(Some(7)));
    assert_eq!(resurrected(&[put.clone(), op(3, there), op(5, gone), op(7, gone)]), None);
    assert_eq!(resurrected(&[op(3, gone), op(5, there)]), None, "before it was written");
    let found = resurrected(&[put, op(3, gone), op(5, there)]);
    assert!(found.unwrap().contains("came back"));
}
