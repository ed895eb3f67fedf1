//! What outlives the controller.

use cluster::{Map, NodeId, StoreId};
use machine::Instant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Number of the form that [`Saved`] has now; a controller refuses any other.
pub const FORMAT: u32 = 1;

/// Everything that the durable store holds, always written and read as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// [`FORMAT`] when it was written.
    pub format: u32,
    /// Seed of all hashes over keys. It never changes: all data lies where it says.
    pub seed: u64,
    /// Service endpoints of the switches, as every node was told.
    pub switches: Vec<SocketAddr>,
    /// The map. Its revision counts changes of anything in here.
    pub map: Map,
    /// Identity of each node's memory when it was taken in.
    pub stores: BTreeMap<NodeId, StoreId>,
    /// The next keyspace's id. Ids are never used twice.
    pub next_keyspace: u16,
    /// The next partition's id. Ids are never used twice.
    pub next_partition: u32,
}

impl Saved {
    /// Gives the contents a new revision, after they changed.
    ///
    /// The revision is the Unix time in milliseconds unless that has been reached already. So a
    /// controller that lost its store, or was given an old copy of it, does not hand out a number
    /// that members know from its earlier life with other contents.
    pub(crate) fn advance(&mut self, now: Instant) {
        let next = self.map.revision.checked_add(1).expect("64 bits outlast every cluster");
        self.map.revision = next.max(now.unix_ms());
    }

    /// How many partitions have this node in their chain.
    pub(crate) fn partitions_of(&self, node: NodeId) -> usize {
        self.map.partitions.iter().filter(|p| p.chain.contains(&node)).count()
    }
}
