//! Moving replicas from full nodes to empty ones, when nothing else is going on.
//!
//! A replica moves only if the node that gets it is then less full, by what it can bear, than the
//! node that gives it up was: among nodes of the same speed, if that one has at least two more. So
//! each move makes the fuller of the two less full, and they cannot go round in circles. Nor does a
//! replica move to a node that would then have more to do than the one that it comes from.

use super::leftovers::Leftovers;
use super::replica_counts::{Intent, Tally};
use super::sight::Outlook;
use crate::placement::Burdens;
use cluster::{Map, NodeId, Partition, PartitionId};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Copies to begin, each in another partition and to another node. O(nodes x partitions) if there
/// is anything to even out, else O(nodes).
pub(crate) fn moves(
    map: &Map,
    outlook: &Outlook,
    leftovers: &Leftovers,
    burdens: &Burdens<'_>,
    mut tally: Tally,
) -> Vec<(PartitionId, Intent)> {
    let mut moves = Vec::new();
    let busy = |p: &Partition| !p.open || p.has_learner;
    if outlook.paused || !is_uneven(outlook, &tally) || map.partitions.iter().any(busy) {
        return moves;
    }
    let mut takers: Vec<NodeId> = outlook.willing().collect();
    takers.sort_by_key(|node| (full(outlook, &tally, *node), *node));
    let mut moving = BTreeSet::new();
    for taker in takers {
        let free = |p: &&Partition| !moving.contains(&p.id) && !leftovers.may_hold(taker, p.id);
        let free = map.partitions.iter().filter(free);
        let offers =
            free.filter_map(|p| Some((p.id, offer(p, taker, (outlook, burdens), &tally)?)));
        let best =
            offers.max_by_key(|(id, (from, _))| (full(outlook, &tally, *from), Reverse(*id)));
        let Some((partition, (from, intent))) = best else { continue };
        moving.insert(partition);
        tally.move_replica(from, intent);
        moves.push((partition, intent));
    }
    moves
}

fn is_uneven(outlook: &Outlook, tally: &Tally) -> bool {
    let most = outlook.takers().map(|node| full(outlook, tally, node)).max();
    let least = outlook.willing().map(|node| fuller(outlook, tally, node)).min();
    least < most
}

/// How full a node is.
fn full(outlook: &Outlook, tally: &Tally, node: NodeId) -> usize {
    outlook.weights.fullness(node, tally.of(node).replicas_held)
}

/// The same with one replica more.
fn fuller(outlook: &Outlook, tally: &Tally, node: NodeId) -> usize {
    outlook.weights.fullness(node, tally.of(node).replicas_held + 1)
}

/// Who would give up its replica in this partition to that node, and who would give the copy.
fn offer(
    partition: &Partition,
    taker: NodeId,
    (outlook, burdens): (&Outlook, &Burdens<'_>),
    tally: &Tally,
) -> Option<(NodeId, Intent)> {
    let chain = &partition.chain;
    let whole = chain.iter().all(|node| outlook.of(*node).serving);
    if !whole || partition.concerns(taker) || chain.len() == wire::CHAIN_MAX {
        return None;
    }
    let fullest = |node: &NodeId| (full(outlook, tally, *node), Reverse(*node));
    let bears = |from: &NodeId| burdens.can_move(partition, (*from, taker));
    let from = chain.iter().copied().filter(bears).max_by_key(fullest)?;
    if fuller(outlook, tally, taker) >= full(outlook, tally, from) {
        return None;
    }
    let free = chain.iter().copied().filter(|node| tally.of(*node).can_give());
    let giver = free.min_by_key(|node| (tally.of(*node).tail_permille(), *node))?;
    Some((from, Intent { giver, taker }))
}
