//! A key that is too hot for one cache: where nodes may copy it, they had better.

use crate::slots::{Key, Slots};
use machine::Instant;
use std::time::Duration;

/// The key that was too hot for a cache when that could not keep up last, and when that was.
#[derive(Debug, Default)]
pub(crate) struct Crowding(Option<(Key, Instant)>);

impl Crowding {
    /// An interval has ended in which the cache could keep up, or could not. O(keys).
    pub(crate) fn end_interval(&mut self, now: Instant, could_not: bool, slots: &Slots) {
        if could_not {
            let all: u64 = slots.iter().map(|slot| slot.load()).sum();
            let found = slots.iter().find(|slot| slot.load() > all / CROWDING_PART);
            self.0 = found.map(|slot| (slot.key.clone(), now)).or(self.0.take());
        }
        let is_told = |(_, since): &(Key, Instant)| now < *since + CROWDING_TOLD;
        self.0 = self.0.take().filter(is_told);
    }

    /// It, if there is one.
    pub(crate) fn key(&self) -> Option<&Key> {
        self.0.as_ref().map(|(key, _)| key)
    }
}

/// A key that makes up more than all reads over this is too hot for a cache that cannot keep up:
/// most of what it can serve is this key.
const CROWDING_PART: u64 = 2;

/// A key that was too hot is told of for so long after: it may be given up at once, and each report
/// is asked for later than that.
const CROWDING_TOLD: Duration = Duration::from_secs(1);
