//! What the thread of a shard needs of its engine.

use crate::disk::DiskRoom;
use crate::store::{Backend, BackendEngine, FjallEngine, SHARD_STORE_FORMAT, SyncJob, SyncPolicy};
use cluster::Durability;
use machine::Instant;
use node::engine::memory::MemoryEngine;
use node::engine::{Engine, EngineError};
use wire::Room;

/// An engine as a shard's thread needs it.
pub trait ShardEngine: Engine + Send + 'static {
    /// Does what is due at the disk by now, and says when to call again; called after every batch.
    ///
    /// # Errors
    ///
    /// As for [`Engine::sync`].
    fn persist_due(&mut self, now: Instant) -> Result<Option<Instant>, EngineError>;

    /// What is left to do of a sync that was begun, if it goes on apart.
    fn sync_job(&mut self) -> Option<SyncJob> {
        None
    }

    /// What the store said that refused the changes of the last sync, if it is well otherwise; they
    /// are still here, and the next sync tries again.
    fn refusal(&self) -> Option<&str> {
        None
    }

    /// Ends a turn in which nothing was changed, while earlier changes are refused.
    ///
    /// # Errors
    ///
    /// If the store has failed for good.
    fn end_reads(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// What there is room for on the disk, if it writes to one; asked before every batch.
    fn disk_room(&mut self, _now: Instant) -> Option<DiskRoom> {
        None
    }

    /// What there is room for in a store of others, if it writes to one; asked before every batch.
    fn backend_room(&mut self, _now: Instant) -> Option<Room> {
        None
    }

    /// What writes are safe from that it has synced.
    fn durability(&self) -> Durability;

    /// Format of its files; 0 if it has none.
    fn format(&self) -> u32 {
        0
    }

    /// Bytes of its files, if it has any.
    fn disk_used(&self) -> Option<u64> {
        None
    }
}

impl ShardEngine for MemoryEngine {
    fn durability(&self) -> Durability {
        Durability::Memory
    }

    fn persist_due(&mut self, _now: Instant) -> Result<Option<Instant>, EngineError> {
        Ok(None)
    }
}

impl<B: Backend> ShardEngine for BackendEngine<B> {
    fn durability(&self) -> Durability {
        Durability::Backend
    }

    fn persist_due(&mut self, _now: Instant) -> Result<Option<Instant>, EngineError> {
        Ok(None)
    }

    fn refusal(&self) -> Option<&str> {
        Self::refusal(self)
    }

    fn end_reads(&mut self) -> Result<(), EngineError> {
        Self::end_reads(self)
    }

    fn backend_room(&mut self, now: Instant) -> Option<Room> {
        Some(self.room(now))
    }
}

impl ShardEngine for FjallEngine {
    fn sync_job(&mut self) -> Option<SyncJob> {
        Self::sync_job(self)
    }

    fn persist_due(&mut self, now: Instant) -> Result<Option<Instant>, EngineError> {
        Self::persist_due(self, now)
    }

    fn disk_room(&mut self, now: Instant) -> Option<DiskRoom> {
        Self::disk_room(self, now)
    }

    fn durability(&self) -> Durability {
        match self.policy() {
            SyncPolicy::Always => Durability::Always,
            SyncPolicy::Interval => Durability::Interval,
            SyncPolicy::Never => Durability::Never,
        }
    }

    fn format(&self) -> u32 {
        SHARD_STORE_FORMAT
    }

    fn disk_used(&self) -> Option<u64> {
        Self::disk_used(self)
    }
}
