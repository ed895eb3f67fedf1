//! A rack for experiments: built, filled with keys, put under load from its client's host by this
//! process, and taken down.

use crate::cost::Payers;
use crate::served::{self, Served};
use bench::{Coordination, Directory, Measured, Pace, Plan};
use client::RetransmitBounds;
use cluster::{HotPolicy, Keyspace, KeyspaceKind};
use console::admin::{self, Admin};
use console::exit::Failure;
use console::note;
use controller::KeyspaceSpec;
use lab::cluster::{Cluster, admin, service};
use lab::keeper::{Lab, beside};
use lab::namespace::inside;
use lab::rack::LabHost;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use workload::{Distribution, KeyNames, Mix, OpKind, Shift, Spec, Values};

/// A rack that is up.
#[derive(Debug)]
pub(crate) struct Site {
    lab: Lab,
    cluster: Cluster,
    stored: Stored,
}

/// What each keyspace holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub(crate) keys: u64,
    pub(crate) value_bytes: usize,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct SiteLoad {
    pub(crate) keyspace: Arc<Keyspace>,
    pub(crate) distribution: Distribution,
    pub(crate) mix: Mix,
    pub(crate) shift: Option<Shift>,
    /// Who finds the nodes.
    pub(crate) by: Coordination,
}

/// For how long, and how it is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) time: Duration,
    /// How long its pieces are.
    pub(crate) piece: Duration,
    pub(crate) seed: u64,
}

/// So many reads in a hundred requests; the rest are writes.
pub(crate) fn reads_and_writes(reads: u8) -> Mix {
    let share = |percent: u8| f64::from(percent) / 100.0;
    let text = format!("get={},put={}", share(reads), share(100 - reads));
    text.parse().expect("the shares add up")
}

impl SiteLoad {
    /// Nodes that a request visits, on average, if a write visits all replicas.
    pub(crate) fn visits(&self, replicas: u8) -> f64 {
        let reads = self.mix.share(OpKind::Get);
        reads + f64::from(replicas) * (1.0 - reads)
    }
}

impl Site {
    /// Builds it, does this, and takes it down.
    pub(crate) fn with<T>(
        cluster: Cluster,
        stored: Stored,
        job: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut lab = Lab::claim(cluster.clone())?;
        if let Err(failure) = lab.start(false, |text| note!("{text}")) {
            lab.take_down()?;
            return Err(failure);
        }
        let mut site = Self { lab, cluster, stored };
        let done = job(&mut site);
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
        self.create(&KeyspaceSpec {
            name: name.to_owned(),
            kind: KeyspaceKind::Hash,
            partitions: PARTITIONS,
            replicas,
            splits: Vec::new(),
            hot,
        })
    }

    /// Makes a keyspace that keeps keys in order, in so many partitions with as many keys each, and
    /// writes all keys.
    pub(crate) fn ordered(
        &self,
        name: &str,
        partitions: u32,
        replicas: u8,
    ) -> Result<Arc<Keyspace>, Failure> {
        let (names, keys) = (self.names(PREFIX), self.stored.keys);
        let first = |part: u32| keys * u64::from(part) / u64::from(partitions);
        self.create(&KeyspaceSpec {
            name: name.to_owned(),
            kind: KeyspaceKind::Range { prefix: PREFIX.as_bytes().to_vec() },
            partitions,
            replicas,
            splits: (1..partitions).map(|part| names.name(first(part))).collect(),
            hot: HotPolicy::Off,
        })
    }

