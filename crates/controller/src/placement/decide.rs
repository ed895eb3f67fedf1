//! What is to be changed: pure functions of what was counted and of the map.

use super::change::Change;
use super::fills::Fills;
use super::loads::Loads;
use super::quiet::Quiet;
use super::rest::Rests;
use super::samples::Samples;
use crate::capacity::Weights;
use cluster::{Map, Match, MaybeMutant, Mutant, NodeId, Partition, PartitionId};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// A node has too much from so many thousandths of the mean on.
const UNEVEN_PERMILLE: u64 = 1_250;

/// Load is even enough when nobody has more than so many.
const EVEN_PERMILLE: u64 = 1_050;

/// What another tail has to take off the busier of two nodes, in thousandths of the mean: it costs
/// a partition some milliseconds.
const TURN_GAIN_PERMILLE: u64 = 10;

/// What a move has to take off, which copies all of a partition.
const MOVE_GAIN_PERMILLE: u64 = 20;

/// What a move of little has to take off.
const LITTLE_GAIN_PERMILLE: u64 = 5;

/// Little is what is copied in one part in so many of a second.
const LITTLE_PER_SECOND: u64 = 2;

/// Changes decided at once.
pub(super) const CHANGES_MAX: usize = 16;

/// What deciding goes by.
pub(crate) struct Scene<'a> {
    pub(super) now: Instant,
    /// Requests per second under which a node is never too busy.
    pub(super) floor: u64,
    pub(super) map: &'a Map,
    pub(super) loads: &'a Loads,
    pub(super) samples: &'a Samples,
    pub(super) weights: &'a Weights,
    pub(super) fills: Fills,
    pub(super) takers: &'a [NodeId],
    pub(super) rests: &'a Rests,
    pub(super) under_way: &'a BTreeMap<PartitionId, Change>,
    /// Whether a partition can be split and merged now.
    pub(super) can_be_remade: &'a dyn Fn(&Partition) -> bool,
    /// How many partitions there may be more.
    pub(super) parts_left: usize,
    /// From so many bytes on a partition is large.
    pub(super) split_bytes: u64,
    pub(super) mutant: MaybeMutant,
}

/// What each node has to do, in requests per second of a node of full weight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    nodes: BTreeMap<NodeId, u64>,
    /// By how many eighths each counts in the mean.
    weights: BTreeMap<NodeId, u64>,
}

impl Shares {
    pub(crate) fn of(&self, node: NodeId) -> u64 {
        self.nodes.get(&node).copied().unwrap_or(0)
    }

    /// What each would have if all had as much as they can bear.
    pub(crate) fn mean(&self) -> u64 {
        let done = self.nodes.iter().map(|(node, load)| load * self.weight(*node));
        let all: u64 = self.weights.values().sum();
        done.sum::<u64>().checked_div(all).unwrap_or(0)
    }

    fn weight(&self, node: NodeId) -> u64 {
        self.weights.get(&node).copied().unwrap_or(1)
    }

    fn busiest(&self, without: &BTreeSet<NodeId>) -> Option<(NodeId, u64)> {
        let nodes = self.nodes.iter().filter(|(node, _)| !without.contains(node));
        nodes.max_by_key(|(node, load)| (**load, std::cmp::Reverse(**node))).map(|(n, l)| (*n, *l))
    }

    /// What each node has, and that in thousandths of the mean.
    pub(super) fn all(&self) -> impl Iterator<Item = (NodeId, u64, u64)> {
        let mean = self.mean();
        let permille = move |load: u64| (load * 1_000).checked_div(mean).unwrap_or(0);
        self.nodes.iter().map(move |(node, load)| (*node, *load, permille(*load)))
    }

    /// What the busiest node has, in thousandths of the mean.
    pub(crate) fn worst_permille(&self) -> u64 {
        let (_, most) = self.busiest(&BTreeSet::new()).unwrap_or_default();
        (most * 1_000).checked_div(self.mean()).unwrap_or(1_000)
    }

