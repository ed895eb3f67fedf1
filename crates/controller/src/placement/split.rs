//! Which partitions are to be split: those whose load no node can bear beside anything else, and
//! those that are large.

use super::change::{Change, Cut};
use super::cuts::{PARTS_MAX, Wanted, cuts};
use super::decide::{Scene, Shares};
use super::rate::Rate;
use cluster::{Match, NodeId, Partition, PartitionId};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Whoever has this share of what a node ought to have is split, not moved: one part in so many.
const SPLIT_PART: u64 = 4;

/// Into parts that have one part in so many of that: enough to share them out evenly.
const PIECES: u64 = 8;

/// What would leave a node with less than one part in so many of what it ought to have is not worth
/// a cut.
const LEAST_PART: u64 = 16;

/// A cut leaves one part in so many on both sides, or at least what is worth a cut.
const SIDE_PART: usize = 5;

/// Points from which on a sample says where load lies.
const POINTS_MIN: usize = 16;

/// Partitions of a node that are split at once: each is closed for some milliseconds.
const SPLITS_OF_NODE: usize = 4;

impl Scene<'_> {
    /// What is to be split because of its load, which is too much for a node that has too much
    /// after all that can be done else; and what each node has to do then. If `stuck`, nothing else
    /// can be done, and far too much is left.
    pub(super) fn splits(&self, after: &Shares, stuck: bool) -> (Vec<Change>, Shares) {
        let (mean, mut shares) = (after.mean(), self.shares());
        let busy = after.all().filter(|(_, load, _)| self.is_much(*load, mean)).map(|it| it.0);
        let mut changes = Vec::new();
        let mut left = self.parts_left;
        let mut touched: BTreeSet<PartitionId> = self.under_way.keys().copied().collect();
        for node in busy {
            for (load, partition) in self.heavy(node, mean, &touched, stuck) {
                let at = self.cuts_by_load(partition, load, mean);
                if at.is_empty() || at.len() > left {
                    continue;
                }
                left -= at.len();
                touched.insert(partition.id);
                changes.push(self.split_at(partition, &at, &mut shares));
            }
        }
        (changes, shares)
    }

    /// Partitions that are too much for a node, with what each has it do.
    fn heavy(
        &self,
        node: NodeId,
        mean: u64,
        touched: &BTreeSet<PartitionId>,
        stuck: bool,
    ) -> Vec<(u64, &Partition)> {
        // One that has just moved need not rest: nothing is copied.
        let mine = self.map.partitions.iter().filter(|it| it.members().contains(&node));
        let (count, counted) = (mine.clone().count(), mine.filter(|it| self.is_free(it, touched)));
        let mut free: Vec<(u64, &Partition)> =
            counted.map(|it| (self.load(it, node), it)).collect();
        let waits = free.len() < count || free.iter().any(|(_, it)| self.rests(it.id));
        free.sort_by_key(|(load, it)| (Reverse(*load), it.id));
        let are_heavy =
            |part: u64| free.iter().filter(|(load, _)| *load > 0 && load * part >= mean).count();
        let count = match are_heavy(SPLIT_PART) {
            0 if stuck && !waits => are_heavy(PIECES).min(1),
            many => many.min(SPLITS_OF_NODE),
        };
        free.truncate(count);
        free
    }

    /// The change that cuts a partition there. Its parts are read where that makes the busier of
    /// two nodes less busy, and else where all of it is.
    pub(super) fn split_at(
        &self,
        partition: &Partition,
        at: &[Match],
        shares: &mut Shares,
    ) -> Change {
        let now = partition.tail().unwrap_or_default();
        let rates = self.rates_between(partition, at);
        let cuts = at.iter().zip(rates).map(|(at, rate)| {
            let reads = rate.reading();
            let others = partition.members().iter().filter(|node| **node != now);
            let best = others
                .map(|node| (shares.busier_after((now, *node), reads), *node))
                .filter(|(after, _)| *after < shares.of(now))
                .min();
            let tail = best.map_or(now, |(_, node)| node);
            shares.shift((now, tail), reads);
            Cut { at: *at, tail }
        });
        Change::Split { partition: partition.id, cuts: cuts.collect(), grown: true }
    }

    /// What the parts of a partition will be asked for that begin there, as far as a sample tells.
    pub(super) fn rates_between(&self, partition: &Partition, at: &[Match]) -> Vec<Rate> {
        let whole = (partition.id, self.loads.of(partition.id));
        let ends = at.iter().skip(1).map(|next| Match(next.0 - 1)).chain([partition.last]);
        let rate = |bounds| self.samples.rate_of_part(whole, bounds, at.len() + 1);
        at.iter().copied().zip(ends).map(rate).collect()
    }

    /// Where to cut a partition with so much load, when nodes ought to have `mean`.
    fn cuts_by_load(&self, partition: &Partition, load: u64, mean: u64) -> Vec<Match> {
        let changed = self.loads.changed(partition.id);
        let points = self.samples.asked(self.now, partition, changed).unwrap_or_default();
        let count = points.len();
        let can = (self.can_be_remade)(partition) && self.loads.is_known(partition.id);
        let may = self.rests.may_split(self.now, partition.id, load) && can;
        if count < POINTS_MIN || mean == 0 || !may {
            return Vec::new();
        }
        let parts = usize::try_from((load * PIECES).div_ceil(mean)).unwrap_or(PARTS_MAX);
        let worth = (count as u64 * mean).div_ceil(LEAST_PART * load.max(1));
        let worth = usize::try_from(worth).unwrap_or(count);
        let least = worth.min(count / SIDE_PART).max(count / (2 * PARTS_MAX));
        let wanted = Wanted { parts: parts.clamp(2, PARTS_MAX), least };
        self.map.cuts(partition, cuts(points, (partition.first, partition.last), wanted))
    }

    /// Partitions that hold more than they should, the largest first.
    pub(super) fn large(&self) -> Vec<Change> {
        let mut shares = self.shares();
        let open = self.map.partitions.iter().filter(|it| {
            let free = it.open && !it.has_learner && !self.under_way.contains_key(&it.id);
            free && (self.can_be_remade)(it)
        });
        let mut large: Vec<(u64, &Partition)> = open
            .filter_map(|it| Some((self.samples.held(it)?.bytes, it)))
            .filter(|(bytes, it)| {
                *bytes >= self.split_bytes && !self.rests.was_cut(self.now, it.id)
            })
            .collect();
        large.sort_by_key(|(bytes, it)| (Reverse(*bytes), it.id));
        let mut left = self.parts_left;
        let cut = large.into_iter().filter_map(|(bytes, it)| {
            let at = self.cuts_by_bytes(it, bytes.div_ceil((self.split_bytes / 2).max(1)));
            if at.is_empty() || at.len() > left {
                return None;
            }
            left -= at.len();
            Some(self.split_at(it, &at, &mut shares))
        });
        cut.take(SPLITS_OF_NODE).collect()
    }

    /// Where to cut a partition into about so many parts with as many bytes each.
    pub(super) fn cuts_by_bytes(&self, partition: &Partition, parts: u64) -> Vec<Match> {
        let points = self.samples.stored(partition).unwrap_or_default();
        let parts = usize::try_from(parts).unwrap_or(PARTS_MAX);
        let least = (points.len() / SIDE_PART).min(points.len() / (2 * parts.max(1)));
        let wanted = Wanted { parts: parts.clamp(2, PARTS_MAX), least };
        self.map.cuts(partition, cuts(points, (partition.first, partition.last), wanted))
    }
}
