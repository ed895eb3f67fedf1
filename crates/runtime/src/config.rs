//! One TOML file for all roles of a cluster, the same on every machine.

mod check;
mod content;
mod etcd;
mod form;
mod openflow;
mod rights;
mod security;
#[cfg(test)]
mod tests;

use crate::disk::MinFreeDisk;
use crate::driver::CacheLimits;
use crate::memory::{CacheMemory, MaxMemory};
use crate::secret;
use crate::store::{BackendUrl, EtcdUrl, SyncPolicy};
use cluster::{
    CacheId, CacheSpec, ClusterId, ContentRouting, HotPolicy, KeyspaceKind, NodeId, NodeSpec,
    Selection,
};
use controller::{ControllerConfig, KeyspaceSpec, LOAD_FLOOR, POLL_INTERVAL, SPLIT_BYTES};
pub use etcd::EtcdSection;
pub use openflow::{ExitSection, OpenFlowSection};
pub use rights::{Classes, RightsSection};
pub use security::SecuritySection;
use serde::Deserialize;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs, io};

/// A cluster as its operator describes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What all roles must agree on.
    pub cluster: ClusterSection,
    /// The switches: `[switch]`, or `[[switch]]` for several, of which one is active at a time and
    /// the others stand by.
    #[serde(rename = "switch", deserialize_with = "form::one_or_several")]
    pub switches: Vec<SwitchSection>,
    /// The storage nodes.
    #[serde(rename = "node", default)]
    pub nodes: Vec<NodeSection>,
    /// The caches.
    #[serde(rename = "cache", default)]
    pub caches: Vec<CacheSection>,
    /// Where the content addresses of keys are, if clients are to send requests there.
    #[serde(default)]
    pub content: Option<ContentRouting>,
    /// The controller.
    pub controller: ControllerSection,
    /// What protects the control plane; without it, it is on this machine alone.
    #[serde(default)]
    pub security: Option<SecuritySection>,
    /// Keyspaces that the controller creates when it first has all nodes. Changing one that
    /// exists has no effect.
    #[serde(rename = "keyspace", default)]
    pub keyspaces: Vec<KeyspaceSection>,
}

/// `[cluster]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSection {
    /// Seed of all hashes over keys. Must never change: it decides where keys lie.
    pub seed: u64,
}

/// `[switch]` or `[[switch]]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchSection {
    /// The one UDP address that clients and nodes send to while it is active.
    pub service: SocketAddr,
    /// Threads, one socket each; without it one per core.
    #[serde(default = "default_threads")]
    pub threads: usize,
    /// TCP address of its admin server.
    pub admin: SocketAddr,
    /// The switch that speaks OpenFlow and forwards by the addresses of keys, if there is one.
    #[serde(default)]
    pub openflow: Option<OpenFlowSection>,
}

/// `[[node]]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSection {
    /// Its id, for good.
    pub id: u16,
    /// UDP address of its first shard; the others have the ports that follow.
    pub listen: SocketAddr,
    /// Shards, one thread each. Must not change once the node holds data.
    #[serde(default = "default_shards")]
    pub shards: u16,
    /// TCP address of its admin server.
    pub admin: SocketAddr,
    /// What it stores in.
    #[serde(default)]
    pub engine: EngineKind,
    /// Directory of a durable engine.
    #[serde(default)]
    pub data: Option<PathBuf>,
    /// Where the store is that an engine keeps its values in, if there is one.
    #[serde(default)]
    pub backend: Option<BackendUrl>,
    /// What a durable engine's writes are safe from when they are answered; with Redis, whether a
    /// restart of it counts as the loss of its memory.
    #[serde(default)]
    pub sync: SyncPolicy,
    /// The most that it holds in memory, as `"2g"`: from there on it is full, and takes deletes.
    /// Without it a share of what the machine has; `"unlimited"`: as much as there is.
    #[serde(default)]
    pub max_memory: MaxMemory,
    /// With a durable engine: from so many free bytes of the disk on it is full, as `"1g"`. Without
    /// it a twentieth of the file system or 1 GiB, whatever is less.
    #[serde(default)]
    pub min_free_disk: MinFreeDisk,
}

/// `[[cache]]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheSection {
    /// Its id.
    pub id: u16,
    /// UDP address of its first shard, to which requests and what lenders say come; the others have
    /// the ports that follow.
    pub listen: SocketAddr,
    /// Shards, one thread each, which hold a part of its keys each.
    #[serde(default = "default_shards")]
    pub shards: u16,
    /// TCP address of its admin server.
    pub admin: SocketAddr,
    /// Keys that it holds at most. Each takes a rule of the switch.
    #[serde(default = "default_entries")]
    pub entries: usize,
    /// Bytes of keys and values that it holds at most, as `"256m"`.
    #[serde(default)]
    pub memory: CacheMemory,
    /// Rules of the switch that it may change in a second.
    #[serde(default = "default_rules")]
    pub rules_per_second: u32,
}

