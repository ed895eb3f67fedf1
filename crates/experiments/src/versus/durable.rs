//! What a durable write costs: three copies of each key, synced to disk before the answer, on
//! Keyway and on another that promises the same.

use super::connection::Target;
use super::etcd::Etcd;
use super::keyway::{Engine, KEYSPACE, Keyway, Shape};
use super::load::{RivalLoad, can_send};
use super::redis::Durable;
use crate::median::{measured_median, median};
use anyhow::Context;
use bench::{Pace, Plan, Progress};
use console::answer::Answer;
use console::chart::{grouped, micros, table};
use console::exit::{Failure, Verdict};
use console::{note, out};
use runtime::clock::Clock;
use serde::Serialize;
use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use workload::{Distribution, Latency, Mix, OpKind, Spec, Summary};

/// Nodes of Keyway, and copies of each key on every side.
const COPIES: u8 = 3;

/// Writes in flight.
const IN_FLIGHT: [usize; 4] = [1, 8, 64, 512];

/// Requests in flight where reads are between writes.
const MIXED_IN_FLIGHT: usize = 64;

/// At equal rates: so much of what the durable cluster does with [`MIXED_IN_FLIGHT`].
const EQUAL_RATE: f64 = 0.75;

/// Rounds of each trial; both sides take turns.
const ROUNDS: usize = 3;

/// What writes are compared under, and what both engines of Keyway are.
const WRITES: &str = "put=1";
const MIXED: [&str; 2] = ["get=0.95,put=0.05", "get=0.5,put=0.5"];

/// Whose servers are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Contender {
    Keyway,
    Memory,
    Etcd,
    #[serde(rename = "redis-durable")]
    Redis,
}

impl Contender {
    fn name(self) -> &'static str {
        match self {
            Self::Keyway => "keyway",
            Self::Memory => "keyway, memory engine",
            Self::Etcd => "etcd",
            Self::Redis => "redis, WAIT 2",
        }
    }
}

/// A side under load. Its servers run until it is dropped.
struct Side {
    arm: Contender,
    plan: Plan,
    servers: Servers,
}

enum Servers {
    Keyway { _cluster: Keyway },
    Etcd { load: RivalLoad, _members: Etcd },
    Redis { load: RivalLoad, _servers: Durable },
}

/// One kind of operation on one side, under one load: medians of all rounds.
#[derive(Clone, Debug, Serialize)]
struct Row {
    mix: String,
    arm: Contender,
    /// Requests in flight, or a rate at which they are sent.
    pace: Pace,
    kind: OpKind,
    /// Requests of all kinds.
    per_second: f64,
    /// Keyway's rate over the other's.
    over_rival: Option<f64>,
    p50_us: u64,
    p99_us: u64,
    p999_us: u64,
}

/// Compares Keyway with this one, under this load or under all.
pub(super) fn compare(
    rival: Contender,
    json: bool,
    partitions: u32,
    load: Option<(Mix, Distribution)>,
    plan: impl Fn(Vec<SocketAddr>, &str) -> Result<Plan, Failure>,
) -> Result<Verdict, Failure> {
    let directory = tempfile::tempdir().context("no directory for servers")?;
    let at = directory.path();
    let sync = time_of_sync(at)?;
    note!("starting both sides; their data is in {} ...", at.display());
    let plan = |services: Vec<SocketAddr>, keyspace: &str| {
        let plan = plan(services, keyspace)?;
        let distribution = load.as_ref().map_or(Distribution::Uniform, |(_, keys)| *keys);
        Ok(Plan { spec: Spec { distribution, ..plan.spec.clone() }, ..plan })
    };
    let keyway = start_keyway(&at.join("durable"), Contender::Keyway, partitions, plan)?;
    can_send(&keyway.plan)?;
    let other = match rival {
        Contender::Keyway | Contender::Memory => {
            start_keyway(&at.join("memory"), Contender::Memory, partitions, plan)?
        }
        Contender::Etcd | Contender::Redis => start_rival(at, rival, keyway.plan.clone())?,
    };
    let sides = [keyway, other];
    let text = parameters(&sides, at, sync);
    if !json {
        out::line(&text)?;
    }
    sides.iter().try_for_each(Side::fill)?;
    let mut rows = Vec::new();
    let mixes = load.map_or_else(|| vec![parse(WRITES)], |(mix, _)| vec![mix]);
    for (mix, in_flight) in mixes.iter().flat_map(|mix| IN_FLIGHT.map(|count| (mix, count))) {
        rows.extend(rounds(&sides, mix, Pace::Closed(in_flight))?);
    }
    if rival == Contender::Memory {
        for mix in MIXED.map(parse) {
            let closed = rounds(&sides, &mix, Pace::Closed(MIXED_IN_FLIGHT))?;
            let durable = closed.iter().find(|row| row.arm == Contender::Keyway);
            let rate = durable.map_or(0.0, |row| (row.per_second * EQUAL_RATE).max(1.0));
            rows.extend(closed);
            rows.extend(rounds(&sides, &mix, Pace::Open(rate))?);
        }
    }
    let sync_us = u64::try_from(sync.as_micros()).unwrap_or(u64::MAX);
    if json {
        Answer::new("done").with("fdatasync_us", sync_us).with("rows", rows).print()?;
    } else {
        out::print(&table_of(&rows))?;
    }
    Ok(Verdict::Yes)
}

