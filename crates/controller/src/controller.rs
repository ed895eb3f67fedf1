//! The controller machine itself: what comes in, what goes out, and when.

use crate::change::Plans;
use crate::clock::ClusterClock;
use crate::config::{ConfigError, ControllerConfig};
use crate::decisions::{Decision, Decisions};
use crate::hot::{self, Hot, HotNews};
use crate::judge::{Verdict, bound, judge_node, judge_switch};
use crate::keyspace::{self, CreateError, KeyspaceSpec};
use crate::peer::{Contact, Peer, Standing};
use crate::saved::Saved;
use crate::status::Watches;
use crate::verify::Verifying;
use cluster::{
    Install, KeyspaceId, Lease, Map, MaybeMutant, Member, MemberReport, Mutant, NodeId, NodeReport,
    Order, Report,
};
use machine::Instant;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use wire::Revision;

/// Poll intervals after which an order without any answer counts as undelivered. The driver
/// should say so itself much sooner; this keeps a lost answer from ending a member's orders. Less
/// than a lease usually lasts, so that a member that is silent is known to be when it ends.
const PATIENCE_POLLS: u32 = 3;

/// How long others have to come back after a node that was started anew and is the first of its
/// chain to answer. Without it, the first to be up after a power cut would be the only one that
/// does not need its data copied.
const RETURN_GRACE: Duration = Duration::from_secs(2);

