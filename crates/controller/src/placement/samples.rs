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
    /// Who has said so, if it is not reckoned. Another tail knows better.
    by: Option<NodeId>,
    held: Option<Volume>,
    /// Bytes as they were last known, whoever said so.
    bytes: Option<u64>,
    asked: Vec<Match>,
    /// When the first of these requests came at the earliest.
    asked_from: Instant,
    stored: Vec<Match>,
}

impl Known {
    /// That nothing is but so many bytes.
    fn fresh(now: Instant, by: Option<NodeId>, bytes: Option<u64>) -> Self {
        Self { by, held: None, bytes, asked: Vec::new(), asked_from: now, stored: Vec::new() }
    }
}

impl Samples {
    /// A node says this.
    pub(super) fn hear(&mut self, now: Instant, node: NodeId, samples: &[PartitionSample]) {
        for sample in samples {
            let fresh = |bytes| Known::fresh(now, Some(node), bytes);
            let known = self.0.entry(sample.partition).or_insert_with(|| fresh(None));
            if known.by != Some(node) {
                *known = fresh(known.bytes);
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

    /// A partition was made of others, which need not be there any more: until its tail says what
    /// lies in it, that is reckoned. Else it would have room anywhere.
    pub(super) fn expect(
        &mut self,
        now: Instant,
        (part, bounds): (PartitionId, (Match, Match)),
        (origins, parts): (&[PartitionId], usize),
    ) {
        let known = origins.iter().map(|id| self.0.get(id));
        let bytes: Option<u64> = match origins {
            [_] => known.flatten().next().and_then(|origin| {
                let share = share_permille(&origin.stored, bounds, parts);
                Some(origin.bytes?.saturating_mul(share) / 1_000)
            }),
            _ => known.map(|it| it?.bytes).sum(),
        };
        self.0.entry(part).or_insert_with(|| Known::fresh(now, None, bytes));
    }

    /// Forgets partitions that are not there any more, and those that were made up.
    pub(super) fn keep(&mut self, map: &Map) {
        let there: BTreeSet<PartitionId> = map.partitions.iter().map(|it| it.id).collect();
        self.0.retain(|id, _| there.contains(id));
    }

    fn of(&self, partition: &Partition) -> Option<&Known> {
        self.0.get(&partition.id).filter(|it| it.by.is_some() && it.by == partition.tail())
    }

    /// How much lies in a partition, as far as that is known.
    pub(super) fn held(&self, partition: &Partition) -> Option<Volume> {
        self.of(partition)?.held
    }

    /// Bytes in a partition, also as a node said that was its tail before, or reckoned: of its
    /// room, not of its load, that says as much.
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
        let asked = self.0.get(&partition).map_or(&[][..], |it| &it.asked);
        all.permille(share_permille(asked, bounds, parts))
    }
}

/// Which share of these points lies in these bounds, in thousandths; if there are none, that of one
/// of so many parts.
fn share_permille(points: &[Match], (first, last): (Match, Match), parts: usize) -> u64 {
    let inside = points.iter().filter(|at| first <= **at && **at <= last).count() as u64;
    let share = (inside * 1_000).checked_div(points.len() as u64);
    share.unwrap_or(1_000 / (parts as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: PartitionId = PartitionId(1);
    const PART: PartitionId = PartitionId(2);

    #[test]
    fn what_lies_in_a_part_is_reckoned_until_its_tail_says_so() {
        let now = Instant(0);
        let mut samples = Samples::default();
        let held = Some(Volume { keys: 10, bytes: 8_000 });
        let stored = vec![Match(1), Match(2), Match(3), Match(9)];
        let origin =
            PartitionSample { partition: ORIGIN, held, stored, ..PartitionSample::default() };
        samples.hear(now, NodeId(1), &[origin]);
        samples.expect(now, (PART, (Match(0), Match(5))), (&[ORIGIN], 16));
        assert_eq!(samples.last_held(PART), Some(6_000), "three of four");
        let partition = Partition { id: PART, chain: vec![NodeId(1)], ..Partition::default() };
        assert_eq!(samples.held(&partition), None, "nobody has said so");
        let joint = PartitionId(3);
        samples.expect(now, (joint, (Match::MIN, Match::MAX)), (&[ORIGIN, PART], 1));
        assert_eq!(samples.last_held(joint), Some(14_000));
        let unknown = PartitionId(4);
        samples.expect(now, (unknown, (Match(0), Match(5))), (&[PartitionId(9)], 2));
        assert_eq!(samples.last_held(unknown), None);
        let held = Some(Volume { keys: 1, bytes: 100 });
        let told = PartitionSample { partition: PART, held, ..PartitionSample::default() };
        samples.hear(now, NodeId(1), &[told]);
        assert_eq!((samples.last_held(PART), samples.held(&partition)), (Some(100), held));
    }
}
