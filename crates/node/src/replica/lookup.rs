//! Which replica of a shard has what is read.

use crate::replica::Replica;
use cluster::{KeyspaceId, Match, PartitionId, RangeTable};
use std::collections::BTreeMap;

/// The replicas as an MGET looks its keys up in them.
pub(crate) struct Lookup<'a> {
    pub(crate) replicas: &'a mut BTreeMap<PartitionId, Replica>,
    pub(crate) ranges: &'a BTreeMap<KeyspaceId, RangeTable<PartitionId>>,
}

impl Lookup<'_> {
    /// The replica that serves reads of this match value, if this node does.
    pub(crate) fn tail_of(&mut self, keyspace: KeyspaceId, at: Match) -> Option<&mut Replica> {
        let partition = self.ranges.get(&keyspace)?.find(at)?;
        let replica = self.replicas.get_mut(partition)?;
        (replica.member.is_tail() && replica.member.partition.open).then_some(replica)
    }
}
