//! The chains of a map that is made anew.

use super::RebuildError;
use super::error::exhausted;
use cluster::{Epoch, Keyspace, Match, NodeId, NodeRecord, Partition, PartitionId, Returned};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Bound;
use wire::Revision;

/// Where a partition comes from, and what becomes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PartitionPart {
    /// Which.
    pub partition: PartitionId,
    /// The newest epoch on record; 0 if nobody has followed one yet.
    pub recorded: Epoch,
    /// Nodes that have it on record.
    pub sources: Vec<NodeId>,
    /// Its epoch from now on.
    pub epoch: Epoch,
    /// Its chain from now on.
    pub chain: Vec<NodeId>,
    /// Those in it that have an older epoch on record, or none.
    pub behind: Vec<NodeId>,
    /// Those in it whose store is certainly an older copy.
    pub aged: Vec<NodeId>,
    /// Nodes that have it on record and are not in the chain any more.
    pub left: Vec<NodeId>,
    /// Nodes that were in the chain, and are left out of it now.
    pub lost: Vec<NodeId>,
}

/// Epochs that are skipped: more than a chain goes through of which no node that is asked hears.
const EPOCHS_SKIPPED: u32 = 1_000;

/// The chains in the making.
pub(super) struct RebuiltChains<'a> {
    records: &'a [&'a NodeRecord],
    revision: Revision,
    last_id: u32,
    partitions: Vec<Partition>,
    parts: BTreeMap<PartitionId, PartitionPart>,
    lost: Vec<PartitionId>,
    gaps: Vec<(String, Match, Match)>,
}

