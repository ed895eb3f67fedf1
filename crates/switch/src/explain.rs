//! What the switch would do with a key, in words for people.

use crate::tables::Action;
use crate::{DelegationExplanation, Directory, Tables};
use cluster::{Epoch, KeyspaceId, Match, NodeId, PartitionId};
use serde::{Deserialize, Serialize};
use wire::{Endpoint, Generation, Version};

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
    let Action { partition, epoch, head, tail, .. } = action;
    (match_value <= last).then(|| Explanation {
        partition: *partition,
        first,
        last,
        epoch: *epoch,
        chain: action.nodes().collect(),
        read: tail.map(|exit| exit.to),
        write: *head,
    })
}

/// What the directory knows of a hot key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotExplanation {
    /// Number of its generation.
    pub generation: Generation,
    /// No answer may be older than this version.
    pub floor: Version,
    /// Whether that is certain, so that reads may go to copies.
    pub proven: bool,
    /// Nodes that may hold copies, and whether they said to hold the version of the floor.
    pub readers: Vec<(NodeId, bool)>,
    /// The delegation that its writes are to go on.
    pub delegation: Option<DelegationExplanation>,
}

impl HotExplanation {
    /// The readers of which one is asked for a read; if there are none it goes home, to the tail.
    #[must_use]
    pub fn asked(&self) -> Vec<NodeId> {
        let held = self.readers.iter().filter(|(_, holds)| *holds && self.proven);
        held.map(|(node, _)| *node).collect()
    }

    /// What a read is stamped with that goes home: the version that the answer may not be older
    /// than, if the key is delegated; `None`: only its tail may answer.
    #[must_use]
    pub fn floor_at_home(&self) -> Option<Version> {
        (self.proven && self.delegation.is_some()).then_some(self.floor)
    }
}

/// What the directory knows of this key at the moment; `None` if it is not hot.
#[must_use]
pub fn explain_hot(
    directory: &Directory,
    keyspace: KeyspaceId,
    keyhash: u64,
) -> Option<HotExplanation> {
    let table = directory.table();
    let row = table.find(keyspace, keyhash)?;
    let (floor, proven) = row.entry.floor();
    let reader = |reader| Some((table.reader(row, reader)?, row.holds(reader, floor)));
    let readers = (0..row.readers()).filter_map(reader).collect();
    let delegation = row.delegation.as_ref().map(|delegation| delegation.explain());
    Some(HotExplanation { generation: row.entry.generation(), floor, proven, readers, delegation })
}
