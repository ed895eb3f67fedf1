//! The leader that a switch or a node of this process obeys, whatever transport its orders take.

use crate::clock::Clock;
use cluster::{ClusterId, Incarnation, Order, Superior, Term, Unheeded};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Mutex, MutexGuard};

/// What a member knows of leaders, for all handles to it. It takes one order at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Obedience(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    known: Mutex<Known>,
    /// Of it, for those who only look.
    term: AtomicU64,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Known {
    superior: Superior,
    /// The cluster that the member belongs to, as it said last.
    ours: Option<ClusterId>,
}

/// The right to carry an order out: nobody else does meanwhile.
pub(super) struct Heard<'a>(MutexGuard<'a, Known>);

impl Obedience {
    /// Hears an order, once what came before is done: what of it is for this incarnation.
    pub(super) async fn hear(
        &self,
        incarnation: Incarnation,
        order: Order,
    ) -> Result<(Heard<'_>, Order), Unheeded> {
        let mut known = self.0.known.lock().await;
        let Known { superior, ours } = &mut *known;
        let heeded = superior.heed(Clock::new().now().unix_ms(), *ours, incarnation, order);
        self.0.term.store(superior.term().0, Ordering::Relaxed);
        self.0.refused.store(superior.refused(), Ordering::Relaxed);
        heeded.map(|order| (Heard(known), order))
    }

    /// The highest term that it has seen; 0 for none.
    pub(crate) fn term(&self) -> Term {
        Term(self.0.term.load(Ordering::Relaxed))
    }

    /// Orders of older terms, which it refused.
    pub(crate) fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }
}

impl Heard<'_> {
    /// The member says which cluster it belongs to.
    pub(super) fn belongs_to(&mut self, ours: Option<ClusterId>) {
        self.0.ours = ours;
    }
}
