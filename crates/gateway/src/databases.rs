//! Databases: the numbers by which SELECT names keyspaces.

use crate::Store;
use crate::hot::HotKeys;
use crate::key_count::LastCount;
use client::KeyCount;
use std::collections::BTreeMap;

/// A keyspace, under the number by which clients select it.
#[derive(Clone, Debug)]
pub struct Database {
    /// Its number. Every connection begins in database 0.
    pub number: u8,
    /// The keyspace whose keys clients see there, a hash keyspace.
    pub keyspace: String,
    /// Nodes that hold each key, if that is known: what WAIT and INFO tell.
    pub replicas: Option<u8>,
    /// Who knows the hot keys: for HOTKEYS and OBJECT FREQ.
    pub hot: Option<HotKeys>,
}

/// A database that connections use.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) database: Database,
    stores: Stores,
    key_count: LastCount,
}

/// What requests are made by: one store for each worker, which has a task and a socket of its own.
#[derive(Debug)]
pub(crate) struct Stores {
    /// By the gateway's own right.
    pub(crate) own: Vec<Store>,
    /// By the right of each user, by name, if the gateway acts for its users.
    pub(crate) of_users: BTreeMap<String, Vec<Store>>,
}

impl Served {
    /// One with these stores.
    pub(crate) fn new(database: Database, stores: Stores) -> Self {
        Self { database, stores, key_count: LastCount::default() }
    }

    /// The store of a worker for this user, or for the gateway itself. Who has not said yet who it
    /// is can ask nothing of either.
    pub(crate) fn store(&self, worker: usize, user: Option<&str>) -> &Store {
        let Stores { own, of_users } = &self.stores;
        let stores = match user.filter(|_| !of_users.is_empty()) {
            None => own,
            Some(user) => of_users.get(user).expect("whoever can be somebody has stores"),
        };
        stores.get(worker).expect("each worker has a store of every database")
    }

    /// How many keys there are, as INFO tells it; `None` if the cluster does not say.
    pub(crate) async fn key_count(&self) -> Option<KeyCount> {
        let count = async { self.store(0, None).key_count().await.ok() };
        self.key_count.get(count).await
    }

    /// Nodes that hold a key besides the first; 0 if that is not known.
    pub(crate) fn others(&self) -> u8 {
        self.database.replicas.unwrap_or_default().saturating_sub(1)
    }
}
