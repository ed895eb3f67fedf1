//! What the maps say of a hot key, for people.

use crate::layout::{Delegation, Holders, Hot, HotKey};
use crate::maps;
use crate::{Error, Plane};
use cluster::{KeyspaceId, NodeId};
use machine::Instant;
use switch::{DelegationExplanation, HotExplanation, tag_of};

impl<C: FnMut() -> Instant> Plane<C> {
    /// What the programs know of this key at the moment; `None` if it is not hot. Nothing is
    /// counted, and no version given.
    ///
    /// # Errors
    ///
    /// If the kernel does not say.
    pub fn explain_hot(
        &self,
        keyspace: KeyspaceId,
        keyhash: u64,
    ) -> Result<Option<HotExplanation>, Error> {
        let key = HotKey { keyhash, keyspace: keyspace.0 }.to_bytes();
        let read = |map| maps::get(&self.program().map(map), &key);
        let Some(hot) = read("hot_keys")?.as_deref().and_then(Hot::from_bytes) else {
            return Ok(None);
        };
        let holders = maps::one(&self.program().map(".data.holders"))?;
        let holders = Holders::from_bytes(&holders);
        let readers = holders.map_or_else(Vec::new, |holders| readers(&hot, &holders));
        // Of a key under no delegation there may be one that is being taken out.
        let delegation = if hot.replicas > 0 { read("delegations")? } else { None };
        let delegation = delegation.as_deref().and_then(Delegation::from_bytes);
        let delegation = delegation.map(|delegation| DelegationExplanation {
            number: delegation.number,
            replicas: hot.replicas,
            next: (!delegation.begun.is_none() && delegation.next <= delegation.last)
                .then_some(delegation.next),
        });
        let (generation, floor, proven) = (hot.generation, hot.floor, hot.proven > 0);
        Ok(Some(HotExplanation { generation, floor, proven, readers, delegation }))
    }
}

/// The readers of a key, and whether they said to hold the version of its floor.
fn readers(hot: &Hot, holders: &Holders) -> Vec<(NodeId, bool)> {
    let round = usize::try_from(holders.count).unwrap_or(0).max(1);
    let (first, holder) = (usize::from(hot.first), tag_of(hot.floor));
    let reader = |(reader, said): (usize, &u8)| {
        let node = *holders.nodes.get((first + reader) % round)?;
        (usize::from(node) < wire::NODES_MAX).then_some((NodeId(node), *said == holder))
    };
    hot.holders.iter().take(hot.readers.into()).enumerate().filter_map(reader).collect()
}
