//! Which keys exist: those loaded before the run and those inserted during it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Key indices `0..count()`, shared by all generators of a run so that they insert no key twice
/// and all know the latest one.
///
/// As in YCSB an inserted key may be chosen only once its insert and all before it have ended.
#[derive(Clone, Debug)]
pub struct Population(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Keys below have all ended. Read for every operation, hence outside the lock.
    count: AtomicU64,
    inserts: Mutex<Inserts>,
}

#[derive(Debug)]
struct Inserts {
    next: u64,
    /// Ended inserts with one still going on below them; see [`WAITING_MAX`].
    ended: BTreeSet<u64>,
}

impl Population {
    /// A population of `loaded` keys.
    #[must_use]
    pub fn new(loaded: u64) -> Self {
        let inserts = Mutex::new(Inserts { next: loaded, ended: BTreeSet::new() });
        Self(Arc::new(Shared { count: AtomicU64::new(loaded), inserts }))
    }

    /// How many keys may be chosen from.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.count.load(Ordering::Acquire)
    }

    /// Takes the next key to insert.
    #[must_use]
    pub fn claim(&self) -> u64 {
        let mut inserts = self.0.inserts.lock().unwrap_or_else(PoisonError::into_inner);
        let index = inserts.next;
        inserts.next += 1;
        index
    }

    /// Says that the insert of a claimed key has ended, whatever its outcome.
    pub fn ended(&self, index: u64) {
        let mut inserts = self.0.inserts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut count = self.count();
        if index < count {
            return;
        }
        inserts.ended.insert(index);
        if inserts.ended.len() > WAITING_MAX {
            count = *inserts.ended.first().expect("over the limit");
        }
        while inserts.ended.remove(&count) {
            count += 1;
        }
        self.0.count.store(count, Ordering::Release);
    }
}

/// Ended inserts that wait for an earlier one. Past this the earlier one is taken as ended, so that
/// one insert without an answer bounds neither memory nor the choice of keys; a read of it may
/// then find nothing. 65,536 is more than a second of inserts at any rate one machine reaches.
const WAITING_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_counts_once_its_insert_and_all_before_it_have_ended() {
        let population = Population::new(10);
        let claimed: Vec<u64> = (0..3).map(|_| population.claim()).collect();
        assert_eq!(claimed, [10, 11, 12]);
        population.ended(11);
        assert_eq!(population.count(), 10);
        population.ended(10);
        assert_eq!(population.count(), 12);
        population.ended(10);
        population.ended(12);
        assert_eq!(population.count(), 13);
    }

    #[test]
    fn one_lost_insert_does_not_hold_the_others_back_for_ever() {
        let population = Population::new(0);
        let lost = population.claim();
        for _ in 0..=WAITING_MAX {
            population.ended(population.claim());
        }
        assert_eq!(population.count(), u64::try_from(WAITING_MAX).unwrap() + 2);
        population.ended(lost);
        assert_eq!(population.count(), u64::try_from(WAITING_MAX).unwrap() + 2);
    }
}