impl CacheSection {
    /// What it may hold, and how fast it may have the switch change.
    #[must_use]
    pub fn limits(&self) -> CacheLimits {
        let Self { entries, memory, rules_per_second, .. } = *self;
        CacheLimits { entries, bytes: memory.0, rules_per_second }
    }
}

fn default_entries() -> usize {
    CacheLimits::default().entries
}

fn default_rules() -> u32 {
    CacheLimits::default().rules_per_second
}

/// `[controller]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerSection {
    /// TCP address of its admin server.
    pub admin: SocketAddr,
    /// TCP address of the admin server of a second one that stands by.
    #[serde(default)]
    pub standby_admin: Option<SocketAddr>,
    /// TCP addresses of the admin servers of more controllers, on other machines: for those whose
    /// store is an etcd. Each serves at the first of all these addresses that is free on its
    /// machine.
    #[serde(default)]
    pub other_admins: Vec<SocketAddr>,
    /// Directory of its store, and of the lock that makes it the only one; not needed if its store
    /// is an etcd.
    #[serde(default)]
    pub data: PathBuf,
    /// The etcd that it keeps its state in, as `etcd://HOST:PORT,HOST:PORT/PREFIX`, or with
    /// `etcds://` under TLS: controllers may then run on several machines.
    #[serde(default)]
    pub store: Option<EtcdUrl>,
    /// How that etcd is reached, if not plainly and as nobody.
    #[serde(default)]
    pub etcd: Option<EtcdSection>,
    /// Milliseconds that switches and nodes may serve for without hearing of the controller. What
    /// no fence can sever, a node and the active switch that are lost at once, waits for so long.
    #[serde(default = "default_lease_ms")]
    pub lease_ms: u64,
    /// Bytes that each shard may send in a second to nodes that are taken in.
    #[serde(default = "default_copy_bytes_per_s")]
    pub copy_bytes_per_s: u64,
}

/// `[[keyspace]]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyspaceSection {
    /// Its name.
    pub name: String,
    /// Whether it can be scanned.
    pub kind: KeyspaceForm,
    /// Range keyspaces: what all keys begin with.
    #[serde(default)]
    pub prefix: String,
    /// How many partitions it begins with; [`KeyspaceSpec::usual_partitions`] if it is not said.
    #[serde(default)]
    pub partitions: Option<u32>,
    /// Nodes in each chain.
    #[serde(default = "default_replicas")]
    pub replicas: u8,
    /// Range keyspaces: first keys of all partitions but the first.
    #[serde(default)]
    pub splits: Vec<String>,
    /// What becomes of its hot keys: `"replicate"`, `"reads"`, `"cache"`, or `"off"`.
    #[serde(default)]
    pub hot: HotPolicy,
}

/// Whether a keyspace can be scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyspaceForm {
    /// Spread evenly, not in order.
    Hash,
    /// In order.
    Range,
}

/// What a node stores in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// Main memory: fast, and gone with the process.
    #[default]
    Memory,
    /// A log-structured store on disk.
    Fjall,
    /// A Redis, or Valkey, that is there already.
    Redis,
    /// A memcached that is there already.
    Memcached,
}

impl EngineKind {
    /// Its name in a configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Fjall => "fjall",
            Self::Redis => "redis",
            Self::Memcached => "memcached",
        }
    }

    /// Whether it keeps its values in a store that is there already.
    #[must_use]
    pub fn has_backend(self) -> bool {
        matches!(self, Self::Redis | Self::Memcached)
    }

    /// Whether this is the address of a store that it can use.
    #[must_use]
    pub fn takes(self, backend: &BackendUrl) -> bool {
        self.has_backend() && backend.is_memcached() == (self == Self::Memcached)
    }
}

/// Why a file is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {path}: {why}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// It is not TOML, or not of the right form.
    #[error("{path} is not a configuration: {at}{why}")]
    Form {
        /// Which file.
        path: PathBuf,
        /// Line and column, if they are known.
        at: String,
        /// Why; no password is in it.
        why: String,
    },
    /// It contradicts itself.
    #[error("{path} cannot be used:\n{problems}")]
    Unsound {
        /// Which file.
        path: PathBuf,
        /// Everything that is wrong with it.
        problems: Problems,
    },
}

