//! Leases: a member that the controller cannot reach falls silent before somebody else takes over.
//!
//! Every report says when it was made, by the member's clock. A lease names that instant and runs
//! from there, so the member knows when it ends, and the controller, who heard the report later
//! than it was made, can tell when it has certainly ended: both count on their own clocks, which
//! need not agree. All that is asked of the clocks is that none runs much faster than another:
//! [`CLOCK_RATE_MAX_PERCENT`].
//!
//! ```text
//!   member      says at = t ───╮            ╭──▶ serves until t + duration, on its clock
//!   controller         hears at c, grants ──╯    waits for c + duration * rate bound on its own
//! ```

use crate::{ClusterId, Incarnation, text};
use machine::Instant;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wire::Revision;

/// While one clock of the cluster counts 100 seconds, no other counts more than this. Quartz is
/// within 0.01 %; drivers slew their clocks by at most 0.5 % either way to follow the wall clock.
pub const CLOCK_RATE_MAX_PERCENT: u32 = 102;

/// The controller's word that nobody takes over before the lease has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// For this incarnation of the member alone.
    pub incarnation: Incarnation,
    /// Of the cluster that grants it; void for a member of another one.
    #[serde(default)]
    pub cluster: ClusterId,
    /// It holds for a member that has installed this revision or a newer one: a member that came
    /// back with an old assignment must not serve by it.
    pub revision: Revision,
    /// When the report was made that it rests on, by the member's clock.
    #[serde(with = "text::instant")]
    pub from: Instant,
    /// How long it lasts from there.
    pub duration_ms: u64,
}

impl Lease {
    /// When it has certainly ended by a clock on which the report was heard at `heard`.
    #[must_use]
    pub fn over_by(heard: Instant, duration: Duration) -> Instant {
        heard + duration * CLOCK_RATE_MAX_PERCENT / 100
    }
}

/// A member's lease as the member keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Tenure {
    incarnation: Incarnation,
    until: Instant,
    length: Duration,
}

impl Tenure {
    /// None yet, for a member in this incarnation.
    #[must_use]
    pub fn new(incarnation: Incarnation) -> Self {
        Self { incarnation, until: Instant::default(), length: Duration::ZERO }
    }

    /// Which incarnation this is.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Takes a lease, if it is for this incarnation and for what is installed, which is of this
    /// cluster if it is anything.
    pub fn renew(&mut self, cluster: Option<ClusterId>, installed: Revision, lease: &Lease) {
        let ours = cluster.is_none_or(|cluster| cluster == lease.cluster);
        if ours && lease.incarnation == self.incarnation && lease.revision <= installed {
            self.length = Duration::from_millis(lease.duration_ms);
            self.until = self.until.max(lease.from + self.length);
        }
    }

    /// When it ends, by the member's own clock.
    #[must_use]
    pub fn until(&self) -> Instant {
        self.until
    }

    /// How long the newest one lasts; zero before the first.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.length
    }

    /// Whether the member may serve at `now`, by its own clock.
    #[must_use]
    pub fn holds(&self, now: Instant) -> bool {
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: ClusterId = ClusterId(3);
    const LEASE: Lease = Lease {
        incarnation: Incarnation(7),
        cluster: OURS,
        revision: Revision::new(5),
        from: Instant::from_unix_ms(1_000),
        duration_ms: 500,
    };

    #[test]
    fn a_lease_runs_from_the_report_it_rests_on() {
        let mut tenure = Tenure::new(Incarnation(7));
        assert!(!tenure.holds(Instant::from_unix_ms(1_000)));
        tenure.renew(Some(OURS), Revision::new(5), &LEASE);
        assert!(tenure.holds(Instant::from_unix_ms(1_499)));
        assert!(!tenure.holds(Instant::from_unix_ms(1_500)));
        tenure.renew(
            Some(OURS),
            Revision::new(5),
            &Lease { from: Instant::from_unix_ms(900), ..LEASE },
        );
        assert!(tenure.holds(Instant::from_unix_ms(1_499)), "an older one takes nothing away");
    }

    #[test]
    fn a_lease_for_another_incarnation_or_a_newer_revision_is_void() {
        let mut tenure = Tenure::new(Incarnation(7));
        tenure.renew(Some(OURS), Revision::new(5), &Lease { incarnation: Incarnation(8), ..LEASE });
        tenure.renew(Some(OURS), Revision::new(4), &LEASE);
        assert!(!tenure.holds(LEASE.from));
    }

    #[test]
    fn a_lease_of_another_cluster_is_void() {
        let mut tenure = Tenure::new(Incarnation(7));
        tenure.renew(Some(ClusterId(4)), Revision::new(5), &LEASE);
        assert!(!tenure.holds(LEASE.from));
        tenure.renew(None, Revision::new(5), &LEASE);
        assert!(tenure.holds(LEASE.from));
    }

    #[test]
    fn the_controller_waits_longer_than_the_slowest_clock_counts() {
        let heard = Instant::from_unix_ms(10_000);
        let over = Lease::over_by(heard, Duration::from_millis(500));
        assert_eq!(over, Instant::from_unix_ms(10_510));
    }
}
