//! What an order says: what to install, how long to serve by it, and who waits for whom.

use crate::controller::Controller;
use crate::hot::Sight;
use crate::peer::{Contact, Standing};
use cluster::{Assignment, HotOrder, Install, Lease, Member, MemberReport, Mutant};
use std::sync::Arc;
use wire::{Endpoint, Revision};

impl Controller {
    /// The full order for a member that needs one and may have it.
    pub(crate) fn install_for(&self, member: Member) -> Option<Install> {
        let map = &self.state.map;
        let behind = self.peers.get(&member).is_some_and(|p| p.is_behind(map.revision));
        if !behind || !self.is_durable() || !self.may_decide() {
            return None;
        }
        match member {
            Member::Switch(_) if self.holds_switches() => None,
            Member::Switch(index) => Some(Install::Tables(map.switch_tables(index))),
            Member::Node(id) => {
                let store = *self.state.stores.get(&id).expect("accepted: its memory is known");
                let aged = self.state.aged.get(&id).copied().unwrap_or_default();
                let assignment = map.assignment(id, store, self.service());
                let incarnation = self.state.incarnations.get(&id).copied();
                Some(Install::Assignment(Assignment { incarnation, aged, ..assignment }))
            }
        }
    }

    /// The lease that goes with an order that gives this revision, or none.
    ///
    /// It is for what the member is to do now, never for less: with an old assignment a node would
    /// serve chains that it has been taken out of. While a decision is not durable, it is for the
    /// newest that is, and only for a member whose lease has not ended: others may have been
    /// replaced by that very decision. The active switch may go on with old tables, for nodes
    /// refuse what is wrong with them.
    pub(crate) fn lease_for(&mut self, member: Member, given: Option<Revision>) -> Option<Lease> {
        if self.is_overtaken() {
            return None;
        }
        let active = Member::Switch(self.state.map.active_switch);
        let known = self.knows_the_time();
        let (now, durable, is_durable) = (self.now, self.durable, self.is_durable());
        let peer = self.peers.get_mut(&member)?;
        let unbroken = is_durable || !peer.granted.is_over(now);
        // A node without a clock of the cluster would serve by its own.
        let timely = known && peer.clock.is_some() || matches!(member, Member::Switch(_));
        if peer.standing != Standing::Accepted || !unbroken || !timely {
            return None;
        }
        let installed = peer.revision();
        let revision = if member == active && !installed.is_none() {
            installed
        } else {
            let current = |it: &Revision| *it == durable && !it.is_none() && !peer.stuck;
            Some(given.unwrap_or(installed)).filter(current)?
        };
        let (report, heard) = (peer.report.as_ref()?, peer.heard?);
        let cluster = self.state.map.cluster;
        Some(peer.granted.grant(cluster, report, heard, revision, self.config.lease))
    }

    /// The order of hot keys for a member that is behind with it and may have it, in an order that
    /// gives this revision, if any. A switch that has just become the active one cannot take it
    /// before it knows that, and one that stands by gets none.
    pub(crate) fn hot_for(
        &self,
        member: Member,
        given: Option<Revision>,
    ) -> Option<&Arc<HotOrder>> {
        let peer = self.peers.get(&member).filter(|peer| peer.follows())?;
        let revision = self.state.map.revision;
        let knows = given.is_some() || peer.is_ready(revision) || self.hot.is_confirmed();
        match (member, &peer.report.as_ref()?.state) {
            (Member::Switch(index), _) => self.hot.for_switch(index).filter(|_| knows),
            (Member::Node(_), MemberReport::Node(report)) => {
                let too_soon = self.mutant.is(Mutant::NodesBeforeSwitch);
                self.hot.for_node(report.hot_revision, too_soon)
            }
            (Member::Node(_), MemberReport::Switch(_)) => None,
        }
    }

    /// Looks for hot keys, and lets those who have to know of a change have it now.
    pub(crate) fn look_at_hot_keys(&mut self) {
        if !self.is_durable() {
            return;
        }
        let (now, selection) = (self.now, self.config.hot_selection);
        let (state, peers, mutant) = (&self.state, &self.peers, self.mutant);
        self.hot.look(&Sight { now, state, peers, selection, mutant });
        let newest =
            |member| self.hot_for(member, None).map_or(Revision::NONE, |order| order.revision);
        let late = self.peers.iter().filter(|(member, peer)| peer.hot_offered < newest(**member));
        let late: Vec<Member> = late.map(|(member, _)| *member).collect();
        for (_, peer) in self.peers.iter_mut().filter(|(member, _)| late.contains(member)) {
            peer.due = now;
        }
    }

    /// Where nodes send replies, and take requests from.
    fn service(&self) -> Endpoint {
        let active = usize::from(self.state.map.active_switch);
        *self.config.switches.get(active).expect("the active switch is one of the configured")
    }

    /// Every node that could install the present revision has done so.
    fn nodes_are_up_to_date(&self) -> bool {
        let revision = self.state.map.revision;
        let mut nodes = self.peers.iter().filter(|(m, _)| matches!(m, Member::Node(_)));
        nodes.all(|(_, p)| p.contact != Contact::Untried && !p.is_behind(revision))
    }

    /// Switches wait a moment for the nodes, so that they do not route to partitions that no node
    /// serves yet. Nodes refuse those and clients ask again, so this saves time and no more; a
    /// node that does not answer delays nobody beyond one poll interval.
    pub(crate) fn holds_switches(&self) -> bool {
        self.now < self.hold_switches_until && !self.nodes_are_up_to_date()
    }

    /// Lets every member that has not been offered the present revision have it now.
    pub(crate) fn help_the_late(&mut self) {
        if !self.is_durable() || !self.may_decide() {
            return;
        }
        let (revision, now, held) = (self.state.map.revision, self.now, self.holds_switches());
        for (member, peer) in &mut self.peers {
            let waits = held && matches!(member, Member::Switch(_));
            if !waits && peer.is_behind(revision) && peer.offered < revision {
                peer.due = now;
            }
        }
    }
}
