//! Going on without a member whose lease still runs (`spec/protocol.md`, section 7, "Fences"; the
//! crate `model` has the same rules and looks at every state of small clusters).
//!
//! Every request passes a switch, so a node is left behind when no switch brings it anything any
//! more, and a switch when no node takes anything from it.

use crate::members::{Contact, Members, Peer};
use crate::saved::Saved;
use cluster::{Fence, MaybeMutant, Member, Mutant, NodeId};
use machine::Instant;
use std::net::SocketAddr;

/// Who can still bring something to whom.
#[derive(Clone, Copy)]
pub(crate) struct Reach<'a> {
    pub(crate) now: Instant,
    pub(crate) state: &'a Saved,
    pub(crate) members: &'a Members,
    pub(crate) mutant: MaybeMutant,
}

impl Reach<'_> {
    /// Whether no client reaches this node any more, nor will by what is decided next.
    ///
    /// That it is severed from all switches is not enough without a fence: the switch that serves
    /// next would bring it requests.
    pub(crate) fn is_out(&self, node: NodeId) -> bool {
        let Some(peer) = self.members.node(node).filter(|peer| peer.is_lapsing()) else {
            return false;
        };
        if peer.granted.is_over(self.now) || self.mutant.is(Mutant::ImpatientController) {
            return true;
        }
        let fenced = self.state.map.fence(node).is_some();
        fenced && peer.direct.is_over(self.now) && {
            let unasked = self.mutant.is(Mutant::FenceUnconfirmed);
            let mut switches = self.switches().filter(|_| !unasked);
            switches.all(|switch| self.is_severed(switch, node))
        }
    }

    /// Whether the switches that are not named reach nobody: nodes that hold copies of hot keys
    /// count as well.
    pub(crate) fn are_others_out(&self) -> bool {
        let named = self.state.active_endpoint();
        let others = || self.switches().filter(|switch| Some(*switch) != named);
        let mut nodes = self.state.map.nodes.iter();
        nodes.all(|node| others().all(|switch| self.is_severed(switch, node.id)))
    }

    /// Every switch that may have served, by service endpoint.
    pub(crate) fn switches(&self) -> impl Iterator<Item = SocketAddr> {
        let active = self.state.active_endpoint();
        let active = active.filter(|at| !self.state.standbys.contains_key(at));
        self.state.standbys.keys().copied().chain(active)
    }

    /// Whether this switch brings nothing more to this node, whatever order is still on its way.
    pub(crate) fn is_severed(&self, switch: SocketAddr, node: NodeId) -> bool {
        let place = (0..).zip(&self.state.switches).find(|(_, at)| **at == switch);
        let from = place.and_then(|(index, _)| self.members.get(Member::Switch(index)));
        let Some(to) = self.members.node(node) else { return false };
        // One that is not configured any more had its lease from a controller before this one.
        let is_mute =
            from.map_or(self.members.alone_at() <= self.now, |from| from.granted.is_over(self.now));
        if is_mute || to.granted.is_over(self.now) {
            return true;
        }
        let (standby, fence) = (self.state.standbys.get(&switch), self.state.map.fence(node));
        let is_one = fence.is_none_or(|fence| !fence.replaced);
        let unnamed = standby.and_then(|it| it.unnamed).filter(|_| is_one);
        if unnamed.is_some_and(|since| to.has_installed(since)) {
            return true;
        }
        let fence = fence.map(|fence| fence.since);
        let since = standby.map(|it| it.since).into_iter().chain(fence).min();
        from.zip(since).is_some_and(|(from, since)| from.has_installed(since))
    }

    /// Nodes that do not answer, where somebody else would go on if they were fenced.
    pub(crate) fn nodes_to_fence(&self) -> Vec<NodeId> {
        let map = &self.state.map;
        let is_of_use = |node: NodeId| {
            let mut chains = map.partitions.iter().filter(|it| it.chain.contains(&node));
            chains.any(|it| {
                let goes_on = |member: &NodeId| {
                    *member != node && it.has_stayed(*member) && self.members.outlasts(*member)
                };
                it.members().iter().any(goes_on)
            })
        };
        let missed = self.members.nodes().filter(|(node, peer)| {
            peer.is_missed(self.now)
                && !peer.granted.is_over(self.now)
                && map.fence(*node).is_none()
        });
        let missed = missed.map(|(node, _)| node).filter(|node| is_of_use(*node));
        missed.chain(self.nodes_that_left()).collect()
    }

    /// Fenced nodes that answer again, and know of all that rested on the fence.
    ///
    /// To have heard of the fence is not enough: an MGET names no epoch, and its hints may be
    /// wrong, so a node that still takes itself for the tail of a chain that went on would answer.
    pub(crate) fn nodes_to_let_in(&self) -> Vec<NodeId> {
        let knows = |fence: &&Fence| {
            let peer = self.members.node(fence.node).filter(|peer| peer.is_serving());
            let peer = peer.filter(|peer| !peer.is_leaving());
            let alone = |peer: &Peer| !fence.replaced || peer.replaced.is_over(self.now);
            peer.is_some_and(|peer| peer.has_installed(fence.left) && alone(peer))
        };
        self.state.map.fences.iter().filter(knows).map(|fence| fence.node).collect()
    }

    /// The switch that is to take over from the named one, if that does not answer.
    pub(crate) fn successor(&self) -> Option<u16> {
        let named = self.members.get(Member::Switch(self.state.map.active_switch))?;
        let silent = named.contact == Contact::Silent && named.is_missed(self.now);
        if !silent && !named.is_leaving() {
            return None;
        }
        // Whoever serves has the tables that it was given last: one that was named before has stood
        // by since (F6).
        let fit =
            |peer: &Peer| peer.is_serving() && peer.steady_at <= self.now && !peer.is_leaving();
        self.members.iter().find_map(|(member, peer)| match member {
            Member::Switch(index) if fit(peer) => Some(index),
            Member::Switch(_) | Member::Node(_) | Member::Cache(_) => None,
        })
    }
}
