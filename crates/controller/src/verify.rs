//! Comparing replicas: what an operator asked for, and what the tails have said.

use crate::members::{Members, Peer};
use cluster::{Map, NodeReport, PartitionId, Verification, VerifyOrder};
use machine::Instant;
use std::collections::BTreeMap;

/// The newest wish, and the newest word on each partition. It is not saved: a controller that
/// begins takes the wish from the nodes, which go on with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verifying {
    pub(crate) order: Option<VerifyOrder>,
    heard: BTreeMap<PartitionId, Heard>,
}

/// What was heard of a partition.
#[derive(Clone, Debug)]
struct Heard {
    newest: Verification,
    /// The newest that was done, and when that was heard.
    done: Option<(Verification, Instant)>,
}

impl Verifying {
    /// Notes what a node has compared. A comparison that is done is not forgotten because one of
    /// another tail, or of a later epoch, begins.
    pub(crate) fn note(&mut self, now: Instant, report: &NodeReport) {
        for said in &report.verified {
            let rank = |it: &Verification| (it.number, it.done, it.epoch, it.permille);
            let known = self.heard.get_mut(&said.partition);
            if known.as_ref().is_some_and(|known| rank(&known.newest) >= rank(said)) {
                continue;
            }
            let before = known.and_then(|known| known.done.take());
            let done = if said.done { Some((said.clone(), now)) } else { before };
            self.heard.insert(said.partition, Heard { newest: said.clone(), done });
        }
    }

    /// The newest word on a partition.
    pub(crate) fn newest(&self, partition: PartitionId) -> Option<&Verification> {
        self.heard.get(&partition).map(|heard| &heard.newest)
    }

    /// The last time that a partition was compared as a whole, and when that was heard.
    pub(crate) fn last_done(&self, partition: PartitionId) -> Option<(&Verification, Instant)> {
        self.heard.get(&partition)?.done.as_ref().map(|(said, at)| (said, *at))
    }

    /// An operator wants one partition compared, or all. Gives the number of the wish: higher than
    /// any that a node has heard of.
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        map: &Map,
        members: &Members,
        partition: Option<PartitionId>,
        mend: bool,
    ) -> u64 {
        let heard = members.nodes().filter_map(|(_, peer)| Some(peer.node_report()?.verify));
        let known = heard.chain(self.order.map(|order| order.number)).max();
        let number = known.unwrap_or(0).saturating_add(1).max(now.unix_ms());
        self.keep(map);
        self.order = Some(VerifyOrder { number, partition, mend });
        number
    }

    /// The wish, for a node that has not taken it.
    pub(crate) fn order_for(&self, peer: &Peer) -> Option<VerifyOrder> {
        let report = Some(peer).filter(|peer| peer.follows())?.node_report()?;
        self.order.filter(|order| report.verify < order.number)
    }

    /// Forgets partitions that are no more.
    fn keep(&mut self, map: &Map) {
        self.heard.retain(|id, _| map.partitions.iter().any(|partition| partition.id == *id));
    }
}