    pub(super) fn is_uneven(&self, floor: u64) -> bool {
        let busiest = self.busiest(&BTreeSet::new());
        busiest.is_some_and(|(_, load)| load >= floor) && self.worst_permille() >= UNEVEN_PERMILLE
    }

    pub(super) fn shift(&mut self, (from, to): (NodeId, NodeId), load: u64) {
        let (less, more) = (self.as_borne(from, load), self.as_borne(to, load));
        let from = self.nodes.entry(from).or_default();
        *from = from.saturating_sub(less);
        *self.nodes.entry(to).or_default() += more;
    }

    fn as_borne(&self, node: NodeId, load: u64) -> u64 {
        load * Weights::FULL / self.weight(node)
    }

    /// What the busier of the two would have if so much load went from one to the other.
    pub(super) fn busier_after(&self, (from, to): (NodeId, NodeId), load: u64) -> u64 {
        let rest = self.of(from).saturating_sub(self.as_borne(from, load));
        rest.max(self.of(to) + self.as_borne(to, load))
    }

    /// In words.
    pub(super) fn describe(&self) -> String {
        let Some((node, most)) = self.busiest(&BTreeSet::new()) else {
            return "no node has anything to do".into();
        };
        let (whole, part) = (self.worst_permille() / 1_000, self.worst_permille() % 1_000 / 10);
        format!("node {node} has {most} requests/s, {whole}.{part:02} times the mean")
    }
}

/// What moves of replicas would do to the load.
pub(crate) struct Burdens<'a> {
    scene: Scene<'a>,
    shares: Shares,
    /// Partitions that are to become one with a neighbour which has the same nodes.
    paired: BTreeSet<PartitionId>,
}

impl Burdens<'_> {
    /// Whether a replica can go from one node to another, which has room for it and then has no
    /// more to do than the one had.
    pub(crate) fn can_move(&self, partition: &Partition, (from, to): (NodeId, NodeId)) -> bool {
        let Self { scene, shares, .. } = self;
        let load = scene.load(partition, from);
        scene.may_go(partition.id, to)
            && scene.has_room(partition.id, to)
            && !self.paired.contains(&partition.id)
            && (load == 0 || shares.busier_after((from, to), load) <= shares.of(from))
    }
}

