//! What the switch would do with a key, in words for people.

use crate::Tables;
use crate::tables::Action;
use cluster::{Epoch, KeyspaceId, Match, NodeId, PartitionId};
use wire::Endpoint;

/// Where requests for one match value go, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The partition that holds the match value.
    pub partition: PartitionId,
    /// Its first match value.
    pub first: Match,
    /// Its last match value.
    pub last: Match,
    /// Its configuration number, as stamped.
    pub epoch: Epoch,
    /// Its chain, head first.
    pub chain: Vec<NodeId>,
    /// Where GETs go; `None` if the node table lacks the tail, so that they are dropped.
    pub read: Option<Endpoint>,
    /// Where writes go; `None` if the node table lacks the head, so that they are dropped.
    pub write: Option<Endpoint>,
}

/// What these tables do with requests for this match value; `None` if there is no such keyspace
/// or no partition of it holds the value, so that they are dropped.
#[must_use]
pub fn explain(tables: &Tables, keyspace: KeyspaceId, match_value: Match) -> Option<Explanation> {
    let table = tables.keyspace(keyspace)?;
    let (first, last, action) = table.get(table.position(match_value)?)?;
    let Action { partition, epoch, chain, chain_len, head, tail, .. } = action;
    let ids = chain.as_chunks::<2>().0.iter().map(|id| NodeId(u16::from_be_bytes(*id)));
    (match_value <= last).then(|| Explanation {
        partition: *partition,
        first,
        last,
        epoch: *epoch,
        chain: ids.take((*chain_len).into()).collect(),
        read: tail.map(|exit| exit.to),
        write: *head,
    })
}
