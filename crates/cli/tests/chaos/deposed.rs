//! A leader that is stopped with an order in its hands, and gives it when it goes on, after another
//! one has taken over.
//!
//! It looks whether it leads before each order, so hardly any stop falls between that and the order
//! itself. Here one does: its threads that carry orders are held by `strace` when they begin to
//! write one, for longer than a takeover takes.

use crate::cluster::Cluster;
use crate::folder::Folder;
use crate::probes::while_asked;
use crate::takeover::{SETTING, decide, leader};
use client::Options;
use lab::process::tied;
use lab::redundant::Role;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wire::layout::metric::{LEADER_TERM, ORDERS_REFUSED};

/// For how long an order is held.
const HELD_FOR: Duration = Duration::from_secs(5);
/// How long it takes until every thread that carries orders has begun to write the next one: it
/// does so ten times a second.
const TAKEN_WITHIN: Duration = Duration::from_millis(500);
/// How long after that it may take until members have refused one.
const REFUSED_WAIT_MAX: Duration = Duration::from_secs(10);

/// Whether there is what holds threads.
pub(crate) fn can_be() -> Result<(), String> {
    let there = Command::new("strace").arg("--version").stdout(Stdio::null()).status();
    let there = there.is_ok_and(|status| status.success());
    there.then_some(()).ok_or("there is no strace: apt-get install strace".into())
}

/// What was seen.
#[derive(Debug)]
pub(crate) struct Awakening {
    /// Orders that members refused.
    pub(crate) refused: u64,
    /// Terms that members obey afterwards, and the term of the leader.
    pub(crate) terms: Vec<u64>,
    pub(crate) term: u64,
    /// Requests that failed.
    pub(crate) failed: usize,
}

/// Has a leader stopped, another one lead, and the first go on.
///
/// # Panics
///
/// If members have something else on record afterwards than before that the leader has not decided.
pub(crate) fn measure(folder: Folder) -> Awakening {
    let deadline = Options::default().deadline;
    while_asked(&SETTING, folder, deadline, |cluster, requests| {
        let old = Role::Controller(leader(cluster));
        let members = members(cluster);
        let before = refused(cluster, &members);
        let held = HeldThreads::start(cluster, old);
        let watch = cluster.watch.clone();
        let taken = watch.now() + TAKEN_WITHIN;
        watch.wait_until(taken);
        cluster.stop(old);
        let admins = cluster.admins();
        let others = (0..).map(Role::Controller).zip(admins).filter(|(role, _)| *role != old);
        decide(cluster, "decided".into(), others.map(|(_, at)| at).collect());
        let first = records(cluster, &members);
        cluster.go_on(old);
        let is_refused = || {
            let found = refused(cluster, &members);
            (found > before).then_some(()).ok_or_else(|| format!("{found} orders were refused"))
        };
        let waited = watch.wait_for(REFUSED_WAIT_MAX, is_refused);
        waited.unwrap_or_else(|why| panic!("no order was given: {why}\n{}", held.said()));
        // All that were held have left by then.
        watch.wait_until(taken + HELD_FOR);
        drop(held);
        // What the leader has decided is newer than all that was on record, and not after this.
        let after = records(cluster, &members);
        let newest = cluster.status().expect("one leads").revision.get();
        let astray = led_astray(&first, &after, newest);
        assert!(
            astray.is_empty(),
            "the leader has revision {newest}, of {first:?} became {astray:?}"
        );
        let terms = members.iter().map(|it| cluster.count(*it, &LEADER_TERM)).collect();
        let awakening = Awakening {
            refused: refused(cluster, &members) - before,
            terms,
            term: cluster.status().expect("one leads").term.0,
            failed: requests.try_iter().filter(|it| it.failure.is_some()).count(),
        };
        // It stands by, like any other.
        leader(cluster);
        awakening
    })
}

/// Records that are neither what they were nor of something that the leader has decided since: of a
/// newer map than before, and not of one that it does not have.
fn led_astray<'a>(before: &[String], after: &'a [String], newest: u64) -> Vec<&'a String> {
    let changed = before.iter().zip(after).filter(|(before, after)| before != after);
    let decided = |before: &String, after: &String| {
        revision(before) < revision(after) && revision(after) <= newest
    };
    changed.filter(|(before, after)| !decided(before, after)).map(|(_, after)| after).collect()
}

fn revision(record: &str) -> u64 {
    let record: Value = serde_json::from_str(record).expect("it is JSON");
    record.get("revision").and_then(Value::as_u64).expect("it has a revision")
}

#[test]
fn who_follows_an_older_map_or_one_that_nobody_has_is_led_astray() {
    let record = |revision: u64, more: u8| format!("{{\"revision\":{revision},\"more\":{more}}}");
    let is_astray = |after: String| !led_astray(&[record(5, 0)], &[after], 7).is_empty();
    let cases =
        [record(5, 0), record(6, 1), record(7, 1), record(5, 1), record(4, 0), record(71, 0)];
    assert_eq!(cases.map(is_astray), [false, false, false, true, true, true]);
}

/// All that take orders.
fn members(cluster: &Cluster) -> Vec<Role> {
    let takes_orders = |it: &Role| matches!(it, Role::Switch(_) | Role::Node(_));
    cluster.roles().into_iter().filter(takes_orders).collect()
}

fn records(cluster: &Cluster, members: &[Role]) -> Vec<String> {
    members.iter().map(|it| cluster.ask_member(*it, "/v1/record")).collect()
}

fn refused(cluster: &Cluster, members: &[Role]) -> u64 {
    members.iter().map(|it| cluster.count(*it, &ORDERS_REFUSED)).sum()
}

/// The threads of a controller that carry orders, held at the next one until this is dropped.
struct HeldThreads {
    strace: Child,
    log: PathBuf,
}

impl HeldThreads {
    fn start(cluster: &Cluster, of: Role) -> Self {
        let (pid, _) = cluster.process(of).expect("it runs");
        let tasks = Path::new("/proc").join(pid.to_string()).join("task");
        let carries = |task: &PathBuf| {
            let name = fs::read_to_string(task.join("comm"));
            name.is_ok_and(|it| it.starts_with("courier-"))
        };
        let tasks = fs::read_dir(tasks).expect("it runs").flatten().map(|it| it.path());
        let log = cluster.folder.path().join("held.txt");
        let mut command = tied(Path::new("strace"));
        command.arg("-o").arg(&log).args(["-e", "trace=sendto", "-e"]);
        command.arg(format!("inject=sendto:delay_enter={}:when=1", HELD_FOR.as_micros()));
        for task in tasks.filter(carries) {
            let id = task.file_name().expect("it has one");
            command.arg("-p").arg(id);
        }
        let strace = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self { strace: strace.expect("it was there a moment ago"), log }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for HeldThreads {
    fn drop(&mut self) {
        // What it holds goes on.
        self.strace.kill().ok();
        self.strace.wait().ok();
    }
}
