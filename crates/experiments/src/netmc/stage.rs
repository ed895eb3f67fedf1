//! The rack in which multigets are compared: five nodes, two clients, a coordinator on a host of
//! its own that is linked to the switch as a client's is, and keyspaces filled with keys.

use crate::cost::{Bill, Payers};
use crate::netmc::arm::Splitter;
use crate::netmc::load::{CLIENTS, MultigetLoad};
use crate::netmc::look::{Look, Spent};
use crate::netmc::redis::{self, Reads, RedisProcess};
use crate::served::{Served, wait_served};
use crate::site::COORDINATOR_PORT;
use anyhow::anyhow;
use bench::{Coordination, Directory, Measured, Plan};
use client::RetransmitBounds;
use cluster::{HotPolicy, Keyspace, KeyspaceKind, Map};
use console::admin::{self, Admin};
use console::exit::Failure;
use console::note;
use controller::KeyspaceSpec;
use lab::cluster::{Cluster, admin, service};
use lab::keeper::Lab;
use lab::namespace::inside;
use lab::plane::Plane;
use lab::process::Identity;
use lab::rack::{LabHost, Rack};
use lab::{network, state};
use runtime::config::EngineKind;
use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;
use workload::{KeyNames, Mix, Spec, Values};

/// What rack.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) lab: String,
    pub(crate) plane: Plane,
    pub(crate) nodes: u16,
    /// Requests per second that each node serves at most.
    pub(crate) node_rate: Option<NonZero<u32>>,
    /// Whether there is a Redis behind each node.
    pub(crate) redis: bool,
}

/// The rack, with everything in it.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) lab: Lab,
    pub(crate) rack: Rack,
    redis: Vec<RedisProcess>,
}

/// A keyspace that is filled.
#[derive(Clone, Debug)]
pub(crate) struct Filled {
    keyspace: Arc<Keyspace>,
    map: Arc<Map>,
    keys: u64,
    names: KeyNames,
    values: Values,
}

/// Of what size keys and values are, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sizes {
    pub(crate) key: usize,
    pub(crate) value: usize,
}

/// Where the coordinator is.
const COORDINATOR: LabHost = LabHost::Client(CLIENTS);

impl Stage {
    /// Builds it, does this, and takes it down.
    pub(crate) fn with<T>(
        setup: &Setup,
        job: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let cluster = setup.cluster();
        let rack = cluster.rack.clone();
        let mut stage = Self { lab: Lab::claim(cluster)?, rack, redis: Vec::new() };
        let done = stage.start(setup).and_then(|()| job(&mut stage));
        // In this order: nodes complain about a Redis that is gone.
        stage.lab.take_down()?;
        drop(stage.redis);
        done
    }

    fn start(&mut self, setup: &Setup) -> Result<(), Failure> {
        let Setup { lab, nodes, redis, .. } = setup;
        if *redis {
            self.redis = RedisProcess::start(*nodes, &state::directory(lab).join(REDIS))?;
        }
        self.lab.start(false, |_| ())?;
        let admin = admin(LabHost::Controller).to_string();
        let listen = coordinator().to_string();
        let service = service(self.lab.state().plane).to_string();
        let words = ["coordinator", "--listen", &listen, "--admin", &admin, "--service", &service];
        Ok(self.lab.run(COORDINATOR, words.map(str::to_owned).into(), true)?)
    }

    /// Makes a keyspace and writes all keys.
    pub(crate) fn fill(&self, name: &str, keys: u64, sizes: Sizes) -> Result<Filled, Failure> {
        let Sizes { key, value } = sizes;
        note!("filling a keyspace with {keys} keys of {key} B, values of {value} B");
        let spec = KeyspaceSpec {
            name: name.to_owned(),
            kind: KeyspaceKind::Hash,
            partitions: PARTITIONS,
            replicas: 1,
            splits: Vec::new(),
            hot: HotPolicy::Off,
        };
        let made = || -> Result<(Arc<Keyspace>, Map), Failure> {
            let admin = Admin::new(&[admin(LabHost::Controller)], PATIENCE);
            admin.create(&spec)?;
            admin.wait_served(name, PATIENCE)?;
            Ok((
                bench::describe(&[service(self.lab.state().plane)], name, PATIENCE, None)?,
                admin.map()?,
            ))
        };
        let (keyspace, map) = inside(&self.rack.namespace(LabHost::Client(0)), || Ok(made()))??;
        let names = KeyNames::binary(key, keys);
        let filled = Filled {
            keyspace,
            map: Arc::new(map),
            keys,
            names: names.map_err(|error| Failure::usage(error.to_string()))?,
            values: Values::new(value.to_string().parse().expect("a number of bytes")),
        };
        let load = MultigetLoad::light(Mix::ycsb('a').expect("it is YCSB's"));
        let plan = self.plan(Splitter::Switch, &filled, &load);
        bench::load(&Plan { deadline: PATIENCE, ..plan }, |_| ())?;
        self.wait_served(&filled)?;
        Ok(filled)
    }

