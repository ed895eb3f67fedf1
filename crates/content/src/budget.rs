//! How many changes a device may be asked for.

use machine::Instant;
use std::num::NonZero;
use std::time::Duration;

/// Changes that a device takes in a second: switches take some hundreds to some thousands, and
/// forward worse if they are asked for more (SwitchKV, section 3.3).
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    per_second: NonZero<u32>,
    /// When the present changes will all have been paid for.
    paid: Instant,
}

impl Budget {
    /// So many a second, and a tenth of that at once.
    #[must_use]
    pub fn new(now: Instant, per_second: NonZero<u32>) -> Self {
        Self { per_second, paid: now }
    }

    /// How many changes may be asked for now.
    #[must_use]
    pub fn allowed(&self, now: Instant) -> usize {
        let ahead = self.paid.since(now);
        let room = BURST.saturating_sub(ahead).as_nanos() / self.each().as_nanos().max(1);
        usize::try_from(room).unwrap_or(usize::MAX)
    }

    /// So many were asked for.
    pub fn spend(&mut self, now: Instant, changes: usize) {
        let changes = u32::try_from(changes).unwrap_or(u32::MAX);
        self.paid = self.paid.max(now) + self.each().saturating_mul(changes);
    }

    fn each(&self) -> Duration {
        Duration::from_secs(1) / self.per_second.get()
    }
}

/// For how long changes may be paid for in advance: long enough that a device always has some to
/// do while its answer is on the way.
const BURST: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_asked_for_no_more_than_it_takes() {
        let start = Instant::from_unix_ms(1_000);
        let mut budget = Budget::new(start, NonZero::new(1_000).expect("more than none"));
        let mut asked = 0;
        for ms in 0..1_000 {
            let now = start + Duration::from_millis(ms);
            let may = budget.allowed(now).min(37);
            budget.spend(now, may);
            asked += may;
        }
        assert!((1_050..=1_100).contains(&asked), "{asked}: a second's changes and a burst");
        let later = start + Duration::from_secs(60);
        assert_eq!(budget.allowed(later), 100, "what was not asked for is not saved up");
    }
}
