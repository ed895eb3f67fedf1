//! The rules of the controller: close, settle, open (section 6 of the protocol).
//!
//! Each decision is one step: it is durable before anybody hears of it, so a controller that stops
//! between the two has only been slow. What it heard is lost when it stops; what it decided is not.

use crate::bug::Bug;
use crate::scope::Scope;
use crate::state::{Bits, Chain, NODES, Replica, State};
use arrayvec::ArrayVec;
use cluster::Mutant;

impl State {
    /// What reports tell the controller by now. That it hears them at once loses nothing: it may
    /// wait as long as it likes before it acts on them, and they do not become untrue.
    pub(crate) fn hear_reports(&mut self) {
        for node in self.map.clone().nodes() {
            let Some(place) = &self.node(node).place else { continue };
            if !self.node(node).lease || place.chain.epoch != self.map.epoch {
                continue;
            }
            let whole = self.map.learner() == Some(node) && self.node(node).caught_up;
            if place.settled {
                self.settled.insert(node);
            }
            self.caught_up |= whole;
        }
    }

    /// The ways to close the chain now.
    pub(crate) fn closings(&self, scope: &Scope, bug: Option<Bug>) -> Vec<Chain> {
        if self.map.epoch >= scope.epochs {
            return Vec::new();
        }
        let impatient = bug == Some(Mutant::ImpatientController.into());
        let silent = self.map.nodes().filter(|node| impatient || !self.node(*node).lease);
        let silent: Bits = silent.collect();
        let chosen = (0..1 << NODES).map(Bits).filter(|set| set.and(silent) == *set);
        let closings = chosen.filter_map(|without| {
            let planned = without == Bits::default();
            if planned && !(self.map.open && self.wants_change(scope)) {
                return None;
            }
            let stays = |replica: &&Replica| !without.has(replica.node);
            if !self.map.members().iter().any(|replica| stays(&replica)) {
                return None;
            }
            Some(Chain {
                epoch: self.map.epoch + 1,
                open: false,
                has_learner: self.map.learner().is_some_and(|learner| !without.has(learner)),
                replicas: self.map.replicas.iter().filter(stays).copied().collect(),
            })
        });
        closings.collect()
    }

    /// Whether there is a reason to change a chain that nobody is missing from.
    fn wants_change(&self, scope: &Scope) -> bool {
        let lacking = self.map.members().len() < scope.replicas;
        scope.moves
            || self.caught_up
            || lacking && !self.map.has_learner && self.map.replicas.len() < NODES
    }

    /// The ways to open the chain now: some settled members in some order, and perhaps a learner.
    pub(crate) fn openings(&self, scope: &Scope, bug: Option<Bug>) -> Vec<Chain> {
        let settled = self.map.nodes().all(|node| self.settled.has(node));
        let ready = settled || bug == Some(Mutant::OpenUnsettled.into());
        if self.map.open || self.map.epoch >= scope.epochs || !ready {
            return Vec::new();
        }
        let learner =
            self.map.learner().filter(|_| !self.caught_up).and_then(|node| self.map.replica(node));
        let full = if learner.is_some() { self.map.members() } else { &self.map.replicas };
        let size = full.len().min(scope.replicas);
        let mut openings = Vec::new();
        for members in arrangements(full, size) {
            let same = full.iter().filter(|replica| members.contains(replica)).eq(members.iter());
            if !same && !scope.reorders {
                continue;
            }
            let room = members.len() < NODES && (scope.moves || members.len() < scope.replicas);
            let learners = match learner {
                Some(replica) if scope.moves => vec![None, Some(replica)],
                Some(replica) => vec![Some(replica)],
                None if room => self.candidates(&members),
                None => vec![None],
            };
            for learner in learners {
                openings.push(Chain {
                    epoch: self.map.epoch + 1,
                    open: true,
                    has_learner: learner.is_some(),
                    replicas: members.iter().copied().chain(learner).collect(),
                });
            }
        }
        openings
    }

    /// Nobody, or one of the nodes that are not in the chain, with the memory that it has now.
    fn candidates(&self, members: &[Replica]) -> Vec<Option<Replica>> {
        let outside = (0..).zip(&self.nodes).filter(|(node, _)| {
            self.map.replica(*node).is_none() && members.iter().all(|replica| replica.node != *node)
        });
        let since = self.map.epoch + 1;
        let replicas =
            outside.map(|(node, state)| Some(Replica { node, since, store: state.store }));
        std::iter::once(None).chain(replicas).collect()
    }

    /// Decides: from now on this is the chain.
    pub(crate) fn decide(&mut self, scope: &Scope, chain: Chain) {
        let before = std::mem::replace(&mut self.map, chain);
        if scope.late_orders {
            self.earlier.push(before);
        }
        self.settled = Bits::default();
        self.caught_up = false;
    }

    /// Stops, and comes back with its map.
    pub(crate) fn take_over(&mut self) {
        self.settled = Bits::default();
        self.caught_up = false;
    }
}

/// All orders of all choices of `size` replicas.
fn arrangements(replicas: &[Replica], size: usize) -> Vec<ArrayVec<Replica, NODES>> {
    if size == 0 {
        return vec![ArrayVec::new()];
    }
    let shorter = arrangements(replicas, size - 1);
    let longer = shorter.iter().flat_map(|begun| {
        replicas.iter().filter(|replica| !begun.contains(replica)).map(|replica| {
            let mut begun = begun.clone();
            begun.push(*replica);
            begun
        })
    });
    longer.collect()
}
