//! What the threads of a role open and seal envelopes by, as the control plane has told the role.

use cluster::{EnvelopeOrder, KeysNumber};
use envelope::Counts;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::EnvelopeRefusal;

/// Keys that all threads of a role share, and what they refused. A role that has one lets nothing
/// through but what is in an envelope; nothing at all until it is told the keys.
#[derive(Clone, Debug, Default)]
pub struct Keyring(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    order: Mutex<Option<Arc<EnvelopeOrder>>>,
    /// How often other keys were taken.
    changes: AtomicU64,
    refused: [AtomicU64; EnvelopeRefusal::ALL.len()],
}

impl Keyring {
    /// Takes other keys.
    pub(crate) fn take(&self, order: Arc<EnvelopeOrder>) {
        let mut held = self.lock();
        if held.as_ref().is_none_or(|held| held.number != order.number) {
            *held = Some(order);
            self.0.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// The number of the keys that are here.
    pub(crate) fn number(&self) -> Option<KeysNumber> {
        self.lock().as_ref().map(|order| order.number)
    }

    /// The keys, if they have changed since there were that many changes.
    pub(crate) fn news(&self, seen: &mut u64) -> Option<Arc<EnvelopeOrder>> {
        let changes = self.0.changes.load(Ordering::Acquire);
        if *seen == changes {
            return None;
        }
        *seen = changes;
        self.lock().clone()
    }

    /// Adds what a thread has refused since it said so last.
    pub(crate) fn add(&self, now: &Counts, before: &Counts) {
        for ((total, (_, now)), (_, before)) in
            self.0.refused.iter().zip(now.iter()).zip(before.iter())
        {
            total.fetch_add(now - before, Ordering::Relaxed);
        }
    }

    /// What was refused, by reason.
    pub(crate) fn refused(&self) -> impl Iterator<Item = (EnvelopeRefusal, u64)> {
        let counts = EnvelopeRefusal::ALL.into_iter().zip(&self.0.refused);
        counts.map(|(why, count)| (why, count.load(Ordering::Relaxed)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<EnvelopeOrder>>> {
        self.0.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
