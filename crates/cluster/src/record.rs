//! What nodes keep on record of the map: enough to make it anew when the controller's store is
//! lost.

use crate::{Assignment, ClusterId, Incarnation, NodeId, PartitionId, StoreId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::Revision;

/// What one shard has on record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardRecord {
    /// The cluster whose data it holds, if it was ever given an assignment.
    pub cluster: Option<ClusterId>,
    /// Incarnations before the present one, as in [`crate::NodeReport::past`].
    pub past: Vec<Incarnation>,
    /// Revision of the newest assignment that was installed in any incarnation; 0 for none.
    pub revision: Revision,
    /// That assignment, with the partitions of this shard alone. None if an earlier version of
    /// Keyway installed it, which kept its revision only.
    pub assignment: Option<Arc<Assignment>>,
}

/// What a whole node has on record: `GET /v1/record` of its admin server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Who says so.
    pub node: NodeId,
    /// Identity of its memory.
    pub store: StoreId,
    /// Its present incarnation, or the last one if it does not run.
    pub incarnation: Incarnation,
    /// The incarnations before that, from the last on that it knows the controller to have heard
    /// of.
    pub past: Vec<Incarnation>,
    /// Whether a controller leads it now.
    pub leased: bool,
    /// Revision of the newest assignment that any shard of it has installed; 0 for none.
    pub revision: Revision,
    /// The newest assignment, of each partition as the shard that holds it has it on record. None
    /// if there is none, or none of some shard.
    pub assignment: Option<Assignment>,
}

/// What a switch follows: `GET /v1/record` of its admin server. It keeps nothing on record, but as
/// long as it runs it knows what nodes may not have been told yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchRecord {
    /// Revision of its tables; 0 for none.
    pub revision: Revision,
}

impl NodeRecord {
    /// Whether it has never followed any map: its memory is new.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.revision.is_none()
    }

    /// What shards say together. Where one has nothing to say of a map that another one follows,
    /// what the node holds is not known.
    #[must_use]
    pub fn of_shards(
        (node, store, incarnation): (NodeId, StoreId, Incarnation),
        leased: bool,
        shards: &[ShardRecord],
    ) -> Self {
        let first = shards.first().map_or(&[][..], |shard| &shard.past);
        let known = |incarnation: &&Incarnation| {
            shards.iter().all(|shard| shard.past.contains(incarnation))
        };
        let assignments: Option<Vec<&Assignment>> =
            shards.iter().map(|shard| shard.assignment.as_deref()).collect();
        Self {
            node,
            store,
            incarnation,
            past: first.iter().filter(known).copied().collect(),
            leased,
            revision: shards.iter().map(|shard| shard.revision).max().unwrap_or_default(),
            assignment: assignments.and_then(|all| join(&all)),
        }
    }
}

/// The newest of them, with the partitions of all.
fn join(shards: &[&Assignment]) -> Option<Assignment> {
    let newest = shards.iter().max_by_key(|it| it.revision)?;
    let partitions = shards.iter().flat_map(|it| &it.partitions);
    let partitions: BTreeMap<PartitionId, _> = partitions.map(|it| (it.id, it.clone())).collect();
    Some(Assignment { partitions: partitions.into_values().collect(), ..(*newest).clone() })
}

impl Assignment {
    /// As a shard keeps it on record: JSON, which later versions can read as they read orders.
    #[must_use]
    pub fn to_record(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("it has no maps with keys that are no text")
    }

    /// Reads it back; `None` if it is something else.
    #[must_use]
    pub fn from_record(record: &[u8]) -> Option<Self> {
        serde_json::from_slice(record).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Epoch, Partition};
    use wire::Endpoint;

    fn shard(revision: u64, partitions: &[(u32, u32)]) -> ShardRecord {
        let partition = |(id, epoch): &(u32, u32)| Partition {
            id: PartitionId(*id),
            epoch: Epoch(*epoch),
            ..Partition::default()
        };
        let assignment = Assignment {
            caches: Vec::new(),
            revision: Revision::new(revision),
            cluster: ClusterId(u64::MAX),
            node: NodeId(3),
            store: StoreId(5),
            incarnation: Some(Incarnation(9)),
            aged: Revision::NONE,
            switch: "127.0.0.1:7700".parse::<std::net::SocketAddr>().map(Endpoint::from).unwrap(),
            copy_bytes_per_s: 7,
            nodes: Vec::new(),
            keyspaces: Vec::new(),
            partitions: partitions.iter().map(partition).collect(),
        };
        let (cluster, past) =
            (Some(ClusterId(u64::MAX)), vec![Incarnation(revision), Incarnation(8)]);
        ShardRecord {
            cluster,
            past,
            revision: Revision::new(revision),
            assignment: Some(Arc::new(assignment)),
        }
    }

    fn record(shards: &[ShardRecord]) -> NodeRecord {
        NodeRecord::of_shards((NodeId(3), StoreId(5), Incarnation(9)), false, shards)
    }

    #[test]
    fn a_node_has_on_record_of_each_partition_what_its_shard_has() {
        let found = record(&[shard(7, &[(2, 6)]), shard(6, &[(1, 4), (3, 5)])]);
        assert_eq!(
            (found.revision, found.past.as_slice()),
            (Revision::new(7), &[Incarnation(8)][..])
        );
        let assignment = found.assignment.unwrap();
        let partitions: Vec<_> =
            assignment.partitions.iter().map(|p| (p.id.0, p.epoch.0)).collect();
        assert_eq!(
            (assignment.revision, partitions),
            (Revision::new(7), vec![(1, 4), (2, 6), (3, 5)])
        );
    }

    #[test]
    fn a_node_that_lacks_a_shard_does_not_say_that_it_knows_everything() {
        let found = record(&[shard(7, &[(2, 6)]), ShardRecord::default()]);
        assert_eq!((found.is_blank(), found.assignment), (false, None));
        assert!(record(&[ShardRecord::default()]).is_blank());
    }

    #[test]
    fn an_assignment_survives_its_note_and_a_record_its_json() {
        let found = record(&[shard(7, &[(2, 6)])]);
        let assignment = found.assignment.clone().unwrap();
        assert_eq!(Assignment::from_record(&assignment.to_record()), Some(assignment));
        assert_eq!(Assignment::from_record(b"{}"), None);
        let text = serde_json::to_string(&found).unwrap();
        assert!(text.contains("\"cluster\":\"ffffffffffffffff\""), "{text}");
        assert_eq!(serde_json::from_str::<NodeRecord>(&text).unwrap(), found);
    }
}
