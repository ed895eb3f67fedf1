//! One role as a process of its own, as the configuration describes it.

mod controllers;
mod leave;
mod storage;

pub(crate) use controllers::{map_store_path, open_map_store};
pub(crate) use storage::Storage;

use crate::admin::Admin;
use crate::config::{CacheSection, Config, SwitchSection};
use crate::disk::{Disk, MinFreeDisk};
use crate::driver::{
    CacheDriver, CacheLimits, ContentAgent, ContentError, ControllerDriver, ControllerError,
    FastPath, FastPathError, NodeDriver, NodeLimits, ShardEngine, SwitchDriver,
};
use crate::entropy;
use crate::files::Reserve;
use crate::identity::IdentityError;
use crate::keyring::Keyring;
use crate::net::Socket;
use crate::roles::Roles;
use crate::store::{FjallEngine, MemcachedBackend, RedisBackend, ShardIdentity, StoreError};
use cluster::{CacheId, Incarnation, Member, NodeId, StoreId};
use node::engine::memory::MemoryEngine;
use std::io;
use std::net::{SocketAddr, SocketAddrV6};
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// A running role. Dropping it ends the role in good order.
#[derive(Debug)]
pub struct Server {
    // In this order: nobody is asked anything after it has ended.
    admin: Admin,
    _driver: Driver,
    roles: Roles,
    /// Descriptors of the driver.
    _reserve: Reserve,
}

#[derive(Debug)]
#[expect(dead_code, reason = "held for what dropping them does")]
enum Driver {
    Switch(SwitchDriver),
    Node(NodeDriver),
    Cache(CacheDriver),
    Controller(ControllerDriver),
}

/// Why a role did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be bound.
    #[error("{role} cannot listen at {at}: {why}; is another process there?")]
    Bind {
        /// Whose address.
        role: String,
        /// Which.
        at: SocketAddr,
        /// What the system says.
        why: io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start {role}: {why}")]
    Thread {
        /// Whose.
        role: String,
        /// What the system says.
        why: io::Error,
    },
    /// Another process is the controller.
    #[error(
        "{} is in use by another controller; stop that one, or start this one with --standby, so \
         that it takes over when the other ends",
        path.display()
    )]
    Active {
        /// The store.
        path: PathBuf,
    },
    /// The configuration has no such switch.
    #[error("there is no switch {0} in the configuration; the first is 0")]
    UnknownSwitch(u16),
    /// The configuration has no such node.
    #[error("there is no node {0} in the configuration")]
    UnknownNode(NodeId),
    /// The configuration has no such cache.
    #[error("there is no cache {0} in the configuration")]
    UnknownCache(CacheId),
    /// A directory cannot be made.
    #[error("cannot create {}: {why}", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// A store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The controller does not start.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// The switch does not start in the kernel.
    #[error(transparent)]
    FastPath(#[from] FastPathError),
    /// The switch in the kernel knows IPv4 only.
    #[error("the XDP plane needs an IPv4 service address, and this is {0}; use --plane user")]
    FastPathOverIpv6(SocketAddrV6),
    /// The agent of a router does not start.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// Nobody has said which addresses a router is to have.
    #[error("the cluster has no content addresses: say content in [cluster] of the configuration")]
    NoContent,
    /// Nobody has said where a switch that speaks OpenFlow connects, or where members are.
    #[error("no OpenFlow switch is described: say [switch.openflow] in the configuration")]
    NoOpenFlow,
    /// There is no certificate that could be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Others could give orders.
    #[error(
        "{role} is to listen at {at}, which other machines reach, and nothing says who may give \
         orders there: make certificates with keyway certs init, or say that the network is \
         protected by other means (open)"
    )]
    Unprotected {
        /// Whose address.
        role: String,
        /// Which.
        at: SocketAddr,
    },
    /// The kernel gives no randomness.
    #[error("cannot read random numbers: {0}")]
    Entropy(io::Error),
}

/// What forwards by the addresses of keys, beside a switch in user space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwards {
    /// The routes of this machine.
    Routes,
    /// A switch that speaks OpenFlow.
    OpenFlow,
}

