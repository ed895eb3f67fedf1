//! Copies in progress: what the givers report, and when they will be done.

use super::form::CopyStatus;
use super::view::View;
use cluster::{CopyProgress, NodeId, Partition};

/// Every partition that takes a node in.
pub(super) fn copies(view: &View<'_>) -> Vec<CopyStatus> {
    view.state.map.partitions.iter().filter_map(|p| copy(view, p)).collect()
}

fn copy(view: &View<'_>, partition: &Partition) -> Option<CopyStatus> {
    let (from, to) = (partition.tail()?, partition.learner()?);
    let progress = progress(view, partition, from);
    let eta_ms = progress.filter(|_| !view.state.paused);
    Some(CopyStatus {
        partition: partition.id,
        from,
        to,
        permille: progress.map_or(0, |copy| copy.permille),
        bytes: progress.map_or(0, |copy| copy.bytes),
        eta_ms: eta_ms.and_then(|copy| view.watches.eta_ms(view.now, &copy)),
    })
}

fn progress(view: &View<'_>, partition: &Partition, from: NodeId) -> Option<CopyProgress> {
    let mut copies = view.members.node_report(from)?.copies.iter();
    copies.find(|c| c.partition == partition.id && c.epoch == partition.epoch).copied()
}
