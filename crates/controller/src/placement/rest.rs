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
const NO_RETURN: Duration = Duration::from_secs(600);

/// Who is left alone.
#[derive(Clone, Debug, Default)]
pub(super) struct Rests {
    partitions: BTreeMap<PartitionId, Rest>,
    left: BTreeMap<(PartitionId, NodeId), Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Rest {
    until: Instant,
    length: Duration,
}

impl Rests {
    /// A partition changes.
    pub(super) fn note(&mut self, now: Instant, change: &Change) {
        let id = change.partition();
        let last = self.partitions.get(&id).map(|it| it.length);
        let length = last.map_or(REST, |last| (last * 2).min(REST_MAX));
        self.partitions.insert(id, Rest { until: now + length, length });
        if let Change::Move { partition, from, .. } = *change {
            self.left.insert((partition, from), now);
        }
    }

    /// Whether a partition is left alone.
    pub(super) fn rests(&self, now: Instant, partition: PartitionId) -> bool {
        self.partitions.get(&partition).is_some_and(|it| now < it.until)
    }

    /// Whether a replica may go to this node.
    pub(super) fn may_go(&self, now: Instant, partition: PartitionId, node: NodeId) -> bool {
        self.left.get(&(partition, node)).is_none_or(|at| *at + NO_RETURN <= now)
    }

    pub(super) fn forget_old(&mut self, now: Instant) {
        self.partitions.retain(|_, it| now < it.until + REST_MAX);
        self.left.retain(|_, at| now < *at + NO_RETURN);
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
