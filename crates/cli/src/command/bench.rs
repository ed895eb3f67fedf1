//! `keyway bench`: load on a cluster, and how it stands it.

use crate::command::cluster_size::ClusterSize;
use crate::command::keyspace::number_splits;
use crate::command::up;
use anyhow::anyhow;
use bench::{Coordination, Coordinators, Directory, Measured, Pace, Plan, Progress};
use client::RetransmitBounds;
use cluster::{HotPolicy, KeyspaceKind};
use console::admin::Admin;
use console::answer::Answer;
use console::exit::{Failure, Verdict};
use console::logs::Logs;
use console::out;
use console::parse;
use console::pass;
use console::shared::Shared;
use controller::KeyspaceSpec;
use envelope::Passes;
use experiments::versus::Versus;
use runtime::identity::Security;
use runtime::up::Embedded;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use workload::{Distribution, KeyNames, Mix, OpKind, Shift, Sizes, Spec, Values};

/// Put load on a cluster and measure latency, throughput and outcomes.
///
/// Runs YCSB's core workloads A to F, or a mix of one's own, in a closed loop (a fixed number of
/// requests in flight) or an open one (Poisson arrivals at a rate; latency counts from when a
/// request was meant to start). All values read are checked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway bench --embedded --workload a
  keyway bench --load --keys 1m --workload b --duration 30s
  keyway bench --mix get=0.9,put=0.1 --distribution zipf:1.2 --rate 20k
  keyway bench --mix mget:32=1 --in-flight 8 --json
  keyway bench --mix mget:10000=1 --in-flight 1 --multigets client
  keyway bench --embedded --workload c --coordination server
  keyway bench --mix get=1 --distribution zipf:0.99 --shift hot-in:200/10
  keyway keyspace create scans --range --prefix user --split-numbers 100000
  keyway bench -k scans --load --workload e
  keyway bench --versus redis-cluster --duration 2s
  keyway bench --versus redis-cluster --mix mget:100=1 --distribution zipf:1.2
  keyway bench --versus etcd --duration 5s
  keyway bench --versus memory --duration 5s --json")]
pub(crate) struct Args {
    #[command(flatten)]
    load: Load,
    /// Start a cluster for the benchmark in this process, and load it.
    #[arg(long)]
    embedded: bool,
    #[command(flatten)]
    size: ClusterSize,
    #[command(flatten)]
    versus: Versus,
    #[command(flatten)]
    logs: Logs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Load")]
struct Load {
    /// Write all keys first.
    #[arg(long)]
    load: bool,
    /// One of YCSB's core workloads.
    #[arg(long, value_name = "A-F", default_value = "a", conflicts_with = "mix")]
    #[arg(value_parser = ycsb_letter)]
    workload: char,
    // As text, not as a doc comment, which would take the brackets for links.
    #[arg(long, value_name = "KIND=SHARE,...")]
    #[arg(help = "Shares of get, put, insert, del, cas, incr, mget[:KEYS], scan[:LENGTH], rmw")]
    mix: Option<Mix>,
    #[arg(long, value_name = "NAME")]
    #[arg(
        help = "uniform, zipf[:THETA], scrambled[:THETA], latest[:THETA] or hotspot[:KEYS:OPS]. \
        YCSB's own: latest for workload D, scrambled for the others"
    )]
    distribution: Option<Distribution>,
    #[arg(long, value_name = "SHIFT")]
    #[arg(help = "Let popularity move: hot-in:KEYS/SECONDS, hot-out:KEYS/SECONDS, \
        random:KEYS[:TOP]/SECONDS")]
    shift: Option<Shift>,
    /// How many keys.
    #[arg(long, value_name = "N", default_value = "100k", value_parser = parse::count)]
    keys: u64,
    /// Bytes of each key: \"user\" and a number.
    #[arg(long, value_name = "BYTES", default_value_t = 16)]
    key_size: usize,
    /// Bytes of each value: N, MIN-MAX for uniform, zipf:MAX for mostly small.
    #[arg(long, value_name = "SIZE", default_value = "100")]
    value_size: Sizes,
    /// For how long.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse::some_time)]
    duration: Duration,
    /// Open loop: this many requests per second on average, over all threads.
    #[arg(long, value_name = "PER_SECOND", value_parser = parse::count)]
    rate: Option<u64>,
    /// Closed loop: this many requests in flight, over all threads.
    #[arg(long, value_name = "N", default_value_t = 64, conflicts_with = "rate")]
    in_flight: usize,
    /// Threads, each with a client and a socket of its own.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Who finds the nodes that requests are for, to compare: the switch, the clients by the map at
    /// --admin (client), or coordinators that this program starts, one for each node (server).
    #[arg(long, value_name = "WHO", default_value = "switch", conflicts_with = "multigets")]
    coordination: Coordinates,
    /// The same where multigets are compared: also the switch with hints from the clients
    /// (assisted), or the coordinator at an address (see keyway coordinator).
    #[arg(long, value_name = "switch|assisted|client|HOST:PORT", value_parser = splitter)]
    multigets: Option<Splitter>,
    /// Seed of everything drawn.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Who coordinates, as it is typed.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Coordinates {
    Switch,
    Client,
    Server,
}

