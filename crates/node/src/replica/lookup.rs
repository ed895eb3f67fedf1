//! Which replica of a shard has what is read.

use crate::replica::Replica;
use cluster::{KeyspaceId, Match, PartitionId, RangeTable};
use std::collections::BTreeMap;
use wire::{ContentClass, Header, Op, hop_flag};

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

    /// Stamps a request that came to its key's address as a switch would that knew of this node's
    /// partitions alone, and as they are now. What lies in none of them is stamped for partition 0,
    /// which nobody has. Counts it, as no switch does.
    pub(crate) fn stamp(&mut self, op: Op, request: &Header) -> Header {
        let unstamped = Header {
            hop_flags: request.hop_flags & (wire::CONTENT_HOP_FLAGS | hop_flag::MISSED),
            partition: 0,
            epoch: 0,
            chain: Default::default(),
            chain_len: 0,
            chain_pos: 0,
            ..*request
        };
        let ranges = self.ranges.get(&KeyspaceId(request.keyspace));
        let id = ranges.and_then(|ranges| ranges.find(Match(request.match_value)));
        let Some(replica) = id.and_then(|id| self.replicas.get_mut(id)) else { return unstamped };
        let writes = ContentClass::of(op, request.flags) == Some(ContentClass::Write);
        replica.count_by_address(writes);
        let partition = &replica.member.partition;
        let (whole, tail) = (partition.chain.iter().copied(), partition.tail());
        let (chain, chain_len) = if writes {
            wire::chain_bytes(whole.map(|id| id.0))
        } else {
            wire::chain_bytes(tail.map(|id| id.0))
        };
        let (partition, epoch) = (partition.id.0, partition.epoch.0);
        Header { partition, epoch, chain, chain_len, ..unstamped }
    }
}
