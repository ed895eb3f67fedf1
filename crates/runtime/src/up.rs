//! A whole cluster in one process: a switch, some storage nodes, a controller.
//!
//! With a data directory it comes back as it was:
//!
//! ```text
//! DATA/keyway.json           what the directory was made with, and the nodes' ports
//! DATA/controller/map.redb   the cluster map
//! DATA/node-1/shard-0/       the first shard of the first node, and so on
//! ```

mod plan;
mod records;

use crate::admin::Admin;
use crate::config::EngineKind;
use crate::disk::MinFreeDisk;
use crate::driver::{
    CacheDriver, CacheHandle, CacheLimits, ControllerDriver, ControllerHandle, ControllerPlan,
    KeyPlan, Line, MemberHandle, NodeDriver, NodeHandle, NodeLimits, SwitchDriver, SwitchHandle,
    in_process,
};
use crate::entropy;
use crate::files::Reserve;
use crate::identity::{SecretSource, Security};
use crate::keyring::Keyring;
use crate::mailbox::MailError;
use crate::memory::MaxMemory;
use crate::metrics::Sources;
use crate::net::Socket;
use crate::roles::Roles;
use crate::server::{
    FILES_OF_THREAD, StartError, Storage, controller_files, open_admin, open_cache, open_disk,
    open_map_store, open_node, open_sockets, open_switch, switch_files,
};
use crate::store::{BackendUrl, MemoryStore, SyncPolicy};
use cluster::{CacheId, ClusterId, HotPolicy, KeyspaceKind, Member, NodeId, Selection};
use controller::{
    COPY_BYTES_PER_S, ControllerConfig, KeyspaceSpec, LEASE, LOAD_FLOOR, MemberStatus, SPLIT_BYTES,
};
use envelope::RingPorts;
use plan::Plan;
pub use records::records_of;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What kind of cluster to start.
#[derive(Clone, Debug)]
pub struct UpOptions {
    /// Storage nodes, with ids from 1.
    pub nodes: u16,
    /// Caches, with ids from 1.
    pub caches: u16,
    /// Nodes in each chain.
    pub replicas: u8,
    /// Partitions of each keyspace.
    pub partitions: u32,
    /// Threads of each node.
    pub shards: u16,
    /// Threads of the switch.
    pub switch_threads: usize,
    /// What nodes store in.
    pub engine: EngineKind,
    /// Where, for a durable engine; with Redis only the map is kept there.
    pub data: Option<PathBuf>,
    /// The stores of others that nodes keep values in, one for each node in order.
    pub backends: Vec<BackendUrl>,
    /// What writes are safe from when they are answered, with a durable engine.
    pub sync: SyncPolicy,
    /// The most that each node holds in memory.
    pub max_memory: MaxMemory,
    /// From how many free bytes of the disk on nodes are full, with a durable engine.
    pub min_free_disk: MinFreeDisk,
    /// UDP address that clients are given; port 0 for any.
    pub service: SocketAddr,
    /// TCP address of the admin server; port 0 for any.
    pub admin: SocketAddr,
    /// What protects the admin server.
    pub security: Security,
    /// What the keys of envelopes are made of, if packets are to be in some.
    pub secrets: Option<SecretSource>,
}

/// The hash keyspace that every embedded cluster has.
pub const HASH_KEYSPACE: &str = "default";

/// The range keyspace that every embedded cluster has.
pub const RANGE_KEYSPACE: &str = "ordered";

/// A running cluster. Dropping it ends it in good order.
#[derive(Debug)]
pub struct Embedded {
    // In this order: nobody is asked anything after it has ended.
    admin: Admin,
    _controller: ControllerDriver,
    switch: SwitchDriver,
    _nodes: Vec<NodeDriver>,
    _caches: Vec<CacheDriver>,
    roles: Roles,
    /// Descriptors of all these.
    _reserve: Reserve,
}

/// Why a cluster did not start.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// The options contradict themselves; each line says what to do.
    #[error("cannot start this cluster: {}", .0.join("; "))]
    Options(Vec<String>),
    /// The data directory is of another cluster.
    #[error("{} belongs to another cluster: {}", path.display(), differences.join("; "))]
    OtherData {
        /// The directory.
        path: PathBuf,
        /// What differs, and which option makes it the same.
        differences: Vec<String>,
    },
    /// A part did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Everything runs, but some member has not taken its orders.
    #[error("the cluster did not get ready ({why}): {}", .members.join("; "))]
    NotReady {
        /// What waiting for it said.
        why: MailError,
        /// Who is not ready, and why.
        members: Vec<String>,
    },
}

