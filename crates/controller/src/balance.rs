//! Moving seats from full nodes to empty ones, when nothing else is going on.
//!
//! A seat moves only if the node that gives it up has at least two more than the node that gets it.
//! So each move makes the shares more even, and they cannot go round in circles.

use crate::leftovers::Leftovers;
use crate::plan::Outlook;
use crate::seats::{Intent, Tally};
use cluster::{Map, NodeId, Partition, PartitionId};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// How much more one node has than another before a seat moves: with one more it would only be the
/// other way round.
const DIFFERENCE_MIN: usize = 2;

/// Copies to begin, each in another partition and to another node. O(nodes x partitions) if there
/// is anything to even out, else O(nodes).
pub(crate) fn moves(
    map: &Map,
    outlook: &Outlook,
    leftovers: &Leftovers,
    mut tally: Tally,
) -> Vec<(PartitionId, Intent)> {
    let mut moves = Vec::new();
    let busy = |p: &Partition| !p.open || p.joining;
    if outlook.paused || !is_uneven(outlook, &tally) || map.partitions.iter().any(busy) {
        return moves;
    }
    let mut takers: Vec<NodeId> = outlook.takers().collect();
    takers.sort_by_key(|node| (tally.of(*node).seats, *node));
    let mut moving = BTreeSet::new();
    for taker in takers {
        let free = |p: &&Partition| !moving.contains(&p.id) && !leftovers.may_hold(taker, p.id);
        let free = map.partitions.iter().filter(free);
        let offers = free.filter_map(|p| Some((p.id, offer(p, taker, outlook, &tally)?)));
        let best = offers.max_by_key(|(id, (from, _))| (tally.of(*from).seats, Reverse(*id)));
        let Some((partition, (from, intent))) = best else { continue };
        moving.insert(partition);
        tally.move_seat(from, intent);
        moves.push((partition, intent));
    }
    moves
}

fn is_uneven(outlook: &Outlook, tally: &Tally) -> bool {
    let seats = || outlook.takers().map(|node| tally.of(node).seats);
    let (most, least) = (seats().max().unwrap_or(0), seats().min().unwrap_or(0));
    most >= least + DIFFERENCE_MIN
}

/// Who would give up its seat in this partition to that node, and who would give the copy.
fn offer(
    partition: &Partition,
    taker: NodeId,
    outlook: &Outlook,
    tally: &Tally,
) -> Option<(NodeId, Intent)> {
    let chain = &partition.chain;
    let whole = chain.iter().all(|node| outlook.of(*node).serving);
    if !whole || chain.contains(&taker) || chain.len() == wire::CHAIN_MAX {
        return None;
    }
    let seats = |node: NodeId| tally.of(node).seats;
    let from = chain.iter().copied().max_by_key(|node| (seats(*node), Reverse(*node)))?;
    if seats(from) < seats(taker) + DIFFERENCE_MIN {
        return None;
    }
    let free = chain.iter().copied().filter(|node| tally.of(*node).can_give());
    let giver = free.min_by_key(|node| (tally.of(*node).tail_permille(), *node))?;
    Some((from, Intent { giver, taker }))
}
