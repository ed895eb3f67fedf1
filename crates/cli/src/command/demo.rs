//! `keyway demo`: a cluster at work, in half a minute.

use crate::command::keyspace::number_splits;
use crate::command::status;
use crate::command::up;
use anyhow::{Context, anyhow};
use bench::{Measured, Pace, Plan, Progress};
use client::blocking::{Client, Space};
use client::{Options, RetransmitBounds, ScanOptions};
use cluster::{HotPolicy, KeyspaceKind, Map, NodeId};
use console::admin::Admin;
use console::answer::Answer;
use console::chart::{grouped, micros, table};
use console::exit::{Failure, Verdict};
use console::out;
use console::shared::Shared;
use controller::{KeyspaceSpec, NodeLoad};
use machine::Instant;
use runtime::clock::Clock;
use runtime::logging::{self, LogFormat};
use runtime::up::{Embedded, UpOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;
use workload::{Distribution, KeyNames, Mix, OpKind, Sizes, Spec, Values};

/// See a cluster at work: starts one, puts load on it, shows where the load went, ends.
///
/// Takes about ten seconds, uses main memory only, leaves nothing behind and needs no free port in
/// particular.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway demo
  keyway demo --json")]
pub(crate) struct Args {}

const NODES: u16 = 8;
const REPLICAS: u8 = 3;
const PARTITIONS: u32 = 128;
const KEYS: u64 = 20_000;
const KEY_SIZE: usize = 16;
const PREFIX: &str = "user";
const NAME: &str = "demo";
const MIX_TIME: Duration = Duration::from_secs(5);
const MGET_KEYS: usize = 32;
const SEED: u64 = 1;

/// How long any one step may take before the demo gives up, so that it ends in any case.
const STEP_WAIT_MAX: Duration = Duration::from_secs(10);

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        logging::start(LogFormat::Text, "error")
            .map_err(|error| Failure::usage(error.to_string()))?;
        let demo = Demo::start(shared.json)?;
        let loaded = demo.load()?;
        let measured = demo.mix()?;
        let mget = demo.mget()?;
        let scan = demo.scan()?;
        let load = demo.load_of_nodes(&measured)?;
        let wrong = measured.wrong_values;
        if shared.json {
            Answer::new("done")
                .with("nodes", NODES)
                .with("parameters", demo.plan.parameters())
                .with("load", &loaded.summary.all)
                .with("run", &measured)
                .with("mget", &mget)
                .with("scan", &scan)
                .with("node_load", &load)
                .print()?;
        } else {
            demo.show_load(&load)?;
        }
        demo.cluster.stop();
        if wrong > 0 {
            return Err(Failure::Other(anyhow!("{wrong} values were wrong: this is a bug")));
        }
        if !shared.json {
            out::line("\nThe cluster has ended. To start one that stays:  keyway up")?;
        }
        Ok(Verdict::Yes)
    }
}

struct Demo {
    quiet: bool,
    cluster: Embedded,
    admin: Admin,
    map: Map,
    space: Space,
    plan: Plan,
}

/// A step that was timed.
#[derive(serde::Serialize)]
struct Step {
    keys: usize,
    micros: u64,
    /// Nodes, or partitions, that took part.
    parts: usize,
}

