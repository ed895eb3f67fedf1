//! A cluster, and a store in front of it.

use bytes::Bytes;
use client::Options;
use client::asynchronous::Client;
use gateway::command::{Run, resolve};
use gateway::store::Store;
use gateway::{Long, Reply};
use runtime::up::{Embedded, HASH_KEYSPACE, UpOptions};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// A cluster of three nodes in memory, and a gateway's store before it.
pub(crate) struct Gateway {
    pub(crate) runtime: Runtime,
    pub(crate) cluster: Embedded,
}

impl Gateway {
    pub(crate) fn start() -> Self {
        let options = UpOptions::in_memory(3, 2, 16);
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { runtime, cluster: Embedded::start(&options).unwrap() }
    }

    /// A store with a client of its own, as of another gateway.
    pub(crate) fn store(&self) -> Store {
        // A busy machine is no reason for an outcome to be unknown.
        self.store_within(Duration::from_secs(60))
    }

    /// One whose requests may wait for an answer so long.
    pub(crate) fn store_within(&self, deadline: Duration) -> Store {
        self.runtime.block_on(async {
            let options = Options { deadline, ..Options::default() };
            let client = Client::connect(self.cluster.service(), options).await.unwrap();
            Store::new(client.keyspace(HASH_KEYSPACE).await.unwrap())
        })
    }

    /// Ends the cluster; what is left has nobody to ask.
    pub(crate) fn stop(self) -> Runtime {
        self.cluster.stop();
        self.runtime
    }

    /// Carries out one command, given as words.
    pub(crate) fn say(&self, store: &Store, words: &str) -> Reply {
        let args: Vec<Bytes> = words.split(' ').map(|it| it.to_owned().into()).collect();
        self.runtime.block_on(run(store, &args))
    }
}

/// Carries out a command as a session does: if it exists, and its arguments are as many as they may
/// be.
pub(crate) async fn run(store: &Store, args: &[Bytes]) -> Reply {
    let spec = match resolve(args) {
        Ok(found) => found.spec,
        Err(reply) => return reply,
    };
    let Run::Keyed(command) = spec.run else { panic!("{} is not about keys", spec.name) };
    match store.run(command, args).await {
        Reply::Long(long) => Reply::Bulk(whole(&long).await),
        reply => reply,
    }
}

/// All bytes of a long reply.
async fn whole(long: &Long) -> Bytes {
    let mut pieces = long.take().expect("nobody else takes them");
    let mut all = Vec::new();
    while let Some(piece) = pieces.recv().await {
        all.extend_from_slice(&piece);
    }
    assert_eq!(all.len() as u64, long.len(), "all that were said to come");
    all.into()
}

/// The word of an integer.
pub(crate) fn integer(reply: &Reply) -> i64 {
    let Reply::Integer(number) = reply else { panic!("no integer: {reply:?}") };
    *number
}
