//! Which keys are asked for most: what the nodes' trackers, which always run, have told the
//! controller.

use crate::Reply;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A key that is asked for often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotKey {
    /// The key.
    pub key: Bytes,
    /// Reads per second, lately; those that found nothing among them.
    pub reads: u64,
    /// Writes per second, lately.
    pub writes: u64,
    /// Nodes that hold a copy of it besides its chain.
    pub copies: u64,
}

impl HotKey {
    /// Reads and writes per second.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }
}

/// Who knows the hot keys of the gateway's keyspace. Clones share what they were told last.
#[derive(Clone)]
pub struct HotKeys {
    ask: Arc<Ask>,
    told: Arc<Mutex<Option<HotAnswer>>>,
}

type Ask = dyn Fn() -> Result<Vec<HotKey>, String> + Send + Sync;

/// What was told, and when.
type HotAnswer = (Instant, Arc<[HotKey]>);

/// How old an answer may be. Nodes tell of their hot keys about as often, and OBJECT FREQ is asked
/// for one key after the other.
const FRESH: Duration = Duration::from_millis(250);

impl HotKeys {
    /// Those that `ask` says, or why it cannot say. It may block for a while.
    #[must_use]
    pub fn new(ask: impl Fn() -> Result<Vec<HotKey>, String> + Send + Sync + 'static) -> Self {
        Self { ask: Arc::new(ask), told: Arc::default() }
    }

    /// The hottest keys, the hottest first, at most a quarter of a second old.
    pub(crate) async fn list(&self) -> Result<Arc<[HotKey]>, Reply> {
        // Whoever comes while somebody asks waits for the same answer.
        let mut told = self.told.lock().await;
        if let Some((at, list)) = told.as_ref()
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(list));
        }
        let ask = Arc::clone(&self.ask);
        let answer = tokio::task::spawn_blocking(move || ask()).await;
        let mut list = answer.unwrap_or_else(|error| Err(error.to_string())).map_err(|why| {
            let why = why.replace(['\r', '\n'], " ");
            Reply::Error(format!("ERR the hot keys are not known: {why}").into())
        })?;
        list.sort_by(|one, other| (other.requests(), &one.key).cmp(&(one.requests(), &other.key)));
        let list: Arc<[HotKey]> = list.into();
        *told = Some((Instant::now(), Arc::clone(&list)));
        Ok(list)
    }
}

impl fmt::Debug for HotKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HotKeys")
    }
}
