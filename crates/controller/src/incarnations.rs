//! What a member's report makes of it, and its incarnation that is put on record.

use crate::controller::Controller;
use crate::decisions::Level;
use crate::members::{Arrival, Standing, Verdict, begin_incarnation, judge_node, take_in};
use cluster::{Incarnation, Member, Mutant, NodeId, NodeReport};

impl Controller {
    /// What a node's report makes of it.
    pub(crate) fn standing_of(
        &mut self,
        (node, may_hold): (NodeId, bool),
        incarnation: Incarnation,
        report: &NodeReport,
    ) -> Standing {
        let (now, state) = (self.now, &self.ledger.state);
        let blind = self.mutant.is(Mutant::BelieveAnyMap);
        let foreign = self.members.foreign().find(|member| *member != Member::Node(node));
        let may_decide = self.members.may_decide();
        let arrival = Arrival { now, node, incarnation, report, foreign, may_decide };
        let Some(peer) = self.members.get_mut(Member::Node(node)) else {
            return Standing::Unheard;
        };
        let standing = match judge_node(now, state, (node, may_hold), report, blind) {
            Verdict::Stands(Standing::Forgotten) if self.mutant.is(Mutant::TrustTheForgetful) => {
                take_in(&mut self.ledger, peer, arrival)
            }
            Verdict::Stands(standing) => standing,
            Verdict::TakeIn => take_in(&mut self.ledger, peer, arrival),
        };
        // Nor is it known which incarnation had one.
        let unknown = self.ledger.state.direct.is_none() && !peer.direct.is_over(now);
        if unknown && standing == Standing::Accepted {
            return peer.lending();
        }
        let known = self.ledger.state.incarnations.get(&node);
        if standing != Standing::Accepted || known == Some(&incarnation) {
            return standing;
        }
        let standing = begin_incarnation(&mut self.ledger, peer, arrival, self.mutant);
        if standing == Standing::Accepted {
            self.chains.forget_caught_up(node);
        }
        standing
    }

    /// Puts the incarnation of a switch on record before it is given tables: a leader that has been
    /// deposed cannot, and so gives none to a switch that has forgotten whom it obeyed.
    pub(crate) fn register_switch(&mut self, from: Member, incarnation: Incarnation) -> Standing {
        let place = match from {
            Member::Switch(index) => self.ledger.state.switches.get(usize::from(index)).copied(),
            Member::Node(_) | Member::Cache(_) => None,
        };
        let Some(at) = place else { return Standing::Accepted };
        let known = self.ledger.state.switch_incarnations.get(&at).copied();
        if known == Some(incarnation) || known.is_none() && !self.members.may_decide() {
            return Standing::Accepted;
        }
        if !self.members.may_decide() || known.is_some() && !self.ledger.is_durable() {
            return Standing::Returning;
        }
        self.ledger.state.switch_incarnations.insert(at, incarnation);
        let anew = if known.is_some() { "was started anew" } else { "speaks for the first time" };
        let did = "put its incarnation on record".to_owned();
        self.ledger.advance(self.now, Level::Usual, format!("{from} {anew}"), did);
        Standing::Accepted
    }
}