fn parse(mix: &str) -> Mix {
    mix.parse().expect("a mix of ours")
}

/// Median of what it takes until a little that was appended to a file is on this disk.
fn time_of_sync(directory: &Path) -> anyhow::Result<Duration> {
    const TIMES: usize = 201;
    let mut file = File::create(directory.join("sync")).context("cannot write to the disk")?;
    let (mut clock, mut took) = (Clock::new(), Vec::with_capacity(TIMES));
    for _ in 0..TIMES {
        file.write_all(&[0; 512])?;
        let began = clock.now();
        file.sync_data().context("cannot sync the disk")?;
        took.push(clock.now().since(began));
    }
    took.sort_unstable();
    Ok(took.get(TIMES / 2).copied().unwrap_or_default())
}

fn start_keyway(
    directory: &Path,
    arm: Contender,
    partitions: u32,
    plan: impl Fn(Vec<SocketAddr>, &str) -> Result<Plan, Failure>,
) -> Result<Side, Failure> {
    std::fs::create_dir(directory).context("no directory for servers")?;
    let engine = if arm == Contender::Memory { Engine::Memory } else { Engine::Durable };
    let (nodes, replicas) = (COPIES.into(), COPIES);
    let shape = Shape { nodes, partitions, replicas, engine, limited: false };
    let cluster = Keyway::start(directory, shape)?;
    let plan = plan(vec![cluster.service], KEYSPACE)?;
    Ok(Side { arm, plan, servers: Servers::Keyway { _cluster: cluster } })
}

fn start_rival(directory: &Path, arm: Contender, plan: Plan) -> Result<Side, Failure> {
    // WAIT holds up its connection.
    let most = IN_FLIGHT.into_iter().max().unwrap_or(1).div_ceil(plan.threads);
    let open =
        |target, connections| RivalLoad::open(&target, plan.threads, connections, plan.deadline);
    let servers = if arm == Contender::Etcd {
        let members = Etcd::start(directory)?;
        let load = open(Target::Etcd(members.leader), ETCD_CONNECTIONS)?;
        Servers::Etcd { load, _members: members }
    } else {
        let replicas = usize::from(COPIES) - 1;
        let servers = Durable::start(directory, replicas)?;
        let load = open(Target::Replicated(servers.primary, replicas), most)?;
        Servers::Redis { load, _servers: servers }
    };
    Ok(Side { arm, plan, servers })
}

/// Connections of each thread; each takes many requests at once.
const ETCD_CONNECTIONS: usize = 8;

impl Side {
    /// Writes all keys.
    fn fill(&self) -> Result<(), Failure> {
        note!("loading {} ...", self.arm.name());
        match &self.servers {
            Servers::Keyway { .. } => {
                let progress = Progress::new("loading");
                bench::load(&self.plan, |last| progress.tell(last))?;
                progress.end();
            }
            Servers::Etcd { load, .. } | Servers::Redis { load, .. } => load.load(&self.plan)?,
        }
        Ok(())
    }