impl Server {
    /// Starts the switch at this position of the configuration, and if ports are named also in the
    /// kernel, on these interfaces.
    ///
    /// # Errors
    ///
    /// If there is no such switch, an address is taken, or the kernel does not take the switch.
    pub fn start_switch(config: &Config, index: u16, ports: &[String]) -> Result<Self, StartError> {
        Self::run_switch(config, index, |section| {
            open_switch(section.service, section.threads, ports, config.keyring())
        })
    }

    /// The same beside an agent that keeps the content table of something that forwards.
    ///
    /// # Errors
    ///
    /// If there is no such switch, the configuration says nothing of content addresses or of an
    /// OpenFlow switch, an address is taken, or this process may not change routes.
    pub fn start_switch_beside(
        config: &Config,
        index: u16,
        beside: Forwards,
    ) -> Result<Self, StartError> {
        Self::run_switch(config, index, |section| {
            let prefix = config.content.ok_or(StartError::NoContent)?.prefix;
            let agent = match beside {
                Forwards::Routes => ContentAgent::for_routes(prefix)?,
                Forwards::OpenFlow => {
                    let it = section.openflow.as_ref().ok_or(StartError::NoOpenFlow)?;
                    ContentAgent::for_openflow(prefix, it.listen, it.exits(), it.rules_per_second)?
                }
            };
            let SwitchSection { service, threads, .. } = *section;
            let driver = SwitchDriver::start_beside(
                service,
                threads,
                draw_incarnation()?,
                agent,
                config.keyring(),
            );
            driver.map_err(|why| no_switch(service, why))
        })
    }

    /// The same without the kernel, for a switch that splits multigets by clients' hints where they
    /// have any, as one without loops must.
    ///
    /// # Errors
    ///
    /// As [`start_switch`](Self::start_switch).
    pub fn start_switch_by_hints(config: &Config, index: u16) -> Result<Self, StartError> {
        Self::run_switch(config, index, |section| {
            let SwitchSection { service, threads, .. } = *section;
            let driver = SwitchDriver::start_by_hints(
                service,
                threads,
                draw_incarnation()?,
                config.keyring(),
            );
            driver.map_err(|why| no_switch(service, why))
        })
    }

    fn run_switch(
        config: &Config,
        index: u16,
        open: impl FnOnce(&SwitchSection) -> Result<SwitchDriver, StartError>,
    ) -> Result<Self, StartError> {
        let section = config.switches.get(usize::from(index));
        let section = section.ok_or(StartError::UnknownSwitch(index))?;
        let reserve = Reserve::new(switch_files(section.threads));
        let security = config.security_of(Member::Switch(index))?;
        let driver = open(section)?;
        let roles = Roles { switch: Some(driver.handle()), security, ..Roles::default() };
        let admin = open_admin("switch", section.admin, roles.clone())?;
        let service = driver.service();
        tracing::info!(switch = index, %service, admin = %admin.local(), "switch started");
        Ok(Self { admin, _driver: Driver::Switch(driver), roles, _reserve: reserve })
    }

    /// Starts a storage node.
    ///
    /// # Errors
    ///
    /// If there is no such node, an address is taken, or its store cannot be opened.
    pub fn start_node(config: &Config, id: NodeId) -> Result<Self, StartError> {
        Self::run_node(config, id, None)
    }

    /// The same, for an experiment with slow servers: each shard serves so many requests per second
    /// at most.
    ///
    /// # Errors
    ///
    /// As [`start_node`](Self::start_node).
    pub fn start_limited_node(
        config: &Config,
        id: NodeId,
        rate: NonZero<u32>,
    ) -> Result<Self, StartError> {
        Self::run_node(config, id, Some(rate))
    }

    fn run_node(
        config: &Config,
        id: NodeId,
        rate: Option<NonZero<u32>>,
    ) -> Result<Self, StartError> {
        let section = config.node(id).ok_or(StartError::UnknownNode(id))?;
        let security = config.security_of(Member::Node(id))?;
        let storage = Storage::of(section);
        let reserve = Reserve::new(storage.files(section.shards));
        let sockets = match (config.content, section.listen) {
            (Some(_), SocketAddr::V6(at)) => vec![open_everywhere(format!("node {id}"), at)?],
            (_, at) => open_sockets(format!("node {id}"), at, section.shards)?,
        };
        let memory = section.max_memory.of_each(1);
        let limits = NodeLimits { rate, memory };
        let disk = storage.disk(section.min_free_disk)?;
        let driver = open_node(id, sockets, &storage, limits, disk.as_ref(), config.keyring())?;
        let roles = Roles { nodes: vec![driver.handle()], security, ..Roles::default() };
        let admin = open_admin("node", section.admin, roles.clone())?;
        let listen = section.listen;
        tracing::info!(node = %id, %listen, admin = %admin.local(), "node started");
        Ok(Self { admin, _driver: Driver::Node(driver), roles, _reserve: reserve })
    }

