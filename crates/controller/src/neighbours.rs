//! What two partitions need to become one, and which ids lie together at every node.

use cluster::{Map, NodeId, Partition, PartitionId};
use std::collections::BTreeSet;

/// Whether all that two chains have are the same members.
pub(crate) fn have_the_same_nodes(one: &Partition, other: &Partition) -> bool {
    let set = |it: &Partition| it.chain.iter().copied().collect::<BTreeSet<_>>();
    !one.has_learner && !other.has_learner && set(one) == set(other)
}

/// Whether every one of these nodes has both partitions at one shard.
pub(crate) fn are_at_one_shard(map: &Map, chain: &[NodeId], ids: [PartitionId; 2]) -> bool {
    let stride = stride(map, chain);
    let [one, other] = ids;
    one.0 % stride == other.0 % stride
}

/// Ids that differ by this are of one shard at each of these nodes.
pub(crate) fn stride(map: &Map, chain: &[NodeId]) -> u32 {
    let nodes = map.nodes.iter().filter(|it| chain.contains(&it.id));
    nodes.fold(1, |all, node| {
        let shards = u32::from(node.shards);
        all / common_divisor(all, shards) * shards
    })
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::NodeSpec;

    #[test]
    fn ids_are_of_one_shard_at_every_node_when_they_differ_by_what_all_shards_divide() {
        let node = |id: u16, shards: u16| NodeSpec {
            id: NodeId(id),
            endpoint: std::net::SocketAddr::from(([127, 0, 0, 1], 100 * id)).into(),
            shards,
        };
        let nodes = vec![node(1, 2), node(2, 3), node(3, 4), node(4, 5)];
        let map = Map { nodes, ..Map::default() };
        let chain: Vec<NodeId> = [1, 2, 3].map(NodeId).to_vec();
        assert_eq!(stride(&map, &chain), 12);
        assert_eq!(stride(&map, &[NodeId(4)]), 5);
    }
}
