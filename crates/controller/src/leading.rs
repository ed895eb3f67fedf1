//! What it takes to be the one that leads (`spec/protocol.md`, section 7, "Leaders").

use crate::controller::Controller;
use crate::decisions::Level;
use cluster::{Member, Term};
use machine::Instant;

impl Controller {
    /// Lets orders leave although not even the term could be saved: for a store that no other
    /// process can have, and whose disk is full.
    pub fn begin_unsaved(&mut self) {
        self.ledger.begin_unsaved();
    }

    /// A member obeys a leader of a newer term: nothing is decided any more, and nothing leaves.
    pub fn handle_deposed(&mut self, now: Instant, from: Member, newest: Term) {
        self.awake(now);
        if let Some(peer) = self.members.get_mut(from) {
            peer.in_flight = None;
        }
        let term = self.term();
        if newest <= term {
            return;
        }
        self.deposed_by = self.deposed_by.max(Some(newest));
        let saw = format!("{from} obeys a leader of term {newest}, and this one is of term {term}");
        self.ledger.decisions.note(now, Level::Trouble, saw, "give no more orders", "");
    }

    /// The newer term that a member has told of, if one has.
    #[must_use]
    pub fn deposed_by(&self) -> Option<Term> {
        self.deposed_by
    }

    /// The term of this controller.
    #[must_use]
    pub fn term(&self) -> Term {
        self.ledger.leader().term
    }
}
