//! Which orders of hot keys a store has been given: of which delegations it takes writes.

use crate::engine::Engine;
use crate::hot::held::DELEGATED;
use cluster::{Delegation, HotOrder, is_plausible_revision};
use machine::Instant;
use wire::{DelegationId, Revision};

/// What is on record of them.
#[derive(Debug, Default)]
pub(crate) struct OrdersGiven {
    /// Revision of the first order of hot keys that this store was given; 0 for none yet.
    since: Revision,
    /// That of the newest.
    newest: Revision,
    /// The revision of the map in which this store was last seen to be an older copy.
    aged: Revision,
    /// Revision of the first order that this incarnation was given; 0 for none yet.
    begun_with: Revision,
}

/// Name of their note.
const ORDERS: &[u8] = b"o";

impl OrdersGiven {
    /// What the engine has on record.
    pub(crate) fn restore<E: Engine>(now: Instant, engine: &E) -> Self {
        let mut found = Self::default();
        engine.notes(DELEGATED, |name, note| {
            if name == ORDERS
                && let ([since, newest, aged], []) = note.as_chunks::<8>()
            {
                let [since, newest, aged] =
                    [since, newest, aged].map(|it| Revision::new(u64::from_be_bytes(*it)));
                let newest =
                    if is_plausible_revision(now, newest) { newest } else { Revision::NONE };
                found = Self { since, newest, aged, ..Self::default() };
            }
        });
        found
    }

    /// Whether an order may be installed: not if an earlier incarnation had a newer one.
    pub(crate) fn admits(&self, order: &HotOrder) -> bool {
        order.revision >= self.newest
    }

    /// An order is installed.
    pub(crate) fn follow<E: Engine>(&mut self, engine: &mut E, order: &HotOrder) {
        if self.since.is_none() {
            self.since = order.revision;
        }
        if self.begun_with.is_none() {
            self.begun_with = order.revision;
        }
        self.newest = self.newest.max(order.revision);
        self.note_orders(engine);
    }

    fn note_orders<E: Engine>(&self, engine: &mut E) {
        let note =
            [self.since, self.newest, self.aged].map(|order| order.get().to_be_bytes()).concat();
        engine.note(DELEGATED, ORDERS, Some(&note));
    }

    /// The store is an older copy: it may have taken writes since that are not here. So it counts
    /// as one whose first order is the installed one, or, if none is, the next. This is so once for
    /// each time that it is seen.
    pub(crate) fn age<E: Engine>(&mut self, engine: &mut E, seen: Revision, installed: Revision) {
        if seen > self.aged {
            (self.since, self.aged) = (installed, seen);
            self.note_orders(engine);
        }
    }

    /// Revision of the newest order of hot keys that this store was given; 0 for none.
    pub(crate) fn newest(&self) -> Revision {
        self.newest
    }

    /// Whether this store cannot know what it took of a delegation: it was given its first order
    /// when that had begun.
    pub(crate) fn is_young_for(&self, delegation: DelegationId) -> bool {
        self.since >= delegation.order()
    }

    /// Whether this incarnation may lack what an earlier one took of a delegation, although its
    /// store had kept that: it was given its first order when the delegation had begun.
    pub(crate) fn is_anew_for(&self, delegation: DelegationId) -> bool {
        self.begun_with >= delegation.order()
    }

    /// Whether writes of a delegation are taken under the order of this revision; `named` is what
    /// that has of the key.
    pub(crate) fn takes(
        &self,
        installed: Revision,
        number: DelegationId,
        named: Option<Delegation>,
    ) -> bool {
        // A younger store cannot know what was closed before, nor can one whose disk has lost what
        // an earlier incarnation knew; without an order nothing is known.
        let old_enough = !installed.is_none() && !self.is_anew_for(number);
        let open = installed < number.order() || named.is_some_and(|it| it.number == number);
        old_enough && open
    }
}
