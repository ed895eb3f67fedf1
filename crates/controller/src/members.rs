//! Everybody that the controller gives orders to: what is known of each, and what of all together.

mod judge;
mod lease;
mod peer;
mod returns;
mod sample;
mod standing;

pub(crate) use judge::{Verdict, bound, judge_cache, judge_node, judge_switch};
pub(crate) use lease::Granted;
pub(crate) use peer::{Contact, DIRECT_POLL, Peer, Terms};
pub(crate) use returns::{Arrival, accept_loss, begin_incarnation, take_in};
pub(crate) use sample::Sample;
pub(crate) use standing::Standing;

use cluster::{Map, Member, NodeId, NodeReport, ORDERS_VERSION};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;
use std::time::Duration;
use wire::Revision;

/// How often the nodes of a closed partition are asked whether they have settled: a few times what
/// a round trip takes, for all that time clients wait.
const CLOSED_POLL: Duration = Duration::from_millis(10);

/// How often those who give and take a copy are asked how far it has come: clients do not wait, and
/// a copy takes longer than this.
const COPY_POLL: Duration = Duration::from_millis(25);

/// All switches, nodes and caches.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    peers: BTreeMap<Member, Peer>,
    /// When every lease that a predecessor may have granted has ended.
    alone_at: Instant,
    /// Every node has been heard of or asked in vain since this controller began, or no lease of a
    /// predecessor's is left.
    acquainted: bool,
}

impl Members {
    pub(crate) fn new(peers: BTreeMap<Member, Peer>, alone_at: Instant) -> Self {
        Self { peers, alone_at, acquainted: false }
    }

    pub(crate) fn get(&self, member: Member) -> Option<&Peer> {
        self.peers.get(&member)
    }

    pub(crate) fn get_mut(&mut self, member: Member) -> Option<&mut Peer> {
        self.peers.get_mut(&member)
    }

    pub(crate) fn insert(&mut self, member: Member, peer: Peer) {
        self.peers.insert(member, peer);
    }

    pub(crate) fn remove(&mut self, member: Member) {
        self.peers.remove(&member);
    }

