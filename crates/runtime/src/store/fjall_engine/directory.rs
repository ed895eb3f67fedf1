//! A shard's directory: who may open it, and how it comes into being.
//!
//! ```text
//! lock               held by the process that uses the directory
//! store/about.json   whose it is, and in which format
//! store/fjall/       the database
//! ```
//!
//! `store` is made under another name and renamed when it is complete, so that a crash leaves no
//! half of it.

use super::{SyncPolicy, failure, whole};
use crate::private;
use crate::store::StoreError;
use cluster::{NodeId, StoreId};
use fjall::{
    AbstractTree as _, CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// Of everything on disk; raised when any of it changes. What is raised once, all builds before
/// refuse.
pub const FORMAT: u32 = 3;

/// A process runs several shards on one machine, and `keyway up` several nodes: the defaults of
/// fjall (32 MiB of cache, 900 files) would be too much for each. Hot values are rather kept by the
/// operating system, whose cache all shards share.
pub(super) const CACHE_BYTES: u64 = 8 << 20;

/// Sixteen shards stay below the usual limit of 1,024 open files.
pub(crate) const OPEN_FILES_MAX: usize = 48;

/// One thread flushes and compacts. Up to four full memtables may wait for it, which outlasts a
/// compaction; a second thread would spin while the first compacts.
const WORKER_THREADS: usize = 1;

/// Journals are sealed when they are beyond 64 MB, which fjall lets nobody choose. This is the
/// least that it allows all of them together, before it flushes what keeps the oldest; the engine
/// does so sooner, in `rotate`.
const JOURNALS_BYTES_MAX: u64 = 64 << 20;

/// How large memtables become before they are flushed. Memory per shard is at most five of each
/// tree: one that is written and four that wait. What is replayed at start is at most the same, and
/// a journal of 64 MB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memtables {
    pub(super) records: u64,
    /// Of all others: notes are short and short-lived, due entries small.
    pub(super) small: u64,
}

impl Memtables {
    pub(super) const USUAL: Self = Self { records: 16 << 20, small: 4 << 20 };
}

const RECORDS: &str = "records";
const DUE: &str = "due";
const NOTES: &str = "notes";
const TURNS: &str = "turns";

/// Which shard of which node a store belongs to. Partitions are placed by all three numbers, so
/// that a store opened as any other's would hold the wrong ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardIdentity {
    /// The node.
    pub node: NodeId,
    /// Index of the shard in its node, from 0.
    pub shard: u16,
    /// How many shards the node has.
    pub shards: u16,
}

impl fmt::Display for ShardIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, shard, shards } = self;
        write!(f, "node {node}, shard {shard} of {shards}")
    }
}

