//! How many keys there are, as INFO tells it. Those who watch a server ask for INFO every few
//! seconds. Nodes mostly know the number; where they do not (after a restart, or because others
//! change what they keep values in), counting takes time in proportion to it.

use client::KeyCount;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// What was counted last.
#[derive(Debug, Default)]
pub(crate) struct LastCount(Mutex<Option<Counted>>);

#[derive(Clone, Copy, Debug)]
struct Counted {
    keys: KeyCount,
    at: Instant,
    took: Duration,
}

/// How old a number may be, by the time that counting took: no more than a fiftieth of all time is
/// spent on it, however often somebody asks.
const AGE_MAX: u32 = 50;

impl Counted {
    fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < self.took * AGE_MAX
    }
}

impl LastCount {
    /// The number of keys, counted by `count` unless that was done shortly before.
    pub(crate) async fn get(
        &self,
        count: impl Future<Output = Option<KeyCount>>,
    ) -> Option<KeyCount> {
        // Whoever comes while somebody counts waits for the same answer.
        let mut known = self.0.lock().await;
        if let Some(it) = known.filter(|it| it.is_fresh(Instant::now())) {
            return Some(it.keys);
        }
        let began = Instant::now();
        let keys = count.await?;
        *known = Some(Counted { keys, at: Instant::now(), took: began.elapsed() });
        Some(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_long_to_count_is_counted_seldom() {
        let (keys, at) = (KeyCount::default(), Instant::now());
        let known = |took| Counted { keys, at, took: Duration::from_millis(took) };
        let after = |ms| at + Duration::from_millis(ms);
        assert!(known(2).is_fresh(after(99)) && !known(2).is_fresh(after(101)));
        assert!(known(1_000).is_fresh(after(49_000)) && !known(1_000).is_fresh(after(51_000)));
    }
}
