//! A delegation of a hot key, as the switch knows it: whether it has begun, and the versions it has
//! left.

use crate::clock::SharedClock;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use wire::{DelegationId, DirectoryClock, Version};

/// What the switch knows of a hot key's delegation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegationExplanation {
    /// Its number.
    pub number: DelegationId,
    /// Nodes in the chain of each write.
    pub replicas: u8,
    /// The version that the next new write is stamped with; `None` if the delegation has not begun
    /// here, or has no version left, so that writes go home.
    pub next: Option<Version>,
}

/// One delegation, shared by all tables and threads in which the key is on it.
#[derive(Debug)]
pub(crate) struct Delegation {
    /// Its number.
    pub(crate) number: DelegationId,
    /// Nodes in the chain of each write at least.
    pub(crate) replicas: u8,
    /// Directory clock of its beginning; 0: it has not begun here.
    begun: AtomicU64,
    /// The version that is given next; 0: not known.
    next: AtomicU64,
    /// The last that may be given.
    last: AtomicU64,
}

impl Delegation {
    /// One that has not begun.
    pub(crate) fn new(delegation: cluster::Delegation) -> Self {
        let none = || AtomicU64::new(0);
        let (begun, next, last) = (none(), none(), none());
        Self { number: delegation.number, replicas: delegation.replicas, begun, next, last }
    }

    /// The clock of its beginning, if it has begun: what was first sent then or later was
    /// never at home before.
    pub(crate) fn begun(&self) -> Option<DirectoryClock> {
        let begun = self.begun.load(Ordering::Acquire);
        DirectoryClock::new(begun).some()
    }

    /// The DELEGATE of this version is committed everywhere: it begins, unless it has.
    pub(crate) fn begin(&self, delegated_at: Version, clock: &SharedClock) {
        if self.begun().is_some() {
            return;
        }
        let Some(last) = last_version(delegated_at) else { return };
        // Whoever else comes here at the same time says the same version, and may have begun to
        // give some out.
        self.last.store(last.get(), Ordering::Release);
        let _ = self.next.compare_exchange(
            0,
            delegated_at.get() + 1,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        let Some(begun) = clock.delegation() else { return };
        let _ = self.begun.compare_exchange(0, begun.get(), Ordering::AcqRel, Ordering::Acquire);
    }

    /// Whether there can be such a version while the key is under this delegation, as far as is
    /// known here.
    pub(crate) fn may_have(&self, version: Version) -> bool {
        self.begun().is_none() || version.get() < self.next.load(Ordering::Acquire)
    }

    /// What people want to know of it.
    pub(crate) fn explain(&self) -> DelegationExplanation {
        let last = self.last.load(Ordering::Acquire);
        let next = self.next.load(Ordering::Acquire);
        let left = self.begun().is_some() && (1..=last).contains(&next);
        let (number, replicas) = (self.number, self.replicas);
        DelegationExplanation { number, replicas, next: left.then_some(Version::new(next)) }
    }

    /// A version that nobody else is given, if there is one left.
    pub(crate) fn version(&self) -> Option<Version> {
        let last = self.last.load(Ordering::Acquire);
        let next = |version: u64| (1..=last).contains(&version).then_some(version + 1);
        self.next.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok().map(Version::new)
    }
}

/// The last version of a delegation that began with this DELEGATE; `None` if versions do not go so
/// far.
fn last_version(delegated_at: Version) -> Option<Version> {
    // One above it is to be a version, too: RECALL's.
    let last = delegated_at.checked_add(u64::try_from(wire::DELEGATION_VERSIONS).ok()?)?;
    (last < Version::MAX).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delegation() -> Delegation {
        Delegation::new(cluster::Delegation {
            number: DelegationId::new(3),
            replicas: 2,
            copies: 1,
        })
    }

    #[test]
    fn a_delegation_begins_once_and_gives_each_version_once() {
        let (delegation, clock) = (delegation(), SharedClock::default());
        assert_eq!((delegation.begun(), delegation.version()), (None, None));
        assert!(delegation.may_have(Version::new(u64::MAX)), "nothing is known of it");
        assert_eq!(
            delegation.explain(),
            DelegationExplanation { number: DelegationId::new(3), replicas: 2, next: None }
        );
        delegation.begin(Version::new(40), &clock);
        assert_eq!(delegation.explain().next, Some(Version::new(41)), "whoever asks takes none");
        assert_eq!(
            (delegation.begun(), delegation.version()),
            (Some(DirectoryClock::new(1)), Some(Version::new(41)))
        );
        delegation.begin(Version::new(40), &clock);
        assert_eq!(
            (delegation.begun(), delegation.version()),
            (Some(DirectoryClock::new(1)), Some(Version::new(42)))
        );
        assert_eq!(clock.now().present, DirectoryClock::new(1), "it is no other beginning");
        assert!(
            delegation.may_have(Version::new(42))
                && delegation.may_have(Version::new(7))
                && !delegation.may_have(Version::new(43))
        );
        let last = 40 + (1_u64 << 32);
        delegation.next.store(last, Ordering::Relaxed);
        assert_eq!((delegation.version(), delegation.version()), (Some(Version::new(last)), None));
        assert_eq!(delegation.explain().next, None);
    }

    #[test]
    fn a_delegation_that_versions_do_not_suffice_for_does_not_begin() {
        let (delegation, clock) = (delegation(), SharedClock::default());
        for delegated_at in [u64::MAX, u64::MAX - 1 - (1 << 32)] {
            delegation.begin(Version::new(delegated_at), &clock);
            assert_eq!((delegation.begun(), delegation.version()), (None, None));
        }
    }
}