    fn trial(&self, mix: &Mix, pace: Pace) -> Result<Summary, Failure> {
        let spec = Spec { mix: mix.clone(), ..self.plan.spec.clone() };
        let plan = Plan { spec, pace, ..self.plan.clone() };
        let summary = match &self.servers {
            Servers::Keyway { .. } => bench::measure(&plan, |_| ())?.summary,
            Servers::Etcd { load, .. } | Servers::Redis { load, .. } => load.measure(&plan)?,
        };
        let Summary { all, .. } = &summary;
        if all.endings.done != all.endings.total() {
            let (lost, all) = (all.endings.total() - all.endings.done, all.endings.total());
            let name = self.arm.name();
            note!("  {name}: {lost} of {all} requests were not done");
        }
        Ok(summary)
    }
}

/// A load on both sides, in turns.
fn rounds(sides: &[Side; 2], mix: &Mix, pace: Pace) -> Result<Vec<Row>, Failure> {
    let mut summaries: [Vec<Summary>; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (side, done) in sides.iter().zip(&mut summaries) {
            let summary = side.trial(mix, pace)?;
            let (name, rate) = (side.arm.name(), grouped(summary.all.ops_per_second as u64));
            let p99 = micros(summary.all.latency.p99_us);
            note!("  {mix}, {}, {name}: {rate} per second, p99 {p99}", text_of(pace));
            done.push(summary);
        }
    }
    let [ours, theirs] = &summaries;
    let rate = |it: &Summary| it.all.ops_per_second;
    let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| rate(ours) / rate(theirs));
    let ratio = median(ratios.collect());
    let per_second = |done: &[Summary]| median(done.iter().map(rate).collect());
    let kinds = [OpKind::Put, OpKind::Get].into_iter().filter(|kind| mix.share(*kind) > 0.0);
    let mut rows = Vec::new();
    for kind in kinds {
        for (side, done) in sides.iter().zip(&summaries) {
            let latency = |of: fn(&Latency) -> u64| {
                let found = done.iter().flat_map(|it| &it.kinds);
                let found = found.filter(|it| it.kind == Some(kind));
                let mut found: Vec<u64> = found.map(|it| of(&it.latency)).collect();
                measured_median(&mut found).unwrap_or_default()
            };
            rows.push(Row {
                mix: mix.to_string(),
                arm: side.arm,
                pace,
                kind,
                per_second: per_second(done),
                over_rival: (side.arm == Contender::Keyway).then_some(ratio),
                p50_us: latency(|it| it.p50_us),
                p99_us: latency(|it| it.p99_us),
                p999_us: latency(|it| it.p999_us),
            });
        }
    }
    Ok(rows)
}

fn text_of(pace: Pace) -> String {
    match pace {
        Pace::Closed(count) => format!("{count} in flight"),
        Pace::Open(rate) => format!("{} a second", grouped(rate as u64)),
    }
}

fn parameters(sides: &[Side; 2], at: &Path, sync: Duration) -> String {
    let [Side { plan, .. }, other] = sides;
    format!(
        "sides         keyway: {COPIES} nodes with fjall, switch, controller, each a process; {}\n\
         copies        {COPIES} of each key; a write is answered when all have synced it\n\
         disk          {}: one fdatasync takes {}\n\
         keys          {}, key {} bytes, value {} bytes, {}\n\
         clients       {} thread(s); seed {}\n\
         trials        {ROUNDS} rounds of {} s, both sides in turns; medians\n",
        other.arm.name(),
        at.display(),
        micros(u64::try_from(sync.as_micros()).unwrap_or(u64::MAX)),
        plan.spec.keys,
        plan.names.name(0).len(),
        plan.values.sizes(),
        plan.spec.distribution,
        plan.threads,
        plan.seed,
        plan.duration.as_secs_f64(),
    )
}

fn table_of(rows: &[Row]) -> String {
    let head = ["load", "pace", "servers", "of", "per second", "x", "p50", "p99", "p99.9"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for row in rows {
        lines.push(vec![
            row.mix.clone(),
            text_of(row.pace),
            row.arm.name().to_owned(),
            row.kind.name().to_owned(),
            grouped(row.per_second.round() as u64),
            row.over_rival.map_or_else(String::new, |times| format!("{times:.2}")),
            micros(row.p50_us),
            micros(row.p99_us),
            micros(row.p999_us),
        ]);
    }
    table(&lines)
}

#[test]
fn a_sync_takes_a_while() {
    let directory = tempfile::tempdir().unwrap();
    assert!(time_of_sync(directory.path()).unwrap() > Duration::ZERO);
}
