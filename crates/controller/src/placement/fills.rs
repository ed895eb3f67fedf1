//! How full nodes are, and would be.

use super::change::Change;
use super::footprint::Footprint;
use super::owed::Owed;
use super::samples::Samples;
use crate::holdings::{Holding, Holdings, in_permille, permille};
use cluster::{Map, NodeId, PartitionId};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How full nodes are when all that is under way has come to its end, and what they have given away
/// is freed. Of nodes that are not in it nothing is known: they never count as full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fills(BTreeMap<NodeId, Fill>);

#[derive(Clone, Copy, Debug)]
struct Fill {
    holding: Holding,
    footprint: Footprint,
}

impl Fill {
    /// With so many bytes of clients more.
    fn with(&self, bytes: u64) -> Holding {
        let held = self.holding.held.saturating_add(self.footprint.apply(bytes));
        Holding { held, ..self.holding }
    }

    /// With so many less.
    fn without(&self, bytes: u64) -> Holding {
        let held = self.holding.held.saturating_sub(self.footprint.apply(bytes));
        Holding { held, ..self.holding }
    }
}

impl Fills {
    pub(super) fn new(
        (map, holdings): (&Map, &Holdings),
        (samples, owed): (&Samples, &Owed),
        under_way: &BTreeMap<PartitionId, Change>,
    ) -> Self {
        let footprints =
            holdings.iter().map(|(node, it)| (node, Footprint::of(it, owed.of(*node, it))));
        let joint = footprints.clone().filter_map(|it| it.1);
        let joint = joint.fold(Footprint::default(), Footprint::plus);
        let fill = |(node, footprint): (&NodeId, Option<Footprint>)| {
            let (footprint, mut holding) = (footprint.unwrap_or(joint), *holdings.get(node)?);
            let (given, freed) = owed.of(*node, &holding);
            let owes = footprint.apply(given).saturating_sub(freed);
            holding.held = holding.held.saturating_sub(owes);
            Some((*node, Fill { holding, footprint }))
        };
        let mut fills = Self(footprints.filter_map(fill).collect());
        for partition in &map.partitions {
            let bytes = samples.last_held(partition.id).unwrap_or(0);
            match under_way.get(&partition.id) {
                Some(Change::Move { from, to, .. }) if !partition.members().contains(to) => {
                    fills.shift((*from, *to), bytes);
                }
                // As if it held nothing of it yet.
                _ => partition.learner().into_iter().for_each(|it| fills.gain(it, bytes)),
            }
        }
        fills
    }

    /// Bytes of clients go from one node to another.
    pub(super) fn shift(&mut self, (from, to): (NodeId, NodeId), bytes: u64) {
        if let Some(fill) = self.0.get_mut(&from) {
            fill.holding = fill.without(bytes);
        }
        self.gain(to, bytes);
    }

    fn gain(&mut self, node: NodeId, bytes: u64) {
        if let Some(fill) = self.0.get_mut(&node) {
            fill.holding = fill.with(bytes);
        }
    }

    /// How full a node is, in thousandths of what it may hold.
    pub(super) fn permille(&self, node: NodeId) -> Option<u64> {
        Some(in_permille(self.0.get(&node)?.holding.fullness()))
    }

    /// Nodes that are at least so full, the fullest first.
    pub(super) fn at_least(&self, least: u64) -> Vec<NodeId> {
        let full = self.0.iter().map(|(node, it)| (Reverse(it.holding.fullness()), *node));
        let mut full: Vec<_> = full.filter(|(it, _)| it.0 >= permille(least)).collect();
        full.sort_unstable();
        full.into_iter().map(|(_, node)| node).collect()
    }

    /// Whether a node can be given so many bytes of clients.
    pub(super) fn has_room(&self, node: NodeId, bytes: u64) -> bool {
        self.0.get(&node).is_none_or(|it| !it.with(bytes).is_no_taker())
    }

