//! The controller machine itself: what comes in, what goes out, and when.

use crate::config::{ConfigError, ControllerConfig};
use crate::decisions::Decisions;
use crate::keyspace::{self, CreateError, KeyspaceSpec};
use crate::peer::{Contact, Peer, Standing, Verdict, judge_node, judge_switch};
use crate::saved::Saved;
use crate::status::{self, Status};
use cluster::{KeyspaceId, Map, Member, NodeId, NodeReport, Order, Report, StoreId};
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::Endpoint;

/// Poll intervals after which an order without any answer counts as undelivered. The driver
/// should say so itself much sooner; this keeps a lost answer from ending a member's orders.
const PATIENCE_POLLS: u32 = 5;

/// The control plane of one cluster.
#[derive(Clone, Debug)]
pub struct Controller {
    config: ControllerConfig,
    state: Saved,
    /// Revision of the newest state handed to the driver for saving.
    saving: u64,
    /// Revision of the newest state known to be durable.
    durable: u64,
    /// Until then switches wait for the nodes to install the present revision.
    hold_switches_until: Instant,
    peers: BTreeMap<Member, Peer>,
    decisions: Decisions,
    orders: u64,
    now: Instant,
}

impl Controller {
    /// A controller that begins with the saved state or, without one, with an empty map.
    ///
    /// # Errors
    ///
    /// If the configuration is not sound or does not go with what was saved.
    pub fn new(
        config: ControllerConfig,
        saved: Option<Saved>,
        now: Instant,
    ) -> Result<Self, ConfigError> {
        let restored = saved.is_some();
        let (state, changed) = config.begin(saved, now)?;
        let durable = if changed { 0 } else { state.map.revision };
        let switches = (0..).zip(&config.switches).map(|(index, _)| Member::Switch(index));
        let nodes = state.map.nodes.iter().map(|n| Member::Node(n.id));
        let peers = switches.chain(nodes).map(|member| (member, peer_of(&state, member, now)));
        let peers = peers.collect();
        let hold_switches_until = now + config.poll_interval;
        let mut decisions = Decisions::default();
        let saw = match (restored, changed) {
            (false, _) => "no saved state",
            (true, true) => "a saved state and a changed configuration",
            (true, false) => "a saved state",
        };
        decisions.note(now, saw, format!("begin with revision {}", state.map.revision));
        Ok(Self {
            config,
            state,
            saving: durable,
            durable,
            hold_switches_until,
            peers,
            decisions,
            orders: 0,
            now,
        })
    }

    /// Creates a keyspace and places its partitions on every node that can take some: all but
    /// the forgotten. It is there for good once [`Self::durable_revision`] has reached the
    /// revision that the map has after this call.
    ///
    /// # Errors
    ///
    /// If it cannot be had; nothing has changed then.
    pub fn create_keyspace(
        &mut self,
        now: Instant,
        spec: KeyspaceSpec,
    ) -> Result<KeyspaceId, CreateError> {
        self.now = now;
        if let Some(member) = self.foreign() {
            return Err(CreateError::Foreign(member));
        }
        let ids = self.state.map.nodes.iter().map(|n| n.id);
        let unknown: Vec<NodeId> =
            ids.clone().filter(|id| !self.state.stores.contains_key(id)).collect();
        if !unknown.is_empty() {
            return Err(CreateError::NodesUnknown(unknown));
        }
        let usable = |id: &NodeId| {
            let peer = self.peers.get(&Member::Node(*id));
            peer.is_some_and(|p| p.standing != Standing::Forgotten)
        };
        let nodes: Vec<NodeId> = ids.filter(usable).collect();
        let wanted = format!("wanted: keyspace {:?} of {} partitions", spec.name, spec.partitions);
        let id = keyspace::create(&mut self.state, spec, &nodes)?;
        self.advance(wanted, format!("create keyspace {id} on {} nodes", nodes.len()));
        Ok(id)
    }

    /// The state to make durable, if it has changed since the last call. It replaces whatever was
    /// saved before, as a whole.
    pub fn poll_save(&mut self) -> Option<Saved> {
        if self.saving == self.state.map.revision {
            return None;
        }
        self.saving = self.state.map.revision;
        Some(self.state.clone())
    }

