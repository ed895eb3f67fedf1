//! What all connections of a gateway have in common.

use crate::Store;
use crate::acl::{Acl, User};
use crate::budget::Budget;
use crate::clients::Clients;
use crate::databases::Served;
use crate::guesses::Guesses;
use crate::multi::Multi;
use crate::pause::Pause;
use crate::script::Scripts;
use crate::settings::Settings;
use crate::siblings::Siblings;
use crate::slowlog::SlowLog;
use crate::stats::Stats;
use crate::tracking::Tracking;
use envelope::Passes;
use runtime::clock::Clock;
use runtime::files::Reserve;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The gateway, as its connections see it.
#[derive(Debug)]
pub(crate) struct Shared {
    /// What SELECT chooses among, in the order of their numbers; 0 is there.
    pub(crate) databases: Vec<Served>,
    /// Threads that serve connections.
    pub(crate) workers: usize,
    /// What clients of Redis Cluster are told, if it is to be one.
    pub(crate) cluster: Option<Arc<Siblings>>,
    /// What EXEC does with what cannot change together.
    pub(crate) multi: Multi,
    /// What acknowledged writes are safe from, in a word.
    pub(crate) sync: String,
    pub(crate) services: Vec<SocketAddr>,
    /// Where packets are in envelopes: all that the gateway has.
    pub(crate) passes: Vec<Passes>,
    pub(crate) tracking: Tracking,
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
    /// What Redis calls it: one server, or a node of a cluster.
    pub(crate) fn mode(&self) -> &'static str {
        if self.cluster.is_some() { "cluster" } else { "standalone" }
    }

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

    /// Which worker serves a connection with this number.
    pub(crate) fn worker(&self, id: u64) -> usize {
        usize::try_from(id).unwrap_or(0) % self.workers
    }

    /// The database of that number, if there is one.
    pub(crate) fn find_database(&self, number: i64) -> Option<&Served> {
        self.databases.iter().find(|it| i64::from(it.database.number) == number)
    }

    /// A database that there is.
    pub(crate) fn database(&self, number: u8) -> &Served {
        self.find_database(number.into()).expect("no connection selects one that there is not")
    }

    /// The store of a database for a connection with this number, of this user.
    pub(crate) fn store(&self, database: u8, id: u64, user: Option<&User>) -> &Store {
        self.database(database).store(self.worker(id), user.map(|user| user.name.as_str()))
    }
}