impl<'a> Scene<'a> {
    pub(super) fn burdens(self, quiet: &Quiet) -> Burdens<'a> {
        let (shares, paired) = (self.shares(), self.paired(quiet));
        Burdens { scene: self, shares, paired }
    }

    /// What a member has to do for a partition.
    pub(super) fn load(&self, partition: &Partition, node: NodeId) -> u64 {
        let rate = self.loads.of(partition.id);
        rate.writes + if partition.tail() == Some(node) { rate.reading() } else { 0 }
    }

    /// What each node has to do when all that is under way has come to its end.
    pub(super) fn shares(&self) -> Shares {
        let nodes = self.map.nodes.iter().map(|it| it.id);
        let weights = nodes.clone().filter(|node| self.counts(*node));
        let weights = weights.map(|node| (node, self.weights.of(node))).collect();
        let mut shares = Shares { nodes: nodes.map(|node| (node, 0)).collect(), weights };
        for partition in &self.map.partitions {
            for node in partition.members() {
                let borne = shares.as_borne(*node, self.load(partition, *node));
                *shares.nodes.entry(*node).or_default() += borne;
            }
            if let Some(change) = self.under_way.get(&partition.id)
                && !self.mutant.is(Mutant::IgnoreUnderWay)
            {
                self.apply(&mut shares, partition, change);
            }
        }
        shares
    }

    /// Whether a node is one of those that load is shared out to.
    fn counts(&self, node: NodeId) -> bool {
        self.takers.contains(&node)
            || self.map.partitions.iter().any(|it| it.members().contains(&node))
    }

    /// What a change does to shares, as far as the map does not show it yet.
    pub(super) fn apply(&self, shares: &mut Shares, partition: &Partition, change: &Change) {
        let rate = self.loads.of(partition.id);
        let (reads, writes) = (rate.reading(), rate.writes);
        let Some(now) = partition.tail() else { return };
        match *change {
            Change::Turn { tail, .. } => shares.shift((now, tail), reads),
            Change::Move { from, to, reads: moves_reads, .. } => {
                if partition.members().contains(&from) && !partition.members().contains(&to) {
                    shares.shift((from, to), writes);
                }
                if moves_reads {
                    shares.shift((now, to), reads);
                }
            }
            Change::Split { ref cuts, .. } => {
                let at: Vec<Match> = cuts.iter().map(|cut| cut.at).collect();
                for (cut, rate) in cuts.iter().zip(self.rates_between(partition, &at)) {
                    shares.shift((now, cut.tail), rate.reading());
                }
            }
            Change::Merge { .. } => {}
        }
    }

    /// What is to be changed because of the load, and what each node has to do then. What no node
    /// can bear beside anything else is split first, unless nothing has to be.
    pub(super) fn changes(&self) -> (Vec<Change>, Shares) {
        let (shifts, after) = self.turns_and_moves();
        let uneven = after.worst_permille() >= UNEVEN_PERMILLE;
        let stuck = uneven && shifts.is_empty() && self.under_way.is_empty();
        let (splits, shares) = self.splits(&after, stuck);
        if splits.is_empty() { (shifts, after) } else { (splits, shares) }
    }

    /// Whether a node with so much has too much, when nodes ought to have `mean`.
    pub(super) fn is_much(&self, load: u64, mean: u64) -> bool {
        load > (mean * EVEN_PERMILLE / 1_000).max(self.floor)
    }

    /// Which replicas move of which a copy takes little time: these need not wait for a sample.
    pub(super) fn moves_of_little(&self) -> (Vec<Change>, Shares) {
        self.shifts(|(node, free), shares, copying| {
            let free: Vec<&Partition> =
                free.iter().copied().filter(|it| self.is_little(it)).collect();
            self.best_move(node, &free, shares, copying)
        })
    }

    /// Whether a copy of it takes little time.
    fn is_little(&self, it: &Partition) -> bool {
        let most = self.map.copy_bytes_per_s / LITTLE_PER_SECOND;
        self.samples.held(it).is_some_and(|it| it.bytes <= most)
    }

    /// Which roles turn and which replicas move.
    fn turns_and_moves(&self) -> (Vec<Change>, Shares) {
        self.shifts(|(node, free), shares, copying| {
            let turn = self.best_turn(node, free, shares);
            turn.or_else(|| self.best_move(node, free, shares, copying))
        })
    }

    /// What is to be changed, one node after the other, the busiest first, if this finds something
    /// for it.
    fn shifts(
        &self,
        best: impl Fn((NodeId, &[&Partition]), &Shares, &BTreeSet<NodeId>) -> Option<Change>,
    ) -> (Vec<Change>, Shares) {
        let mut shares = self.shares();
        let mut changes: Vec<Change> = Vec::new();
        let (mut stuck, mut copying) = (BTreeSet::new(), self.copying());
        let mut touched: BTreeSet<PartitionId> = self.under_way.keys().copied().collect();
        let mean = shares.mean();
        while changes.len() < CHANGES_MAX
            && let Some((node, load)) = shares.busiest(&stuck)
            && self.is_much(load, mean)
        {
            let free: Vec<&Partition> = self.free(node, &touched).collect();
            let Some(change) = best((node, &free), &shares, &copying) else {
                stuck.insert(node);
                continue;
            };
            let partition = free.iter().find(|it| it.id == change.partition());
            self.apply(&mut shares, partition.expect("it is one of these"), &change);
            touched.insert(change.partition());
            if let Change::Move { from, to, .. } = change {
                copying.extend([from, to]);
            }
            changes.push(change);
        }
        (changes, shares)
    }

    /// Nodes that give or take a copy: that slows down what clients ask of them.
    pub(super) fn copying(&self) -> BTreeSet<NodeId> {
        let running = self.map.partitions.iter().filter(|it| it.has_learner);
        running.flat_map(|it| [it.tail(), it.learner()]).flatten().collect()
    }

    /// Partitions of a node of which another member can become the tail, or a replica move.
    pub(super) fn free(
        &self,
        node: NodeId,
        touched: &BTreeSet<PartitionId>,
    ) -> impl Iterator<Item = &Partition> {
        self.map.partitions.iter().filter(move |it| {
            it.members().contains(&node) && self.is_free(it, touched) && !self.rests(it.id)
        })
    }

    /// Whether nothing is under way with it, and it was counted since it changed.
    pub(super) fn is_free(&self, it: &Partition, touched: &BTreeSet<PartitionId>) -> bool {
        let idle = it.open && !it.has_learner && !touched.contains(&it.id);
        let counted = self.loads.is_settled(it.id)
            || self.mutant.is(Mutant::InheritCounts) && it.made.is_some();
        idle && counted
    }

    pub(super) fn rests(&self, partition: PartitionId) -> bool {
        self.rests.rests(self.now, partition) && !self.mutant.is(Mutant::NeverRest)
    }

    pub(super) fn may_go(&self, partition: PartitionId, node: NodeId) -> bool {
        self.rests.may_go(self.now, partition, node) || self.mutant.is(Mutant::MoveBack)
    }

    /// Whether the busier of two nodes would be relieved by enough.
    fn gains(
        shares: &Shares,
        (from, to): (NodeId, NodeId),
        (load, permille): (u64, u64),
    ) -> Option<u64> {
        let after = shares.busier_after((from, to), load);
        let gain = shares.mean() * permille / 1_000;
        (load > 0 && after + gain.max(1) <= shares.of(from)).then_some(after)
    }

    fn best_turn(&self, node: NodeId, free: &[&Partition], shares: &Shares) -> Option<Change> {
        let mine = free.iter().filter(|it| it.tail() == Some(node));
        let turns = mine.flat_map(|it| {
            let reads = self.loads.of(it.id).reading();
            let others = it.members().iter().filter(|other| **other != node);
            others.filter_map(move |tail| {
                let after = Self::gains(shares, (node, *tail), (reads, TURN_GAIN_PERMILLE))?;
                Some((after, Change::Turn { partition: it.id, tail: *tail }))
            })
        });
        turns.min_by_key(|(after, change)| (*after, change.partition())).map(|it| it.1)
    }

    fn best_move(
        &self,
        node: NodeId,
        free: &[&Partition],
        shares: &Shares,
        copying: &BTreeSet<NodeId>,
    ) -> Option<Change> {
        if copying.contains(&node) {
            return None;
        }
        let takers = self.takers.iter().filter(|it| !copying.contains(it));
        // Among nodes that are no member, only the least busy matters.
        let moves = free.iter().filter(|it| it.chain.len() < wire::CHAIN_MAX).filter_map(|it| {
            let can_take = |node: NodeId| self.may_go(it.id, node) && self.has_room(it.id, node);
            let strange = |taker: &&NodeId| !it.concerns(**taker) && can_take(**taker);
            let to = *takers.clone().filter(strange).min_by_key(|to| (shares.of(**to), **to))?;
            let reads = it.tail() == Some(node);
            let gain = if self.is_little(it) { LITTLE_GAIN_PERMILLE } else { MOVE_GAIN_PERMILLE };
            let after = Self::gains(shares, (node, to), (self.load(it, node), gain))?;
            Some((after, Change::Move { partition: it.id, from: node, to, reads }))
        });
        moves.min_by_key(|(after, change)| (*after, change.partition())).map(|it| it.1)
    }
}