impl Demo {
    fn start(quiet: bool) -> Result<Self, Failure> {
        let say = |text: String| say(quiet, &text);
        let cluster = up::start(&UpOptions::in_memory(NODES, REPLICAS, PARTITIONS))?;
        let service = cluster.service();
        say(format!("A switch at {service}, {NODES} storage nodes and a controller are up."))?;
        let admin = Admin::new(&[cluster.admin()], STEP_WAIT_MAX);
        admin.create(&KeyspaceSpec {
            name: NAME.to_owned(),
            kind: KeyspaceKind::Range { prefix: PREFIX.as_bytes().to_vec() },
            partitions: PARTITIONS,
            replicas: REPLICAS,
            splits: number_splits(PREFIX, KEY_SIZE, KEYS, PARTITIONS)?,
            hot: HotPolicy::default(),
        })?;
        admin.wait_served(NAME, STEP_WAIT_MAX)?;
        say(format!(
            "Keyspace {NAME:?} keeps keys in order: {PARTITIONS} partitions, each on a chain of \
             {REPLICAS} nodes."
        ))?;
        let options = Options { deadline: STEP_WAIT_MAX, ..Options::default() };
        let client = Client::connect(service, options).context("cannot open a socket")?;
        let space = client.keyspace(NAME).context("cannot find the keyspace")?;
        let (map, plan) = (admin.map()?, plan(service)?);
        Ok(Self { quiet, cluster, admin, map, space, plan })
    }

    fn load(&self) -> Result<Measured, Failure> {
        let progress = Progress::new("loading");
        let loaded = bench::load(&self.plan, |last| progress.tell(last))?;
        progress.end();
        let (seconds, rate) = (loaded.summary.seconds, loaded.summary.all.ops_per_second);
        self.say(&format!(
            "\nLoaded {} keys in {seconds:.1} s: {} writes per second, each on {REPLICAS} nodes \
             before it was answered.",
            grouped(KEYS),
            grouped(rate.round() as u64),
        ))?;
        Ok(loaded)
    }

    fn mix(&self) -> Result<Measured, Failure> {
        let progress = Progress::new("running");
        let measured = bench::measure(&self.plan, |last| progress.tell(last))?;
        progress.end();
        let (mix, distribution) = (&self.plan.spec.mix, self.plan.spec.distribution);
        let seconds = MIX_TIME.as_secs();
        self.say(&format!("\n{seconds} s of {mix} by {distribution}, all values checked:\n"))?;
        self.say(table(&bench::latency_rows(&measured.summary)).trim_end())?;
        Ok(measured)
    }

    /// Reads keys that lie on all nodes, in one request.
    fn mget(&self) -> Result<Step, Failure> {
        let keys = self.keys_on_all_nodes()?;
        let tails: BTreeSet<NodeId> = keys.iter().filter_map(|key| self.tail_of(key)).collect();
        let (micros, outcomes) = timed(|| self.space.mget(&keys));
        for (key, outcome) in keys.iter().zip(outcomes) {
            let found = outcome.into_result()?;
            let index = self.plan.names.index(key);
            let right = index.zip(found).and_then(|(index, it)| Values::stamp_of(index, &it.value));
            if right.is_none() {
                return Err(Failure::Other(anyhow!("the mget gave a wrong value: this is a bug")));
            }
        }
        let step = Step { keys: keys.len(), micros, parts: tails.len() };
        self.say(&format!(
            "\nOne mget of {} keys: the switch split it over {} nodes, the client had all values \
             after {}.",
            step.keys,
            step.parts,
            self::micros(micros)
        ))?;
        Ok(step)
    }

    fn scan(&self) -> Result<Step, Failure> {
        let names = &self.plan.names;
        let (first, last) = (KEYS / 4, KEYS / 4 * 3);
        let options = ScanOptions {
            start: std::ops::Bound::Included(names.name(first)),
            end: std::ops::Bound::Excluded(names.name(last)),
            ..ScanOptions::default()
        };
        let (micros, outcome) = timed(|| self.space.scan(options));
        let entries = outcome.into_result()?;
        let found = entries.iter().map(|(key, _)| names.index(key));
        if !found.eq((first..last).map(Some)) {
            return Err(Failure::Other(anyhow!("the scan gave wrong keys: this is a bug")));
        }
        let keyspace = self.space.keyspace();
        let at = |index: u64| keyspace.match_value(&names.name(index));
        let (from, to) = (at(first), at(last - 1));
        let mine = self.map.partitions.iter().filter(|p| p.keyspace == keyspace.id);
        let parts = mine.filter(|p| p.last >= from && p.first <= to).count();
        self.say(&format!(
            "One scan of {} keys: cut at the bounds of {parts} partitions, complete and in order \
             after {}.",
            grouped(last - first),
            self::micros(micros)
        ))?;
        Ok(Step { keys: entries.len(), micros, parts })
    }

