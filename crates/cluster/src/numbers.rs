//! Which numbers can be. Whoever takes one from the network or from a store asks here first, so
//! that no arithmetic on it can overflow and no lie lives on.

use machine::Instant;
use wire::Revision;

/// Whether this can be the revision of a map or of an order of hot keys, or none. They are Unix
/// milliseconds, or one more than the last.
#[must_use]
pub const fn is_plausible_revision(now: Instant, revision: Revision) -> bool {
    revision.is_plausible(now.unix_ms())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{REVISION_AHEAD_MS, Version};

    #[test]
    fn what_is_far_ahead_of_every_clock_cannot_be() {
        let now = Instant::from_unix_ms(1_800_000_000_000);
        assert!(
            is_plausible_revision(now, Revision::NONE)
                && is_plausible_revision(now, Revision::new(now.unix_ms() + 9))
        );
        assert!(!is_plausible_revision(now, Revision::new(u64::MAX)));
        assert!(Version::MAX.is_plausible() && !Version::ABOVE_ALL.is_plausible());
        // A moment of a switch has the revision in its upper bits.
        let highest = now.unix_ms() + REVISION_AHEAD_MS as u64;
        assert!(highest.checked_mul(1 << wire::CLOCK_DELEGATIONS_BITS).is_some());
        assert!(!is_plausible_revision(now, Revision::new(highest + 1)));
    }
}
