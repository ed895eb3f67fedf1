//! Splitting a partition: it is closed, settles, and others with the same nodes are made of it. And
//! what partitions that are made of others have in common.

use super::compare::Comparison;
use super::plan::{Case, Reason, Step};
use crate::neighbours::stride;
use crate::placement::{Change, Cut};
use crate::saved::Saved;
use cluster::{Epoch, Making, Match, NodeId, Origin, Partition, PartitionId};

impl Case<'_> {
    /// Where it is to be cut, in order, and whether that is for its load or size.
    fn cuts(&self) -> Option<(&[Cut], bool)> {
        let Some(Change::Split { cuts, grown, .. }) = self.change else { return None };
        let Partition { first, last, .. } = *self.partition;
        let inside = cuts.iter().all(|cut| first < cut.at && cut.at <= last);
        let ascending = cuts.is_sorted_by(|one, next| one.at < next.at);
        (!cuts.is_empty() && inside && ascending).then_some((cuts, *grown))
    }

    /// Whether it is to be closed for that.
    pub(super) fn is_to_split(&self) -> bool {
        let can = |node: &NodeId| self.sight(*node).splits;
        let partition = self.partition;
        self.cuts().is_some_and(|(cuts, _)| cuts.len() <= self.parts_left)
            && !partition.has_learner
            && partition.chain.iter().all(can)
    }

    /// Makes others of a closed partition whose members all hold the same. While a key is delegated
    /// they do not hold all of it: then the partition opens as it is.
    pub(super) fn split(&self, compared: &Comparison) -> Option<Step> {
        let (cuts, grown) = self.cuts().filter(|_| self.is_to_split())?;
        if !compared.behind.is_empty() || compared.delegated {
            return None;
        }
        let mut first = self.remade([self.partition])?;
        let ends = cuts.iter().skip(1).map(|next| Match(next.at.0 - 1)).chain([first.last]);
        let parts = cuts.iter().zip(ends).map(|(cut, last)| {
            let mut part = Partition { first: cut.at, last, grown, ..first.clone() };
            if let Some(place) = part.chain.iter().position(|node| *node == cut.tail) {
                part.chain.rotate_left(place + 1);
            }
            part
        });
        let rest: Vec<Partition> = parts.collect();
        first.last = rest.first().map(|next| Match(next.first.0 - 1))?;
        Some(Step { rest, ..Step::new(first, Reason::Remade) })
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
        for part in [&mut self.next].into_iter().chain(&mut self.rest) {
            let ahead = (origin.0 % stride + stride - state.next_partition % stride) % stride;
            part.id = PartitionId(state.next_partition + ahead);
            state.next_partition = part.id.0 + 1;
        }
    }
}

/// How many partitions there may be more: of the places in the map, and of the ids.
pub(super) fn parts_left(state: &Saved) -> usize {
    let places = wire::PARTITIONS_MAX.saturating_sub(state.map.partitions.len());
    let ids = (u32::MAX - state.next_partition) / IDS_MAX;
    places.min(usize::try_from(ids).unwrap_or(usize::MAX))
}

/// Ids that a split passes over at most: while all nodes of a chain together have fewer than so
/// many combinations of shards.
const IDS_MAX: u32 = 1 << 20;
