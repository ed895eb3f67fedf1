//! What an order says: what to install, which keys are hot, and who waits for whom. (How long to
//! serve by it, each member's [lease](crate::members::Peer::lease) says.)

use crate::hot::Hot;
use crate::ledger::Ledger;
use crate::members::Members;
use cluster::{Assignment, HotOrder, Install, MaybeMutant, Member, MemberReport, Mutant};
use machine::Instant;
use std::sync::Arc;
use std::time::Duration;
use wire::{Endpoint, Revision};

/// Which orders may leave, and how many did.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    /// Until then switches wait for the nodes to install the present revision.
    hold_switches_until: Instant,
    /// Orders sent.
    pub(crate) sent: u64,
}

impl Orders {
    pub(crate) fn new(hold_switches_until: Instant) -> Self {
        Self { hold_switches_until, sent: 0 }
    }

    /// The map has changed. A hold that has begun goes on: a switch waits for one interval, however
    /// often the map changes meanwhile.
    pub(crate) fn hold_switches(&mut self, now: Instant, interval: Duration) {
        if self.hold_switches_until <= now {
            self.hold_switches_until = now + interval;
        }
    }

    /// Until when switches wait, if they do.
    ///
    /// They wait a moment for the nodes, so that they do not route to partitions that no node
    /// serves yet. Nodes refuse those and clients ask again, so this saves time and no more; a
    /// node that does not answer delays nobody beyond one poll interval.
    pub(crate) fn switches_held_until(
        &self,
        now: Instant,
        members: &Members,
        revision: Revision,
    ) -> Option<Instant> {
        let holds = now < self.hold_switches_until && !members.nodes_are_up_to_date(revision);
        holds.then_some(self.hold_switches_until)
    }
}

/// What orders are made of.
pub(crate) struct Sources<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) members: &'a Members,
    pub(crate) hot: &'a Hot,
    /// All switches, by their positions.
    pub(crate) switches: &'a [Endpoint],
    pub(crate) holds_switches: bool,
    pub(crate) mutant: MaybeMutant,
}

impl<'a> Sources<'a> {
    fn active_switch(&self) -> Endpoint {
        let active = usize::from(self.ledger.state.map.active_switch);
        *self.switches.get(active).expect("the active switch is one of the configured")
    }

    /// The full order for a member that needs one and may have it.
    pub(crate) fn install(&self, member: Member) -> Option<Install> {
        let state = &self.ledger.state;
        let is_durable = self.ledger.is_durable() || self.mutant.is(Mutant::OrderUnsaved);
        let behind = self.members.get(member).is_some_and(|it| it.is_behind(state.map.revision));
        if !behind || !is_durable || !self.members.may_decide() {
            return None;
        }
        match member {
            Member::Switch(_) if self.holds_switches => None,
            Member::Switch(index) => Some(Install::Tables(state.map.switch_tables(index))),
            Member::Cache(id) => Some(Install::Cache(state.map.cache_tables(id, self.switches))),
            Member::Node(id) => {
                let store = *state.stores.get(&id).expect("accepted: its memory is known");
                let aged = state.aged.get(&id).copied().unwrap_or_default();
                let assignment = state.map.assignment(id, store, self.active_switch());
                let incarnation = state.incarnations.get(&id).copied();
                Some(Install::Assignment(Assignment { incarnation, aged, ..assignment }))
            }
        }
    }

    /// How many rules of one cache have room in the tables of all switches, as far as those say.
    pub(crate) fn rules_max(&self, member: Member) -> Option<u64> {
        let Member::Cache(_) = member else { return None };
        let switches =
            self.members.iter().filter_map(|(_, peer)| match &peer.report.as_ref()?.state {
                MemberReport::Switch(switch) => Some(switch),
                MemberReport::Node(_) | MemberReport::Cache(_) => None,
            });
        let tables = switches.flat_map(|switch| {
            let content = switch.content.as_ref().map(|content| content.capabilities);
            content.into_iter().chain([switch.capabilities])
        });
        let least = tables.filter_map(|can| can.sizes.rules).min()?;
        let caches = u64::try_from(self.ledger.state.map.caches.len()).ok()?;
        least.checked_div(caches)
    }

    /// The order of hot keys for a member that is behind with it and may have it, in an order that
    /// gives this revision, if any. A switch that has just become the active one cannot take it
    /// before it knows that, and one that stands by gets none.
    pub(crate) fn hot(&self, member: Member, given: Option<Revision>) -> Option<&'a Arc<HotOrder>> {
        let peer = self.members.get(member).filter(|peer| peer.follows())?;
        let revision = self.ledger.revision();
        let knows = given.is_some() || peer.is_ready(revision) || self.hot.is_confirmed();
        match (member, &peer.report.as_ref()?.state) {
            (Member::Switch(index), _) => {
                let serves = !self.ledger.state.map.handing_over;
                self.hot.for_switch(index).filter(|_| knows && serves)
            }
            (Member::Node(_), MemberReport::Node(report)) => {
                let too_soon = self.mutant.is(Mutant::NodesBeforeSwitch);
                self.hot.for_node(report.hot_revision, too_soon)
            }
            (Member::Node(_) | Member::Cache(_), _) => None,
        }
    }

    /// Members that have not been sent the newest order of hot keys that they are to have.
    pub(crate) fn late_with_hot(&self) -> Vec<Member> {
        let newest = |member| self.hot(member, None).map_or(Revision::NONE, |order| order.revision);
        let late = self.members.iter().filter(|(member, it)| it.hot_offered < newest(*member));
        late.map(|(member, _)| member).collect()
    }
}
