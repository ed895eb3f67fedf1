//! Syncs that go on apart: the batch is written here, and somebody else waits for the disk.

use super::{FjallEngine, failure};
use fjall::{PersistMode, Slice};
use node::engine::EngineError;
use std::collections::BTreeSet;

/// What is left to do of a sync that goes on apart: how it ends is what the engine is to be told.
pub type SyncJob = Box<dyn FnOnce() -> Result<(), EngineError> + Send>;

/// The sync under way.
#[derive(Default)]
pub(super) struct Apart {
    is_under_way: bool,
    /// Records that it makes durable, but for those that no crash takes back.
    records: BTreeSet<Slice>,
    job: Option<SyncJob>,
}

impl Apart {
    pub(super) fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    /// Whether it makes the record under a key durable.
    pub(super) fn has(&self, at: &[u8]) -> bool {
        self.records.contains(at)
    }

    pub(super) fn has_no_records(&self) -> bool {
        self.records.is_empty()
    }
}

impl FjallEngine {
    /// What is left to do of a sync that was begun, on another thread.
    pub fn sync_job(&mut self) -> Option<SyncJob> {
        self.apart.job.take()
    }

    pub(super) fn begin_apart(&mut self) -> Result<(), EngineError> {
        assert!(!self.apart.is_under_way, "there is one sync at a time");
        let records = self.records.tree().at_risk().cloned().collect();
        self.attempt(|engine| engine.write_batch(PersistMode::Buffer))?;
        let database = self.database.clone();
        let job: SyncJob = Box::new(move || {
            let kept = failure::caught(|| database.persist(PersistMode::SyncData));
            kept.and_then(|kept| kept.map_err(|why| why.to_string())).map_err(EngineError)
        });
        self.apart = Apart { is_under_way: true, records, job: Some(job) };
        Ok(())
    }

    pub(super) fn end_apart(&mut self, how: Result<(), EngineError>) -> Result<(), EngineError> {
        self.apart = Apart::default();
        if let Err(EngineError(why)) = how {
            self.fail(why);
        }
        self.attempt(Self::rotate)
    }
}
