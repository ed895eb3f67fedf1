//! Where the controller keeps what must outlive it, and who may write there.
//!
//! The store is also what there is one of: whoever has it leads. The embedded one is a file that
//! one process has locked; in etcd it is a key that one process keeps a lease on.

mod etcd;
mod file;

pub use etcd::{
    Candidacy, Candidate, EtcdAccess, EtcdFacts, EtcdMember, EtcdStore, EtcdUrl, look_at_members,
};
pub use file::{FORMAT as FILE_FORMAT, FileMapStore, inspect};

use super::StoreError;
use controller::{Saved, StoreStatus};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_128;

/// Where the controller keeps what must outlive it. Nothing here takes long but loading: what
/// waits for a network does so elsewhere, and calls when there is news.
pub trait MapStore: Send {
    /// What was saved last; `None` if nothing ever was.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is damaged.
    fn load(&mut self) -> Result<Option<Saved>, StoreError>;

    /// Begins to replace that. One save at a time, until [`poll_saved`](Self::poll_saved) has told
    /// how it ended.
    fn save(&mut self, saved: &Saved);

    /// How the save that was begun ended, once it has; told once.
    fn poll_saved(&mut self) -> Option<Result<(), SaveError>>;

    /// Whether this process leads.
    fn leadership(&self) -> Leadership {
        Leadership::Certain
    }

    /// Whether no other process can have it as long as this one does, whatever it answers.
    fn is_alone(&self) -> bool {
        true
    }

    /// How long a predecessor may take itself for the leader after this one has become it: leases
    /// that it gives until then count.
    fn overlap(&self) -> Duration {
        Duration::ZERO
    }

    /// Called whenever there is news of a save or of the leadership.
    fn wake_with(&mut self, _wake: Wake) {}

    /// How it is, for people.
    fn status(&self) -> StoreStatus;
}

/// What to call when there is news.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Whether a process leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Nobody else does.
    Certain,
    /// The store has not said so for too long. No order may leave: somebody else may lead.
    Doubtful,
    /// Somebody else may lead from now on, and this process does not any more.
    Lost,
}

/// Why something was not saved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// There is no room for it, or the store does not take it: what was there is there still. It
    /// may be tried again.
    #[error("{0}")]
    NotNow(String),
    /// Somebody else leads, and this process must not write any more.
    #[error("another controller leads")]
    Deposed,
    /// The store cannot be used any more.
    #[error("{0}")]
    Failed(String),
}

/// What tells a damaged map from a whole one, as it is written beside it.
fn checksum(map: &[u8]) -> String {
    format!("{:032x}", xxh3_128(map))
}

/// Nothing outlives the process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    saved: bool,
}

impl MapStore for MemoryStore {
    fn load(&mut self) -> Result<Option<Saved>, StoreError> {
        Ok(None)
    }

    fn save(&mut self, _: &Saved) {
        self.saved = true;
    }

    fn poll_saved(&mut self) -> Option<Result<(), SaveError>> {
        std::mem::take(&mut self.saved).then_some(Ok(()))
    }

    fn status(&self) -> StoreStatus {
        StoreStatus { kind: "memory".into(), ..StoreStatus::default() }
    }
}

/// In a file, which is locked as long as this exists.
#[derive(Debug)]
pub struct EmbeddedStore {
    file: FileMapStore,
    ended: Option<Result<(), SaveError>>,
}

impl EmbeddedStore {
    /// Takes the file for this process, if it is whole or is not there yet.
    ///
    /// # Errors
    ///
    /// If another process has it, it is damaged or of another format, or cannot be read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { file: FileMapStore::open(path)?, ended: None })
    }
}

impl MapStore for EmbeddedStore {
    fn load(&mut self) -> Result<Option<Saved>, StoreError> {
        self.file.load()
    }

    fn save(&mut self, saved: &Saved) {
        self.ended = Some(self.file.save(saved).map_err(|error| {
            if error.is_full() {
                SaveError::NotNow(error.to_string())
            } else {
                SaveError::Failed(error.to_string())
            }
        }));
    }

    fn poll_saved(&mut self) -> Option<Result<(), SaveError>> {
        self.ended.take()
    }

    fn status(&self) -> StoreStatus {
        let at = self.file.path().display().to_string();
        StoreStatus { kind: "embedded".into(), at, ..StoreStatus::default() }
    }
}
