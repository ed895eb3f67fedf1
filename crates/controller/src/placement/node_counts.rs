//! What nodes count and switches do not: requests that came by the content addresses of keys, the
//! records that scans examine, and bytes.

use super::rate::Rate;
use cluster::{NodeCount, NodeId, PartitionId};
use std::collections::BTreeMap;

/// What all nodes have counted together since they were first heard. It only grows: a node that
/// begins again, or is gone, takes nothing with it.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeCounts {
    said: BTreeMap<(NodeId, PartitionId), Rate>,
    all: BTreeMap<PartitionId, Rate>,
}

impl NodeCounts {
    /// A node says what it has counted.
    pub(super) fn hear(&mut self, node: NodeId, counts: &[NodeCount]) {
        for NodeCount { partition, reads, writes, scanned, bytes_in, bytes_out } in
            counts.iter().copied()
        {
            let now = Rate { reads, writes, scanned, bytes_in, bytes_out };
            // What came before it was first heard came at nobody knows what time.
            let Some(before) = self.said.insert((node, partition), now) else { continue };
            // All counts begin again together.
            let began_again = before.since(now) != Rate::default();
            let more = if began_again { now } else { now.since(before) };
            let all = self.all.entry(partition).or_default();
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
        let (partition, mut all) = (PartitionId(7), NodeCounts::default());
        let mut said = |node, reads, writes, scanned| {
            let count = NodeCount { reads, writes, scanned, ..NodeCount::new(partition) };
            all.hear(NodeId(node), &[count]);
            let Rate { reads, writes, scanned, .. } = all.of(partition);
            (reads, writes, scanned)
        };
        assert_eq!(said(1, 1_000, 10, 900), (0, 0, 0), "from before it was heard");
        assert_eq!(said(1, 1_100, 11, 901), (100, 1, 1));
        assert_eq!(said(2, 5, 5, 5), (100, 1, 1));
        assert_eq!(said(2, 6, 5, 8), (101, 1, 4));
        assert_eq!(said(1, 4, 0, 0), (105, 1, 4), "it has begun again");
        assert_eq!(said(1, 5, 0, 7), (106, 1, 11));
        all.keep(|_| false);
        assert_eq!(all.of(partition), Rate::default());
    }
}