    fn create(&self, spec: &KeyspaceSpec) -> Result<Arc<Keyspace>, Failure> {
        let name = &spec.name;
        note!("filling keyspace {name} with {} keys", self.stored.keys);
        let service = service(self.cluster.plane);
        let keyspace = self.as_client(|| {
            let admin = Admin::new(&[admin(LabHost::Controller)], PATIENCE);
            // None of these experiments is about placement: partitions stay where they are.
            admin.command("/v1/placement/pause")?;
            admin.create(spec)?;
            admin.wait_served(name, PATIENCE)?;
            bench::describe(&[service], name, PATIENCE, None)
        })?;
        let load = SiteLoad {
            keyspace: Arc::clone(&keyspace),
            distribution: Distribution::Uniform,
            mix: reads_and_writes(0),
            shift: None,
            by: Coordination::Switch,
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

    /// Asks for this with so many requests in flight.
    pub(crate) fn closed(
        &self,
        load: &SiteLoad,
        in_flight: usize,
        window: Window,
    ) -> Result<Measured, Failure> {
        self.lab.check()?;
        let plan = self.plan(load, Pace::Closed(in_flight), window);
        self.as_client(|| bench::measure(&plan, |_| ()))
    }

    /// What has clients send requests to the nodes themselves, by the map as it is now.
    pub(crate) fn straight(&self) -> Result<Coordination, Failure> {
        let map = self.as_client(|| Admin::new(&[admin(LabHost::Controller)], PATIENCE).map())?;
        Ok(Coordination::Client(Directory::of(Arc::new(map))))
    }

    /// Starts a coordinator beside each node, on the node's own host.
    pub(crate) fn start_coordinators(&mut self) -> Result<(), Failure> {
        let admin = admin(LabHost::Controller).to_string();
        let service = service(self.cluster.plane).to_string();
        for node in self.cluster.rack.nodes() {
            let listen = coordinator(node).to_string();
            let words = ["--listen", &listen, "--admin", &admin, "--service", &service];
            let words = std::iter::once(COORDINATOR).chain(words).map(str::to_owned);
            self.lab.run_beside(node, COORDINATOR, words.collect())?;
        }
        Ok(())
    }

    /// What has clients send each request to any of them.
    pub(crate) fn coordinators(&self) -> Coordination {
        Coordination::Coordinators(self.cluster.rack.nodes().map(coordinator).collect())
    }

    /// The processes of the rack, by what they do.
    pub(crate) fn payers(&self) -> Payers {
        let processes = &self.lab.state().processes;
        let of = |place: String| {
            let here = processes.iter().filter(move |it| it.place == place);
            here.map(|it| it.identity)
        };
        let nodes = || self.cluster.rack.nodes();
        Payers {
            coordinator: Vec::new(),
            nodes: nodes().flat_map(|node| of(node.to_string())).collect(),
            guests: nodes().flat_map(|node| of(beside(node, COORDINATOR))).collect(),
            caches: self.cluster.rack.caches().flat_map(|it| of(it.to_string())).collect(),
            switch: of(LabHost::Switch.to_string()).collect(),
        }
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
        Plan {
            services: vec![service(self.cluster.plane)],
            passes: None,
            keyspace: Arc::clone(&load.keyspace),
            spec: Spec {
                mix: load.mix.clone(),
                distribution: load.distribution,
                keys: self.stored.keys,
                inserts_expected: 0,
                shift: load.shift,
            },
            names: self.names(PREFIX),
            counters: self.names("incr"),
            values: Values::new(self.stored.value_bytes.to_string().parse().expect("a size")),
            coordination: load.by.clone(),
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

    fn names(&self, prefix: &str) -> KeyNames {
        KeyNames::new(prefix, KEY_BYTES, self.stored.keys).expect("there is room for the numbers")
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

/// What all keys begin with, and how long they are.
const PREFIX: &str = "user";
const KEY_BYTES: usize = 16;
/// Bytes of a value unless an experiment wants others: what `keyway bench` takes.
pub(crate) const VALUE_BYTES: usize = 100;

/// What a coordinator is called as a command and as a process.
const COORDINATOR: &str = "coordinator";
/// Its port.
pub(crate) const COORDINATOR_PORT: u16 = 7790;

fn coordinator(node: LabHost) -> SocketAddr {
    (node.address(), COORDINATOR_PORT).into()
}

/// Threads that fill a keyspace: together they have a few requests at each node.
const FILLERS: usize = 4;

/// For what is no measurement.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long an answer is waited for: longer than a full queue takes.
const DEADLINE: Duration = Duration::from_secs(2);

/// Times of a service before a request is sent again at the earliest.
const SERVICES_BEFORE_RETRY: f64 = 20.0;