/// The same where multigets are compared.
#[derive(Clone, Copy, Debug)]
enum Splitter {
    Switch,
    Assisted,
    Client,
    Coordinator(SocketAddr),
}

fn splitter(text: &str) -> Result<Splitter, String> {
    match text {
        "switch" => Ok(Splitter::Switch),
        "assisted" => Ok(Splitter::Assisted),
        "client" => Ok(Splitter::Client),
        address => parse::address(address).map(Splitter::Coordinator),
    }
}

/// Who coordinates, and the coordinators if this program has started them.
type Coordinating = (Coordination, Option<Coordinators>);

impl Load {
    fn coordinating(
        &self,
        services: &[SocketAddr],
        admins: &[SocketAddr],
        security: &Security,
    ) -> Result<Coordinating, Failure> {
        let map = || Admin::with(admins, READY_WAIT_MAX, security).map();
        let directory = || -> Result<_, Failure> {
            let admin = Admin::with(admins, READY_WAIT_MAX, security);
            Ok(Directory::kept_new(map()?, move || admin.map().ok()))
        };
        let coordination = match (self.multigets, self.coordination) {
            (Some(Splitter::Switch), _) | (None, Coordinates::Switch) => Coordination::Switch,
            (Some(Splitter::Coordinator(at)), _) => Coordination::Coordinators(vec![at]),
            (Some(Splitter::Assisted), _) => Coordination::Assisted(Arc::new(map()?)),
            (Some(Splitter::Client), _) | (None, Coordinates::Client) => {
                Coordination::Client(directory()?)
            }
            (None, Coordinates::Server) => {
                let started = Coordinators::start(services, &directory()?)?;
                let coordination = Coordination::Coordinators(started.addresses().to_vec());
                return Ok((coordination, Some(started)));
            }
        };
        Ok((coordination, None))
    }
}

