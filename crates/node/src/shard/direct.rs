//! Requests that pass no switch (`DIRECT`): no fence keeps them from this node, so it serves them
//! only as long as a short lease of their own lasts.

use cluster::{ClusterId, Incarnation, Lease, Tenure};
use machine::Instant;
use std::time::Duration;
use wire::Revision;

/// For how long a node wants such leases after it was asked last. Until it has one it answers none
/// of these requests, which clients ask again.
const WANTED_FOR: Duration = Duration::from_secs(10);

/// The right to serve them, and whether it is of use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Direct {
    tenure: Tenure,
    asked: Option<Instant>,
    /// How often the first of them came.
    alerts: u64,
}

impl Direct {
    /// No right yet, for a node in this incarnation.
    pub(crate) fn new(incarnation: Incarnation) -> Self {
        Self { tenure: Tenure::new(incarnation), asked: None, alerts: 0 }
    }

    /// Takes such a lease, on the same conditions as any.
    pub(crate) fn renew(&mut self, cluster: Option<ClusterId>, installed: Revision, lease: &Lease) {
        self.tenure.renew(cluster, installed, lease);
    }

    /// Whether a request may be served, which has come now.
    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        self.ask(now);
        self.tenure.holds(now)
    }

    /// Somebody wants what takes such a right.
    pub(crate) fn ask(&mut self, now: Instant) {
        self.alerts += u64::from(!self.is_asked(now));
        self.asked = Some(now);
    }

    /// Until when the node has the right.
    pub(crate) fn until(&self) -> Instant {
        self.tenure.until()
    }

    /// How often the controller should hear at once that there are such requests.
    pub(crate) fn alerts(&self) -> u64 {
        self.alerts
    }

    /// Whether there have been such requests lately.
    pub(crate) fn is_asked(&self, now: Instant) -> bool {
        self.asked.is_some_and(|at| now < at + WANTED_FOR)
    }
}
