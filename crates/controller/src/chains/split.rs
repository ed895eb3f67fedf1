//! Splitting a partition: it is closed, settles, and becomes two with the same nodes. And what
//! partitions that are made of others have in common.

use super::compare::Comparison;
use super::plan::{Case, Reason, Step};
use crate::placement::Change;
use crate::saved::Saved;
use cluster::{Epoch, Making, Map, Match, NodeId, Origin, Partition, PartitionId};

impl Case<'_> {
    /// Where it is to be cut.
    fn cut(&self) -> Option<Match> {
        let Some(Change::Split { at, .. }) = self.change else { return None };
        let Partition { first, last, .. } = *self.partition;
        (first < at && at <= last).then_some(at)
    }

    /// Whether it is to be closed for that.
    pub(super) fn is_to_split(&self) -> bool {
        let can = |node: &NodeId| self.sight(*node).splits;
        let partition = self.partition;
        self.cut().is_some()
            && self.parts_left > 0
            && !partition.has_learner
            && partition.chain.iter().all(can)
    }

    /// Makes two of a closed partition whose members all hold the same. While a key is delegated
    /// they do not hold all of it: then the partition opens as it is.
    pub(super) fn split(&self, compared: &Comparison) -> Option<Step> {
        let at = self.cut().filter(|_| self.is_to_split())?;
        if !compared.behind.is_empty() || compared.delegated {
            return None;
        }
        let half = self.remade([self.partition])?;
        let first = Partition { last: Match(at.0 - 1), ..half.clone() };
        let mut second = Partition { first: at, ..half };
        // Its roles fall to others.
        second.chain.rotate_left(1);
        Some(Step { second: Some(second), ..Step::new(first, Reason::Remade) })
    }
}

impl Case<'_> {
    /// What is made of these, this partition among them, with the nodes of the present chain and in
    /// the bounds of this one. It has no id yet.
    pub(super) fn remade<const N: usize>(&self, of: [&Partition; N]) -> Option<Partition> {
        let Step { next: opened, .. } = self.open();
        let before = self.partition;
        if opened.has_learner || opened.chain.iter().any(|node| !before.chain.contains(node)) {
            return None;
        }
        let origins = of.iter().map(|it| {
            let held = it.chain.iter().copied().zip(it.since.iter().copied());
            Origin { partition: it.id, members: held.collect() }
        });
        Some(Partition {
            id: PartitionId(0),
            epoch: Epoch(1),
            opened: Epoch(1),
            since: vec![self.revision; opened.chain.len()],
            away: Vec::new(),
            made: Some(Making { revision: self.revision, origins: origins.collect() }),
            ..opened
        })
    }
}

impl Step {
    /// Whether it makes others of what there is.
    pub(super) fn remakes(&self) -> bool {
        self.reason == Reason::Remade
    }

    /// Gives what is made of others ids that nobody had before: such that each node has it at the
    /// shard that has what it is made of.
    pub(super) fn name_parts(&mut self, state: &mut Saved) {
        if !self.remakes() {
            return;
        }
        let origins = self.next.made.iter().flat_map(|made| &made.origins);
        let origin = origins.map(|it| it.partition).next().unwrap_or_default();
        let stride = stride(&state.map, &self.next.chain);
        for part in [&mut self.next].into_iter().chain(&mut self.second) {
            let ahead = (origin.0 % stride + stride - state.next_partition % stride) % stride;
            part.id = PartitionId(state.next_partition + ahead);
            state.next_partition = part.id.0 + 1;
        }
    }
}

/// Whether every one of these nodes has both partitions at one shard.
pub(crate) fn are_at_one_shard(map: &Map, chain: &[NodeId], ids: [PartitionId; 2]) -> bool {
    let stride = stride(map, chain);
    let [one, other] = ids;
    one.0 % stride == other.0 % stride
}

/// Ids that differ by this are of one shard at each of these nodes.
fn stride(map: &Map, chain: &[NodeId]) -> u32 {
    let nodes = map.nodes.iter().filter(|it| chain.contains(&it.id));
    nodes.fold(1, |all, node| {
        let shards = u32::from(node.shards);
        all / common_divisor(all, shards) * shards
    })
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// How many partitions may be split: of the places in the map, and of the ids.
pub(super) fn parts_left(state: &Saved) -> usize {
    let places = wire::PARTITIONS_MAX.saturating_sub(state.map.partitions.len());
    let ids = (u32::MAX - state.next_partition) / IDS_MAX;
    places.min(usize::try_from(ids).unwrap_or(usize::MAX))
}

/// Ids that a split passes over at most: while all nodes of a chain together have fewer than so
/// many combinations of shards.
const IDS_MAX: u32 = 1 << 20;

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