/// Everything wrong with a configuration; each line says what to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<String>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(|problem| format!("  - {problem}")).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    ///
    /// If it cannot be used; all problems at once.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text =
            fs::read_to_string(path).map_err(|why| ConfigError::Read { path: path.into(), why })?;
        let config: Self =
            toml::from_str(&text).map_err(|error| form_error(path, &text, &error))?;
        let problems = config.check();
        if problems.0.is_empty() {
            return Ok(config);
        }
        Err(ConfigError::Unsound { path: path.into(), problems })
    }

    /// Everything that is wrong; nothing if it can be used.
    #[must_use]
    pub fn check(&self) -> Problems {
        check::problems(self)
    }

    /// The node of this id.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&NodeSection> {
        self.nodes.iter().find(|node| node.id == id.0)
    }

    /// The cache of this id.
    #[must_use]
    pub fn cache(&self, id: CacheId) -> Option<&CacheSection> {
        self.caches.iter().find(|cache| cache.id == id.0)
    }

    /// Members that the controller gives orders to.
    #[must_use]
    pub fn members(&self) -> usize {
        self.switches.len() + self.nodes.len() + self.caches.len()
    }

    /// What the controller is told; `cluster` is for one that does not exist yet.
    #[must_use]
    pub fn controller_config(&self, cluster: ClusterId) -> ControllerConfig {
        let lease = Duration::from_millis(self.controller.lease_ms);
        ControllerConfig {
            seed: self.cluster.seed,
            cluster,
            switches: self.switches.iter().map(|switch| switch.service.into()).collect(),
            nodes: self.nodes.iter().map(NodeSection::spec).collect(),
            caches: self.caches.iter().map(CacheSection::spec).collect(),
            controls: self.nodes.iter().map(|node| (NodeId(node.id), node.admin)).collect(),
            poll_interval: POLL_INTERVAL.min(lease / POLLS_PER_LEASE_MIN),
            lease,
            overlap: Duration::ZERO,
            copy_bytes_per_s: self.controller.copy_bytes_per_s,
            hot_selection: Selection::default(),
            content: self.content,
            load_floor: LOAD_FLOOR,
            split_bytes: SPLIT_BYTES,
        }
    }

    /// The keyspaces to create.
    #[must_use]
    pub fn keyspace_specs(&self) -> Vec<KeyspaceSpec> {
        self.keyspaces.iter().map(KeyspaceSection::spec).collect()
    }
}

/// What is wrong, and where. The line itself is not shown: it may have a password.
fn form_error(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let at = error.span().map(|span| {
        let before = text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!("line {line}, column {column}: ")
    });
    let why = secret::scrub(error.message());
    ConfigError::Form { path: path.into(), at: at.unwrap_or_default(), why }
}

impl NodeSection {
    /// Its place in the cluster.
    #[must_use]
    pub fn spec(&self) -> NodeSpec {
        NodeSpec { id: NodeId(self.id), endpoint: self.listen.into(), shards: self.shards }
    }
}

impl CacheSection {
    /// Its place in the cluster.
    #[must_use]
    pub fn spec(&self) -> CacheSpec {
        CacheSpec { id: CacheId(self.id), endpoint: self.listen.into(), shards: self.shards }
    }
}

impl KeyspaceSection {
    /// How many partitions it begins with.
    pub(crate) fn partitions(&self) -> u32 {
        let ordered = matches!(self.kind, KeyspaceForm::Range);
        let usual = KeyspaceSpec::usual_partitions(ordered, self.splits.len());
        self.partitions.unwrap_or(usual)
    }

    fn spec(&self) -> KeyspaceSpec {
        let kind = match self.kind {
            KeyspaceForm::Hash => KeyspaceKind::Hash,
            KeyspaceForm::Range => KeyspaceKind::Range { prefix: self.prefix.clone().into_bytes() },
        };
        KeyspaceSpec {
            name: self.name.clone(),
            kind,
            partitions: self.partitions(),
            replicas: self.replicas,
            splits: self.splits.iter().map(|key| key.clone().into_bytes()).collect(),
            hot: self.hot,
        }
    }
}

impl ControllerSection {
    /// Where it may serve: at its own address and, if it stands by, at the others.
    #[must_use]
    pub fn admins(&self) -> Vec<SocketAddr> {
        let others = self.other_admins.iter().copied();
        std::iter::once(self.admin).chain(self.standby_admin).chain(others).collect()
    }
}

/// Times that the controller at least asks each member how it is before a lease ends: two of them
/// may be lost, and what the orders of a busy machine take still fits.
const POLLS_PER_LEASE_MIN: u32 = 5;

fn default_lease_ms() -> u64 {
    u64::try_from(controller::LEASE.as_millis()).expect("ten seconds")
}

fn default_copy_bytes_per_s() -> u64 {
    controller::COPY_BYTES_PER_S
}

fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get).min(check::THREADS_MAX)
}

fn default_shards() -> u16 {
    1
}

fn default_replicas() -> u8 {
    3
}
