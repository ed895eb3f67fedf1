//! What all connections of a gateway have in common.

use crate::Store;
use crate::acl::Acl;
use crate::budget::Budget;
use crate::clients::Clients;
use crate::guesses::Guesses;
use crate::hot::HotKeys;
use crate::key_count::LastCount;
use crate::pause::Pause;
use crate::script::Scripts;
use crate::settings::Settings;
use crate::slowlog::SlowLog;
use crate::stats::Stats;
use crate::tracking::Tracking;
use runtime::clock::Clock;
use runtime::files::Reserve;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The gateway, as its connections see it.
#[derive(Debug)]
pub(crate) struct Shared {
    /// One for each worker: each has a task and a socket of its own.
    pub(crate) stores: Vec<Store>,
    pub(crate) keyspace: String,
    /// Nodes that hold each key, if that is known.
    pub(crate) replicas: Option<u8>,
    /// What acknowledged writes are safe from, in a word.
    pub(crate) sync: String,
    pub(crate) services: Vec<SocketAddr>,
    /// Who knows the hot keys, if somebody does.
    pub(crate) hot: Option<HotKeys>,
    pub(crate) tracking: Tracking,
    pub(crate) key_count: LastCount,
    pub(crate) scripts: Arc<Scripts>,
    pub(crate) listen: SocketAddr,
    pub(crate) acl: Acl,
    pub(crate) settings: Settings,
    pub(crate) clients: Clients,
    pub(crate) budget: Budget,
    pub(crate) guesses: Guesses,
    pub(crate) stats: Stats,
    pub(crate) slowlog: SlowLog,
    pub(crate) pause: Pause,
    pub(crate) started: Instant,
    /// Forty hexadecimal digits that no other run has, as Redis tells them.
    pub(crate) run_id: String,
    pub(crate) clock: Mutex<Clock>,
    /// Descriptors of the workers.
    pub(crate) _reserve: Reserve,
}

impl Shared {
    /// Time since the gateway's start.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// The same of another moment.
    pub(crate) fn since_start(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.started)
    }

    /// The time of day, since the Unix epoch.
    pub(crate) fn time_of_day(&self) -> Duration {
        let now = self.clock.lock().unwrap_or_else(PoisonError::into_inner).now();
        Duration::from_nanos(now.0)
    }

    /// Nodes that hold a key besides the first; 0 if that is not known.
    pub(crate) fn others(&self) -> u8 {
        self.replicas.unwrap_or_default().saturating_sub(1)
    }

    /// Which worker serves a connection with this number.
    pub(crate) fn worker(&self, id: u64) -> usize {
        usize::try_from(id).unwrap_or(0) % self.stores.len()
    }

    /// The store for a connection with this number.
    pub(crate) fn store(&self, id: u64) -> &Store {
        self.stores.get(self.worker(id)).expect("a gateway has a worker, and each has a store")
    }
}
