//! How much a node holds of what: for its driver's metrics.

use crate::engine::Engine;
use crate::node::Node;
use crate::replica::Replica;
use cluster::PartitionId;

impl<E: Engine> Node<E> {
    /// Client sessions held, over all partitions.
    pub fn sessions(&self) -> usize {
        self.replicas.values().map(|replica| replica.sessions.len()).sum()
    }

    /// Clients that have said goodbye, over all partitions: `keyway_node_sessions_ended`.
    pub fn sessions_ended(&self) -> usize {
        self.replicas.values().map(|replica| replica.sessions.ended.len()).sum()
    }

    /// Partitions of this shard that the node has a role in.
    pub fn partitions(&self) -> usize {
        self.replicas.len()
    }

    /// Hot keys marked, over all partitions that the node has a role in: `keyway_node_hot_keys`.
    pub fn hot_keys(&self) -> usize {
        self.replicas.values().map(|replica| replica.registrations.count()).sum()
    }

    /// Copies held of hot keys: `keyway_node_hot_copies`.
    pub fn hot_copies(&self) -> usize {
        self.shard.hot.held.copies()
    }

    /// Keys under delegations of which a write is held: `keyway_node_hot_delegated_keys`.
    pub fn hot_delegated_keys(&self) -> usize {
        self.shard.hot.held.writes()
    }

    /// How many keys of a partition have a value here, and how many of these go by themselves some
    /// day, if it has a role in it and they are counted.
    pub fn keys_in(&self, partition: PartitionId) -> Option<(u64, u64)> {
        let known = self.replicas.get(&partition).and_then(|replica| replica.totals.known());
        known.filter(|_| E::OWNS).map(|it| (it.keys, it.expiring))
    }

    /// Uploads whose parts are held here, and that are not values, or not any more.
    pub fn uploads(&self) -> usize {
        self.replicas.values().map(Replica::strays_of_uploads).sum()
    }
}