fn ycsb_letter(text: &str) -> Result<char, String> {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if Mix::ycsb(letter).is_some() => Ok(letter.to_ascii_lowercase()),
        _ => Err(format!("no workload {text:?}; there are a, b, c, d, e and f")),
    }
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        self.logs.start("warn")?;
        if self.versus.is_asked_for() {
            return self.compare(shared);
        }
        let embedded = if self.embedded { Some(self.start()?) } else { None };
        let services = embedded
            .as_ref()
            .map_or_else(|| shared.services.clone(), |cluster| vec![cluster.service()]);
        let name = if self.embedded { EMBEDDED_KEYSPACE } else { &shared.keyspace };
        let admins = embedded
            .as_ref()
            .map_or_else(|| shared.admins.clone(), |cluster| vec![cluster.admin()]);
        let passes = if self.embedded { None } else { pass::passes(shared)? };
        let mut plan = self.load.plan(services, name, shared.timeout, passes)?;
        let security = if self.embedded { Security::Loopback } else { shared.security()? };
        let (coordination, _coordinators) =
            self.load.coordinating(&plan.services, &admins, &security)?;
        if plan.passes.is_some() && matches!(coordination, Coordination::Coordinators(_)) {
            return Err(Failure::usage(
                "packets of this cluster are in envelopes, and coordinators have no keys for them: \
                 choose another --coordination",
            ));
        }
        plan.coordination = coordination;
        if !shared.json {
            out::line(&plan.parameters().text())?;
        }
        let loaded = if self.load.load || self.embedded {
            let progress = Progress::new("loading");
            let measured = bench::load(&plan, |last| progress.tell(last))?;
            progress.end();
            Some(measured)
        } else {
            None
        };
        let progress = Progress::new("running");
        let measured = bench::measure(&plan, |last| progress.tell(last))?;
        progress.end();
        report(shared, &plan, loaded.as_ref(), &measured)?;
        if measured.wrong_values > 0 {
            let wrong = measured.wrong_values;
            return Err(Failure::Other(anyhow!(
                "{wrong} values were wrong: a bug, unless somebody else writes keys that begin \
                 with {PREFIX:?} in this keyspace"
            )));
        }
        if measured.summary.all.endings.total() == measured.summary.all.endings.unknown {
            return Err(console::connect::no_answer(&plan.services));
        }
        Ok(Verdict::Yes)
    }

    /// Compares with a rival under all loads, or the one that was asked for.
    fn compare(&self, shared: &Shared) -> Result<Verdict, Failure> {
        let ClusterSize { nodes, partitions, .. } = self.size;
        let load = (self.load.mix.is_some() || self.load.distribution.is_some()).then(|| {
            let spec = self.load.spec();
            (spec.mix, spec.distribution)
        });
        let plan =
            |services, keyspace: &str| self.load.plan(services, keyspace, shared.timeout, None);
        self.versus.compare(shared.json, (nodes, partitions), load, plan)
    }

    /// A cluster with a keyspace for this benchmark's keys: in order if it scans them.
    fn start(&self) -> Result<Embedded, Failure> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let embedded = up::start(&self.size.options(any, any, Security::Loopback)?)?;
        let partitions = self.size.partitions;
        let (kind, splits) = if self.load.mix().scans() {
            let kind = KeyspaceKind::Range { prefix: PREFIX.as_bytes().to_vec() };
            let Load { key_size, keys, .. } = &self.load;
            (kind, number_splits(PREFIX, *key_size, *keys, partitions)?)
        } else {
            (KeyspaceKind::Hash, Vec::new())
        };
        let hot = HotPolicy::default();
        let (name, replicas) = (EMBEDDED_KEYSPACE.to_owned(), self.size.replicas);
        let spec = KeyspaceSpec { name, kind, partitions, replicas, splits, hot };
        let admin = Admin::new(&[embedded.admin()], READY_WAIT_MAX);
        admin.create(&spec)?;
        admin.wait_served(EMBEDDED_KEYSPACE, READY_WAIT_MAX)?;
        Ok(embedded)
    }
}

/// What all keys begin with, as in YCSB.
const PREFIX: &str = "user";

/// What all counters begin with; as long as [`PREFIX`].
const COUNTER_PREFIX: &str = "incr";

/// The keyspace of `--embedded`.
const EMBEDDED_KEYSPACE: &str = "bench";

/// How long a cluster in this process may take to make a keyspace.
const READY_WAIT_MAX: Duration = Duration::from_secs(10);

impl Load {
    fn mix(&self) -> Mix {
        let ycsb = || Mix::ycsb(self.workload).expect("clap lets no other letter through");
        self.mix.clone().unwrap_or_else(ycsb)
    }

    fn spec(&self) -> Spec {
        let mix = self.mix();
        let ycsb = match self.workload {
            'd' if self.mix.is_none() => Distribution::Latest { theta: YCSB_THETA },
            _ => Distribution::Scrambled { theta: YCSB_THETA },
        };
        // As in YCSB, twice what is expected; in a closed loop that depends on the cluster.
        let inserts = mix.share(OpKind::Insert);
        let inserts_expected = match self.rate {
            _ if inserts <= 0.0 => 0,
            Some(rate) => (2.0 * inserts * rate as f64 * self.duration.as_secs_f64()) as u64,
            None => self.keys,
        };
        Spec {
            mix,
            distribution: self.distribution.unwrap_or(ycsb),
            keys: self.keys,
            inserts_expected,
            shift: self.shift,
        }
    }

