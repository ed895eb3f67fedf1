//! How long partitions are left alone after their load was moved.

use super::change::Change;
use cluster::{NodeId, PartitionId};
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// The first time; each time after that twice as long.
const REST: Duration = Duration::from_secs(10);

/// The longest. After as much time without a change it begins anew.
const REST_MAX: Duration = Duration::from_secs(600);

/// No replica goes back to a node that it left less than this ago.
pub(crate) const NO_RETURN: Duration = Duration::from_secs(600);

/// Who is left alone.
#[derive(Clone, Debug, Default)]
pub(super) struct Rests {
    partitions: BTreeMap<PartitionId, Rest>,
    /// Those that were to be split, should they be there all the same.
    cut: BTreeMap<PartitionId, Rest>,
    left: BTreeMap<(PartitionId, NodeId), Instant>,
    parts: BTreeMap<PartitionId, Part>,
}

/// A partition that was made of others.
#[derive(Clone, Copy, Debug)]
struct Part {
    made: Instant,
    /// What it was expected to be asked for.
    expected: u64,
    /// How long it is not split if that was wrong.
    length: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Rest {
    until: Instant,
    length: Duration,
}

impl Part {
    /// Whether it is asked for no more than was expected, as far as a sample tells.
    fn is_as_expected(&self, load: u64) -> bool {
        load * 5 <= self.expected * 8
    }
}

impl Rests {
    /// A partition changes.
    pub(super) fn note(&mut self, now: Instant, change: &Change) {
        let (rests, with) = match change {
            Change::Split { .. } => (&mut self.cut, None),
            Change::Merge { with, .. } => (&mut self.partitions, Some(*with)),
            Change::Turn { .. } | Change::Move { .. } => (&mut self.partitions, None),
        };
        for id in [change.partition()].into_iter().chain(with) {
            let last = rests.get(&id).map(|it| it.length);
            let length = last.map_or(REST, |last| (last * 2).min(REST_MAX));
            rests.insert(id, Rest { until: now + length, length });
        }
        if let Change::Move { partition, from, .. } = *change {
            self.note_left(now, partition, from);
        }
    }

    /// A replica leaves a node.
    pub(super) fn note_left(&mut self, now: Instant, partition: PartitionId, node: NodeId) {
        self.left.insert((partition, node), now);
    }

    /// Whether a partition is left alone.
    pub(super) fn rests(&self, now: Instant, partition: PartitionId) -> bool {
        self.partitions.get(&partition).is_some_and(|it| now < it.until)
    }

    /// Whether a replica may go to this node.
    pub(super) fn may_go(&self, now: Instant, partition: PartitionId, node: NodeId) -> bool {
        self.left.get(&(partition, node)).is_none_or(|at| *at + NO_RETURN <= now)
    }

    /// Partitions were made of others, which were asked for so much, and are expected to be asked
    /// for so much.
    pub(super) fn note_parts(
        &mut self,
        now: Instant,
        origins: &[(PartitionId, u64)],
        parts: &[(PartitionId, u64)],
    ) {
        // What a part is asked for is another matter than what the whole was: it may go anywhere.
        let merged = if origins.len() > 1 { origins } else { &[] };
        let left: Vec<(NodeId, Instant)> = merged
            .iter()
            .flat_map(|(id, _)| self.left.range((*id, NodeId(0))..=(*id, NodeId(u16::MAX))))
            .map(|((_, node), at)| (*node, *at))
            .collect();
        let wrong = |(id, load): &(PartitionId, u64)| {
            self.parts.get(id).filter(|it| !it.is_as_expected(*load))
        };
        let lengths = origins.iter().filter_map(wrong).map(|it| it.length * 2);
        let length = lengths.max().unwrap_or(REST).min(REST_MAX);
        for (id, expected) in parts {
            self.left.extend(left.iter().map(|(node, at)| ((*id, *node), *at)));
            self.parts.insert(*id, Part { made: now, expected: *expected, length });
        }
    }

    /// Whether it was to be split not long ago.
    pub(super) fn was_cut(&self, now: Instant, partition: PartitionId) -> bool {
        self.cut.get(&partition).is_some_and(|it| now < it.until)
    }

    /// Whether a partition may be split that is asked for so much. The last cut has to have had the
    /// effect that was expected, or to be some time ago: load that moves on with every key that is
    /// written would have it cut again and again. Nor is it tried again and again in vain.
    pub(super) fn may_split(&self, now: Instant, partition: PartitionId, load: u64) -> bool {
        let part = self.parts.get(&partition);
        !self.was_cut(now, partition)
            && part.is_none_or(|it| it.is_as_expected(load) || it.made + it.length <= now)
    }

    pub(super) fn forget_old(&mut self, now: Instant) {
        for rests in [&mut self.partitions, &mut self.cut] {
            rests.retain(|_, it| now < it.until + REST_MAX);
        }
        self.left.retain(|_, at| now < *at + NO_RETURN);
        self.parts.retain(|_, it| now < it.made + it.length + REST_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: PartitionId = PartitionId(1);

    #[test]
    fn a_partition_is_left_alone_for_longer_each_time_and_forgotten_in_the_end() {
        let mut rests = Rests::default();
        let mut now = Instant::from_unix_ms(0);
        let turn = Change::Turn { partition: ONE, tail: NodeId(1) };
        for seconds in [10, 20, 40, 80, 160, 320, 600, 600] {
            assert!(!rests.rests(now, ONE));
            rests.note(now, &turn);
            now = now + (Duration::from_secs(seconds) - Duration::from_nanos(1));
            assert!(rests.rests(now, ONE), "{seconds} s");
            now = now + Duration::from_nanos(1);
        }
        now = now + REST_MAX;
        rests.forget_old(now);
        rests.note(now, &turn);
        assert!(!rests.rests(now + REST, ONE), "it begins anew");
    }

    #[test]
    fn no_replica_goes_back_within_ten_minutes() {
        let mut rests = Rests::default();
        let now = Instant::from_unix_ms(0);
        rests.note(
            now,
            &Change::Move { partition: ONE, from: NodeId(1), to: NodeId(2), reads: true },
        );
        let minutes = |n: u64| now + Duration::from_secs(60 * n);
        assert!(!rests.may_go(minutes(9), ONE, NodeId(1)));
        assert!(rests.may_go(minutes(9), ONE, NodeId(3)));
        assert!(rests.may_go(minutes(9), PartitionId(2), NodeId(1)));
        assert!(rests.may_go(minutes(10), ONE, NodeId(1)));
    }
}
