//! What the head of a partition worked out with a write.

use crate::number::{DelegationId, Generation, Version};

/// The number beside a write, which its effect and its client's operation give a meaning: each has
/// a name of its own here. 64 bits on the wire and in stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct ChainResult(u64);

impl ChainResult {
    /// That of a write which has none.
    pub const NONE: Self = Self(0);

    /// The one with these bits.
    #[must_use]
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// Its bits.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Of an INCR: the sum.
    #[must_use]
    pub const fn of_sum(sum: i64) -> Self {
        Self(sum.cast_unsigned())
    }

    /// Of an INCR: the sum.
    #[must_use]
    pub const fn sum(self) -> i64 {
        self.0.cast_signed()
    }

    /// Of a write without effect on one key: the version that it found.
    #[must_use]
    pub const fn of_found(version: Version) -> Self {
        Self(version.get())
    }

    /// Of a write without effect on one key: the version that it found.
    #[must_use]
    pub const fn found(self) -> Version {
        Version::new(self.0)
    }

    /// Of a batch without effect: the step whose condition did not hold.
    #[must_use]
    pub const fn of_step(step: u8) -> Self {
        Self(step as u64)
    }

    /// Of a batch without effect: the step whose condition did not hold.
    #[must_use]
    pub fn step(self) -> u8 {
        u8::try_from(self.0).unwrap_or(0)
    }

    /// Of the registration of a hot key: its generation.
    #[must_use]
    pub const fn of_generation(generation: Generation) -> Self {
        Self(generation.get())
    }

    /// Of the registration of a hot key: its generation.
    #[must_use]
    pub const fn generation(self) -> Generation {
        Generation::new(self.0)
    }

    /// Of a DELEGATE or a RECALL: the delegation.
    #[must_use]
    pub const fn of_delegation(delegation: DelegationId) -> Self {
        Self(delegation.get())
    }

    /// Of a DELEGATE or a RECALL: the delegation.
    #[must_use]
    pub const fn delegation(self) -> DelegationId {
        DelegationId::new(self.0)
    }
}