    /// Starts a cache.
    ///
    /// # Errors
    ///
    /// If there is no such cache, or an address is taken.
    pub fn start_cache(config: &Config, id: CacheId) -> Result<Self, StartError> {
        let section = config.cache(id).ok_or(StartError::UnknownCache(id))?;
        let CacheSection { listen, shards, admin, .. } = *section;
        let security = config.security_of(Member::Cache(id))?;
        let reserve = Reserve::new(FILES_OF_THREAD * u64::from(shards));
        let role = || format!("cache {id}");
        let sockets = match (config.content, listen) {
            (Some(_), SocketAddr::V6(at)) => vec![open_everywhere(role(), at)?],
            (_, at) => open_sockets(role(), at, shards)?,
        };
        let driver = open_cache(id, sockets, section.limits(), config.keyring())?;
        let roles = Roles { caches: vec![driver.handle()], security, ..Roles::default() };
        let admin = open_admin("cache", admin, roles.clone())?;
        tracing::info!(cache = %id, %listen, admin = %admin.local(), "cache started");
        Ok(Self { admin, _driver: Driver::Cache(driver), roles, _reserve: reserve })
    }

    /// Where its admin server is.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        self.admin.local()
    }

    /// Whether it is a controller that waits for another one to end.
    #[must_use]
    pub fn stands_by(&self) -> bool {
        self.roles.controller.as_ref().is_some_and(|controller| !controller.is_active())
    }

    /// What runs here.
    #[must_use]
    pub fn roles(&self) -> &Roles {
        &self.roles
    }

    /// Loads anew what can be loaded while it runs: the certificate, and the switch's program in
    /// the kernel if there is one.
    pub fn reload(&self) {
        self.roles.security.reload();
        let Some(switch) = &self.roles.switch else { return };
        match switch.reload() {
            Ok(()) => tracing::info!("the switch in the kernel was loaded anew"),
            Err(why) => tracing::error!(%why, "the switch in the kernel stays as it is"),
        }
    }

    /// Ends it: the batch in hand is finished and made durable.
    pub fn stop(self) {
        drop(self);
    }
}

/// Descriptors of a thread that has a socket: the socket, what it waits with, what wakes it.
pub(crate) const FILES_OF_THREAD: u64 = 4;
/// Descriptors of what reaches a member, in this process or over the network: an agent with its
/// connections, or two runtimes.
const FILES_OF_LINE: u64 = 6;

/// Descriptors of a switch in the kernel: its programs, maps and links.
const FILES_OF_KERNEL: u64 = 96;

/// Descriptors that a switch with so many threads needs at most, in the kernel or not.
pub(crate) fn switch_files(threads: usize) -> u64 {
    let threads = u64::try_from(threads).unwrap_or(u64::MAX);
    threads.saturating_mul(FILES_OF_THREAD).saturating_add(FILES_OF_KERNEL)
}

/// Descriptors that a controller of so many members needs at most, besides those of its store.
pub(crate) fn controller_files(members: usize) -> u64 {
    u64::try_from(members).unwrap_or(u64::MAX).saturating_mul(FILES_OF_LINE)
}

/// Watches over the disk below this directory.
pub(crate) fn open_disk(data: &Path, floor: MinFreeDisk) -> Result<Disk, StartError> {
    Disk::open(data, floor).map_err(|why| StartError::Directory { path: data.into(), why })
}

/// Starts a switch; if ports are named, also in the kernel.
pub(crate) fn open_switch(
    service: SocketAddr,
    threads: usize,
    ports: &[String],
    keyring: Option<Keyring>,
) -> Result<SwitchDriver, StartError> {
    let incarnation = draw_incarnation()?;
    let fast_path = match service {
        _ if ports.is_empty() => None,
        SocketAddr::V4(service) => {
            Some(FastPath::start(service, incarnation, ports, keyring.is_some())?)
        }
        SocketAddr::V6(service) => return Err(StartError::FastPathOverIpv6(service)),
    };
    SwitchDriver::start(service, threads, incarnation, fast_path, keyring)
        .map_err(|why| no_switch(service, why))
}

