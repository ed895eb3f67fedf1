//! How fast copies go.

use cluster::{CopyProgress, Epoch, Map, NodeReport, PartitionId};
use machine::Instant;
use std::collections::BTreeMap;

/// Where each running copy stood when it was first heard of, so that its rate can be told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watches {
    watches: BTreeMap<PartitionId, Watch>,
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    epoch: Epoch,
    begun: Instant,
    permille: u16,
}

impl Watches {
    /// Notes what a giver reports.
    pub(crate) fn note(&mut self, now: Instant, report: &NodeReport) {
        for copy in &report.copies {
            let CopyProgress { partition, epoch, permille, .. } = *copy;
            let watch = Watch { epoch, begun: now, permille };
            let known = self.watches.entry(partition).or_insert(watch);
            if known.epoch < epoch {
                *known = watch;
            }
        }
    }

    /// Forgets the copies that have ended. O(partitions).
    pub(crate) fn keep_running(&mut self, map: &Map) {
        let running = map.partitions.iter().filter(|p| p.has_learner).map(|p| (p.id, p.epoch));
        let running: BTreeMap<PartitionId, Epoch> = running.collect();
        self.watches.retain(|id, watch| running.get(id) == Some(&watch.epoch));
    }

    /// Starts all anew: the rate so far says nothing about the rate to come.
    pub(crate) fn clear(&mut self) {
        self.watches.clear();
    }

    /// When it will be done, in milliseconds, if that can be told.
    pub(super) fn eta_ms(&self, now: Instant, copy: &CopyProgress) -> Option<u64> {
        let watch = self.watches.get(&copy.partition).filter(|w| w.epoch == copy.epoch)?;
        let done = u64::from(copy.permille.checked_sub(watch.permille)?);
        let left = 1000_u64.saturating_sub(u64::from(copy.permille));
        let taken_ms = u64::try_from(now.since(watch.begun).as_millis()).unwrap_or(u64::MAX);
        taken_ms.saturating_mul(left).checked_div(done)
    }
}
