//! A rack for experiments: built, filled with keys, put under load from its client's host by this
//! process, and taken down.

use crate::served::{self, Served};
use bench::{Coordination, Directory, Measured, Pace, Plan};
use client::RetransmitBounds;
use cluster::{HotPolicy, Keyspace, KeyspaceKind};
use console::admin::{self, Admin};
use console::exit::Failure;
use console::note;
use controller::KeyspaceSpec;
use lab::cluster::{Cluster, admin, service};
use lab::keeper::Lab;
use lab::namespace::inside;
use lab::rack::LabHost;
use std::sync::Arc;
use std::time::Duration;
use workload::{Distribution, KeyNames, Mix, Shift, Spec, Values};

/// A rack that is up.
#[derive(Debug)]
pub(crate) struct Site {
    lab: Lab,
    cluster: Cluster,
    keys: u64,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct SiteLoad {
    pub(crate) keyspace: Arc<Keyspace>,
    pub(crate) distribution: Distribution,
    /// Share of reads, in percent; the rest are writes.
    pub(crate) reads: u8,
    pub(crate) shift: Option<Shift>,
}

/// For how long, and how it is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) time: Duration,
    /// How long its pieces are.
    pub(crate) piece: Duration,
    pub(crate) seed: u64,
}

impl SiteLoad {
    fn mix(&self) -> Mix {
        let (reads, writes) = (self.reads, 100 - self.reads);
        let share = |percent: u8| f64::from(percent) / 100.0;
        let text = format!("get={},put={}", share(reads), share(writes));
        text.parse().expect("the shares add up")
    }

    /// Nodes that a request visits, on average, if a write visits all replicas.
    pub(crate) fn visits(&self, replicas: u8) -> f64 {
        let reads = f64::from(self.reads) / 100.0;
        reads + f64::from(replicas) * (1.0 - reads)
    }
}

