//! Turns of those who change the same key.

use std::hash::{BuildHasher, RandomState};
use tokio::sync::{Mutex, MutexGuard};

/// Who reads and writes a key next. Without it, of many clients of this gateway that change one key
/// all but one would have read in vain, each time. It is no promise: others change the key too.
#[derive(Debug)]
pub(super) struct Turns {
    queues: Vec<Mutex<()>>,
    hashes: RandomState,
}

/// Queues; keys that share one wait for each other without need.
const QUEUES: usize = 4096;

impl Turns {
    pub(super) fn new() -> Self {
        let queues = std::iter::repeat_with(Mutex::default).take(QUEUES).collect();
        Self { queues, hashes: RandomState::new() }
    }

    /// Waits for the key's turn, which lasts until what is returned is dropped.
    pub(super) async fn take(&self, key: &[u8]) -> MutexGuard<'_, ()> {
        let hash = usize::try_from(self.hashes.hash_one(key) % QUEUES as u64);
        let queue = hash.ok().and_then(|index| self.queues.get(index));
        queue.expect("the remainder is below the number of queues").lock().await
    }
}
