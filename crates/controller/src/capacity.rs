//! How much nodes can bear, beside each other: their replicas are shared out by it.

use cluster::NodeId;
use std::collections::BTreeMap;

/// What the fastest node bears. Speeds are told apart by eighths of it: finer ones would have
/// replicas moved for little.
const WEIGHT_MAX: u64 = 8;

/// What a replica fills a node of weight 1 by: divided by any weight it leaves nothing over.
const SEAT: usize = 840;

/// The weights of those nodes that are not as fast as the fastest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weights(BTreeMap<NodeId, u64>);

impl Weights {
    /// The weight of the fastest.
    pub(crate) const FULL: u64 = WEIGHT_MAX;

    /// For nodes that serve so many requests per second; 0: it is not known, and such a node passes
    /// for one of the fastest.
    pub(crate) fn new(rates: impl Iterator<Item = (NodeId, u32)> + Clone) -> Self {
        let most = rates.clone().map(|(_, rate)| u64::from(rate)).max().unwrap_or(0);
        let weight = |rate: u32| match u64::from(rate) {
            0 => WEIGHT_MAX,
            rate => ((rate * WEIGHT_MAX + most / 2) / most).max(1),
        };
        let weights = rates.map(|(node, rate)| (node, weight(rate)));
        Self(weights.filter(|(_, weight)| *weight < WEIGHT_MAX).collect())
    }

    /// What a node bears, in eighths of what the fastest bears.
    pub(crate) fn of(&self, node: NodeId) -> u64 {
        self.0.get(&node).copied().unwrap_or(WEIGHT_MAX)
    }

    /// How full so many replicas make a node, in a unit of which only the order means
    /// something.
    pub(crate) fn fullness(&self, node: NodeId, replicas_held: usize) -> usize {
        let weight = usize::try_from(self.of(node)).expect("at most WEIGHT_MAX");
        replicas_held * SEAT / weight
    }

    /// These nodes one after the other, each as often as it has weight and as evenly spread as can
    /// be; nodes of the same weight in their order.
    pub(crate) fn turns(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        let weights: Vec<u64> = nodes.iter().map(|node| self.of(*node)).collect();
        let all: u64 = weights.iter().sum();
        // What each is owed: who is owed most is next.
        let mut owed = vec![0_i64; nodes.len()];
        let next = |_| {
            for (owed, weight) in owed.iter_mut().zip(&weights) {
                *owed += weight.cast_signed();
            }
            let most = owed.iter_mut().zip(nodes).rev().max_by_key(|(owed, _)| **owed);
            let (owed, node) = most.expect("weights are of nodes");
            *owed -= all.cast_signed();
            *node
        };
        (0..all).map(next).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [NodeId; 4] = [NodeId(1), NodeId(2), NodeId(3), NodeId(4)];

    fn weights(rates: [u32; 4]) -> Weights {
        Weights::new(NODES.into_iter().zip(rates))
    }

    fn turns(rates: [u32; 4]) -> Vec<u16> {
        weights(rates).turns(&NODES).iter().map(|node| node.0).collect()
    }

    #[test]
    fn nodes_of_one_speed_take_turns() {
        for rates in [[0; 4], [7; 4], [1_000, 999, 990, 950]] {
            assert_eq!(weights(rates), Weights::default());
            let turns = turns(rates);
            assert_eq!(turns.len(), 32);
            assert!(turns.chunks(4).all(|round| round == [1, 2, 3, 4]), "{turns:?}");
        }
        assert!(Weights::default().turns(&[]).is_empty());
    }

    #[test]
    fn a_slow_node_has_as_many_turns_as_it_can_bear_and_is_full_sooner() {
        let rates = [10_000, 5_000, 0, 1];
        let (turns, weights) = (turns(rates), weights(rates));
        let count = |node: u16| turns.iter().filter(|it| **it == node).count();
        assert_eq!([1, 2, 3, 4].map(count), [8, 4, 8, 1], "who does not say counts as fast");
        assert!(turns.windows(2).all(|two| two[0] != two[1]), "{turns:?}");
        let full = |node, replicas_held| weights.fullness(NodeId(node), replicas_held);
        assert_eq!(full(1, 8), full(2, 4));
        assert_eq!(full(1, 8), full(4, 1));
        assert!(full(2, 5) > full(3, 9));
    }
}