    /// The state with this map revision is durable.
    ///
    /// # Panics
    ///
    /// If no state of that revision was handed out.
    pub fn handle_saved(&mut self, now: Instant, revision: u64) {
        assert!(revision <= self.saving, "only what was handed out can be durable");
        self.now = now;
        if revision <= self.durable {
            return;
        }
        self.durable = revision;
        if self.is_durable() {
            self.hold_switches_until = now + self.config.poll_interval;
            self.help_the_late();
        }
    }

    /// The next order to deliver, nodes before switches. Each member has one at a time.
    pub fn poll_order(&mut self) -> Option<(Member, Order)> {
        let now = self.now;
        let is_due = |peer: &Peer| peer.in_flight.is_none() && peer.due <= now;
        // `Member` sorts switches first; nodes are to install a revision before switches use it.
        let (member, _) = self.peers.iter().rev().find(|(_, peer)| is_due(peer))?;
        let member = *member;
        let order = self.order_for(member);
        let revision = revision_of(&order);
        assert!(revision <= self.durable, "no order leaves before its map is durable");
        let peer = self.peers.get_mut(&member)?;
        peer.offered = peer.offered.max(revision);
        peer.may_hold |= matches!(&order, Order::Assign(it) if !it.partitions.is_empty());
        peer.in_flight = Some(now);
        peer.due = now + self.config.poll_interval;
        self.orders += 1;
        Some((member, order))
    }

    /// A member answered its order.
    pub fn handle_report(&mut self, now: Instant, from: Member, report: Report) {
        self.now = now;
        let Some(peer) = self.peers.get_mut(&from) else {
            let saw = format!("a report of {from}, which is not configured");
            return self.decisions.note(now, saw, "ignore it");
        };
        peer.in_flight = None;
        match (from, report) {
            (Member::Switch(_), Report::Switch(mut counters)) => {
                counters.partitions.truncate(wire::PARTITIONS_MAX);
                let standing = judge_switch(&self.state, counters.revision);
                self.heard(from, Report::Switch(counters), standing);
            }
            (Member::Node(node), Report::Node(report)) => {
                let may_hold = peer.may_hold;
                let standing = match judge_node(&self.state, node, may_hold, &report) {
                    Verdict::Stands(standing) => standing,
                    Verdict::TakeIn => self.take_in(node, report),
                };
                self.heard(from, Report::Node(report), standing);
            }
            (Member::Switch(_), Report::Node(_)) | (Member::Node(_), Report::Switch(_)) => {
                peer.contact = Contact::Silent;
                let saw = format!("{from} reports in the form of another role");
                self.decisions.note(now, saw, "ignore it; check the configured control address");
            }
        }
    }

    /// An order could not be delivered, or was not answered in time.
    pub fn handle_silence(&mut self, now: Instant, from: Member) {
        self.now = now;
        let Some(peer) = self.peers.get_mut(&from) else { return };
        peer.in_flight = None;
        let before = std::mem::replace(&mut peer.contact, Contact::Silent);
        if before != Contact::Silent {
            self.decisions.note(now, format!("{from} does not answer"), "ask again");
        }
        self.help_the_late();
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        let overdue = |peer: &Peer| peer.in_flight.is_some_and(|at| at + self.patience() <= now);
        let late: Vec<Member> =
            self.peers.iter().filter(|(_, p)| overdue(p)).map(|(m, _)| *m).collect();
        for member in late {
            self.handle_silence(now, member);
        }
        self.help_the_late();
    }