impl Embedded {
    /// Starts a cluster and waits until it serves.
    ///
    /// # Errors
    ///
    /// If options or data do not go together, an address is taken, or a store cannot be opened.
    pub fn start(options: &UpOptions) -> Result<Self, UpError> {
        let problems = options.problems();
        if !problems.is_empty() {
            return Err(UpError::Options(problems));
        }
        let reserve = Reserve::new(options.files());
        let keyring = || options.secrets.as_ref().map(|_| Keyring::default());
        let switch = open_switch(options.service, options.switch_threads, &[], keyring())?;
        // First of all: what it releases may be what the others need to start.
        let data = options.data.as_deref();
        let disk = data.map(|data| open_disk(data, options.min_free_disk)).transpose()?;
        let limits = NodeLimits { rate: None, memory: options.max_memory.of_each(options.nodes) };
        // Opening the store locks the directory against a second cluster.
        let store = match &options.data {
            Some(data) => open_map_store(&data.join("controller"))?,
            None => Box::<MemoryStore>::default(),
        };
        let mut plan = Plan::load_or_make(options)?;
        let sockets = bind_nodes(options, switch.service(), &mut plan)?;
        plan.save(options)?;
        let mut nodes = Vec::new();
        for (id, sockets) in (1..).map(NodeId).zip(sockets) {
            let storage = storage(options, id);
            nodes.push(open_node(id, sockets, &storage, limits, disk.as_ref(), keyring())?);
        }
        let mut caches = Vec::new();
        for id in (1..=options.caches).map(CacheId) {
            let at = SocketAddr::new(switch.service().ip(), 0);
            let sockets = open_sockets(format!("cache {id}"), at, options.shards)?;
            caches.push(open_cache(id, sockets, CacheLimits::default(), keyring())?);
        }
        let config = ControllerConfig {
            seed: plan.seed,
            cluster: entropy::draw().map(ClusterId).map_err(StartError::Entropy)?,
            switches: vec![switch.service().into()],
            nodes: nodes.iter().map(NodeDriver::spec).collect(),
            caches: caches.iter().map(CacheDriver::spec).collect(),
            controls: BTreeMap::new(),
            poll_interval: POLL_INTERVAL,
            lease: LEASE,
            overlap: Duration::ZERO,
            copy_bytes_per_s: COPY_BYTES_PER_S,
            hot_selection: Selection::default(),
            content: None,
            load_floor: LOAD_FLOOR,
            split_bytes: SPLIT_BYTES,
        };
        let roles = Roles {
            switch: Some(switch.handle()),
            nodes: nodes.iter().map(NodeDriver::handle).collect(),
            caches: caches.iter().map(CacheDriver::handle).collect(),
            controller: None,
            others: Sources::default(),
            security: options.security.clone(),
            ..Roles::default()
        };
        let role = "the controller".to_owned();
        let members = members(&roles).map_err(|why| StartError::Thread { role, why })?;
        let keyspaces = keyspaces(options);
        let security = options.security.clone();
        let keys = key_plan(options, switch.service(), &caches);
        let plan = ControllerPlan { config, keyspaces, members, security, keys };
        let controller = ControllerDriver::start(plan, store).map_err(StartError::from)?;
        let roles = Roles { controller: Some(controller.handle()), ..roles };
        let admin = open_admin("cluster", options.admin, roles.clone())?;
        wait_ready(&controller.handle())?;
        let (_controller, _nodes, _caches) = (controller, nodes, caches);
        Ok(Self { admin, _controller, switch, _nodes, _caches, roles, _reserve: reserve })
    }

    /// The service address.
    #[must_use]
    pub fn service(&self) -> SocketAddr {
        self.switch.service()
    }

    /// The address of the admin server.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        self.admin.local()
    }

    /// Everything that runs.
    #[must_use]
    pub fn roles(&self) -> &Roles {
        &self.roles
    }

    /// Ends it: batches in hand are finished and made durable.
    pub fn stop(self) {
        drop(self);
    }
}

