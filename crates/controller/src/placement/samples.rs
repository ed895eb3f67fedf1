//! What nodes say of single partitions: how much lies in them, and where load and bytes lie.

use super::rate::Rate;
use cluster::{Map, Match, NodeId, Partition, PartitionId, PartitionSample, Volume};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A sample of the load says nothing any more when its first request is so long ago.
const ASKED_FOR: Duration = Duration::from_secs(10);

/// What was last said, by partition.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(BTreeMap<PartitionId, Known>);

#[derive(Clone, Debug)]
struct Known {
    /// Who has said so. Another tail knows better.
    by: NodeId,
    held: Option<Volume>,
    /// Bytes as they were last known, whoever said so.
    bytes: Option<u64>,
    asked: Vec<Match>,
    /// When the first of these requests came at the earliest.
    asked_from: Instant,
    stored: Vec<Match>,
}

impl Samples {
    /// A node says this.
    pub(super) fn hear(&mut self, now: Instant, node: NodeId, samples: &[PartitionSample]) {
        for sample in samples {
            let fresh = Known {
                by: node,
                held: None,
                bytes: None,
                asked: Vec::new(),
                asked_from: now,
                stored: Vec::new(),
            };
            let known = self.0.entry(sample.partition).or_insert_with(|| fresh.clone());
            if known.by != node {
                *known = Known { bytes: known.bytes, ..fresh };
            }
            known.held = sample.held;
            known.bytes = sample.held.map(|it| it.bytes).or(known.bytes);
            if !sample.asked.is_empty() {
                let age = Duration::from_millis(sample.asked_age_ms);
                (known.asked, known.asked_from) = (sample.asked.clone(), now - age);
            }
            if !sample.stored.is_empty() {
                known.stored.clone_from(&sample.stored);
            }
        }
    }

    /// Forgets partitions that are not there any more, and those that were made up.
    pub(super) fn keep(&mut self, map: &Map) {
        let there: BTreeSet<PartitionId> = map.partitions.iter().map(|it| it.id).collect();
        self.0.retain(|id, _| there.contains(id));
    }

    fn of(&self, partition: &Partition) -> Option<&Known> {
        self.0.get(&partition.id).filter(|it| Some(it.by) == partition.tail())
    }

    /// How much lies in a partition, as far as that is known.
    pub(super) fn held(&self, partition: &Partition) -> Option<Volume> {
        self.of(partition)?.held
    }

    /// Bytes in a partition, also as a node said that was its tail before: of its room, not of its
    /// load, that says as much.
    pub(super) fn last_held(&self, partition: PartitionId) -> Option<u64> {
        self.0.get(&partition)?.bytes
    }

    /// Where its load lies, if that is known of the load as it is since it last changed.
    pub(super) fn asked(
        &self,
        now: Instant,
        partition: &Partition,
        changed: Option<Instant>,
    ) -> Option<&[Match]> {
        let known = self.of(partition)?;
        let (from, fresh) = (known.asked_from, now.since(known.asked_from) < ASKED_FOR);
        (fresh && changed.is_none_or(|at| at <= from)).then_some(&*known.asked)
    }

    /// Where its bytes lie.
    pub(super) fn stored(&self, partition: &Partition) -> Option<&[Match]> {
        Some(&self.of(partition)?.stored)
    }

    /// What one of so many parts of a partition, which need not be there any more, will be asked
    /// for, by its bounds: all alike if it is not known where the load lies.
    pub(super) fn rate_of_part(
        &self,
        (partition, all): (PartitionId, Rate),
        bounds: (Match, Match),
        parts: usize,
    ) -> Rate {
        let share = self.share_permille(partition, bounds);
        all.permille(share.unwrap_or(1_000 / (parts as u64).max(1)))
    }

    /// Which share of its load lies in these bounds, in thousandths; `None` if that is not known.
    fn share_permille(&self, partition: PartitionId, (first, last): (Match, Match)) -> Option<u64> {
        let asked = &self.0.get(&partition)?.asked;
        let inside = asked.iter().filter(|at| first <= **at && **at <= last).count() as u64;
        (inside * 1_000).checked_div(asked.len() as u64)
    }
}