/// What `about.json` says.
#[derive(Serialize, Deserialize)]
struct About {
    format: u32,
    store: StoreId,
    #[serde(flatten)]
    shard: ShardIdentity,
    /// Over all of the above: another identity would pass for another memory, which is emptied.
    /// Stores that were made before there was one have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

impl About {
    fn sum(&self) -> String {
        let Self { format, store, shard, .. } = self;
        format!("{:016x}", xxh3_64(format!("{format} {store} {shard}").as_bytes()))
    }
}

/// The part of [`About`] that every format has.
#[derive(Deserialize)]
struct AnyAbout {
    format: u32,
}

/// A directory that is ours as long as this lives.
pub(super) struct StoreDirectory {
    path: PathBuf,
    store_id: StoreId,
    lock: File,
}

/// A database and its keyspaces.
pub(super) struct Trees {
    pub(super) database: Database,
    pub(super) records: Keyspace,
    pub(super) due: Keyspace,
    pub(super) notes: Keyspace,
    pub(super) turns: Keyspace,
}

impl StoreDirectory {
    /// Locks the directory, creates the store if there is none, and checks whose it is.
    pub(super) fn open(
        path: &Path,
        shard: ShardIdentity,
        fresh_id: StoreId,
        memtables: Memtables,
    ) -> Result<Self, StoreError> {
        private::directory(path).map_err(|source| StoreError::io(path, source))?;
        let lock = lock(path)?;
        let store = path.join("store");
        if !store.try_exists().map_err(|source| StoreError::io(&store, source))? {
            create(path, shard, fresh_id, memtables)?;
        }
        let about = read_about(path)?;
        if about.shard != shard {
            return Err(StoreError::Foreign {
                path: path.to_path_buf(),
                created_for: about.shard.to_string(),
                opened_for: shard.to_string(),
            });
        }
        // It is ours: an older version has let others read it.
        private::tighten_all(path).map_err(|source| StoreError::io(path, source))?;
        Ok(Self { path: path.to_path_buf(), store_id: about.store, lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn store_id(&self) -> StoreId {
        self.store_id
    }

    /// Opens the database, which has all its keyspaces since it was created.
    pub(super) fn open_trees(&self, policy: SyncPolicy) -> Result<Trees, StoreError> {
        let journaled = whole::check(&self.path, policy)?;
        // Of files that are damaged in ways that it does not check fjall may make a panic.
        let opened = failure::caught(|| self.open_checked());
        let trees = opened.unwrap_or_else(|why| Err(StoreError::damaged(&self.path, why)))?;
        let keyspaces = [&trees.records, &trees.due, &trees.notes, &trees.turns];
        let in_tables = keyspaces.iter().filter_map(|it| it.tree.get_highest_persisted_seqno());
        match in_tables.max().filter(|newest| !journaled.explains(*newest)) {
            Some(_) if policy == SyncPolicy::Always => {
                Err(StoreError::damaged(&self.path, "the end of the journal is missing"))
            }
            Some(_) => {
                let dir = self.path.display();
                tracing::warn!(%dir, "what was journaled last is lost, and in part in tables");
                Ok(trees)
            }
            None => Ok(trees),
        }
    }

    fn open_checked(&self) -> Result<Trees, StoreError> {
        let database =
            open_database(&self.path.join("store/fjall")).map_err(|error| self.error(error))?;
        let open = |name: &str| {
            if !database.keyspace_exists(name) {
                return Err(StoreError::damaged(&self.path, format!("{name} are missing")));
            }
            database
                .keyspace(name, KeyspaceCreateOptions::default)
                .map_err(|error| self.error(error))
        };
        let (records, due, notes, turns) = (open(RECORDS)?, open(DUE)?, open(NOTES)?, open(TURNS)?);
        Ok(Trees { database, records, due, notes, turns })
    }

    pub(super) fn error(&self, error: fjall::Error) -> StoreError {
        store_error(&self.path, error)
    }
}

impl Drop for StoreDirectory {
    /// Closing the file is not enough if a process that is just being started has inherited it.
    fn drop(&mut self) {
        // It is closed anyway, and a failure would help nobody.
        let _ = self.lock.unlock();
    }
}

/// What a shard's directory is, without taking it: whose it is, and whether its most important
/// files are there. Whether all records can be read shows when they are.
///
/// # Errors
///
/// If something is missing, changed or cannot be read.
pub fn inspect(path: &Path) -> Result<String, StoreError> {
    let about = read_about(path)?;
    let _ = whole::check(path, SyncPolicy::Always)?;
    let StoreId(store) = about.store;
    Ok(format!("the store of {} (identity {store:016x})", about.shard))
}

fn lock(path: &Path) -> Result<File, StoreError> {
    let name = path.join("lock");
    let file = File::options().create(true).truncate(false).write(true).open(&name);
    let file = file.map_err(|source| StoreError::io(&name, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path: path.to_path_buf() }),
        Err(TryLockError::Error(source)) => Err(StoreError::io(&name, source)),
    }
}

/// Makes a whole, empty store, or leaves none.
fn create(
    path: &Path,
    shard: ShardIdentity,
    fresh_id: StoreId,
    memtables: Memtables,
) -> Result<(), StoreError> {
    let unfinished = path.join("store.unfinished");
    let io = |source| StoreError::io(&unfinished, source);
    if unfinished.try_exists().map_err(io)? {
        std::fs::remove_dir_all(&unfinished).map_err(io)?;
    }
    create_database(&unfinished.join("fjall"), memtables)
        .map_err(|error| store_error(path, error))?;
    let about = About { format: FORMAT, store: fresh_id, shard, checksum: None };
    let about = About { checksum: Some(about.sum()), ..about };
    let about = serde_json::to_vec_pretty(&about)
        .map_err(|why| StoreError::Encode { path: path.to_path_buf(), why })?;
    let mut file = File::create(unfinished.join("about.json")).map_err(io)?;
    file.write_all(&about).and_then(|()| file.sync_all()).map_err(io)?;
    sync_directory(&unfinished)?;
    std::fs::rename(&unfinished, path.join("store")).map_err(io)?;
    sync_directory(path)
}

fn sync_directory(path: &Path) -> Result<(), StoreError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(|source| StoreError::io(path, source))
}

fn read_about(path: &Path) -> Result<About, StoreError> {
    let name = path.join("store/about.json");
    let bytes = match std::fs::read(&name) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(StoreError::damaged(path, "store/about.json is missing"));
        }
        Err(source) => return Err(StoreError::io(&name, source)),
    };
    let damaged = |error| StoreError::damaged(&name, error);
    let AnyAbout { format } = serde_json::from_slice(&bytes).map_err(damaged)?;
    if format != FORMAT {
        let path = path.to_path_buf();
        return Err(StoreError::Format { path, found: format.to_string(), known: FORMAT });
    }
    let about: About = serde_json::from_slice(&bytes).map_err(damaged)?;
    if about.checksum.as_ref().is_some_and(|sum| *sum != about.sum()) {
        return Err(StoreError::damaged(&name, "its checksum is wrong"));
    }
    Ok(about)
}

fn open_database(path: &Path) -> fjall::Result<Database> {
    Database::builder(path)
        .cache_size(CACHE_BYTES)
        .max_cached_files(Some(OPEN_FILES_MAX))
        .worker_threads(WORKER_THREADS)
        .max_journaling_size(JOURNALS_BYTES_MAX)
        // What a turn writes is small, and on the way of its answers.
        .journal_compression(CompressionType::None)
        .open()
}

fn create_database(path: &Path, memtables: Memtables) -> fjall::Result<()> {
    let database = open_database(path)?;
    let Memtables { records, small } = memtables;
    let sizes = [(RECORDS, records), (DUE, small), (NOTES, small), (TURNS, small)];
    for (name, bytes) in sizes {
        database.keyspace(name, || KeyspaceCreateOptions::default().max_memtable_size(bytes))?;
    }
    database.persist(PersistMode::SyncAll)
}

fn store_error(path: &Path, error: fjall::Error) -> StoreError {
    let path = path.to_path_buf();
    match error {
        fjall::Error::Locked => StoreError::Locked { path },
        fjall::Error::InvalidVersion(version) => {
            let version = version.map_or("unknown".to_string(), |version| version.to_string());
            StoreError::Format { path, found: format!("fjall {version}"), known: FORMAT }
        }
        fjall::Error::Io(source) => StoreError::io(&path, source),
        other => StoreError::damaged(&path, other),
    }
}
