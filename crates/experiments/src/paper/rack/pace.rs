//! How fast a rack is.

use std::num::NonZero;
use std::time::Duration;

/// How many times slower than a real one a rack is: one of 100,000 requests per second and node,
/// 10 µs per hop, and clients that ask again after 5 ms at the earliest. Its controller is always
/// as fast as a real one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    slowed: NonZero<u32>,
}

impl Pace {
    /// Of all figures, unless said otherwise: a second of a rack is simulated within one or two.
    pub const USUAL: Self = Self { slowed: NonZero::new(10).expect("ten times") };

    /// So many times slower than a real one; `None` for 0, and for more than
    /// [`SLOWED_MAX`](Self::SLOWED_MAX).
    #[must_use]
    pub fn slowed(times: u32) -> Option<Self> {
        let slowed = NonZero::new(times).filter(|times| times.get() <= Self::SLOWED_MAX)?;
        Some(Self { slowed })
    }

    /// A node serves 100 requests a second then.
    pub const SLOWED_MAX: u32 = 1_000;

    /// How many times slower it is.
    #[must_use]
    pub fn times(self) -> u32 {
        self.slowed.get()
    }

    /// How many times slower than usual, rounded up; 1 if it is faster.
    pub(crate) fn times_usual(self) -> u32 {
        self.slowed.get().div_ceil(Self::USUAL.slowed.get())
    }

    /// Requests that a node serves in a second.
    #[must_use]
    pub fn node_rate(self) -> u32 {
        100_000 / self.slowed
    }

    /// From one end of a cable to the other, with all that is before and behind it: as long as a
    /// request takes its server. It takes up to a tenth longer, so that nothing runs in lockstep.
    #[must_use]
    pub fn hop(self) -> Duration {
        Duration::from_micros(10) * self.slowed.get()
    }

    /// How long an answer is waited for: four times as long as a full queue takes. What has none by
    /// then counts as not answered, and as a latency of this.
    #[must_use]
    pub fn deadline(self) -> Duration {
        Duration::from_millis(10) * self.slowed.get()
    }

    /// Nothing is asked for again sooner: as usual, but that all is slower. A full queue of a real
    /// rack is served within 5.1 ms, by a node of half the speed; copies of what still waits would
    /// keep a node full that was full once.
    pub(super) fn retry_min(self) -> Duration {
        Duration::from_millis(5) * self.slowed.get()
    }
}
