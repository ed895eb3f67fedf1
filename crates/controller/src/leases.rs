//! The leases that go with an order.

use crate::controller::Controller;
use crate::decisions::Level;
use crate::members::{Peer, Terms};
use cluster::{Lease, Member};
use std::collections::BTreeSet;
use wire::Revision;

impl Controller {
    /// The lease for a member that is given this revision with it, or none.
    pub(crate) fn lease_for(&mut self, member: Member, given: Option<Revision>) -> Option<Lease> {
        // What a cache may show rests on leases that nodes give it.
        if matches!(member, Member::Cache(_)) || self.members.is_overtaken() {
            return None;
        }
        let map = &self.ledger.state.map;
        let terms = Terms {
            cluster: map.cluster,
            lasts: self.config.lease,
            durable: self.ledger.durable(),
            is_durable: self.ledger.is_durable(),
            time_is_known: self.clock.is_known(),
            is_active: member == Member::Switch(map.active_switch) && !map.handing_over,
        };
        self.members.get_mut(member)?.lease(self.now, member, given, &terms)
    }

    /// The one for requests that pass no switch, if that lease is given.
    pub(crate) fn direct_lease_for(&mut self, member: Member, lease: &Lease) -> Option<Lease> {
        let Member::Node(node) = member else { return None };
        let state = &self.ledger.state;
        let may_be_out = !self.ledger.is_durable() || state.map.fence(node).is_some();
        // A controller after this one has to know.
        let may_be_out = may_be_out || !state.may_be_direct(node);
        self.members.get_mut(member)?.direct_lease(lease, may_be_out)
    }

    /// Puts on record which nodes are asked past the switch, before they are given leases for that.
    /// The last decision is durable.
    pub(crate) fn look_at_direct(&mut self) {
        let (now, members) = (self.now, &self.members);
        let Some(known) = &mut self.ledger.state.direct else {
            if members.nodes().all(|(_, peer)| peer.direct.is_over(now)) {
                self.ledger.state.direct = Some(BTreeSet::new());
                let saw = "no direct lease is left of those that are not on record".to_owned();
                self.ledger.advance(now, Level::Usual, saw, "keep one".to_owned());
            }
            return;
        };
        let asked = |peer: &Peer| peer.node_report().is_some_and(|it| it.asked_directly);
        let asked = members.nodes().filter(|(_, peer)| peer.follows() && asked(peer));
        let before = known.len();
        known.extend(asked.map(|(node, _)| node));
        if known.len() > before {
            let saw = "more nodes are asked past the switch, or lend to caches".to_owned();
            let did = "put on record that they may have leases for it".to_owned();
            self.ledger.advance(now, Level::Usual, saw, did);
        }
    }
}
