//! Leases as the giver keeps them: when the last one that a member may have has certainly ended.

use cluster::{ClusterId, Lease, Report};
use machine::Instant;
use std::time::Duration;
use wire::Revision;

/// What a member may have been granted, in any of its incarnations.
///
/// A new incarnation, or a new memory, does not end what an earlier incarnation was given: the old
/// process may still run, cut off from everybody but its clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    over_at: Instant,
}

impl Granted {
    /// What somebody else may have granted up to now: a lease of this length at this moment.
    pub(crate) fn up_to(now: Instant, duration: Duration) -> Self {
        Self { over_at: Lease::over_by(now, duration) }
    }

    /// None has been granted by anybody.
    pub(crate) fn none(now: Instant) -> Self {
        Self { over_at: now }
    }

    /// A lease of this cluster that rests on a report that was heard at `heard`.
    pub(crate) fn grant(
        &mut self,
        cluster: ClusterId,
        report: &Report,
        heard: Instant,
        revision: Revision,
        duration: Duration,
    ) -> Lease {
        self.over_at = self.over_at.max(Lease::over_by(heard, duration));
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Lease { incarnation: report.incarnation, cluster, revision, from: report.at, duration_ms }
    }

    /// When every lease has certainly ended.
    pub(crate) fn over_at(self) -> Instant {
        self.over_at
    }

    /// Whether every lease has certainly ended.
    pub(crate) fn is_over(self, now: Instant) -> bool {
        self.over_at <= now
    }
}
