//! `keyway keyspace alter`: other replicas, or another policy of hot keys, while it serves.

use super::policy::Hot;
use anyhow::anyhow;
use cluster::HotPolicy;
use console::admin::Admin;
use console::answer::Answer;
use console::exit::{Failure, Verdict};
use console::out;
use console::progress::Progress;
use console::shared::Shared;
use controller::{CopyStatus, KeyspaceStatus, MemberStatus, Status};
use runtime::admin::Alter;
use runtime::clock::Clock;
use std::time::Duration;

/// Change how many replicas a keyspace has, or what becomes of its hot keys, while it serves.
///
/// More replicas are copied to other nodes, one at a time to each, at the pace of all copies. Fewer
/// are let go when all nodes of a chain hold the same. Each partition is closed for some
/// milliseconds now and then meanwhile, in which clients ask again.
///
/// The command waits until all chains have as many nodes as they are to have. If it is ended, the
/// controller goes on: `keyway status` says how far it is. It ends with exit code 5 if copies are
/// paused, or nothing gets on for --timeout because a member is not ready, which it names.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("what").args(["replicas", "hot"]).required(true).multiple(true)),
    after_help = "\
Examples:
  keyway keyspace alter sessions --replicas 3
  keyway keyspace alter sessions --replicas 1 --hot reads
  keyway keyspace alter ledger --hot off --json"
)]
pub(super) struct Args {
    /// Its name.
    name: String,
    /// On how many nodes each key is to lie.
    #[arg(long, value_name = "N")]
    replicas: Option<u8>,
    /// What is to become of its hot keys.
    #[arg(long, value_enum)]
    hot: Option<Hot>,
}

impl Args {
    pub(super) fn run(self, admin: &Admin, shared: &Shared) -> Result<Verdict, Failure> {
        let Self { name, replicas, hot } = self;
        let hot = hot.map(HotPolicy::from);
        let before = admin.status()?;
        let was = before.keyspaces.iter().find(|it| it.name == name);
        // The controller refuses what is not there.
        admin.alter(&Alter { keyspace: name.clone(), replicas, hot })?;
        let had = |asked: &u8| was.is_some_and(|was| was.replicas == usize::from(*asked));
        let replicas = replicas.filter(|asked| !had(asked));
        let hot = hot.filter(|asked| was.is_none_or(|was| was.hot != *asked));
        if let Some(count) = replicas {
            wait(admin, shared, (&name, count))?;
        }
        let present = admin.status()?;
        let present = named(&present, &name)?;
        let changed = replicas.is_some() || hot.is_some();
        if shared.json {
            let answer = Answer::new("done").with("name", &name).with("changed", changed);
            answer.with("replicas", present.replicas).with("hot", present.hot).print()?;
        } else {
            let (count, hot) = (present.replicas, word(present.hot));
            let already = if changed { "" } else { " already" };
            out::line(&format!("{name} has{already} {count} replicas, hot keys: {hot}"))?;
        }
        Ok(Verdict::Yes)
    }
}

fn named<'a>(status: &'a Status, name: &str) -> Result<&'a KeyspaceStatus, Failure> {
    let found = status.keyspaces.iter().find(|it| it.name == name);
    found.ok_or_else(|| Failure::Other(anyhow!("keyspace {name:?} is gone")))
}

/// As it is written on the command line.
fn word(hot: HotPolicy) -> &'static str {
    match hot {
        HotPolicy::Replicate => "replicate",
        HotPolicy::Reads => "reads",
        HotPolicy::Cache => "cache",
        HotPolicy::Either => "either",
        HotPolicy::Off => "off",
    }
}

/// Waits until all chains of a keyspace have as many nodes as it is to have.
fn wait(admin: &Admin, shared: &Shared, (name, asked): (&str, u8)) -> Result<(), Failure> {
    let mut progress: Option<Progress> = None;
    let (mut clock, mut moved, mut most) = (Clock::new(), None, 0);
    loop {
        let status = admin.status()?;
        let keyspace = named(&status, name)?;
        if keyspace.replicas != usize::from(asked) {
            let why = format!("{name} was altered again: to {} replicas", keyspace.replicas);
            return Err(Failure::Other(anyhow!(why)));
        }
        let left = left_permille(&status, keyspace);
        if left == 0 && is_open(keyspace) {
            return Ok(());
        }
        most = left.max(most);
        let now = clock.now();
        let since = match moved {
            Some((last, since)) if last == left => since,
            _ => now,
        };
        moved = Some((left, since));
        if let Some(why) = obstacle(&status, keyspace, now.since(since) > shared.timeout) {
            let more = "it goes on when it can; to see it:  keyway status";
            return Err(Failure::Other(anyhow!("{why}\n  {more}")));
        }
        let known = || Progress::permille("changing chains");
        let done = (most - left) * 1_000 / most.max(1);
        progress.get_or_insert_with(known).set(done);
        pause();
    }
}

/// Thousandths of a replica that are still to be made or let go.
fn left_permille(status: &Status, keyspace: &KeyspaceStatus) -> u64 {
    let left = |chain: &[_]| chain.len().abs_diff(keyspace.replicas) as u64 * 1_000;
    let copied = |copy: &CopyStatus| {
        let of = keyspace.partitions.iter().find(|it| it.id == copy.partition);
        of.filter(|it| it.missing > 0).map_or(0, |_| u64::from(copy.permille.min(999)))
    };
    let all: u64 = keyspace.partitions.iter().map(|it| left(&it.chain)).sum();
    all.saturating_sub(status.copies.iter().map(copied).sum())
}

/// Whether all of it is served by the chains that it has.
fn is_open(keyspace: &KeyspaceStatus) -> bool {
    keyspace.partitions.iter().all(|it| it.open && it.unheard == 0)
}

/// What keeps chains from changing, if anything does.
fn obstacle(status: &Status, keyspace: &KeyspaceStatus, is_stuck: bool) -> Option<String> {
    let KeyspaceStatus { name, replicas, .. } = keyspace;
    let short = keyspace.partitions.iter().filter(|it| it.missing > 0).count();
    if status.paused && short > 0 && is_open(keyspace) {
        return Some(format!(
            "{name} is to have {replicas} replicas, and {short} partitions have fewer: copies are \
             paused, to go on: keyway cluster resume-copies"
        ));
    }
    let late: Vec<String> = status.late().map(MemberStatus::in_words).collect();
    (is_stuck && !late.is_empty()).then(|| {
        let late = late.join("; ");
        format!("{name} is to have {replicas} replicas, and its chains do not get on: {late}")
    })
}

#[expect(clippy::disallowed_methods, reason = "a command may wait; this one looks again")]
fn pause() {
    std::thread::sleep(Duration::from_millis(100));
}
