//! Syncs that go on apart: somebody else writes the batch, and waits for the disk.
//!
//! fjall makes a writer wait while it makes what it has flushed or merged part of a tree, which
//! takes several syncs of its own. A shard has no time for that.

use super::database::{ShardDatabase, TREES};
use super::{FjallEngine, failure};
use fjall::{OwnedWriteBatch, Slice};
use node::engine::EngineError;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};

/// What is left to do of a sync that goes on apart: how it ends is what the engine is to be told.
pub type SyncJob = Box<dyn FnOnce() -> Result<(), EngineError> + Send>;

/// The sync under way, if there is one.
#[derive(Default)]
pub(super) struct Apart {
    under_way: Option<Arc<UnderWay>>,
    /// Records that it makes durable, but for those that no crash takes back.
    records: BTreeSet<Slice>,
    job: Option<SyncJob>,
}

/// What two threads have of a sync.
struct UnderWay {
    /// What is to be written, until somebody has.
    batch: Mutex<Option<OwnedWriteBatch>>,
    done: OnceLock<Done>,
}

/// What a sync has found besides.
struct Done {
    /// Trees of which something was flushed.
    rotated: [bool; TREES],
    /// Bytes that the disk needs room for.
    needs: u64,
}

impl Apart {
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Whether it makes the record under a key durable.
    pub(super) fn has(&self, at: &[u8]) -> bool {
        self.records.contains(at)
    }

    pub(super) fn has_no_records(&self) -> bool {
        self.records.is_empty()
    }

    /// Writes its batch here and now, unless that is done: what is written next comes behind it.
    pub(super) fn write(&self) -> fjall::Result<()> {
        self.under_way.as_ref().map_or(Ok(()), |it| it.write())
    }
}

impl UnderWay {
    /// Whoever comes second waits for who was first.
    fn write(&self) -> fjall::Result<()> {
        // If the first one has panicked, nobody knows what was written.
        let mut batch = self.batch.lock().map_err(|_| fjall::Error::Poisoned)?;
        batch.take().map_or(Ok(()), OwnedWriteBatch::commit)
    }

    fn go_through(&self, database: &ShardDatabase) -> fjall::Result<()> {
        self.write()?;
        database.persist()?;
        let done = Done { rotated: database.rotate()?, needs: database.needs() };
        self.done.get_or_init(|| done);
        Ok(())
    }
}

impl FjallEngine {
    /// What is left to do of a sync that was begun, on another thread.
    pub fn sync_job(&mut self) -> Option<SyncJob> {
        self.apart.job.take()
    }

    pub(super) fn begin_apart(&mut self) -> Result<(), EngineError> {
        assert!(!self.apart.is_under_way(), "there is one sync at a time");
        self.health()?;
        let records = self.records.tree().at_risk().cloned().collect();
        let batch = Mutex::new(Some(self.take_batch()));
        let under_way = Arc::new(UnderWay { batch, done: OnceLock::new() });
        let (database, of_job) = (self.database.clone(), Arc::clone(&under_way));
        let job: SyncJob = Box::new(move || {
            let kept = failure::caught(|| of_job.go_through(&database));
            kept.and_then(|kept| kept.map_err(|why| why.to_string())).map_err(EngineError)
        });
        self.apart = Apart { under_way: Some(under_way), records, job: Some(job) };
        Ok(())
    }

    pub(super) fn end_apart(&mut self, how: Result<(), EngineError>) -> Result<(), EngineError> {
        let Apart { under_way, .. } = std::mem::take(&mut self.apart);
        if let Err(EngineError(why)) = how {
            self.fail(why);
        }
        self.have_written();
        if let Some(Done { rotated, needs }) = under_way.as_ref().and_then(|it| it.done.get()) {
            self.have_rotated(*rotated);
            self.set_needs(*needs);
            self.needs_said = true;
        }
        self.health()
    }
}
