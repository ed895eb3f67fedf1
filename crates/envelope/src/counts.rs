//! Packets that were not let through, by reason.

use std::sync::atomic::{AtomicU64, Ordering};
use wire::EnvelopeRefusal;

const LEN: usize = EnvelopeRefusal::ALL.len();

/// How many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; LEN]);

impl Counts {
    pub(crate) fn note(&mut self, why: EnvelopeRefusal) {
        if let Some(count) = self.0.get_mut(place(why)) {
            *count += 1;
        }
    }

    /// How many were refused for this.
    #[must_use]
    pub fn of(&self, why: EnvelopeRefusal) -> u64 {
        self.0.get(place(why)).copied().unwrap_or_default()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (EnvelopeRefusal, u64)> {
        EnvelopeRefusal::ALL.into_iter().map(|why| (why, self.of(why)))
    }
}

impl FromIterator<(EnvelopeRefusal, u64)> for Counts {
    fn from_iter<I: IntoIterator<Item = (EnvelopeRefusal, u64)>>(counted: I) -> Self {
        let mut counts = Self::default();
        for (why, count) in counted {
            if let Some(sum) = counts.0.get_mut(place(why)) {
                *sum += count;
            }
        }
        counts
    }
}

/// What all clients of a process have counted, on whatever threads.
#[derive(Debug, Default)]
pub(crate) struct SharedCounts([AtomicU64; LEN]);

impl SharedCounts {
    pub(crate) fn note(&self, why: EnvelopeRefusal) {
        if let Some(count) = self.0.get(place(why)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> Counts {
        Counts(self.0.each_ref().map(|count| count.load(Ordering::Relaxed)))
    }
}

fn place(why: EnvelopeRefusal) -> usize {
    EnvelopeRefusal::ALL.iter().position(|it| *it == why).unwrap_or(LEN)
}