    /// When [`Self::handle_timeout`] is to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let wake = |peer: &Peer| peer.in_flight.map_or(peer.due, |at| at + self.patience());
        let orders = self.peers.values().map(wake).min();
        let held = self.holds_switches().then_some(self.hold_switches_until);
        orders.into_iter().chain(held).min()
    }

    /// The map as decided; durable up to [`Self::durable_revision`].
    #[must_use]
    pub fn map(&self) -> &Map {
        &self.state.map
    }

    /// Revision of the newest map that is durable; 0 for none yet.
    #[must_use]
    pub fn durable_revision(&self) -> u64 {
        self.durable
    }

    /// How everything stands, for people and dashboards. O(partitions).
    #[must_use]
    pub fn status(&self, now: Instant) -> Status {
        status::make(&status::View {
            now,
            state: &self.state,
            durable: self.durable,
            peers: &self.peers,
            decisions: &self.decisions,
            orders: self.orders,
        })
    }

    fn is_durable(&self) -> bool {
        self.durable == self.state.map.revision
    }

    fn patience(&self) -> Duration {
        self.config.poll_interval.saturating_mul(PATIENCE_POLLS)
    }

    fn foreign(&self) -> Option<Member> {
        let mut peers = self.peers.iter();
        peers.find(|(_, p)| matches!(p.standing, Standing::Foreign(_))).map(|(m, _)| *m)
    }

    fn advance(&mut self, saw: String, did: String) {
        self.state.advance(self.now);
        let did = format!("{did}; revision {}", self.state.map.revision);
        self.decisions.note(self.now, saw, did);
    }

    /// Notes what a member said. A node that is behind is helped at once, unless it was given the
    /// present revision already and did not take it: that waits for its next turn.
    fn heard(&mut self, from: Member, report: Report, standing: Standing) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let returns = peer.contact != Contact::Answering || report.revision() < peer.revision();
        if returns {
            peer.offered = 0;
        }
        let changes = returns || peer.standing != standing;
        peer.heard = Some(self.now);
        peer.contact = Contact::Answering;
        peer.standing = standing;
        peer.report = Some(report);
        if changes {
            let (saw, did) = explain(from, peer);
            self.decisions.note(self.now, saw, did);
        }
        self.help_the_late();
    }

    /// A node with a memory that the cluster does not know and that holds nothing of it.
    fn take_in(&mut self, node: NodeId, report: NodeReport) -> Standing {
        if let Some(member) = self.foreign().filter(|m| *m != Member::Node(node)) {
            return Standing::Waiting(member);
        }
        let StoreId(store) = report.store;
        self.state.stores.insert(node, report.store);
        self.advance(
            format!("node {node} has the new memory {store:016x}"),
            format!("take node {node} in"),
        );
        Standing::Accepted
    }

    fn order_for(&self, member: Member) -> Order {
        let map = &self.state.map;
        let behind = self.peers.get(&member).is_some_and(|p| p.is_behind(map.revision));
        if !behind || !self.is_durable() {
            return Order::Report;
        }
        match member {
            Member::Switch(_) if self.holds_switches() => Order::Report,
            Member::Switch(_) => Order::Tables(map.switch_tables()),
            Member::Node(id) => {
                let store = *self.state.stores.get(&id).expect("accepted: its memory is known");
                Order::Assign(map.assignment(id, store, self.service()))
            }
        }
    }

    /// Where nodes send replies.
    fn service(&self) -> Endpoint {
        *self.config.switches.first().expect("a checked configuration has a switch")
    }

    /// Every node that could install the present revision has done so.
    fn nodes_are_settled(&self) -> bool {
        let revision = self.state.map.revision;
        let mut nodes = self.peers.iter().filter(|(m, _)| matches!(m, Member::Node(_)));
        nodes.all(|(_, p)| p.contact != Contact::Untried && !p.is_behind(revision))
    }

    /// Switches wait a moment for the nodes, so that they do not route to partitions that no node
    /// serves yet. Nodes refuse those and clients ask again, so this saves time and no more; a
    /// node that does not answer delays nobody beyond one poll interval.
    fn holds_switches(&self) -> bool {
        self.now < self.hold_switches_until && !self.nodes_are_settled()
    }

    /// Lets every member that has not been offered the present revision have it now.
    fn help_the_late(&mut self) {
        if !self.is_durable() {
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

fn peer_of(state: &Saved, member: Member, now: Instant) -> Peer {
    let may_hold = match member {
        Member::Switch(_) => false,
        Member::Node(id) => state.partitions_of(id) > 0,
    };
    Peer::new(now, may_hold)
}

fn revision_of(order: &Order) -> u64 {
    match order {
        Order::Report => 0,
        Order::Tables(tables) => tables.revision,
        Order::Assign(assignment) => assignment.revision,
    }
}

fn explain(member: Member, peer: &Peer) -> (String, String) {
    let revision = peer.revision();
    match &peer.standing {
        Standing::Unheard => (format!("{member} has not been heard of"), "ask again".into()),
        Standing::Accepted => {
            (format!("{member} answers with revision {revision}"), "keep it up to date".into())
        }
        Standing::Waiting(other) => (
            format!("{member} is new, but {other} follows another controller"),
            "do not take it in yet".into(),
        ),
        Standing::Forgotten => (
            format!("{member} came back without the memory of its partitions"),
            "give it no assignment".into(),
        ),
        Standing::Foreign(why) => (format!("{member}: {why}"), "give it no order".into()),
    }
}