fn no_switch(at: SocketAddr, why: io::Error) -> StartError {
    StartError::Bind { role: "the switch".into(), at, why }
}

/// Binds the sockets of a role, of consecutive ports.
pub(crate) fn open_sockets(
    role: String,
    listen: SocketAddr,
    shards: u16,
) -> Result<Vec<Socket>, StartError> {
    let role = format!("{role}, with {shards} ports from there on,");
    Socket::bind_row(listen, shards).map_err(|why| StartError::Bind { role, at: listen, why })
}

/// Binds the socket of a role that receives at content addresses.
fn open_everywhere(role: String, at: SocketAddrV6) -> Result<Socket, StartError> {
    Socket::bind_everywhere(at).map_err(|why| StartError::Bind { role, at: at.into(), why })
}

/// Starts a node on these sockets, one for each shard.
pub(crate) fn open_node(
    id: NodeId,
    sockets: Vec<Socket>,
    storage: &Storage,
    limits: NodeLimits,
    disk: Option<&Disk>,
    keyring: Option<Keyring>,
) -> Result<NodeDriver, StartError> {
    let shards = u16::try_from(sockets.len()).expect("there are fewer ports");
    let identity = |shard| ShardIdentity { node: id, shard, shards };
    match storage {
        Storage::Memory => {
            let open = |_| Ok(MemoryEngine::new(draw_store_id()?));
            start_node(id, sockets, (0..shards).map(open), limits, keyring)
        }
        Storage::Fjall(data, policy) => {
            let open = |shard: u16| {
                let dir = data.join(format!("shard-{shard}"));
                let id = draw_store_id()?;
                let mut engine = FjallEngine::open(&dir, identity(shard), id, *policy)?;
                if let Some(disk) = disk {
                    engine.watch(disk);
                }
                Ok(engine)
            };
            start_node(id, sockets, (0..shards).map(open), limits, keyring)
        }
        Storage::Redis(backend, policy) => {
            let open = |shard: u16| {
                Ok(RedisBackend::open(backend, identity(shard), draw_store_id()?, *policy)?)
            };
            start_node(id, sockets, (0..shards).map(open), limits, keyring)
        }
        Storage::Memcached(backend) => {
            let open = |_| Ok(MemcachedBackend::open(backend, draw_store_id()?)?);
            start_node(id, sockets, (0..shards).map(open), limits, keyring)
        }
    }
}

fn start_node<E: ShardEngine>(
    id: NodeId,
    sockets: Vec<Socket>,
    engines: impl Iterator<Item = Result<E, StartError>>,
    limits: NodeLimits,
    keyring: Option<Keyring>,
) -> Result<NodeDriver, StartError> {
    let engines = engines.collect::<Result<Vec<E>, StartError>>()?;
    NodeDriver::start(id, draw_incarnation()?, sockets, engines, limits, keyring)
        .map_err(|why| StartError::Thread { role: format!("node {id}"), why })
}

/// Starts a cache on these sockets, one for each shard.
pub(crate) fn open_cache(
    id: CacheId,
    sockets: Vec<Socket>,
    limits: CacheLimits,
    keyring: Option<Keyring>,
) -> Result<CacheDriver, StartError> {
    let driver = CacheDriver::start(id, sockets, limits, draw_incarnation()?, keyring);
    driver.map_err(|why| StartError::Thread { role: format!("cache {id}"), why })
}

fn draw_store_id() -> Result<StoreId, StartError> {
    entropy::draw().map(StoreId).map_err(StartError::Entropy)
}

/// An incarnation of a member that begins now.
fn draw_incarnation() -> Result<Incarnation, StartError> {
    entropy::draw().map(Incarnation).map_err(StartError::Entropy)
}

pub(crate) fn open_admin(role: &str, at: SocketAddr, roles: Roles) -> Result<Admin, StartError> {
    let role = format!("the admin server of the {role}");
    if !roles.security.may_serve_at(at) {
        return Err(StartError::Unprotected { role, at });
    }
    Admin::start(at, roles).map_err(|why| StartError::Bind { role, at, why })
}
