//! Making room: what nodes hold that are nearly full goes to where there is room, before they have
//! to refuse what is written.

use super::change::Change;
use super::decide::{CHANGES_MAX, Scene, Shares};
use super::fills::Fills;
use cluster::{NodeId, Partition, PartitionId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A node is filling from so many thousandths of what it may hold on: before it is told to take no
/// copies and no parts of big values (`spec/protocol.md`, "Room").
pub(super) const FILLING_PERMILLE: u64 = 800;

/// What a filling node cannot give away now, because it is too large for all others or has to rest,
/// is split if it has one part in so many of what the node may hold.
const SPLIT_PART: u64 = 8;

/// Into parts of one in so many.
pub(super) const PIECES: u64 = 16;

/// A replica is worth a copy if it has one part in so many of what replicas of the node have in the
/// mean: some always has.
const WORTH_PART: u64 = 2;

/// Samples in a row in which nothing can be done for a node before that is said: in fewer not all
/// nodes have said what they hold.
const STUCK_SAMPLES: u8 = 16;

/// What makes room.
#[derive(Debug, Default)]
pub(super) struct Relief {
    pub(super) changes: Vec<Change>,
    /// Nodes that are filling, which these are for.
    pub(super) nodes: Vec<NodeId>,
    /// Nodes that are filling and that nothing can be done for, now or soon.
    pub(super) stuck: BTreeSet<NodeId>,
}

/// Nodes that are filling, and in how many samples in a row nothing could be done for them; those
/// of which that was said, until they have room again.
#[derive(Clone, Debug, Default)]
pub(super) struct Stuck(BTreeMap<NodeId, u8>);

impl Stuck {
    /// Takes what another sample has shown; says for which nodes nothing can be done, each once.
    pub(super) fn note(&mut self, stuck: &BTreeSet<NodeId>, fills: &Fills) -> Vec<NodeId> {
        self.0.retain(|node, samples| {
            let told = *samples >= STUCK_SAMPLES && !fills.has_room(*node, 0);
            told || stuck.contains(node)
        });
        let news = stuck.iter().filter(|node| {
            let samples = self.0.entry(**node).or_default();
            *samples = samples.saturating_add(1);
            *samples == STUCK_SAMPLES
        });
        news.copied().collect()
    }
}

/// What must not be changed now.
#[derive(Debug)]
struct Going {
    /// Nodes that give or take a replica.
    nodes: BTreeSet<NodeId>,
    partitions: BTreeSet<PartitionId>,
}

impl Scene<'_> {
    /// What is to be changed because nodes are filling, the fullest first.
    pub(super) fn relief(&self) -> Relief {
        let mut fills = self.fills.clone();
        let (mut relief, mut left) = (Relief::default(), self.parts_left);
        let mut going = self.going();
        for node in self.fills.at_least(FILLING_PERMILLE) {
            if going.nodes.contains(&node) || relief.changes.len() == CHANGES_MAX {
                continue;
            }
            let change = if let Some(change) = self.move_off(node, &fills, Some(&going)) {
                change
            } else if let Some(change) = self.split_off(node, (&fills, left), &going) {
                change
            } else if self.move_off(node, &fills, None).is_some() {
                // Whatever may move has to rest, or its taker takes another.
                continue;
            } else {
                let mut large = self.held_by(node).filter(|it| self.is_large(it, node, &fills));
                if !large.any(|it| self.waits(it, &going)) {
                    relief.stuck.insert(node);
                }
                continue;
            };
            match change {
                Change::Move { partition, from, to, .. } => {
                    fills.shift((from, to), self.bytes(partition));
                    going.nodes.extend([from, to]);
                }
                Change::Split { ref cuts, .. } => left -= cuts.len(),
                Change::Turn { .. } | Change::Merge { .. } => {}
            }
            going.partitions.insert(change.partition());
            relief.nodes.push(node);
            relief.changes.push(change);
        }
        relief
    }

    /// What nodes would have to do after these.
    pub(super) fn shares_after(&self, changes: &[Change]) -> Shares {
        let mut shares = self.shares();
        for change in changes {
            let partition = self.map.partitions.iter().find(|it| it.id == change.partition());
            partition.into_iter().for_each(|it| self.apply(&mut shares, it, change));
        }
        shares
    }

    /// How full they would be.
    pub(super) fn fills_after(&self, changes: &[Change]) -> Fills {
        let mut fills = self.fills.clone();
        for change in changes {
            if let Change::Move { partition, from, to, .. } = change {
                fills.shift((*from, *to), self.bytes(*partition));
            }
        }
        fills
    }

    fn going(&self) -> Going {
        let moving = changed_by(self.under_way.values());
        Going {
            nodes: self.copying().into_iter().chain(moving).collect(),
            partitions: self.under_way.keys().copied().collect(),
        }
    }

    fn bytes(&self, partition: PartitionId) -> u64 {
        self.samples.last_held(partition).unwrap_or(0)
    }

    /// Whether a node has room for a replica of a partition.
    pub(super) fn has_room(&self, partition: PartitionId, node: NodeId) -> bool {
        self.fills.has_room(node, self.bytes(partition))
    }

    /// The replica whose move leaves the fuller of two nodes least full. Without anything that is
    /// going on: whether there is any that could move some time.
    fn move_off(&self, node: NodeId, fills: &Fills, going: Option<&Going>) -> Option<Change> {
        let mine: Vec<&Partition> = match going {
            Some(going) => self.free(node, &going.partitions).collect(),
            None => self.held_by(node).collect(),
        };
        let all: u64 = self.held_by(node).map(|it| self.bytes(it.id)).sum();
        let count = self.held_by(node).count() as u64;
        let is_worth = |bytes: u64| bytes > 0 && bytes * count * WORTH_PART >= all;
        let moves = mine.into_iter().flat_map(|it| {
            let bytes = self.bytes(it.id);
            let worth = is_worth(bytes) && it.chain.len() < wire::CHAIN_MAX;
            let takers = self.takers.iter().filter(move |to| worth && !it.concerns(**to));
            takers.filter_map(move |to| {
                let may =
                    going.is_none_or(|going| !going.nodes.contains(to) && self.may_go(it.id, *to));
                let after = fills.fuller_after((node, *to), bytes).filter(|_| may)?;
                Some((after, it, *to))
            })
        });
        let (_, it, to) = moves.min_by_key(|(after, it, to)| (*after, it.id, *to))?;
        let reads = it.tail() == Some(node);
        Some(Change::Move { partition: it.id, from: node, to, reads })
    }

    fn held_by(&self, node: NodeId) -> impl Iterator<Item = &Partition> {
        self.map.partitions.iter().filter(move |it| it.members().contains(&node))
    }

    /// Whether a partition can be split for want of room at a node.
    fn is_large(&self, it: &Partition, node: NodeId, fills: &Fills) -> bool {
        fills.is_part(node, self.bytes(it.id), SPLIT_PART)
    }

    /// Whether it is not to be split yet. One that has just moved need not rest: nothing is copied.
    fn waits(&self, it: &Partition, going: &Going) -> bool {
        !self.is_free(it, &going.partitions) || self.rests.was_cut(self.now, it.id)
    }

    /// The split of what is too large to be moved, if somebody has room for a part.
    fn split_off(
        &self,
        node: NodeId,
        (fills, left): (&Fills, usize),
        going: &Going,
    ) -> Option<Change> {
        let mine = self.held_by(node).filter(|it| self.is_large(it, node, fills));
        let mut large: Vec<(u64, &Partition)> = mine
            .filter(|it| !self.waits(it, going) && (self.can_be_remade)(it))
            .map(|it| (self.bytes(it.id), it))
            .collect();
        large.sort_by_key(|(bytes, it)| (Reverse(*bytes), it.id));
        large.into_iter().find_map(|(bytes, it)| {
            let parts = fills.parts(node, bytes, PIECES).max(2);
            let mut takers = self.takers.iter().filter(|to| !it.concerns(**to));
            let some = takers.any(|to| fills.fuller_after((node, *to), bytes / parts).is_some());
            let at = if some { self.cuts_by_bytes(it, parts) } else { Vec::new() };
            let fit = !at.is_empty() && at.len() <= left;
            fit.then(|| self.split_at(it, &at, &mut self.shares()))
        })
    }
}

/// Nodes that hold more or less after these changes.
pub(super) fn changed_by<'a>(changes: impl IntoIterator<Item = &'a Change>) -> Vec<NodeId> {
    let ends = changes.into_iter().filter_map(|change| match change {
        Change::Move { from, to, .. } => Some([*from, *to]),
        Change::Turn { .. } | Change::Split { .. } | Change::Merge { .. } => None,
    });
    ends.flatten().collect()
}
