//! Memory that connections hold: unfinished commands, commands under way, what is queued, and
//! replies that are not read. All connections together have a limit, those of strangers a small
//! one; beyond it the connections that hold most are ended.

use crate::clients::{Clients, Entry};
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that all connections may hold unless somebody says otherwise: eight of the longest
/// commands at once.
pub(crate) const HELD_MAX: usize = 512 << 20;
/// Bytes that all those may hold who have not shown who they are: what a quarter of 10,000 clients
/// need who authenticate at one moment.
const STRANGERS_HELD_MAX: usize = 16 << 20;

/// What is held.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    all: AtomicUsize,
    strangers: AtomicUsize,
}

impl Budget {
    /// Bytes that all connections hold.
    pub(crate) fn held(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }

    /// Notes what a connection holds from now on. One that has been ended is as good as gone,
    /// though it may not know that yet: else others would have to go for what it holds.
    pub(crate) fn note(&self, entry: &Entry, held: usize) {
        self.count(entry, if entry.is_evicted() { 0 } else { held });
        // It may have been ended meanwhile.
        if held > 0 && entry.is_evicted() {
            self.count(entry, 0);
        }
    }

    fn count(&self, entry: &Entry, held: usize) {
        let before = entry.held.swap(held, Ordering::Relaxed);
        let counted = if entry.is_stranger() { held } else { 0 };
        let counted_before = entry.held_as_stranger.swap(counted, Ordering::Relaxed);
        for (sum, before, now) in
            [(&self.all, before, held), (&self.strangers, counted_before, counted)]
        {
            // The difference, which wraps around below zero.
            sum.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
        }
    }

    /// Whether connections have to be ended.
    pub(crate) fn is_over(&self, held_max: usize) -> bool {
        self.held() > held_max || self.strangers_over()
    }

    fn strangers_over(&self) -> bool {
        self.strangers.load(Ordering::Relaxed) > STRANGERS_HELD_MAX
    }

    /// Ends as many connections as it takes, and says how many: those that hold most first, and of
    /// several that hold about as much those that have gone longest without a whole command.
    pub(crate) fn evict(&self, clients: &Clients, held_max: usize) -> usize {
        let mut all: Vec<Arc<Entry>> = clients.list();
        all.retain(|entry| !entry.is_evicted() && entry.held.load(Ordering::Relaxed) > 0);
        let size = |entry: &Arc<Entry>| entry.held.load(Ordering::Relaxed).max(1).ilog2();
        all.sort_by_cached_key(|entry| (Reverse(size(entry)), entry.active_ms()));
        let mut evicted = 0;
        for entry in all {
            let (over, strangers_over) = (self.held() > held_max, self.strangers_over());
            if !over && !strangers_over {
                break;
            }
            if over || entry.is_stranger() {
                entry.evict();
                self.note(&entry, 0);
                evicted += 1;
            }
        }
        evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn enter(clients: &Clients, second: u64) -> Arc<Entry> {
        let at = "127.0.0.1:1".parse().unwrap();
        clients.enter(at, at, Duration::from_secs(second), "default")
    }

    #[test]
    fn those_that_hold_most_go_and_no_more_than_it_takes() {
        let (clients, budget) = (Clients::default(), Budget::default());
        let all: Vec<_> = (0..5).map(|second| enter(&clients, second)).collect();
        for (entry, held) in all.iter().zip([10, 60, 63, 40, 1]) {
            entry.note_user(true);
            budget.note(entry, held << 20);
        }
        assert_eq!(budget.held(), 174 << 20);
        assert!(!budget.is_over(174 << 20) && budget.is_over(120 << 20));
        assert_eq!(budget.evict(&clients, 120 << 20), 1);
        let gone = |index: usize| all[index].is_evicted();
        assert!(gone(1) && !gone(2), "of 60 and 63 the one that has gone longest");
        assert_eq!(budget.held(), 114 << 20);
        assert_eq!(budget.evict(&clients, 120 << 20), 0);
        budget.note(&all[1], 60 << 20);
        assert_eq!(budget.held(), 114 << 20, "it does not know yet that it is ended");
        budget.note(&all[2], 0);
        budget.note(&all[1], 0);
        assert_eq!(budget.held(), 51 << 20);
    }

    #[test]
    fn strangers_have_little_and_take_nothing_from_others() {
        let (clients, budget) = (Clients::default(), Budget::default());
        let known = enter(&clients, 0);
        known.note_user(true);
        budget.note(&known, 100 << 20);
        let strangers: Vec<_> = (0..9_000).map(|_| enter(&clients, 1)).collect();
        strangers.iter().for_each(|entry| budget.note(entry, 64 << 10));
        assert!(budget.is_over(HELD_MAX << 3));
        let evicted = budget.evict(&clients, HELD_MAX << 3);
        assert_eq!(evicted, 9_000 - (STRANGERS_HELD_MAX >> 16));
        assert!(!known.is_evicted());
        // One that has shown who it is counts as others do.
        let last = strangers.iter().find(|entry| !entry.is_evicted()).unwrap();
        last.note_user(true);
        budget.note(last, 64 << 10);
        assert_eq!(budget.strangers.load(Ordering::Relaxed), STRANGERS_HELD_MAX - (64 << 10));
    }
}