impl<'a> RebuiltChains<'a> {
    pub(super) fn new(records: &'a [&'a NodeRecord], revision: Revision, last_id: u32) -> Self {
        let (partitions, parts) = (Vec::new(), BTreeMap::new());
        let (lost, gaps) = (Vec::new(), Vec::new());
        Self { records, revision, last_id, partitions, parts, lost, gaps }
    }

    /// Each partition by the newest epoch on record.
    pub(super) fn take_newest(&mut self) -> Result<(), RebuildError> {
        let mut all: BTreeMap<PartitionId, Vec<(NodeId, Revision, &Partition)>> = BTreeMap::new();
        for record in self.records {
            let Some(assignment) = &record.assignment else { continue };
            for partition in &assignment.partitions {
                let of = all.entry(partition.id).or_default();
                of.push((record.node, assignment.revision, partition));
            }
        }
        let bounds = |said: &[(NodeId, Revision, &Partition)]| {
            let last = said.iter().max_by_key(|(_, revision, it)| (it.epoch, *revision));
            last.map(|(.., it)| (it.keyspace, it.first, it.last))
        };
        let bounds: BTreeMap<PartitionId, _> =
            all.iter().filter_map(|(id, said)| Some((*id, bounds(said)?))).collect();
        // What later ones have all of they were made of.
        all.retain(|id, _| {
            let Some((keyspace, first, last)) = bounds.get(id) else { return false };
            let later = bounds.range((Bound::Excluded(*id), Bound::Unbounded));
            let later = later.filter(|(_, (of, ..))| of == keyspace);
            let mut later: Vec<(Match, Match)> =
                later.map(|(_, (_, first, last))| (*first, *last)).collect();
            later.sort_unstable();
            let mut left = *first;
            for (from, to) in later {
                if from <= left && left <= to {
                    let Some(next) = to.0.checked_add(1) else { return false };
                    left = Match(next);
                }
            }
            left <= *last
        });
        for said in all.values() {
            // Who heard last knows of words of operators, too, which change no epoch.
            let newest = said.iter().max_by_key(|(_, revision, it)| (it.epoch, *revision));
            let Some((from, _, newest)) = newest else { continue };
            let same = said.iter().filter(|(.., it)| it.epoch == newest.epoch);
            if let Some((other, ..)) = same.clone().find(|(.., it)| !is_the_same(newest, it)) {
                return Err(RebuildError::Unsound(format!(
                    "nodes {from} and {other} have different chains in epoch {} of partition {}",
                    newest.epoch, newest.id
                )));
            }
            let sources = same.map(|(node, ..)| *node).collect();
            self.take(newest, said, sources)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        newest: &Partition,
        said: &[(NodeId, Revision, &Partition)],
        sources: Vec<NodeId>,
    ) -> Result<(), RebuildError> {
        let epoch_of = |node: NodeId| {
            let own = said.iter().find(|(it, ..)| *it == node);
            own.map_or(Epoch(0), |(.., it)| it.epoch)
        };
        // Nobody opens a chain before all of it have settled in the epoch before.
        let is_aged = |node: NodeId| epoch_of(node).0.saturating_add(1) < newest.opened.0;
        // Who has a newer map than the one that took it in, without the partition, was let go again
        // and has forgotten it.
        let has_left = |record: &NodeRecord| {
            let since = newest.since(record.node).unwrap_or_default();
            epoch_of(record.node) == Epoch(0) && record.revision >= since
        };
        let holds = |node: NodeId| {
            let record = self.records.iter().find(|it| it.node == node);
            record.is_some_and(|record| !has_left(record))
        };
        let stays =
            |node: NodeId| holds(node) && (newest.learner() != Some(node) || !is_aged(node));
        let replicas_held =
            newest.chain.iter().zip(&newest.since).filter(|(node, _)| stays(**node));
        let (chain, since): (Vec<NodeId>, Vec<Revision>) =
            replicas_held.map(|(node, since)| (*node, *since)).unzip();
        let has_learner = newest.learner().is_some_and(stays);
        let is_in = |node: &NodeId| chain.contains(node);
        let some = |wanted: &dyn Fn(NodeId) -> bool| -> Vec<NodeId> {
            chain.iter().copied().filter(|node| wanted(*node)).collect()
        };
        let epoch = skip(newest.epoch)?;
        let part = PartitionPart {
            partition: newest.id,
            recorded: newest.epoch,
            epoch,
            behind: some(&|node| epoch_of(node) < newest.epoch),
            aged: some(&is_aged),
            left: said.iter().map(|it| it.0).filter(|node| !is_in(node)).collect(),
            lost: newest.chain.iter().copied().filter(|node| !is_in(node)).collect(),
            chain: chain.clone(),
            sources,
        };
        if chain.len() == usize::from(has_learner) {
            self.lost.push(newest.id);
        }
        // What they hold is compared before it is believed, and who was found to have an older
        // store before is no better for that this map is new.
        let forgot = |node: NodeId| {
            let before = newest.returned.iter().any(|it| it.node == node && !it.remembers);
            before || is_aged(node)
        };
        let of = |node: &NodeId| Returned { node: *node, remembers: !forgot(*node), left: false };
        self.partitions.push(Partition {
            epoch,
            open: false,
            returned: chain.iter().map(of).collect(),
            resumes: newest.resumes.filter(|_| has_learner),
            has_learner,
            away: Vec::new(),
            since,
            chain,
            ..newest.clone()
        });
        self.parts.insert(newest.id, part);
        Ok(())
    }

    /// Match values that nobody has on record were decided about and told to nobody yet, if
    /// everybody who can have been told is here and remembers: nothing is in them. They go to these
    /// nodes, of which there are none if not everybody is.
    pub(super) fn fill_gaps(
        &mut self,
        keyspaces: &[Keyspace],
        nodes: &[NodeId],
    ) -> Result<(), RebuildError> {
        for keyspace in keyspaces {
            for (first, last) in self.gaps_of(keyspace) {
                if nodes.is_empty() {
                    self.gaps.push((keyspace.name.clone(), first, last));
                    continue;
                }
                self.last_id = self.last_id.checked_add(1).ok_or_else(exhausted)?;
                let id = PartitionId(self.last_id);
                let turn = usize::try_from(id.0).unwrap_or(0) % nodes.len();
                let chain = nodes.iter().cycle().skip(turn).take(nodes.len());
                let chain: Vec<NodeId> =
                    chain.take(usize::from(keyspace.replicas)).copied().collect();
                let epoch = skip(Epoch(0))?;
                let part = PartitionPart {
                    partition: id,
                    epoch,
                    chain: chain.clone(),
                    ..Default::default()
                };
                self.parts.insert(id, part);
                self.partitions.push(Partition {
                    id,
                    keyspace: keyspace.id,
                    first,
                    last,
                    epoch,
                    since: vec![self.revision; chain.len()],
                    chain,
                    ..Partition::default()
                });
            }
        }
        Ok(())
    }

    fn gaps_of(&self, keyspace: &Keyspace) -> Vec<(Match, Match)> {
        let mine = self.partitions.iter().filter(|it| it.keyspace == keyspace.id);
        let mut mine: Vec<(Match, Match)> = mine.map(|it| (it.first, it.last)).collect();
        mine.sort_unstable();
        let (mut gaps, mut next) = (Vec::new(), Some(Match::MIN));
        for (first, last) in mine {
            if let Some(from) = next.filter(|from| *from < first) {
                gaps.push((from, Match(first.0.saturating_sub(1))));
            }
            next = next.filter(|from| *from > last).or(last.0.checked_add(1).map(Match));
        }
        gaps.extend(next.map(|from| (from, Match::MAX)));
        gaps
    }

    /// The partitions, what is to be said of them in the order of the map, and the next id.
    pub(super) fn finish(
        mut self,
    ) -> Result<(Vec<Partition>, Vec<PartitionPart>, u32), RebuildError> {
        if !self.lost.is_empty() || !self.gaps.is_empty() {
            return Err(RebuildError::Lost { partitions: self.lost, gaps: self.gaps });
        }
        self.partitions.sort_by_key(|it| (it.keyspace, it.first));
        let next_id = self.last_id.checked_add(1).ok_or_else(exhausted)?;
        let parts = self.partitions.iter().filter_map(|it| self.parts.remove(&it.id)).collect();
        Ok((self.partitions, parts, next_id))
    }
}

fn skip(Epoch(epoch): Epoch) -> Result<Epoch, RebuildError> {
    epoch.checked_add(EPOCHS_SKIPPED).map(Epoch).ok_or_else(exhausted)
}

/// Whether two nodes have heard the same of one epoch. What came of comparing members may have been
/// overruled by an operator since.
fn is_the_same(one: &Partition, other: &Partition) -> bool {
    // Whoever is away is forgotten without a new epoch.
    let (returned, away) = (one.returned.clone(), one.away.clone());
    let other = Partition { returned, away, ..other.clone() };
    *one == other
}
