//! The options of a cluster in one process.

use clap::ValueEnum;
use console::exit::Failure;
use runtime::config::EngineKind;
use runtime::disk::MinFreeDisk;
use runtime::identity::Security;
use runtime::memory::MaxMemory;
use runtime::store::{BackendUrl, SyncPolicy};
use runtime::up::UpOptions;
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// How large a cluster, and what it stores in.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterSize {
    /// Storage nodes.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) nodes: u16,
    /// Caches: they hold the keys that are read most, and the switch sends them reads of those. The
    /// keyspaces are then made so (`hot = "cache"`).
    #[arg(long, value_name = "N", default_value_t = 0)]
    caches: u16,
    /// On how many nodes each key lies.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) replicas: u8,
    /// Partitions of each keyspace.
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub(crate) partitions: u32,
    /// Threads of each node.
    #[arg(long, value_name = "N", default_value_t = 1)]
    shards: u16,
    /// Threads of the switch.
    #[arg(long, value_name = "N", default_value_t = 1)]
    switch_threads: usize,
    /// What nodes store in.
    #[arg(long, value_enum, default_value_t = Engine::Memory)]
    engine: Engine,
    /// Directory of a durable engine. A cluster comes back from it as it was.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// For --engine redis or memcached: what each node keeps its values in, one address per node
    /// in order, as redis://127.0.0.1:6379 or memcached://127.0.0.1:11211. Addresses with passwords
    /// are not taken from the command line, which everybody on this machine can read.
    #[arg(long = "backend", value_name = "URL", value_delimiter = ',')]
    #[arg(env = BACKEND_ENV, hide_env_values = true)]
    backends: Vec<Address>,
    /// File with these addresses, one a line.
    #[arg(long, value_name = "FILE", conflicts_with = "backends")]
    backend_file: Option<PathBuf>,
    /// What a write is safe from when it is answered, with a durable engine.
    #[arg(long, value_enum, default_value_t = Sync::Always)]
    sync: Sync,
    /// The most that each node holds in memory, as 512m or 2g: from there on it is full, and takes
    /// deletes. auto: its part of 60 % of what the machine, or the cgroup, has. Or unlimited.
    #[arg(long, value_name = "BYTES", default_value_t = MaxMemory::Auto)]
    max_memory: MaxMemory,
    /// With --engine fjall: from so many free bytes of the disk on nodes are full. auto: a
    /// twentieth of the file system, 1g at most.
    #[arg(long, value_name = "BYTES", default_value_t = MinFreeDisk::Auto)]
    min_free_disk: MinFreeDisk,
}

/// An address as it was given. It is read later, by those who do not repeat it.
#[derive(Clone)]
struct Address(String);

impl FromStr for Address {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address")
    }
}

const BACKEND_ENV: &str = "KEYWAY_BACKEND";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// Main memory: fast, and gone with the process.
    Memory,
    /// A log-structured store on disk; needs --data.
    Fjall,
    /// Redis or Valkey processes that are there already; needs --backend, and --data for the map.
    Redis,
    /// memcached processes that are there already; needs --backend.
    Memcached,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sync {
    /// A power cut: synced before the answer, many writes at a time.
    Always,
    /// The end of the process; a power cut takes the last moments.
    Interval,
    /// The end of the process; what a power cut takes is up to the system.
    Never,
}

impl ClusterSize {
    pub(crate) fn options(
        &self,
        service: SocketAddr,
        admin: SocketAddr,
        security: Security,
    ) -> Result<UpOptions, Failure> {
        Ok(UpOptions {
            security,
            secrets: None,
            nodes: self.nodes,
            caches: self.caches,
            replicas: self.replicas,
            partitions: self.partitions,
            shards: self.shards,
            switch_threads: self.switch_threads,
            engine: self.engine(),
            data: self.data.clone(),
            backends: self.backends()?,
            sync: match self.sync {
                Sync::Always => SyncPolicy::Always,
                Sync::Interval => SyncPolicy::Interval,
                Sync::Never => SyncPolicy::Never,
            },
            max_memory: self.max_memory,
            min_free_disk: self.min_free_disk,
            service,
            admin,
        })
    }

    fn backends(&self) -> Result<Vec<BackendUrl>, Failure> {
        let parse = |text: &str, whose: &str, number: usize| {
            let url = text.parse::<BackendUrl>();
            url.map_err(|error| Failure::usage(format!("{whose}, number {number}: {error}")))
        };
        if let Some(path) = &self.backend_file {
            let whose = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("cannot read {whose}: {error}")))?;
            let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
            return lines.map(|(number, line)| parse(line.trim(), &whose, number)).collect();
        }
        let given = (1..).zip(&self.backends);
        let urls = given.map(|(number, Address(text))| parse(text, "--backend", number));
        let urls: Vec<BackendUrl> = urls.collect::<Result<_, _>>()?;
        let seen = |url: &BackendUrl| {
            url.is_secret() && std::env::args().any(|argument| argument.contains(url.secret()))
        };
        if urls.iter().any(seen) {
            return Err(Failure::usage(format!(
                "a password on the command line can be read by everybody on this machine: write \
                 the addresses into a file that is yours, and name it with --backend-file, or into \
                 the environment, as {BACKEND_ENV}"
            )));
        }
        Ok(urls)
    }

    /// What nodes store in.
    pub(crate) fn engine(&self) -> EngineKind {
        match self.engine {
            Engine::Memory => EngineKind::Memory,
            Engine::Fjall => EngineKind::Fjall,
            Engine::Redis => EngineKind::Redis,
            Engine::Memcached => EngineKind::Memcached,
        }
    }
}