    /// Waits until multigets are answered in every way: a coordinator learns of a keyspace later.
    pub(crate) fn wait_served(&self, filled: &Filled) -> Result<(), Failure> {
        for arm in Splitter::ALL {
            wait_served(arm.name(), || self.is_served(arm, filled))?;
        }
        Ok(())
    }

    fn is_served(&self, arm: Splitter, filled: &Filled) -> Result<bool, Failure> {
        let load = MultigetLoad::light("mget:2=1".parse().expect("a mix"));
        let endings = self.measure(arm, filled, &load)?.summary.all.endings;
        Ok(endings.done > 0 && endings.done == endings.total())
    }

    /// Puts load on the rack.
    pub(crate) fn measure(
        &self,
        arm: Splitter,
        on: &Filled,
        load: &MultigetLoad,
    ) -> Result<Measured, Failure> {
        self.lab.check()?;
        bench::measure(&self.plan(arm, on, load), |_| ())
    }

    /// Puts load on the rack, and looks at what it costs.
    pub(crate) fn look(
        &self,
        arm: Splitter,
        on: &Filled,
        load: &MultigetLoad,
    ) -> Result<Look, Failure> {
        let payers = self.payers();
        let (served, reads) = (self.served()?, Reads::of(&self.redis)?);
        let (measured, Bill { cost, others, .. }) =
            Bill::of(&payers, || self.measure(arm, on, load))?;
        if measured.wrong_values > 0 {
            return Err(Failure::Other(anyhow!("{} values were wrong", measured.wrong_values)));
        }
        let served = self.served()? - served;
        let reads = Reads::of(&self.redis)?.since(reads);
        Ok(Look::new(load, &measured, &Spent { cost, others, served, reads }))
    }

    /// Requests that all nodes have served so far.
    fn served(&self) -> Result<u64, Failure> {
        let nodes = self.rack.nodes().map(admin);
        let ask = || Ok(admin::metrics(nodes, PATIENCE));
        let metrics = inside(&self.rack.namespace(LabHost::Client(0)), ask)??;
        Ok(metrics.iter().map(|text| Served::of(text).work).sum())
    }

    pub(crate) fn plan(&self, arm: Splitter, on: &Filled, load: &MultigetLoad) -> Plan {
        let MultigetLoad { mix, distribution, pace, time, piece, seed } = load.clone();
        let Filled { keyspace, map, keys, names, values } = on.clone();
        Plan {
            services: vec![service(self.lab.state().plane)],
            passes: None,
            coordination: match arm {
                Splitter::Switch => Coordination::Switch,
                Splitter::Assisted => Coordination::Assisted(map),
                Splitter::Client => Coordination::Client(Directory::of(map)),
                Splitter::Coordinator => Coordination::Coordinators(vec![coordinator()]),
            },
            keyspace,
            spec: Spec { mix, distribution, keys, inserts_expected: 0, shift: None },
            counters: names.clone(),
            names,
            values,
            threads: usize::from(CLIENTS),
            hosts: (0..CLIENTS).map(|it| self.rack.namespace(LabHost::Client(it))).collect(),
            pace,
            duration: time,
            piece,
            deadline: DEADLINE,
            retransmit: RetransmitBounds::default(),
            seed,
        }
    }

    fn payers(&self) -> Payers {
        let processes = &self.lab.state().processes;
        let of = |place: LabHost| {
            let place = place.to_string();
            processes.iter().filter(move |it| it.place == place).map(|it| it.identity)
        };
        let guests: Vec<Identity> = self.redis.iter().filter_map(RedisProcess::identity).collect();
        Payers {
            coordinator: of(COORDINATOR).collect(),
            nodes: self.rack.nodes().flat_map(of).collect(),
            guests,
            caches: Vec::new(),
            switch: of(LabHost::Switch).collect(),
        }
    }

    /// Stops the switch: nothing passes between hosts.
    pub(crate) fn stop_switch(&mut self) -> Result<(), Failure> {
        self.lab.kill(LabHost::Switch)?;
        Ok(network::forward(&self.rack, false)?)
    }

    /// Starts it again.
    pub(crate) fn start_switch(&mut self) -> Result<(), Failure> {
        network::forward(&self.rack, true)?;
        Ok(self.lab.restart(LabHost::Switch)?)
    }
}

impl Setup {
    fn cluster(&self) -> Cluster {
        let Self { lab, plane, nodes, node_rate, redis } = self.clone();
        let directory = state::directory(&lab).join(REDIS);
        let rack = Rack { lab, nodes, caches: 0, clients: CLIENTS + 1 };
        let mut cluster = Cluster { node_rate, ..Cluster::in_memory(rack, plane) };
        if redis {
            cluster.size.engine = EngineKind::Redis;
            cluster.size.backends = redis::backends(nodes, &directory);
        }
        cluster
    }
}

fn coordinator() -> SocketAddr {
    (COORDINATOR.address(), COORDINATOR_PORT).into()
}

/// Where the files of Redis are in a lab's directory.
const REDIS: &str = "redis";

/// Of each keyspace: as many for each of up to five nodes, and for each of six.
const PARTITIONS: u32 = 240;

/// For what is no measurement.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long an answer is waited for: longer than a rack that has too much to do for a moment takes.
const DEADLINE: Duration = Duration::from_secs(1);