/// The control plane of one cluster.
#[derive(Clone, Debug)]
pub struct Controller {
    pub(crate) config: ControllerConfig,
    pub(crate) state: Saved,
    /// Revision of the newest state handed to the driver for saving.
    saving: Revision,
    /// Revision of the newest state known to be durable.
    pub(crate) durable: Revision,
    /// Until then switches wait for the nodes to install the present revision.
    pub(crate) hold_switches_until: Instant,
    /// When every lease that a predecessor may have granted has ended.
    pub(crate) alone_at: Instant,
    /// Every node has been heard of or asked in vain since this controller began.
    pub(crate) acquainted: bool,
    pub(crate) peers: BTreeMap<Member, Peer>,
    pub(crate) plans: Plans,
    pub(crate) watches: Watches,
    pub(crate) verifying: Verifying,
    pub(crate) decisions: Decisions,
    pub(crate) hot: Hot,
    pub(crate) clock: ClusterClock,
    pub(crate) mutant: MaybeMutant,
    pub(crate) orders: u64,
    pub(crate) unequal: u64,
    pub(crate) now: Instant,
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
        let durable = if changed { Revision::NONE } else { state.map.revision };
        let granted = Duration::from_millis(state.lease_ms);
        let switches = (0..).zip(&config.switches).map(|(index, _)| Member::Switch(index));
        let nodes = state.map.nodes.iter().map(|n| Member::Node(n.id));
        let peer = |member| {
            let may_hold = matches!(member, Member::Node(id) if state.partitions_of(id) > 0);
            Peer { may_hold, ..Peer::new(now, config.poll_interval, granted) }
        };
        let peers = switches.chain(nodes).map(|member| (member, peer(member))).collect();
        let hold_switches_until = now + config.poll_interval;
        let clock = ClusterClock::new(now, config.poll_interval.saturating_mul(PATIENCE_POLLS));
        let mut decisions = Decisions::default();
        let saw = match (restored, changed) {
            (false, _) => "no saved state",
            (true, true) => "a saved state and a changed configuration",
            (true, false) => "a saved state",
        };
        let changes = if changed { "all of it" } else { "nothing" };
        let did = format!("begin with revision {}", state.map.revision);
        decisions.note(now, saw, did, changes);
        Ok(Self {
            config,
            plans: Plans::new(state.map.revision),
            state,
            saving: durable,
            durable,
            hold_switches_until,
            alone_at: Lease::over_by(now, granted),
            acquainted: false,
            peers,
            watches: Watches::default(),
            verifying: Verifying::default(),
            decisions,
            hot: Hot::default(),
            clock,
            mutant: MaybeMutant::default(),
            orders: 0,
            unequal: 0,
            now,
        })
    }

    /// Breaks a rule on purpose, to know that the simulator would see it. Mutants of other roles
    /// change nothing.
    pub fn mutant(&mut self, mutant: Mutant) {
        self.mutant = MaybeMutant::of(mutant);
    }

    /// Creates a keyspace and places its partitions on every node that can take some: all but
    /// the silent, the forgotten and the departing. It is there for good once
    /// [`Self::durable_revision`] has reached the revision that the map has after this call.
    ///
    /// # Errors
    ///
    /// If it cannot be had; nothing has changed then.
    pub fn create_keyspace(
        &mut self,
        now: Instant,
        spec: KeyspaceSpec,
    ) -> Result<KeyspaceId, CreateError> {
        self.awake(now);
        if let Some(member) = self.foreign().next() {
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
            let lost = |p: &Peer| p.is_gone(now) || p.standing == Standing::Forgotten;
            !self.state.departing.contains(id) && peer.is_some_and(|p| !lost(p))
        };
        let nodes: Vec<NodeId> = ids.filter(usable).collect();
        let turns = self.weights().turns(&nodes);
        let wanted = format!("wanted: keyspace {:?} of {} partitions", spec.name, spec.partitions);
        let id = keyspace::create(&mut self.state, spec, (nodes.len(), &turns), now)?;
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
    pub fn handle_saved(&mut self, now: Instant, revision: Revision) {
        assert!(revision <= self.saving, "only what was handed out can be durable");
        self.awake(now);
        if revision <= self.durable {
            return;
        }
        self.durable = revision;
        if !self.is_durable() {
            return;
        }
        let returning = |peer: &&mut Peer| peer.standing == Standing::Returning;
        for peer in self.peers.values_mut().filter(returning) {
            peer.due = now;
        }
        // A hold that has begun goes on: a switch waits for one interval, however often the map
        // changes meanwhile.
        if self.hold_switches_until <= now {
            self.hold_switches_until = now + self.config.poll_interval;
        }
        self.plans.disturb();
        self.act();
    }

    /// The next order to deliver, nodes before switches. Each member has one at a time.
    pub fn poll_order(&mut self) -> Option<(Member, Order)> {
        let now = self.now;
        let is_due = |peer: &Peer| peer.in_flight.is_none() && peer.due <= now;
        // `Member` sorts switches first; nodes are to install a revision before switches use it.
        let (member, _) = self.peers.iter().rev().find(|(_, peer)| is_due(peer))?;
        let member = *member;
        let install = self.install_for(member);
        let given = install.as_ref().map(Install::revision);
        assert!(
            given.unwrap_or_default() <= self.durable,
            "no order leaves before its map is durable"
        );
        let lease = self.lease_for(member, given);
        let clock = self.clock_for(member);
        let hot = self.hot_for(member, given).map(Arc::clone);
        let pace = hot::pace(&self.state, self.config.poll_interval);
        let peer = self.peers.get_mut(&member)?;
        peer.offered = peer.offered.max(given.unwrap_or_default());
        if let Some(Install::Assignment(assignment)) = &install {
            peer.may_hold |= !assignment.partitions.is_empty();
        }
        peer.given = given;
        (peer.in_flight, peer.asked) = (Some(now), Some(now));
        peer.due = now
            + match member {
                Member::Switch(_) => peer.pace,
                Member::Node(_) => peer.pace.min(pace),
            };
        if let Some(order) = &hot {
            peer.hot_offered = order.revision;
            if matches!(member, Member::Switch(_)) {
                self.hot.give();
            }
        }
        self.orders += 1;
        let verify = self.verify_for(member);
        Some((member, Order { install, clock, lease, hot, verify }))
    }

    /// A node says that something should be heard of at once: its report is asked for, when what it
    /// was sent before has been answered. If this gets lost, it is heard of a little later.
    pub fn handle_alert(&mut self, now: Instant, node: NodeId) {
        self.awake(now);
        if let Some(peer) = self.peers.get_mut(&Member::Node(node)).filter(|it| it.follows())
            && hot::is_wanted(&self.state)
        {
            peer.due = now;
        }
    }

    /// A member answered its order.
    pub fn handle_report(&mut self, now: Instant, from: Member, mut report: Report) {
        self.awake(now);
        let Some(peer) = self.peers.get_mut(&from) else {
            let saw = format!("a report of {from}, which is not configured");
            return self.decisions.note_seen(now, saw, "ignore it", true);
        };
        peer.in_flight = None;
        let incarnation = report.incarnation;
        if peer.over.contains(&incarnation) {
            return;
        }
        let standing = match (from, &mut report.state) {
            (Member::Switch(_), MemberReport::Switch(counters)) => {
                counters.partitions.truncate(wire::PARTITIONS_MAX);
                judge_switch(now, &self.state, counters)
            }
            (Member::Node(node), MemberReport::Node(report)) => {
                bound(report);
                let blind = self.mutant.is(Mutant::BelieveAnyMap);
                match judge_node(now, &self.state, (node, peer.may_hold), report, blind) {
                    Verdict::Stands(Standing::Forgotten) if self.trusts_the_forgetful() => {
                        self.take_in(node, incarnation, report)
                    }
                    Verdict::Stands(standing) => standing,
                    Verdict::TakeIn => self.take_in(node, incarnation, report),
                }
            }
            (Member::Switch(_), MemberReport::Node(_))
            | (Member::Node(_), MemberReport::Switch(_)) => {
                peer.contact = Contact::Silent;
                let saw = format!("{from} reports in the form of another role");
                let did = "ignore it; check the configured control address";
                return self.decisions.note_seen(now, saw, did, true);
            }
        };
        let standing = match (from, &report.state, standing) {
            (Member::Node(node), MemberReport::Node(it), Standing::Accepted) => {
                self.see_incarnation(node, incarnation, it)
            }
            (_, _, standing) => standing,
        };
        self.heard(from, report, standing);
    }

    /// An order could not be delivered, or was not answered in time.
    pub fn handle_silence(&mut self, now: Instant, from: Member) {
        self.awake(now);
        self.note_silence(from);
        self.act();
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.awake(now);
        let overdue = |peer: &Peer| peer.in_flight.is_some_and(|at| at + self.patience() <= now);
        let late: Vec<Member> =
            self.peers.iter().filter(|(_, p)| overdue(p)).map(|(m, _)| *m).collect();
        for member in late {
            self.note_silence(member);
        }
        self.look_at_clock();
        self.act();
    }

    /// When [`Self::handle_timeout`] is to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let orders = |peer: &Peer| peer.in_flight.map_or(peer.due, |at| at + self.patience());
        let orders = self.peers.values().map(orders);
        // Moments at which somebody may turn out to be silent, or nobody may do so any longer.
        let ends = self.peers.values().flat_map(|p| [p.granted.over_at(), p.steady_at]);
        let held = self.holds_switches().then_some(self.hold_switches_until);
        let ends = ends
            .chain(held)
            .chain([self.alone_at])
            .chain(self.hot.due())
            .chain(self.clock.due(self.now))
            .filter(|at| *at > self.now);
        orders.chain(ends).min()
    }

    /// The map as decided; durable up to [`Self::durable_revision`].
    #[must_use]
    pub fn map(&self) -> &Map {
        &self.state.map
    }

    /// Where orders reach nodes, as far as the configuration or [`Self::add_node`] said.
    #[must_use]
    pub fn controls(&self) -> &BTreeMap<NodeId, SocketAddr> {
        &self.state.controls
    }

    /// Revision of the newest map that is durable; 0 for none yet.
    #[must_use]
    pub fn durable_revision(&self) -> Revision {
        self.durable
    }

    /// How often a member of a chain that had settled was found to hold other than the rest, since
    /// this controller began. Without damage to a store none ever does.
    #[must_use]
    pub fn unequal(&self) -> u64 {
        self.unequal
    }

    /// How many decisions were made since this controller began.
    #[must_use]
    pub fn decisions_noted(&self) -> u64 {
        self.decisions.noted()
    }

    /// The decisions after the first `seen`, oldest first, as far as they are remembered: for a
    /// driver's log.
    pub fn decisions_since(&self, seen: u64) -> impl Iterator<Item = &Decision> {
        self.decisions.since(seen)
    }

    /// What is new about hot keys, oldest first: for a driver's log, to be asked for until there is
    /// no more after every call. It is kept until then.
    pub fn poll_hot_news(&mut self) -> Option<HotNews> {
        self.hot.log.poll()
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.durable == self.state.map.revision
    }

    pub(crate) fn patience(&self) -> Duration {
        self.config.poll_interval.saturating_mul(PATIENCE_POLLS)
    }

    /// Members that follow somebody else.
    pub(crate) fn foreign(&self) -> impl Iterator<Item = Member> {
        let astray = |p: &Peer| matches!(p.standing, Standing::Foreign(_) | Standing::Ahead(_));
        self.peers.iter().filter(move |(_, p)| astray(p)).map(|(m, _)| *m)
    }

    /// Every call begins here. Whoever has not been called for long (stopped, starved, or busy with
    /// a slow disk) has not asked anybody, so nobody's silence means anything yet.
    pub(crate) fn awake(&mut self, now: Instant) {
        let expected = self.poll_timeout().unwrap_or(now);
        self.now = now;
        if expected + self.config.poll_interval >= now {
            return;
        }
        let patience = self.patience();
        for peer in self.peers.values_mut() {
            peer.in_flight = peer.in_flight.map(|_| now);
            peer.steady_at = peer.steady_at.max(now + patience);
        }
        let saw = format!("{} ms in which nothing was done", now.since(expected).as_millis());
        self.decisions.note(now, saw, "ask everybody before taking anybody to be silent", "");
    }

    /// The state has changed: it gets a new revision.
    pub(crate) fn advance(&mut self, saw: String, did: String) {
        self.state.advance(self.now);
        let changed = format!("revision {}", self.state.map.revision);
        self.decisions.note(self.now, saw, did, changed);
    }

    fn trusts_the_forgetful(&self) -> bool {
        self.mutant.is(Mutant::TrustTheForgetful)
    }

    /// Notes what a member said. A node that is behind is helped at once, unless it was given the
    /// present revision already and did not take it: that waits for its next turn.
    fn heard(&mut self, from: Member, report: Report, standing: Standing) {
        self.hear_clock(from, &report);
        let (now, patience) = (self.now, self.patience());
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let reborn =
            peer.report.as_ref().is_some_and(|last| last.incarnation != report.incarnation);
        let returns =
            peer.contact != Contact::Answering || reborn || report.revision() < peer.revision();
        if returns {
            // It has no lease, or not for long, until the next order brings it one.
            (peer.offered, peer.hot_offered, peer.due) = (Revision::NONE, Revision::NONE, now);
        }
        if peer.heard.is_none() || peer.is_gone(now) {
            let grace = if report.revision().is_none() { RETURN_GRACE } else { patience };
            peer.steady_at = peer.steady_at.max(now + grace);
        }
        peer.stuck = match peer.given.take() {
            Some(given) => report.revision() < given,
            None => peer.stuck && !returns && report.revision() < peer.offered,
        };
        let changes = returns || peer.standing != standing;
        peer.heard = Some(now);
        peer.contact = Contact::Answering;
        peer.standing = standing;
        if changes {
            let (saw, did) = peer.standing.clone().explain(from, report.revision());
            self.decisions.note_seen(now, saw, did, peer.standing.is_trouble());
        }
        if let (Member::Node(node), MemberReport::Node(it)) = (from, &report.state) {
            let pins = &self.state.pins;
            self.hot.hear_node(now, (node, report.incarnation), it, pins);
        }
        if let (Member::Switch(index), MemberReport::Switch(it)) = (from, &report.state)
            && index == self.state.map.active_switch
            && peer.standing == Standing::Accepted
        {
            self.hot.hear_switch(now, (index, report.incarnation), it, &mut self.decisions);
        }
        if let (Member::Node(node), MemberReport::Node(report)) = (from, &report.state) {
            self.watches.note(now, report);
            if peer.standing == Standing::Accepted {
                self.verifying.note(now, report);
            }
            self.plans.note_caught_up(&self.state.map, node, report);
            let ours = peer.standing == Standing::Accepted;
            let news = ours && self.plans.leftovers.note_report(node, report);
            if news || !peer.report.as_ref().is_some_and(|last| says_the_same(last, report)) {
                self.plans.disturb();
            }
        }
        peer.report = Some(report);
        self.act();
    }

    fn note_silence(&mut self, from: Member) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        (peer.in_flight, peer.asked, peer.given) = (None, None, None);
        let before = std::mem::replace(&mut peer.contact, Contact::Silent);
        if before != Contact::Silent {
            self.decisions.note_seen(
                self.now,
                format!("{from} does not answer"),
                "ask again",
                true,
            );
        }
    }

    /// Does what has become possible, and lets everybody know what has been decided.
    fn act(&mut self) {
        self.meet();
        if self.is_durable() {
            self.step();
        }
        self.look_at_hot_keys();
        self.help_the_late();
    }
}

/// Whether the last report said the same of what chains wait for.
fn says_the_same(last: &Report, report: &NodeReport) -> bool {
    let MemberReport::Node(last) = &last.state else { return false };
    (&last.settled, &last.caught_up) == (&report.settled, &report.caught_up)
}