    fn plan(
        &self,
        services: Vec<SocketAddr>,
        keyspace: &str,
        deadline: Duration,
        passes: Option<Passes>,
    ) -> Result<Plan, Failure> {
        let refuse = |why: String| Err(Failure::usage(why));
        let pace = match self.rate {
            Some(0) => return refuse("--rate: at least 1 request per second".to_owned()),
            Some(rate) => Pace::Open(rate as f64),
            None => Pace::Closed(self.in_flight),
        };
        let threads_max = self.rate.map_or(self.in_flight, |_| THREADS_MAX).min(THREADS_MAX);
        if !(1..=threads_max).contains(&self.threads) {
            return refuse(format!("--threads: 1 to {threads_max}, each with a request in flight"));
        }
        if self.in_flight > self.threads * client::IN_FLIGHT_MAX {
            return refuse(format!("--in-flight: at most {} a thread", client::IN_FLIGHT_MAX));
        }
        if self.key_size + self.value_size.max() > wire::ENTRY_MAX || self.key_size > wire::KEY_MAX
        {
            return refuse(format!(
                "--key-size and --value-size: at most {} bytes together, the key at most {}",
                wire::ENTRY_MAX,
                wire::KEY_MAX
            ));
        }
        let spec = self.spec();
        // Inserted keys need names too; in a closed loop nobody knows how many.
        let inserts = spec.mix.share(OpKind::Insert) > 0.0;
        let named = if inserts { spec.keys.saturating_mul(INSERTS_ROOM) } else { spec.keys };
        let names = |prefix| {
            KeyNames::new(prefix, self.key_size, named.max(spec.inserts_expected))
                .map_err(|error| Failure::usage(error.to_string()))
        };
        let (names, counters) = (names(PREFIX)?, names(COUNTER_PREFIX)?);
        let keyspace = bench::describe(&services, keyspace, deadline, passes.as_ref())?;
        if spec.mix.scans() && !keyspace.is_ordered() {
            return refuse(format!(
                "the mix has scans, but keyspace {:?} keeps no order; to make one:\n  \
                 keyway keyspace create scans --range --prefix {PREFIX} --split-numbers {} \
                 --key-size {}\n  keyway bench -k scans ...",
                keyspace.name, self.keys, self.key_size
            ));
        }
        Ok(Plan {
            services,
            passes,
            coordination: Coordination::default(),
            keyspace,
            spec,
            names,
            counters,
            values: Values::new(self.value_size.clone()),
            threads: self.threads,
            hosts: Vec::new(),
            pace,
            duration: self.duration,
            piece: bench::PIECE,
            deadline,
            retransmit: RetransmitBounds::default(),
            seed: self.seed,
        })
    }
}

/// YCSB's exponent of Zipf's law.
const YCSB_THETA: f64 = 0.99;

/// Names kept for inserted keys, per loaded key: hours of inserts at any rate one machine reaches.
const INSERTS_ROOM: u64 = 10_000;

/// More threads than any machine has cores.
const THREADS_MAX: usize = 1024;

fn report(
    shared: &Shared,
    plan: &Plan,
    loaded: Option<&Measured>,
    measured: &Measured,
) -> Result<(), Failure> {
    if shared.json {
        return Answer::new("done")
            .with("parameters", plan.parameters())
            .with("load", loaded.map(|it| &it.summary.all))
            .with("run", measured)
            .print();
    }
    if let Some(Measured { summary, .. }) = loaded {
        let (keys, rate) = (summary.all.ops, summary.all.ops_per_second);
        out::line(&format!(
            "loaded {keys} keys in {:.1} s, {rate:.0} per second\n",
            summary.seconds
        ))?;
    }
    out::print(&bench::table_of(measured))
}
