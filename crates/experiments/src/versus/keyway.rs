//! A Keyway cluster of processes: nodes that can be limited, and a switch, a controller and a
//! gateway that are not.

use super::process::{Process, ServerProcess};
use super::work::{LOOK_AGAIN, WorkDone, free_addresses, wait};
use crate::served::Served;
use anyhow::{Context, Result, anyhow};
use console::admin::{self, Admin};
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

/// A cluster that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Keyway {
    nodes: Vec<ServerProcess>,
    node_admins: Vec<SocketAddr>,
    /// Switch and controller.
    rack: Vec<Process>,
    gateway: Process,
    /// Where clients send everything.
    pub(crate) service: SocketAddr,
    /// Where clients that take multigets apart learn the map.
    pub(crate) admin: SocketAddr,
    /// Where Redis clients connect.
    pub(crate) redis: SocketAddr,
}

/// The keyspace of all keys.
pub(crate) const KEYSPACE: &str = "default";

/// What a cluster is to be like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) nodes: u16,
    pub(super) partitions: u32,
    pub(super) replicas: u8,
    pub(super) engine: Engine,
    /// Whether nodes get shares of a processor.
    pub(super) limited: bool,
}

/// Where nodes keep data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Memory,
    /// On disk, synced before a write is answered.
    Durable,
}

/// How long a role may take to answer, also when it has to wait for its share.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

impl Keyway {
    /// Starts one.
    pub(super) fn start(directory: &Path, shape: Shape) -> Result<Self> {
        let Shape { nodes: count, partitions, replicas, engine, limited } = shape;
        let mut free = free_addresses(4 + 2 * usize::from(count))?.into_iter();
        let mut next = || free.next().expect("as many as asked for");
        let [service, switch_admin, admin, redis] = std::array::from_fn(|_| next());
        let data = directory.join("controller");
        let mut text = format!(
            "[cluster]\nseed = 7\n\n[switch]\nservice = \"{service}\"\n\
             admin = \"{switch_admin}\"\nthreads = 1\n\n[controller]\nadmin = \"{admin}\"\n\
             data = {data:?}\n\n[[keyspace]]\nname = \"{KEYSPACE}\"\n\
             kind = \"hash\"\npartitions = {partitions}\nreplicas = {replicas}\n"
        );
        let mut node_admins = Vec::new();
        for id in 1..=count {
            let (listen, admin) = (next(), next());
            write!(text, "\n[[node]]\nid = {id}\nlisten = \"{listen}\"\nadmin = \"{admin}\"\n")?;
            if engine == Engine::Durable {
                let data = directory.join(format!("node-{id}"));
                write!(text, "engine = \"fjall\"\nsync = \"always\"\ndata = {data:?}\n")?;
            }
            node_admins.push(admin);
        }
        let config = directory.join("keyway.toml");
        std::fs::write(&config, text).context("cannot write a configuration")?;

        let program = std::env::current_exe()?.display().to_string();
        let config = ["--config".to_owned(), config.display().to_string()];
        let role = |words: &[&str]| {
            [words.iter().map(|it| (*it).to_owned()).collect(), config.to_vec()].concat()
        };
        let start = |id: u16| {
            let arguments = role(&["node", "--id", &id.to_string()]);
            let group = limited.then(|| format!("keyway-{id}"));
            ServerProcess::start(&program, &arguments, directory, group.as_deref())
        };
        let nodes = (1..=count).map(start).collect::<Result<Vec<_>>>()?;
        let roles = [role(&["switch"]), role(&["controller"])];
        let rack = roles.iter().map(|role| Process::start(&program, role, directory));
        let rack = rack.collect::<Result<Vec<_>>>()?;
        let controller = Admin::new(&[admin], LOOK_AGAIN * 10);
        wait("Keyway serves all keys", || {
            let status = controller.status().map_err(|why| anyhow!(why.message()))?;
            Ok(status.ready && status.covered && !status.keyspaces.is_empty())
        })?;
        let words = ["gateway", "--listen", &redis.to_string()].map(str::to_owned);
        let to = ["--keyspace", KEYSPACE, "--service", &service.to_string(), "--admin"];
        let to = to.map(str::to_owned);
        let arguments = [words.to_vec(), to.to_vec(), vec![admin.to_string()]].concat();
        let gateway = Process::start(&program, &arguments, directory)?;
        wait("the gateway listens", || Ok(TcpStream::connect(redis).is_ok()))?;
        Ok(Self { nodes, node_admins, rack, gateway, service, admin, redis })
    }

    /// Sets what share of one processor each node gets.
    pub(crate) fn limit(&self, share: Option<f64>) -> Result<()> {
        self.nodes.iter().try_for_each(|node| node.limit(share))
    }

    /// What was done so far; with or without the gateway between.
    pub(crate) fn work(&self, through_gateway: bool) -> Result<WorkDone> {
        let metrics = admin::metrics(self.node_admins.iter().copied(), ANSWER_WAIT)
            .map_err(|why| anyhow!(why.message()))?;
        let gateway = through_gateway.then_some(&self.gateway);
        let mut between = Duration::ZERO;
        for process in self.rack.iter().chain(gateway) {
            between += process.cpu()?;
        }
        let nodes = self.nodes.iter().map(ServerProcess::cpu).sum::<Result<Duration>>()?;
        let served = metrics.iter().map(|text| Served::of(text).work).collect();
        Ok(WorkDone { served, nodes, between })
    }
}
