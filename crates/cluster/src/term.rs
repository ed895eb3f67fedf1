//! Whose orders a member obeys, when several controllers can lead one after the other.
//!
//! Each time a controller takes over it begins a new *term*, which is durable before its first
//! order leaves. A member obeys the highest term that it has seen. What it has seen it forgets when
//! it is started anew; so an order names the incarnation that it is for, and a leader that has been
//! deposed does not get to know of a new one in time (`spec/protocol.md`, section 7, "Leaders").

use crate::{ClusterId, Incarnation, MaybeMutant, Mutant, Order};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The time of one leader: higher than that of any before.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Term(pub u64);

impl Term {
    /// The one that begins now, after this one.
    ///
    /// Like revisions these are Unix milliseconds unless that has been reached already: a
    /// controller whose store was lost, or is an old copy, then does not begin one that has been.
    #[must_use]
    pub const fn next(self, now_ms: u64) -> Self {
        let next = self.0.saturating_add(1);
        Self(if next > now_ms { next } else { now_ms })
    }

    /// Whether this can be a term at these Unix milliseconds.
    #[must_use]
    pub const fn is_plausible(self, now_ms: u64) -> bool {
        self.0 <= now_ms.saturating_add(wire::REVISION_AHEAD_MS as u64)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who gives an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// Which cluster it leads.
    pub cluster: ClusterId,
    /// Its term.
    pub term: Term,
}

/// Why an order is not obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unheeded {
    /// A newer leader has been heard.
    Deposed {
        /// Of the order.
        term: Term,
        /// The highest that was seen.
        newest: Term,
    },
    /// It is from far ahead of every clock: nobody would be obeyed after it.
    FromAfar(Term),
}

impl fmt::Display for Unheeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deposed { term, newest } => write!(
                f,
                "the order is of term {term}, and a leader of term {newest} has been heard: \
                 another controller leads"
            ),
            Self::FromAfar(term) => write!(
                f,
                "the order is of term {term}, which is far ahead of this clock: set the clocks"
            ),
        }
    }
}

impl std::error::Error for Unheeded {}

/// The leader that a member obeys.
#[derive(Clone, Copy, Debug, Default)]
pub struct Superior {
    /// The highest term seen, and of which cluster.
    newest: Option<Leader>,
    /// Orders of older ones.
    refused: u64,
    mutant: MaybeMutant,
}

impl Superior {
    /// Breaks a rule on purpose, to know that the simulator would see it.
    pub fn mutant(&mut self, mutant: Mutant) {
        self.mutant = MaybeMutant::of(mutant);
    }

    /// What of an order is for this incarnation of the member: all of it, nothing but the question
    /// how it is, or, if it is refused, not even that. `ours` is the cluster that the member
    /// belongs to, as far as it is known: what leaders of another one say changes nothing here, and
    /// is not refused, for the rest of the order is void for that already.
    ///
    /// # Errors
    ///
    /// If a newer leader has been heard, or its term cannot be.
    pub fn heed(
        &mut self,
        now_ms: u64,
        ours: Option<ClusterId>,
        incarnation: Incarnation,
        order: Order,
    ) -> Result<Order, Unheeded> {
        self.hear(now_ms, ours, order.leader)?;
        if self.mutant.is(Mutant::ObeyUnregistered) {
            return Ok(order);
        }
        Ok(order.addressed_to(incarnation))
    }

    fn hear(
        &mut self,
        now_ms: u64,
        ours: Option<ClusterId>,
        leader: Option<Leader>,
    ) -> Result<(), Unheeded> {
        let Some(leader) = leader else { return Ok(()) };
        let Leader { cluster, term } = leader;
        if ours.is_some_and(|ours| ours != cluster) {
            return Ok(());
        }
        if !term.is_plausible(now_ms) {
            return Err(Unheeded::FromAfar(term));
        }
        match self.newest.filter(|known| known.cluster == cluster) {
            Some(_) if self.mutant.is(Mutant::ObeyOldTerm) => Ok(()),
            Some(Leader { term: newest, .. }) if newest > term => {
                self.refused += 1;
                Err(Unheeded::Deposed { term, newest })
            }
            _ => {
                self.newest = Some(leader);
                Ok(())
            }
        }
    }

    /// The highest term seen; 0 for none.
    #[must_use]
    pub fn term(&self) -> Term {
        self.newest.map(|leader| leader.term).unwrap_or_default()
    }

    /// Orders refused because a newer leader had been heard.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

impl Order {
    /// What of it is for a member in this incarnation: all of it, or nothing but the question how
    /// it is.
    fn addressed_to(self, incarnation: Incarnation) -> Self {
        match self.incarnation {
            Some(other) if other != incarnation => Self { leader: self.leader, ..Self::default() },
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lease;

    const NOW_MS: u64 = 1_800_000_000_000;
    const OURS: ClusterId = ClusterId(3);

    fn leader(term: u64) -> Option<Leader> {
        Some(Leader { cluster: OURS, term: Term(term) })
    }

    #[test]
    fn the_highest_term_is_obeyed_and_older_ones_are_told_of_it() {
        let mut superior = Superior::default();
        for term in [5, 5, 7] {
            superior.hear(NOW_MS, Some(OURS), leader(term)).unwrap();
        }
        let refused = superior.hear(NOW_MS, Some(OURS), leader(6)).unwrap_err();
        assert_eq!(refused, Unheeded::Deposed { term: Term(6), newest: Term(7) });
        assert!(refused.to_string().contains("term 7"), "{refused}");
        assert_eq!((superior.term(), superior.refused()), (Term(7), 1));
        superior.hear(NOW_MS, Some(OURS), None).unwrap();
    }

    #[test]
    fn leaders_of_other_clusters_depose_nobody() {
        let mut superior = Superior::default();
        let foreign = Some(Leader { cluster: ClusterId(4), term: Term(9) });
        superior.hear(NOW_MS, Some(OURS), leader(5)).unwrap();
        superior.hear(NOW_MS, Some(OURS), foreign).unwrap();
        assert_eq!(superior.term(), Term(5));
        // Somebody who does not know yet where it belongs.
        superior.hear(NOW_MS, None, foreign).unwrap();
        superior.hear(NOW_MS, None, leader(5)).unwrap();
        assert_eq!(superior.term(), Term(5));
    }

    #[test]
    fn a_term_from_far_ahead_is_not_the_last_that_is_obeyed() {
        let mut superior = Superior::default();
        assert!(superior.hear(NOW_MS, None, leader(u64::MAX)).is_err());
        superior.hear(NOW_MS, None, leader(NOW_MS)).unwrap();
        assert_eq!(Term(4).next(NOW_MS), Term(NOW_MS));
        assert_eq!(Term(NOW_MS + 4).next(NOW_MS), Term(NOW_MS + 5));
    }

    #[test]
    fn an_order_for_another_incarnation_does_nothing_but_ask() {
        let lease = Lease {
            incarnation: Incarnation(1),
            cluster: OURS,
            revision: wire::Revision::new(3),
            from: machine::Instant(0),
            duration_ms: 1,
        };
        let order =
            Order { incarnation: Some(Incarnation(1)), lease: Some(lease), ..Order::default() };
        assert_eq!(order.clone().addressed_to(Incarnation(1)), order);
        assert_eq!(order.clone().addressed_to(Incarnation(2)), Order::default());
        let any = Order { incarnation: None, ..order };
        assert_eq!(any.clone().addressed_to(Incarnation(2)), any);
    }
}