impl Site {
    /// Builds it, does this, and takes it down.
    pub(crate) fn with<T>(
        cluster: Cluster,
        keys: u64,
        job: impl FnOnce(&Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut lab = Lab::claim(cluster.clone())?;
        if let Err(failure) = lab.start(false, |text| note!("{text}")) {
            lab.take_down()?;
            return Err(failure);
        }
        let site = Self { lab, cluster, keys };
        let done = job(&site);
        site.lab.take_down()?;
        done
    }

    /// What all nodes serve in a second.
    pub(crate) fn rate(&self) -> f64 {
        self.rates().sum()
    }

    /// What each of them does.
    pub(crate) fn rates(&self) -> impl Iterator<Item = f64> {
        let rate = |id| self.cluster.rate_of(id).map_or(f64::INFINITY, |it| f64::from(it.get()));
        (1..=self.cluster.rack.nodes).map(rate)
    }

    /// Makes a keyspace whose hot keys are treated like this, and writes all keys.
    pub(crate) fn keyspace(
        &self,
        name: &str,
        hot: HotPolicy,
        replicas: u8,
    ) -> Result<Arc<Keyspace>, Failure> {
        note!("filling keyspace {name} with {} keys", self.keys);
        let spec = KeyspaceSpec {
            name: name.to_owned(),
            kind: KeyspaceKind::Hash,
            partitions: PARTITIONS,
            replicas,
            splits: Vec::new(),
            hot,
        };
        let service = service(self.cluster.plane);
        let keyspace = self.as_client(|| {
            let admin = Admin::new(&[admin(LabHost::Controller)], PATIENCE);
            // These experiments are about hot keys: partitions stay where they are.
            admin.command("/v1/placement/pause")?;
            admin.create(&spec)?;
            admin.wait_served(name, PATIENCE)?;
            bench::describe(&[service], name, PATIENCE, None)
        })?;
        let load = SiteLoad {
            keyspace: Arc::clone(&keyspace),
            distribution: Distribution::Uniform,
            reads: 0,
            shift: None,
        };
        let window = Window { time: Duration::ZERO, piece: bench::PIECE, seed: 1 };
        let pace = Pace::Closed(1);
        let plan = Plan { threads: FILLERS, deadline: PATIENCE, ..self.plan(&load, pace, window) };
        self.as_client(|| bench::load(&plan, |_| ()))?;
        Ok(keyspace)
    }

    /// Asks for this in an open loop.
    pub(crate) fn run(
        &self,
        load: &SiteLoad,
        rate: f64,
        window: Window,
    ) -> Result<Measured, Failure> {
        self.lab.check()?;
        let plan = self.plan(load, Pace::Open(rate), window);
        self.as_client(|| bench::measure(&plan, |_| ()))
    }

    /// Asks for this with so many requests in flight, and has somebody find the nodes.
    pub(crate) fn closed(
        &self,
        load: &SiteLoad,
        (in_flight, coordination): (usize, Coordination),
        window: Window,
    ) -> Result<Measured, Failure> {
        self.lab.check()?;
        let plan = Plan { coordination, ..self.plan(load, Pace::Closed(in_flight), window) };
        self.as_client(|| bench::measure(&plan, |_| ()))
    }

    /// What has clients send requests to the nodes themselves, by the map as it is now.
    pub(crate) fn straight(&self) -> Result<Coordination, Failure> {
        let map = self.as_client(|| Admin::new(&[admin(LabHost::Controller)], PATIENCE).map())?;
        Ok(Coordination::Client(Directory::of(Arc::new(map))))
    }

    /// Reads that all caches have answered so far.
    pub(crate) fn cache_hits(&self) -> Result<u64, Failure> {
        let caches = self.cluster.rack.caches().map(admin);
        let metrics = self.as_client(|| admin::metrics(caches, PATIENCE))?;
        Ok(metrics.iter().map(|text| served::cache_hits(text)).sum())
    }

    /// Asks for this until the rack has got used to it.
    pub(crate) fn warm_up(
        &self,
        load: &SiteLoad,
        rate: f64,
        time: Duration,
    ) -> Result<(), Failure> {
        self.run(load, rate, Window { time, piece: time, seed: WARM_UP_SEED })?;
        Ok(())
    }

    /// What each node has served so far.
    pub(crate) fn served(&self) -> Result<Vec<Served>, Failure> {
        let nodes = self.cluster.rack.nodes().map(admin);
        let metrics = self.as_client(|| admin::metrics(nodes, PATIENCE))?;
        Ok(metrics.iter().map(|text| Served::of(text)).collect())
    }

    fn as_client<T: Send>(
        &self,
        job: impl FnOnce() -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        inside(&self.cluster.rack.namespace(LabHost::Client(0)), || Ok(job()))?
    }

    fn plan(&self, load: &SiteLoad, pace: Pace, Window { time, piece, seed }: Window) -> Plan {
        let names = |prefix| {
            KeyNames::new(prefix, KEY_BYTES, self.keys).expect("there is room for the numbers")
        };
        Plan {
            services: vec![service(self.cluster.plane)],
            passes: None,
            keyspace: Arc::clone(&load.keyspace),
            spec: Spec {
                mix: load.mix(),
                distribution: load.distribution,
                keys: self.keys,
                inserts_expected: 0,
                shift: load.shift,
            },
            names: names("user"),
            counters: names("incr"),
            values: Values::new(VALUE_BYTES.parse().expect("a number of bytes")),
            coordination: Coordination::default(),
            threads: 1,
            hosts: Vec::new(),
            pace,
            duration: time,
            piece,
            deadline: DEADLINE,
            retransmit: self.retransmit(),
            seed,
        }
    }

    /// When a client of these nodes sends again. Its bounds are made for servers that are hundreds
    /// of times as fast: 5 ms are two services of a node of 400 requests a second, so that most
    /// requests that have to wait would be sent twice, and a node whose queue is long once would
    /// get no more rid of what is asked again.
    fn retransmit(&self) -> RetransmitBounds {
        let usual = RetransmitBounds::default();
        let slowest = self.rates().fold(f64::INFINITY, f64::min);
        let min = Duration::from_secs_f64(SERVICES_BEFORE_RETRY / slowest).max(usual.min);
        let times = min.as_secs_f64() / usual.min.as_secs_f64();
        let stretched = |time: Duration| time.mul_f64(times).min(DEADLINE);
        RetransmitBounds {
            min,
            first: stretched(usual.first),
            backoff_max: stretched(usual.backoff_max),
            max: stretched(usual.max),
        }
    }
}

/// What is asked for before something is measured, which has other seeds.
const WARM_UP_SEED: u64 = u64::MAX;

/// Of each keyspace: so many for each node of a full rack that chains are even.
const PARTITIONS: u32 = 512;

const KEY_BYTES: usize = 16;
/// As `keyway bench` takes it.
const VALUE_BYTES: &str = "100";

/// Threads that fill a keyspace: together they have a few requests at each node.
const FILLERS: usize = 4;

/// For what is no measurement.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long an answer is waited for: longer than a full queue takes.
const DEADLINE: Duration = Duration::from_secs(2);

/// Times of a service before a request is sent again at the earliest.
const SERVICES_BEFORE_RETRY: f64 = 20.0;
