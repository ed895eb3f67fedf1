//! Requests that came to nodes by the content addresses of keys: no switch has counted them.

use super::rate::Rate;
use cluster::{NodeId, PartitionCount, PartitionId};
use std::collections::BTreeMap;

/// What all nodes have counted together since they were first heard. It only grows: a node that
/// begins again, or is gone, takes nothing with it.
#[derive(Clone, Debug, Default)]
pub(super) struct Addressed {
    said: BTreeMap<(NodeId, PartitionId), Rate>,
    all: BTreeMap<PartitionId, Rate>,
}

impl Addressed {
    /// A node says what it has counted.
    pub(super) fn hear(&mut self, node: NodeId, counts: &[PartitionCount]) {
        for PartitionCount { partition, reads, writes } in counts {
            let now = Rate { reads: *reads, writes: *writes };
            // What came before it was first heard came at nobody knows what time.
            let Some(before) = self.said.insert((node, *partition), now) else { continue };
            let began_again = now.reads < before.reads || now.writes < before.writes;
            let more = if began_again { now } else { now.since(before) };
            let all = self.all.entry(*partition).or_default();
            *all = all.plus(more);
        }
    }

    /// What was counted of a partition.
    pub(super) fn of(&self, partition: PartitionId) -> Rate {
        self.all.get(&partition).copied().unwrap_or_default()
    }

    /// Forgets partitions that are there no more.
    pub(super) fn keep(&mut self, is_there: impl Fn(PartitionId) -> bool) {
        self.said.retain(|(_, partition), _| is_there(*partition));
        self.all.retain(|partition, _| is_there(*partition));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nodes_count_is_summed_and_never_goes_back() {
        let (partition, mut addressed) = (PartitionId(7), Addressed::default());
        let mut said = |node, reads, writes| {
            addressed.hear(NodeId(node), &[PartitionCount { partition, reads, writes }]);
            addressed.of(partition)
        };
        assert_eq!(said(1, 1_000, 10), Rate::default(), "from before it was heard");
        assert_eq!(said(1, 1_100, 11), Rate { reads: 100, writes: 1 });
        assert_eq!(said(2, 5, 5), Rate { reads: 100, writes: 1 });
        assert_eq!(said(2, 6, 5), Rate { reads: 101, writes: 1 });
        assert_eq!(said(1, 4, 0), Rate { reads: 105, writes: 1 }, "it has begun again");
        addressed.keep(|_| false);
        assert_eq!(addressed.of(partition), Rate::default());
    }
}
