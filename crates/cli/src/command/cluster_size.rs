//! The options of a cluster in one process.

use clap::ValueEnum;
use runtime::config::EngineKind;
use runtime::disk::MinFreeDisk;
use runtime::memory::MaxMemory;
use runtime::store::{BackendUrl, SyncPolicy};
use runtime::up::UpOptions;
use std::net::SocketAddr;
use std::path::PathBuf;

/// How large a cluster, and what it stores in.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterSize {
    /// Storage nodes.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) nodes: u16,
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
    /// in order, as redis://127.0.0.1:6379 or memcached://127.0.0.1:11211.
    #[arg(long = "backend", value_name = "URL", value_delimiter = ',')]
    backends: Vec<BackendUrl>,
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
    pub(crate) fn options(&self, service: SocketAddr, admin: SocketAddr) -> UpOptions {
        UpOptions {
            nodes: self.nodes,
            replicas: self.replicas,
            partitions: self.partitions,
            shards: self.shards,
            switch_threads: self.switch_threads,
            engine: self.engine(),
            data: self.data.clone(),
            backends: self.backends.clone(),
            sync: match self.sync {
                Sync::Always => SyncPolicy::Always,
                Sync::Interval => SyncPolicy::Interval,
                Sync::Never => SyncPolicy::Never,
            },
            max_memory: self.max_memory,
            min_free_disk: self.min_free_disk,
            service,
            admin,
        }
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
