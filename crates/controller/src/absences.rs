//! Members that are asked to end, and will be back (`spec/protocol.md`, section 7, "Leaving"):
//! others take over what they do before they go, and nobody takes their absence for a failure.

use crate::controller::Controller;
use crate::decisions::Level;
use crate::fences::Reach;
use crate::members::Peer;
use cluster::{Away, Member, NodeId, Partition};
use machine::Instant;
use std::time::Duration;

/// How long a node that has left in order is waited for, until others are copied what it held. A
/// new program, or a new kernel, takes minutes; copies of all that a node holds take longer.
pub const AWAY_MAX: Duration = Duration::from_secs(10 * 60);

/// How long nobody is told to end because writes of delegated keys have still to come home.
pub(crate) const RECALL_MAX: Duration = Duration::from_secs(3);

impl Reach<'_> {
    /// Nodes that are about to end, are in no chain any more and have no fence yet: what is still
    /// sent to them, reads of copies say, would not be answered.
    pub(crate) fn nodes_that_left(&self) -> impl Iterator<Item = NodeId> {
        let map = &self.state.map;
        let leaving = self.members.nodes().filter(|(_, peer)| peer.is_leaving());
        leaving.map(|(node, _)| node).filter(|node| {
            let in_chain = map.partitions.iter().any(|it| it.chain.contains(node));
            !in_chain && map.fence(*node).is_none()
        })
    }

    /// Whether nobody waits for this node any more: all that others can take over they have.
    fn may_node_end(&self, node: NodeId) -> bool {
        let map = &self.state.map;
        let takes_over = |other: &NodeId| {
            let peer = self.members.node(*other);
            *other != node && peer.is_some_and(|peer| peer.is_serving() && !peer.is_leaving())
        };
        let mut held = map.partitions.iter().filter(|it| it.chain.contains(&node));
        let waits = |it: &Partition| !it.open || it.members().iter().any(takes_over);
        if held.clone().any(waits) {
            return false;
        }
        // Nobody else has what is left to it.
        if held.next().is_some() {
            return true;
        }
        let fenced = map.fence(node).is_some();
        fenced && self.switches().all(|switch| self.is_severed(switch, node))
    }

    /// The same for a switch.
    fn may_switch_end(&self, index: u16) -> bool {
        let map = &self.state.map;
        let named = map.active_switch == index;
        let takes_over = |(member, peer): (Member, &Peer)| {
            let other = member != Member::Switch(index) && matches!(member, Member::Switch(_));
            other && peer.is_serving() && !peer.is_leaving()
        };
        if named {
            return !self.members.iter().any(takes_over);
        }
        !map.handing_over && {
            let now_serves = self.members.get(Member::Switch(map.active_switch));
            now_serves.is_none_or(|it| it.is_ready(map.revision))
        }
    }
}

impl Controller {
    /// Whether a member that is leaving is told that it may end. The last decision is durable.
    pub(crate) fn may_end(&self, member: Member) -> bool {
        let leaves = self.members.get(member).is_some_and(Peer::is_leaving);
        leaves && self.ledger.is_durable() && {
            let reach = self.reach();
            match member {
                Member::Node(node) => {
                    let copies = self.hot.is_rid_of(node, &self.members, &self.ledger.state);
                    reach.may_node_end(node) && (copies || self.is_overdue(member))
                }
                Member::Switch(index) => reach.may_switch_end(index),
                // It takes what it holds with it, and that is copies.
                Member::Cache(_) => true,
            }
        }
    }

    pub(crate) fn is_overdue(&self, member: Member) -> bool {
        let since = self.members.get(member).and_then(|peer| peer.leaving_since);
        since.is_some_and(|since| since + RECALL_MAX <= self.now)
    }

    /// Waits no longer for nodes that have been away for long. The last decision is durable.
    pub(crate) fn look_at_absences(&mut self) {
        let now = self.now;
        let over = self.ledger.state.forget_away(|away| comes_too_late_at(away) <= now);
        if over.is_empty() {
            return;
        }
        let revision = self.ledger.state.next_revision(now);
        for (node, partition) in &over {
            self.chains.note_lost(*node, *partition, revision);
        }
        let mut nodes: Vec<NodeId> = over.iter().map(|(node, _)| *node).collect();
        nodes.dedup();
        let names: Vec<String> = nodes.iter().map(|node| format!("node {node}")).collect();
        let saw = format!("still away: {}", names.join(", "));
        let did = format!("wait no longer, and have {} replicas made elsewhere", over.len());
        self.ledger.advance(now, Level::Trouble, saw, did);
    }

    /// When that is to be looked at next.
    pub(crate) fn absences_due(&self) -> impl Iterator<Item = Instant> {
        let away = self.ledger.state.map.partitions.iter().flat_map(|it| &it.away);
        let late = away.map(comes_too_late_at);
        let members = self.members.iter().filter_map(|(_, peer)| peer.leaving_since);
        let overdue = members.map(|since| since + RECALL_MAX);
        late.chain(overdue).chain(self.hot.hand_over_due())
    }
}

/// Revisions are times: see [`Saved::next_revision`](crate::Saved).
fn comes_too_late_at(away: &Away) -> Instant {
    Instant::from_unix_ms(away.left.get()) + AWAY_MAX
}