    /// The switch's counters as the controller has them once they include the mix, which ended just
    /// now: it asks for them every so often.
    fn load_of_nodes(&self, measured: &Measured) -> Result<Vec<NodeLoad>, Failure> {
        let reads = measured.summary.kinds.iter().map(|kind| match kind.kind {
            Some(OpKind::Get) => kind.ops,
            Some(OpKind::Mget) => kind.ops * self.plan.spec.mix.mget_keys.max(),
            _ => 0,
        });
        let reads: u64 = reads.sum();
        self.admin.wait_for(STEP_WAIT_MAX, |status| {
            let counted: u64 = status.load.iter().map(|node| node.reads).sum();
            if counted >= reads { Ok(()) } else { Err("the switch has counted too little".into()) }
        })?;
        Ok(self.admin.status()?.load)
    }

    fn show_load(&self, load: &[NodeLoad]) -> Result<(), Failure> {
        self.say("\nWhat the switch counted for each node (the load of a Zipf mix is skewed):\n")?;
        self.say(status::load(load).trim_end())
    }

    /// As many keys of each node's as of the others', going by their tails.
    fn keys_on_all_nodes(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let each = MGET_KEYS.div_ceil(usize::from(NODES));
        let mut of_node: BTreeMap<NodeId, usize> = BTreeMap::new();
        let mut keys = Vec::new();
        for index in 0..KEYS {
            let key = self.plan.names.name(index);
            let Some(tail) = self.tail_of(&key) else { continue };
            let count = of_node.entry(tail).or_default();
            if *count < each && keys.len() < MGET_KEYS {
                *count += 1;
                keys.push(key);
            }
        }
        if of_node.len() != usize::from(NODES) {
            return Err(Failure::Other(anyhow!("some node is the tail of no partition")));
        }
        Ok(keys)
    }

    fn tail_of(&self, key: &[u8]) -> Option<NodeId> {
        let keyspace = self.space.keyspace();
        self.map.partition_of(keyspace.id, keyspace.match_value(key))?.tail()
    }

    fn say(&self, text: &str) -> Result<(), Failure> {
        say(self.quiet, text)
    }
}

fn plan(service: SocketAddr) -> Result<Plan, Failure> {
    let names = |prefix| {
        KeyNames::new(prefix, KEY_SIZE, KEYS).map_err(|error| Failure::usage(error.to_string()))
    };
    let parse = "a constant that parses";
    let mix: Mix = "get=0.9,put=0.08,mget:16=0.02".parse().expect(parse);
    let sizes: Sizes = "100".parse().expect(parse);
    Ok(Plan {
        services: vec![service],
        passes: None,
        coordination: bench::Coordination::Switch,
        keyspace: bench::describe(&[service], NAME, STEP_WAIT_MAX, None)?,
        spec: Spec {
            mix,
            distribution: Distribution::Scrambled { theta: 0.99 },
            keys: KEYS,
            inserts_expected: 0,
            shift: None,
        },
        names: names(PREFIX)?,
        counters: names("incr")?,
        values: Values::new(sizes),
        threads: 1,
        hosts: Vec::new(),
        pace: Pace::Closed(32),
        duration: MIX_TIME,
        piece: bench::PIECE,
        deadline: STEP_WAIT_MAX,
        retransmit: RetransmitBounds::default(),
        seed: SEED,
    })
}

fn timed<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let mut clock = Clock::new();
    let start: Instant = clock.now();
    let result = work();
    let took = clock.now().since(start).as_micros();
    (u64::try_from(took).unwrap_or(u64::MAX), result)
}

fn say(quiet: bool, text: &str) -> Result<(), Failure> {
    if quiet { Ok(()) } else { out::line(text) }
}