    /// How full the fuller of two nodes is, in millionths of what it may hold, if so many bytes go
    /// from one to the other; `None` if the other has no room for them.
    ///
    /// Nodes of one machine may share a disk. Each then says that as much of it is free, and a move
    /// between them makes room for neither: it does only if the other has more free afterwards than
    /// the one has before.
    pub(super) fn fuller_after(&self, (from, to): (NodeId, NodeId), bytes: u64) -> Option<u64> {
        let gives = self.0.get(&from)?;
        let left = gives.without(bytes).fullness();
        let Some(takes) = self.0.get(&to) else { return Some(left) };
        let (before, after) = (gives.holding, takes.with(bytes));
        let may_share = before.on_disk && after.on_disk;
        let helps = !may_share || after.left() >= before.left();
        (!after.is_no_taker() && helps).then(|| left.max(after.fullness()))
    }

    /// Whether so many bytes of clients are at least one part in so many of what a node may hold;
    /// never if that is not known.
    pub(super) fn is_part(&self, node: NodeId, bytes: u64, part: u64) -> bool {
        let fill = self.0.get(&node);
        fill.is_some_and(|it| it.footprint.apply(bytes).saturating_mul(part) >= it.holding.most)
    }

    /// How many times bytes of clients have one part in so many of what a node may hold, rounded
    /// up.
    pub(super) fn parts(&self, node: NodeId, bytes: u64, part: u64) -> u64 {
        self.0.get(&node).map_or(1, |it| {
            let goal = (it.holding.most / part).max(1);
            it.footprint.apply(bytes).div_ceil(goal)
        })
    }

    /// In words.
    pub(super) fn describe(&self, nodes: &[NodeId]) -> String {
        let say = |node: &NodeId| {
            let permille = self.permille(*node)?;
            Some(format!("node {node} holds {} % of what it may", permille / 10))
        };
        nodes.iter().filter_map(say).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Revision;

    fn fills(nodes: &[(u16, Holding)]) -> Fills {
        let holdings: Holdings = nodes.iter().map(|(id, it)| (NodeId(*id), *it)).collect();
        let about = (&Samples::default(), &Owed::default());
        Fills::new((&Map::default(), &holdings), about, &BTreeMap::new())
    }

    fn holding(held: u64, stored: u64) -> Holding {
        Holding { held, most: 1_000, on_disk: false, stored, follows: Revision::default() }
    }

    #[test]
    fn what_bytes_of_clients_take_is_told_by_nodes_that_hold_much() {
        let fills = fills(&[(1, holding(800, 400)), (2, holding(200, 1)), (3, holding(700, 900))]);
        let after = |from, to| fills.fuller_after((NodeId(from), NodeId(to)), 100);
        // 200 bytes at the one, and 1,500 / 1,300 of 100 at the other.
        assert_eq!(after(1, 2), Some(600_000));
        assert_eq!(after(3, 2), Some(600_000), "never less than 100");
        assert_eq!(after(1, 3), None, "it would hold 800");
        assert_eq!(after(1, 9), Some(600_000), "of which nothing is known");
        assert!(fills.has_room(NodeId(2), 400) && !fills.has_room(NodeId(2), 500));
        assert_eq!(fills.at_least(700), [NodeId(1), NodeId(3)]);
        assert!(fills.is_part(NodeId(1), 63, 8) && !fills.is_part(NodeId(1), 62, 8));
        assert_eq!(fills.parts(NodeId(1), 400, 16), 13);
    }

    #[test]
    fn a_move_between_nodes_that_may_share_a_disk_makes_no_room() {
        let on_disk =
            |held, left| Holding { on_disk: true, most: held + left, ..holding(held, held) };
        let fills = fills(&[(1, on_disk(900, 100)), (2, on_disk(10, 100)), (3, on_disk(10, 250))]);
        let after = |to| fills.fuller_after((NodeId(1), NodeId(to)), 50);
        assert_eq!((after(2), after(3)), (None, Some(850_000)));
    }
}
