//! What a node stores in.

use super::{FILES_OF_THREAD, StartError, open_disk};
use crate::config::{EngineKind, NodeSection};
use crate::disk::{Disk, MinFreeDisk};
use crate::store::{BackendUrl, OPEN_FILES_MAX, SyncPolicy};
use std::path::PathBuf;

/// What a node stores in.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    /// Main memory.
    Memory,
    /// fjall, a directory below this one for each shard.
    Fjall(PathBuf, SyncPolicy),
    /// A Redis, the same for all shards.
    Redis(BackendUrl, SyncPolicy),
    /// A memcached, the same for all shards.
    Memcached(BackendUrl),
}

impl Storage {
    pub(super) fn of(section: &NodeSection) -> Self {
        let NodeSection { engine, data, backend, sync, .. } = section;
        Self::new(*engine, data.clone(), backend.clone(), *sync)
    }

    /// The disk that it writes to, if it does.
    pub(crate) fn disk(&self, floor: MinFreeDisk) -> Result<Option<Disk>, StartError> {
        match self {
            Self::Fjall(data, _) => open_disk(data, floor).map(Some),
            Self::Memory | Self::Redis(..) | Self::Memcached(_) => Ok(None),
        }
    }

    /// What a checked configuration asks for: it has a directory for every fjall, and a backend for
    /// whatever needs one.
    pub(crate) fn new(
        engine: EngineKind,
        data: Option<PathBuf>,
        backend: Option<BackendUrl>,
        sync: SyncPolicy,
    ) -> Self {
        match (engine, data, backend) {
            (EngineKind::Fjall, Some(data), _) => Self::Fjall(data, sync),
            (EngineKind::Redis, _, Some(backend)) => Self::Redis(backend, sync),
            (EngineKind::Memcached, _, Some(backend)) => Self::Memcached(backend),
            (
                EngineKind::Memory | EngineKind::Fjall | EngineKind::Redis | EngineKind::Memcached,
                ..,
            ) => Self::Memory,
        }
    }

    /// Descriptors that a node of so many shards needs at most.
    pub(crate) fn files(&self, shards: u16) -> u64 {
        let store = match self {
            Self::Memory => 0,
            Self::Fjall(..) => FILES_OF_FJALL,
            Self::Redis(..) | Self::Memcached(_) => FILES_OF_BACKEND,
        };
        u64::from(shards) * (FILES_OF_THREAD + store)
    }
}

/// Descriptors of a shard's fjall: those that it keeps open, journals, the lock, and what flushes
/// and compactions open meanwhile.
const FILES_OF_FJALL: u64 = OPEN_FILES_MAX as u64 + 24;
/// Descriptors of a shard's connection to a backend: while it connects anew there are two.
const FILES_OF_BACKEND: u64 = 6;