/// How often the controller asks each part how it is. In one process nothing fails by itself, so
/// that nobody ever has to take over.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How long a start may take once everything runs. Nodes with much data open it before that.
const READY_WAIT_MAX: Duration = Duration::from_secs(30);

impl UpOptions {
    /// A cluster in memory on this machine, at ports that are free, with one thread for each part.
    #[must_use]
    pub fn in_memory(nodes: u16, replicas: u8, partitions: u32) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            nodes,
            caches: 0,
            replicas,
            partitions,
            shards: 1,
            switch_threads: 1,
            engine: EngineKind::Memory,
            data: None,
            backends: Vec::new(),
            sync: SyncPolicy::Always,
            max_memory: MaxMemory::default(),
            min_free_disk: MinFreeDisk::default(),
            service: any,
            admin: any,
            security: Security::Loopback,
            secrets: None,
        }
    }

    /// Descriptors that such a cluster needs at most.
    fn files(&self) -> u64 {
        let nodes = (1..=self.nodes).map(|id| storage(self, NodeId(id)).files(self.shards));
        let members = controller_files(usize::from(self.nodes) + 1);
        let threads = u64::from(self.shards) * FILES_OF_THREAD;
        let caches = u64::from(self.caches) * (threads + controller_files(1));
        nodes.sum::<u64>() + switch_files(self.switch_threads) + members + caches
    }

    /// What is wrong with them, in words that say what to do.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let Self { nodes, replicas, partitions, shards, switch_threads, engine, data, .. } = self;
        let mut found = Vec::new();
        if !(1..wire::NODES_MAX).contains(&usize::from(*nodes)) {
            found.push(format!("{nodes} nodes: choose 1 to {}", wire::NODES_MAX - 1));
        }
        let most = usize::from(*nodes).min(wire::CHAIN_MAX);
        if !(1..=most).contains(&usize::from(*replicas)) {
            found.push(format!(
                "{replicas} replicas: choose 1 to {most}, one per node and at most {}",
                wire::CHAIN_MAX
            ));
        }
        let keyspaces = keyspaces(self).len();
        let partitions_max = u32::try_from(wire::PARTITIONS_MAX / keyspaces).unwrap_or(u32::MAX);
        if !(1..=partitions_max).contains(partitions) {
            found.push(format!("{partitions} partitions: choose 1 to {partitions_max}"));
        }
        if !(1..=SHARDS_MAX).contains(shards) || !(1..=THREADS_MAX).contains(switch_threads) {
            found.push(format!(
                "{shards} shards and {switch_threads} switch threads: choose 1 to {SHARDS_MAX} of \
                 each"
            ));
        }
        match (engine, data) {
            (EngineKind::Memory, Some(_)) => found.push(
                "the engine \"memory\" keeps nothing in a data directory: leave the directory out, \
                 or choose the engine \"fjall\""
                    .into(),
            ),
            (EngineKind::Fjall, None) => {
                found.push("the engine \"fjall\" needs a data directory: name one".into());
            }
            (EngineKind::Redis, None) => found.push(
                "the engine \"redis\" needs a data directory, for the map that says what lies \
                 where: name one"
                    .into(),
            ),
            (EngineKind::Memcached, Some(_)) => found.push(
                "the engine \"memcached\" keeps nothing in a data directory: leave it out".into(),
            ),
            (EngineKind::Memory | EngineKind::Memcached, None)
            | (EngineKind::Fjall | EngineKind::Redis, Some(_)) => {}
        }
        if usize::from(self.caches) > wire::CACHES_MAX {
            found.push(format!("{} caches: choose up to {}", self.caches, wire::CACHES_MAX));
        }
        found.extend(self.backend_problem());
        if !self.security.may_serve_at(self.admin) {
            found.push(format!(
                "the admin address {} is reached from other machines: name a certificate with \
                 --certs (keyway certs init --dir ./certs makes one), or say --open if the \
                 network is protected by other means",
                self.admin
            ));
        }
        if self.service.ip().is_unspecified() {
            found.push(format!(
                "{} is a wildcard: name the one address that clients send to",
                self.service
            ));
        }
        found
    }
}

