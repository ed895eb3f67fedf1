//! Comparing replicas: what an operator asked for, and what the tails have said.

use crate::commands::CommandError;
use crate::controller::Controller;
use cluster::{Map, Member, MemberReport, NodeReport, PartitionId, Verification, VerifyOrder};
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

    /// Forgets partitions that are no more.
    pub(crate) fn keep(&mut self, map: &Map) {
        self.heard.retain(|id, _| map.partitions.iter().any(|partition| partition.id == *id));
    }

    /// The newest word on a partition.
    pub(crate) fn newest(&self, partition: PartitionId) -> Option<&Verification> {
        self.heard.get(&partition).map(|heard| &heard.newest)
    }

    /// The last time that a partition was compared as a whole, and when that was heard.
    pub(crate) fn last_done(&self, partition: PartitionId) -> Option<(&Verification, Instant)> {
        self.heard.get(&partition)?.done.as_ref().map(|(said, at)| (said, *at))
    }
}

impl Controller {
    /// Has the members of one partition's chain compared, or those of all, while they serve; what
    /// is certainly wrong is made right if `mend` says so. Gives the number of the wish.
    ///
    /// # Errors
    ///
    /// If there is no such partition.
    pub fn verify(
        &mut self,
        now: Instant,
        partition: Option<PartitionId>,
        mend: bool,
    ) -> Result<u64, CommandError> {
        self.awake(now);
        let partitions = &self.state.map.partitions;
        if let Some(id) = partition.filter(|id| partitions.iter().all(|it| it.id != *id)) {
            return Err(CommandError::NoPartition(id));
        }
        let known = self.peers.values().filter_map(|peer| match &peer.report.as_ref()?.state {
            MemberReport::Node(report) => Some(report.verify),
            MemberReport::Switch(_) => None,
        });
        let known = known.chain(self.verifying.order.map(|order| order.number)).max();
        let number = known.unwrap_or(0).saturating_add(1).max(now.unix_ms());
        self.verifying.keep(&self.state.map);
        self.verifying.order = Some(VerifyOrder { number, partition, mend });
        let what = partition.map_or("all replicas".to_owned(), |id| format!("partition {id}"));
        let mend = if mend { "compared and mended" } else { "compared" };
        self.decisions.note(now, format!("wanted: {what} {mend}"), "tell the nodes", "");
        for (member, peer) in &mut self.peers {
            if matches!(member, Member::Node(_)) && peer.follows() {
                peer.due = now;
            }
        }
        Ok(number)
    }

    /// The wish, for a node that has not taken it.
    pub(crate) fn verify_for(&self, member: Member) -> Option<VerifyOrder> {
        let peer = self.peers.get(&member).filter(|peer| peer.follows())?;
        let MemberReport::Node(report) = &peer.report.as_ref()?.state else { return None };
        self.verifying.order.filter(|order| report.verify < order.number)
    }
}
