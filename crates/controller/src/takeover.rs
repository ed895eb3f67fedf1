//! Fences that are set and lifted, and the hand-over from one switch to another.

use crate::controller::Controller;
use crate::decisions::Level;
use crate::fences::Reach;
use crate::members::Peer;
use cluster::{Member, Mutant, NodeId};

impl Controller {
    pub(crate) fn reach(&self) -> Reach<'_> {
        Reach {
            now: self.now,
            state: &self.ledger.state,
            members: &self.members,
            mutant: self.mutant,
        }
    }

    /// Sets fences and lifts them. The last decision is durable.
    pub(crate) fn look_at_fences(&mut self) {
        let (missed, back) = (self.reach().nodes_to_fence(), self.reach().nodes_to_let_in());
        if !missed.is_empty() {
            let since = self.ledger.state.next_revision(self.now);
            for node in &missed {
                self.ledger.state.map.fence_off(*node, since);
            }
            let leave = |node: &NodeId| self.members.node(*node).is_some_and(Peer::is_leaving);
            let (level, saw) = if missed.iter().all(leave) {
                (Level::Usual, format!("out of all chains, to end: {}", list(&missed)))
            } else {
                (Level::Trouble, format!("missed: {}", list(&missed)))
            };
            let did = "fence them: no switch sends them anything".to_owned();
            self.ledger.advance(self.now, level, saw, did);
        }
        if !back.is_empty() {
            self.ledger.state.map.fences.retain(|fence| !back.contains(&fence.node));
            let saw = format!("back, and up to date: {}", list(&back));
            self.ledger.advance(self.now, Level::Usual, saw, "lift their fences".to_owned());
        }
    }

    /// Names another switch when the named one does not answer, and has it serve when that reaches
    /// nobody any more. The last decision is durable.
    pub(crate) fn look_at_switches(&mut self) {
        let named = Member::Switch(self.ledger.state.map.active_switch);
        let waits = self.members.get(named).is_some_and(|it| it.is_serving() && it.is_leaving());
        // One that leaves is waited for, but not for long, until it has nothing any more that
        // another one cannot know.
        let in_order = waits && self.hot.have_delegations_come_home(self.now, &self.members);
        let may_go = !waits || in_order || self.is_overdue(named);
        if let Some(next) = self.reach().successor().filter(|_| may_go) {
            let revision = self.ledger.state.next_revision(self.now);
            let before = self.ledger.state.active_endpoint();
            self.ledger.state.map.active_switch = next;
            self.ledger.state.succeed(before.expect("the named switch is configured"), revision);
            self.hot.switch_over(in_order, self.mutant);
            let did = format!("have nodes take requests from switch {next} alone");
            let leaves = self.members.get(named).is_some_and(Peer::is_leaving);
            let (level, why) =
                if leaves { (Level::Usual, "leaves") } else { (Level::Trouble, "is silent") };
            self.ledger.advance(self.now, level, format!("{named} {why}"), did);
        } else if self.ledger.state.map.handing_over && self.may_hand_over() {
            self.ledger.state.hand_over();
            let named = Member::Switch(self.ledger.state.map.active_switch);
            let saw = "no node takes anything from another switch".to_owned();
            self.ledger.advance(self.now, Level::Usual, saw, format!("have {named} serve"));
        }
    }

    fn may_hand_over(&self) -> bool {
        let early = [Mutant::HandOverEarly, Mutant::ImpatientController];
        early.into_iter().any(|it| self.mutant.is(it)) || self.reach().are_others_out()
    }
}

fn list(nodes: &[NodeId]) -> String {
    let names: Vec<String> = nodes.iter().map(|node| format!("node {node}")).collect();
    names.join(", ")
}