impl UpOptions {
    fn backend_problem(&self) -> Option<String> {
        let Self { engine, backends, nodes, .. } = self;
        let (name, needed) = (engine.name(), if engine.has_backend() { *nodes } else { 0 });
        if let Some(other) = backends.iter().find(|it| !engine.takes(it)) {
            return Some(format!("{other} is no store for the engine {name:?}: leave it out"));
        }
        if backends.len() != usize::from(needed) {
            let count = backends.len();
            return Some(format!(
                "{count} backends for {nodes} nodes with the engine {name:?}: name {needed}"
            ));
        }
        let shared = (1..backends.len()).any(|at| {
            let (before, rest) = backends.split_at(at);
            rest.first().is_some_and(|it| before.contains(it))
        });
        shared.then(|| "two nodes share a backend: give each its own".into())
    }
}

/// More shards than any machine has cores.
const SHARDS_MAX: u16 = 256;
/// More threads than any machine has cores.
const THREADS_MAX: usize = 256;

fn storage(options: &UpOptions, id: NodeId) -> Storage {
    let data = options.data.as_ref().map(|data| data.join(format!("node-{id}")));
    let backend = usize::from(id.0).checked_sub(1).and_then(|at| options.backends.get(at));
    Storage::new(options.engine, data, backend.cloned(), options.sync)
}

/// Binds every node where the plan says, or elsewhere if that is taken: the controller tells all
/// others where.
fn bind_nodes(
    options: &UpOptions,
    service: SocketAddr,
    plan: &mut Plan,
) -> Result<Vec<Vec<Socket>>, StartError> {
    let mut bound = Vec::new();
    for (id, port) in (1..).map(NodeId).zip(&mut plan.ports) {
        let bind = |port| {
            let at = SocketAddr::new(service.ip(), port);
            open_sockets(format!("node {id}"), at, options.shards)
        };
        let sockets = if *port == 0 { bind(0)? } else { bind(*port).or_else(|_| bind(0))? };
        *port = sockets.first().expect("a node has a shard").local().port();
        bound.push(sockets);
    }
    Ok(bound)
}

/// What the keys of envelopes are made of and for whom, if packets are to be in some.
fn key_plan(options: &UpOptions, service: SocketAddr, caches: &[CacheDriver]) -> Option<KeyPlan> {
    let secrets = options.secrets.clone()?;
    let ports = |first, ports| RingPorts { first, ports };
    let caches = caches.iter().map(CacheDriver::spec);
    let caches = caches.map(|it| ports(it.endpoint.into(), it.shards));
    let fixed = [ports(service, 1)].into_iter().chain(caches).collect();
    Some(KeyPlan { secrets, classes: Vec::new(), fixed, content: None })
}

fn keyspaces(options: &UpOptions) -> Vec<KeyspaceSpec> {
    let UpOptions { partitions, replicas, .. } = *options;
    let spec = |name: &str, kind| KeyspaceSpec {
        name: name.into(),
        kind,
        partitions,
        replicas,
        splits: Vec::new(),
        hot: if options.caches > 0 { HotPolicy::Cache } else { HotPolicy::default() },
    };
    vec![
        spec(HASH_KEYSPACE, KeyspaceKind::Hash),
        spec(RANGE_KEYSPACE, KeyspaceKind::Range { prefix: Vec::new() }),
    ]
}

fn members(roles: &Roles) -> io::Result<Vec<(Member, Line)>> {
    let switch = |it: &SwitchHandle| (Member::Switch(0), MemberHandle::Switch(it.clone()));
    let node = |it: &NodeHandle| (Member::Node(it.spec().id), MemberHandle::Node(it.clone()));
    let cache = |it: &CacheHandle| (Member::Cache(it.spec().id), MemberHandle::Cache(it.clone()));
    let members = roles.switch.iter().map(switch).chain(roles.nodes.iter().map(node));
    let members = members.chain(roles.caches.iter().map(cache));
    members.map(|(member, handle)| Ok((member, in_process(handle)?))).collect()
}

fn wait_ready(controller: &ControllerHandle) -> Result<(), UpError> {
    controller.wait_ready(READY_WAIT_MAX).map_err(|why| {
        let members = match controller.status() {
            Ok(status) => status.late().map(MemberStatus::in_words).collect(),
            Err(error) => vec![format!("controller: {error}")],
        };
        UpError::NotReady { why, members }
    })
}
