//! The leases that go with an order.

use crate::controller::Controller;
use crate::members::Terms;
use cluster::{Lease, Member};
use wire::Revision;

impl Controller {
    /// The lease for a member that is given this revision with it, or none.
    pub(crate) fn lease_for(&mut self, member: Member, given: Option<Revision>) -> Option<Lease> {
        if self.members.is_overtaken() {
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
        let may_be_out = !self.ledger.is_durable() || self.ledger.state.map.fence(node).is_some();
        self.members.get_mut(member)?.direct_lease(lease, may_be_out)
    }
}
