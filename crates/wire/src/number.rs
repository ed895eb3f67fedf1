//! The six counters of the protocol, one type each, so that none can stand in another's place. On
//! the wire, in stores and in maps of the kernel each is 64 bits, big-endian unless a record says
//! otherwise; in text it is a plain number.
//!
//! Numbers of one type compare in the order in which they were given out. Nothing else about them
//! is arithmetic: [`get`](Version::get) gives the bits to whoever stores or shows them.

use crate::layout::{CLOCK_DELEGATIONS_BITS, REVISION_AHEAD_MS, VERSION_MAX};
use core::fmt;
use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $none:literal) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize,
            Deserialize,
        )]
        #[repr(transparent)]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            #[doc = $none]
            pub const NONE: Self = Self(0);

            /// The number with these bits.
            #[inline]
            #[must_use]
            pub const fn new(bits: u64) -> Self {
                Self(bits)
            }

            /// Its bits.
            #[inline]
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// Whether this is [`NONE`](Self::NONE).
            #[inline]
            #[must_use]
            pub const fn is_none(self) -> bool {
                self.0 == 0
            }

            /// This, unless it is [`NONE`](Self::NONE).
            #[inline]
            #[must_use]
            pub const fn some(self) -> Option<Self> {
                if self.is_none() { None } else { Some(self) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// Which write of a partition this is. The head of the partition counts them, so two versions
    /// compare if they are of one partition: the higher one was ordered later. Those of one key
    /// have gaps. At most [`VERSION_MAX`].
    Version,
    "No write: what a key has that was never written, and what is named where any will do."
}

number! {
    /// Revision of a map or of an order of hot keys: Unix milliseconds of when it was made, or one
    /// more than the last, whichever is higher. Two revisions of maps compare, and so do two of
    /// orders of hot keys; the higher one replaces the other.
    Revision,
    "Before the first."
}

number! {
    /// Which generation of a hot key's directory entry this is: the revision of the order of hot
    /// keys that took it in. What is known of a key in one generation means nothing in another.
    Generation,
    "No entry."
}

number! {
    /// Which delegation of a key's writes this is: the revision of the order of hot keys that began
    /// it. Two delegations of one key compare: the higher one is later.
    DelegationId,
    "No delegation, or none to be relied on."
}

number! {
    /// How far the coherence directory of a switch is: the revision of its order of hot keys in the
    /// upper bits, and in the lower [`CLOCK_DELEGATIONS_BITS`] how many delegations have begun
    /// since it came. It never falls, over all switches. Readings compare.
    DirectoryClock,
    "Before every order: what a client says that has heard no reply."
}

number! {
    /// Which loan of a partition's keys to caches this is: the tail counts them, anew in each epoch
    /// and incarnation. Of two loans of one such count the higher one is later.
    LoanNumber,
    "Before the first."
}

impl LoanNumber {
    /// The one after it. Nobody counts to the end.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl Version {
    /// That of a partition's first write.
    pub const FIRST: Self = Self(1);

    /// The highest that can be.
    pub const MAX: Self = Self(VERSION_MAX as u64);

    /// Above that of every write. As the floor of a read: only the tail may answer.
    pub const ABOVE_ALL: Self = Self(u64::MAX);

    /// The one after it.
    ///
    /// # Panics
    ///
    /// If there is none: whoever takes versions in asks [`is_plausible`](Self::is_plausible) first.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("versions end at VERSION_MAX"))
    }

    /// The one that is so many after it, if numbers go so far.
    #[inline]
    #[must_use]
    pub const fn checked_add(self, count: u64) -> Option<Self> {
        match self.0.checked_add(count) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// The one that is so many after it, or [`ABOVE_ALL`](Self::ABOVE_ALL) where numbers end.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, count: u64) -> Self {
        Self(self.0.saturating_add(count))
    }

    /// The one before it, or [`NONE`](Self::NONE).
    #[inline]
    #[must_use]
    pub const fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// How many come after `earlier`, up to this one; `None` if this is before it.
    #[inline]
    #[must_use]
    pub const fn checked_since(self, earlier: Self) -> Option<u64> {
        self.0.checked_sub(earlier.0)
    }

    /// Whether this can be the version of a write, or none.
    #[inline]
    #[must_use]
    pub const fn is_plausible(self) -> bool {
        self.0 <= VERSION_MAX as u64
    }
}

impl Revision {
    /// The highest that a switch can make a clock of.
    pub const MAX: Self = Self(u64::MAX >> CLOCK_DELEGATIONS_BITS);

    /// The revision of what is made now, at these Unix milliseconds, after this one was.
    ///
    /// # Panics
    ///
    /// If there is none: who takes revisions in asks [`is_plausible`](Self::is_plausible) first.
    #[must_use]
    pub fn next(self, now_ms: u64) -> Self {
        Self(self.0.checked_add(1).expect("revisions are Unix milliseconds").max(now_ms))
    }

    /// Whether this can be a revision, or none, at these Unix milliseconds.
    #[must_use]
    pub const fn is_plausible(self, now_ms: u64) -> bool {
        self.0 <= now_ms.saturating_add(REVISION_AHEAD_MS as u64)
    }
}

impl Generation {
    /// That of entries which this order of hot keys takes in.
    #[must_use]
    pub const fn begun_by(order: Revision) -> Self {
        Self(order.0)
    }

    /// The order of hot keys that took the entry in.
    #[must_use]
    pub const fn order(self) -> Revision {
        Revision(self.0)
    }
}

impl DelegationId {
    /// That of the delegation of a key which this order of hot keys begins.
    #[must_use]
    pub const fn begun_by(order: Revision) -> Self {
        Self(order.0)
    }

    /// The order of hot keys that began it.
    #[must_use]
    pub const fn order(self) -> Revision {
        Revision(self.0)
    }
}

impl DirectoryClock {
    /// What it is when this order of hot keys comes.
    #[inline]
    #[must_use]
    pub const fn of_order(order: Revision) -> Self {
        Self(order.0 << CLOCK_DELEGATIONS_BITS)
    }

    /// The order of hot keys that has come last.
    #[inline]
    #[must_use]
    pub const fn order(self) -> Revision {
        Revision(self.0 >> CLOCK_DELEGATIONS_BITS)
    }

    /// What it is when another delegation begins, if an order has numbers for one more.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        let low = (1 << CLOCK_DELEGATIONS_BITS) - 1;
        if self.0 & low == low { None } else { Some(Self(self.0 + 1)) }
    }
}