    /// Switches, then nodes, then caches.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (Member, &Peer)> {
        self.peers.iter().map(|(member, peer)| (*member, peer))
    }

    /// Switches, then nodes, then caches.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Member, &mut Peer)> {
        self.peers.iter_mut().map(|(member, peer)| (*member, peer))
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = (NodeId, &Peer)> {
        self.iter().filter_map(|(member, peer)| match member {
            Member::Node(id) => Some((id, peer)),
            Member::Switch(_) | Member::Cache(_) => None,
        })
    }

    pub(crate) fn node(&self, id: NodeId) -> Option<&Peer> {
        self.get(Member::Node(id))
    }

    /// What a node said last.
    pub(crate) fn node_report(&self, id: NodeId) -> Option<&NodeReport> {
        self.node(id)?.node_report()
    }

    /// When every lease that a predecessor may have granted has ended.
    pub(crate) fn alone_at(&self) -> Instant {
        self.alone_at
    }

    /// Whether every node has been asked by now.
    pub(crate) fn are_all_tried(&self) -> bool {
        self.nodes().all(|(_, peer)| peer.contact != Contact::Untried)
    }

    /// Notes whether every node had its say by now, or nobody is left who serves by a predecessor.
    pub(crate) fn meet(&mut self, now: Instant) {
        self.acquainted |= self.alone_at <= now || self.are_all_tried();
    }

    /// Whether the map can be decided by: not before every node had its say, for one of them may
    /// follow a newer one, nor while one does.
    pub(crate) fn may_decide(&self) -> bool {
        self.acquainted && !self.is_overtaken()
    }

    /// Somebody follows a newer map than this one, which therefore says nothing of what is so.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.peers.values().any(|peer| matches!(peer.standing, Standing::Ahead(_)))
    }

    /// The newest version of orders and reports that all who were heard can.
    pub(crate) fn common_orders(&self) -> u16 {
        let said = self.peers.values().filter_map(|peer| peer.report.as_ref());
        said.map(|report| report.versions.common_orders()).min().unwrap_or(ORDERS_VERSION)
    }

    /// Whether a node can send writes on before its disk has them; `None` if it has not said.
    pub(crate) fn sends_early(&self, node: NodeId) -> Option<bool> {
        let report = self.node(node)?.report.as_ref()?;
        Some(report.versions.sends_early())
    }

    /// Whether a node can make what it holds of a partition of what it holds of others.
    pub(crate) fn splits(&self, node: NodeId) -> bool {
        let report = self.node(node).and_then(|peer| peer.report.as_ref());
        report.is_some_and(|report| report.versions.splits())
    }

    /// Switches and nodes that follow somebody else. (A cache that does holds up nobody.)
    pub(crate) fn foreign(&self) -> impl Iterator<Item = Member> {
        let astray = |it: &Peer| matches!(it.standing, Standing::Foreign(_) | Standing::Ahead(_));
        let counts = move |(member, peer): &(Member, &Peer)| {
            astray(peer) && !matches!(member, Member::Cache(_))
        };
        self.iter().filter(counts).map(|(member, _)| member)
    }

    /// Whether this node does what it is told, and has answered since the last of those nodes fell
    /// silent that do not answer. Else it may have gone with them: after a power cut the last one
    /// that was asked would be taken for the one that is left.
    pub(crate) fn outlasts(&self, node: NodeId) -> bool {
        let silent = self.nodes().filter(|(_, peer)| peer.contact == Contact::Silent);
        let last = silent.filter_map(|(_, peer)| peer.lapsing_since).max();
        let peer = self.node(node).filter(|peer| peer.is_serving());
        peer.is_some_and(|peer| peer.heard > last)
    }

    /// Members that have not answered an order for so long.
    pub(crate) fn overdue(&self, now: Instant, patience: Duration) -> Vec<Member> {
        let is_overdue = |peer: &Peer| peer.in_flight.is_some_and(|at| at + patience <= now);
        self.iter().filter(|(_, peer)| is_overdue(peer)).map(|(member, _)| member).collect()
    }

    /// Nobody has been asked for a while: what was asked counts as asked now, and nobody's silence
    /// means anything before they had so long.
    pub(crate) fn excuse(&mut self, now: Instant, patience: Duration) {
        self.peers.values_mut().for_each(|peer| peer.excuse(now, patience));
    }

    /// Somebody answers. If nobody of the same role did before, the controller may have been cut
    /// off from all of them: the first that is reached again must not count as the only one left.
    pub(crate) fn excuse_all_like(&mut self, now: Instant, from: Member, patience: Duration) {
        let is_like = |member: Member| discriminant(&member) == discriminant(&from);
        let answers =
            |(member, peer): (Member, &Peer)| is_like(member) && peer.contact == Contact::Answering;
        if !self.iter().any(answers) {
            let like = self.iter_mut().filter(|(member, _)| is_like(*member));
            like.for_each(|(_, peer)| peer.excuse(now, patience));
        }
    }

    /// Every node that could install this revision has done so.
    pub(crate) fn nodes_are_up_to_date(&self, revision: Revision) -> bool {
        let is_late = |peer: &Peer| peer.contact == Contact::Untried || peer.is_behind(revision);
        self.nodes().all(|(_, peer)| !is_late(peer))
    }

    /// Every node that follows is asked at once.
    pub(crate) fn ask_nodes(&mut self, now: Instant) {
        let follows = |(member, peer): &(Member, &mut Peer)| {
            matches!(member, Member::Node(_)) && peer.follows()
        };
        self.iter_mut().filter(follows).for_each(|(_, peer)| peer.due = now);
    }

    /// Whoever waits for what is decided to be saved is asked at once.
    pub(crate) fn ask_those_that_return(&mut self, now: Instant) {
        let returns = |peer: &&mut Peer| peer.standing == Standing::Returning;
        self.peers.values_mut().filter(returns).for_each(|peer| peer.due = now);
    }

    /// Every member that has not been offered this revision is given it now.
    pub(crate) fn help_the_late(&mut self, now: Instant, revision: Revision, holds_switches: bool) {
        for (member, peer) in self.iter_mut() {
            let waits = holds_switches && matches!(member, Member::Switch(_));
            if !waits && peer.is_behind(revision) && peer.offered < revision {
                peer.due = now;
            }
        }
    }

    /// A node without a replica holds nothing that could be missed, whatever memory it comes with.
    pub(crate) fn forgive_the_unplaced(&mut self, map: &Map) {
        let placed: BTreeSet<NodeId> =
            map.partitions.iter().flat_map(|it| it.chain.iter().copied()).collect();
        for (member, peer) in self.iter_mut() {
            peer.may_hold &= matches!(member, Member::Node(id) if placed.contains(&id));
        }
    }

    /// Asks those more often whom others wait for.
    pub(crate) fn set_paces(&mut self, now: Instant, map: &Map, usual: Duration) {
        let mut paces: BTreeMap<NodeId, Duration> = BTreeMap::new();
        for partition in &map.partitions {
            let (nodes, pace) = match (partition.open, partition.has_learner) {
                (false, _) => (partition.chain.clone(), CLOSED_POLL),
                (true, true) => {
                    (partition.tail().into_iter().chain(partition.learner()).collect(), COPY_POLL)
                }
                (true, false) => continue,
            };
            for node in nodes {
                let known = paces.entry(node).or_insert(pace);
                *known = pace.min(*known);
            }
        }
        for (member, peer) in self.iter_mut() {
            let Member::Node(id) = member else { continue };
            let haste = paces.get(&id).filter(|_| peer.is_serving());
            peer.pace = haste.map_or(usual, |pace| usual.min(*pace));
            peer.due = peer.due.min(now + peer.pace);
        }
    }
}
