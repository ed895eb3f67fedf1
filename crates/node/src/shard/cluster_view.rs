//! What the controller has told this node about the rest of the cluster.

use cluster::{
    Assignment, CacheShard, CacheSpec, Keyspace, KeyspaceId, NodeId, NodeSpec, PartitionId,
};
use std::collections::BTreeMap;
use wire::{Endpoint, Revision};

/// The assignment without its partitions, which became replicas.
#[derive(Debug)]
pub(crate) struct ClusterView {
    pub(crate) revision: Revision,
    pub(crate) me: NodeId,
    /// Where this shard takes packets.
    pub(crate) here: Endpoint,
    /// Where replies go.
    pub(crate) switch: Endpoint,
    nodes: BTreeMap<NodeId, NodeSpec>,
    keyspaces: BTreeMap<KeyspaceId, Keyspace>,
    caches: Vec<CacheSpec>,
}

impl ClusterView {
    /// That of one of the node's shards.
    pub(crate) fn new(assignment: &Assignment, shard: u16) -> Self {
        let me = assignment.nodes.iter().find(|node| node.id == assignment.node);
        let here = me.map(|node| node.endpoint_of(PartitionId(shard.into())));
        Self {
            revision: assignment.revision,
            me: assignment.node,
            here: here.unwrap_or_default(),
            switch: assignment.switch,
            nodes: assignment.nodes.iter().map(|n| (n.id, *n)).collect(),
            keyspaces: assignment.keyspaces.iter().map(|k| (k.id, k.clone())).collect(),
            caches: assignment.caches.clone(),
        }
    }

    pub(crate) fn caches(&self) -> &[CacheSpec] {
        &self.caches
    }

    /// The shard of a cache that sends from there.
    pub(crate) fn cache_at(&self, from: Endpoint) -> Option<CacheShard> {
        let shard = |it: &CacheSpec| Some(CacheShard { cache: it.id, shard: it.shard_at(from)? });
        self.caches.iter().find_map(shard)
    }

    /// Where a shard of a cache takes messages.
    pub(crate) fn cache(&self, of: CacheShard) -> Option<Endpoint> {
        self.caches.iter().find(|cache| cache.id == of.cache)?.endpoint_of(of.shard)
    }

    pub(crate) fn keyspace(&self, id: KeyspaceId) -> Option<&Keyspace> {
        self.keyspaces.get(&id)
    }

    /// Whether keys of any keyspace have content addresses.
    pub(crate) fn has_addresses(&self) -> bool {
        self.keyspaces.values().any(|it| it.content.is_some())
    }

    pub(crate) fn keyspace_named(&self, name: &[u8]) -> Option<&Keyspace> {
        self.keyspaces.values().find(|k| k.name.as_bytes() == name)
    }

    /// Where a node takes packets of this partition.
    pub(crate) fn endpoint(&self, node: NodeId, partition: PartitionId) -> Option<Endpoint> {
        self.nodes.get(&node).map(|spec| spec.endpoint_of(partition))
    }

    /// Where all nodes take packets of this partition.
    pub(crate) fn endpoints(&self, partition: PartitionId) -> Vec<Endpoint> {
        self.nodes.values().map(|spec| spec.endpoint_of(partition)).collect()
    }

    /// Whether datagrams from `source` come from this node.
    pub(crate) fn owns(&self, node: NodeId, source: Endpoint) -> bool {
        self.nodes.get(&node).is_some_and(|spec| spec.owns(source))
    }
}
