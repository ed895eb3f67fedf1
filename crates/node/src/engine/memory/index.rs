//! The order of the keys of a hash table, for scans and walks, which begin anywhere in it.
//!
//! Keys are found in it by the upper half of their match value, and those of one half in the order
//! of their keyhashes, which is not the order of a scan: so few keys of a half are here, and a scan
//! sorts them when it comes by. Those that come when there are as many are kept elsewhere.

use super::block::Block;
use super::slot::Slot;
use crate::engine::Interval;
use cluster::Match;
use hashbrown::HashTable;
use std::collections::BTreeSet;
use std::collections::btree_set;
use std::ops::ControlFlow;

/// Where the keys of a table stand by match value.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The upper half of each match value, and the keyhash that the key is found by. One may be
    /// left that names no key.
    places: BTreeSet<(u64, u64)>,
}

impl Index {
    /// Whether so many keys stand here already that one more would make a scan slow.
    pub(super) fn is_crowded(&self, at: Match) -> bool {
        let half = high(at);
        self.places.range((half, 0)..=(half, u64::MAX)).nth(CROWD_MIN - 1).is_some()
    }

    pub(super) fn add(&mut self, at: Match, keyhash: u64) {
        self.places.insert((high(at), keyhash));
    }

    /// `is_last` says that no other key has that keyhash.
    pub(super) fn remove(&mut self, at: Match, keyhash: u64, is_last: bool) {
        if is_last {
            self.places.remove(&(high(at), keyhash));
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The groups of an interval, in its order.
    pub(super) fn groups<'t>(
        &'t self,
        slots: &'t HashTable<Slot>,
        interval: &Interval<'t>,
    ) -> Groups<'t> {
        let ends = (high(interval.first), 0)..=(high(interval.last), u64::MAX);
        let crossed = interval.first > interval.last;
        let places = if crossed { btree_set::Range::default() } else { self.places.range(ends) };
        Groups { places, slots, interval: *interval, next: None }
    }

    /// Visits records in the order of (half, keyhash, key), from such a place to the end of a half,
    /// until the visitor breaks off: at the place that is then given.
    pub(super) fn walk<'t>(
        &self,
        slots: &'t HashTable<Slot>,
        (from, last): ((u64, u64, &[u8]), u64),
        mut visit: impl FnMut(u64, u64, &'t Block) -> ControlFlow<()>,
    ) -> Option<(u64, u64, &'t [u8])> {
        let (half, keyhash, _) = from;
        for (half, keyhash) in self.places.range((half, keyhash)..=(last, u64::MAX)) {
            look();
            let mut here: Vec<&Block> = with_hash(slots, *keyhash).collect();
            here.sort_unstable_by_key(|block| block.key());
            for block in here {
                let before = (*half, *keyhash, block.key()) < from;
                if !before && visit(*half, *keyhash, block).is_break() {
                    return Some((*half, *keyhash, block.key()));
                }
            }
        }
        None
    }
}

/// The records of an interval that are in the table, those of one upper half at a time.
pub(super) struct Groups<'t> {
    places: btree_set::Range<'t, (u64, u64)>,
    slots: &'t HashTable<Slot>,
    interval: Interval<'t>,
    /// The first place of the next group.
    next: Option<(u64, u64)>,
}

impl<'t> Groups<'t> {
    fn next_place(&mut self) -> Option<(u64, u64)> {
        let reverse = self.interval.reverse;
        look();
        let place = if reverse { self.places.next_back() } else { self.places.next() };
        place.copied()
    }

    /// Puts the next group in the place of what is given, in the order of the interval; says
    /// whether there was one.
    pub(super) fn next_into(&mut self, group: &mut Vec<(Match, &'t Block)>) -> bool {
        group.clear();
        let interval = self.interval;
        let Some((half, keyhash)) = self.next.take().or_else(|| self.next_place()) else {
            return false;
        };
        let slots = self.slots;
        let mut extend = |keyhash| {
            let found = with_hash(slots, keyhash);
            let found = found.map(|block| (interval.keyspace.match_value(block.key()), block));
            group.extend(
                found.filter(|(at, block)| high(*at) == half && interval.holds(*at, block.key())),
            );
        };
        extend(keyhash);
        loop {
            match self.next_place() {
                Some((other, keyhash)) if other == half => extend(keyhash),
                next => {
                    self.next = next;
                    break;
                }
            }
        }
        group.sort_unstable_by(|(at, a), (other, b)| (at, a.key()).cmp(&(other, b.key())));
        if interval.reverse {
            group.reverse();
        }
        true
    }
}

fn with_hash(slots: &HashTable<Slot>, keyhash: u64) -> impl Iterator<Item = &Block> {
    slots.iter_hash(keyhash).filter(move |slot| slot.keyhash == keyhash).map(|slot| &slot.block)
}

pub(super) fn high(at: Match) -> u64 {
    u64::try_from(at.0 >> 64).expect("half of it")
}

/// Places of one upper half from which on further keys of it are kept in order elsewhere: as many
/// as are sorted in less time than it takes to look one of them up.
pub(super) const CROWD_MIN: usize = 8;

/// A place is looked at: tests count them.
#[inline]
fn look() {
    #[cfg(test)]
    LOOKS.with(|looks| looks.set(looks.get() + 1));
}

#[cfg(test)]
thread_local! {
    pub(super) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
