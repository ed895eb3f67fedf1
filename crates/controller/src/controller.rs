//! The controller machine itself: what comes in, what goes out, and when.

mod queries;

use crate::chains::{self, Chains};
use crate::clock::ClusterClock;
use crate::config::{ConfigError, ControllerConfig};
use crate::decisions::Level;
use crate::hot::{self, Hot};
use crate::ledger::Ledger;
use crate::members::{
    Contact, DIRECT_POLL, Granted, Members, Peer, Standing, bound, judge_cache, judge_switch,
};
use crate::orders::{Orders, Sources};
use crate::placement::Placement;
use crate::saved::Saved;
use crate::status::Watches;
use crate::verify::Verifying;
use cluster::{
    Fence, Install, Lease, MaybeMutant, Member, MemberReport, Mutant, NodeId, Order, Report, Term,
};
use machine::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::Revision;

/// Poll intervals after which an order without any answer counts as undelivered. The driver
/// should say so itself much sooner; this keeps a lost answer from ending a member's orders. Less
/// than a lease usually lasts, so that a member that is silent is known to be when it ends.
const PATIENCE_POLLS: u32 = 3;

/// The control plane of one cluster.
#[derive(Clone, Debug)]
pub struct Controller {
    pub(crate) config: ControllerConfig,
    pub(crate) ledger: Ledger,
    pub(crate) members: Members,
    pub(crate) chains: Chains,
    pub(crate) watches: Watches,
    pub(crate) verifying: Verifying,
    pub(crate) hot: Hot,
    pub(crate) placement: Placement,
    pub(crate) clock: ClusterClock,
    orders: Orders,
    /// When it began.
    pub(crate) began: Instant,
    /// The term of a leader after this one, of which a member has told.
    pub(crate) deposed_by: Option<Term>,
    pub(crate) mutant: MaybeMutant,
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
        let placement = Placement::new(config.load_floor, config.split_bytes);
        let (state, changed) = config.begin(saved, now)?;
        let revision = state.map.revision;
        // As long after the present as what a predecessor may still give.
        let granted = Duration::from_millis(state.lease_ms) + config.overlap;
        let peers = peers(&config, &state, now);
        let members = Members::new(peers, Lease::over_by(now, granted));
        let clock = ClusterClock::new(now, config.poll_interval.saturating_mul(PATIENCE_POLLS));
        let mut ledger = Ledger::new(state, if changed { Revision::NONE } else { revision });
        let saw = match (restored, changed) {
            (false, _) => "no saved state",
            (true, true) => "a saved state and a changed configuration",
            (true, false) => "a saved state",
        };
        let changes = if changed { "all of it" } else { "nothing" };
        let did = format!("begin with revision {revision}");
        ledger.decisions.note(now, Level::Usual, saw, did, changes);
        Ok(Self {
            orders: Orders::new(now + config.poll_interval),
            config,
            ledger,
            members,
            chains: Chains::new(revision),
            watches: Watches::default(),
            verifying: Verifying::default(),
            hot: Hot::default(),
            placement,
            clock,
            began: now,
            deposed_by: None,
            mutant: MaybeMutant::default(),
            now,
        })
    }

    /// Breaks a rule on purpose, to know that the simulator would see it. Mutants of other roles
    /// change nothing.
    pub fn mutant(&mut self, mutant: Mutant) {
        self.mutant = MaybeMutant::of(mutant);
    }

    /// The state to make durable, if it has changed since the last call. It replaces whatever was
    /// saved before, as a whole.
    pub fn poll_save(&mut self) -> Option<Saved> {
        if self.deposed_by.is_some() {
            return None;
        }
        self.ledger.poll_save()
    }

    /// The state with this map revision is durable.
    ///
    /// # Panics
    ///
    /// If no state of that revision was handed out.
    pub fn handle_saved(&mut self, now: Instant, revision: Revision) {
        self.awake(now);
        if !self.ledger.note_saved(revision) || !self.ledger.is_durable() {
            return;
        }
        self.members.ask_those_that_return(now);
        self.orders.hold_switches(now, self.config.poll_interval);
        self.chains.disturb();
        self.act();
    }

    /// The next order to deliver, nodes before switches. Each member has one at a time, and nobody
    /// waits for a cache.
    pub fn poll_order(&mut self) -> Option<(Member, Order)> {
        let unsaved = self.mutant.is(Mutant::OrderUnsaved);
        if !self.ledger.has_begun() && !unsaved || self.deposed_by.is_some() {
            return None;
        }
        let now = self.now;
        let is_due = |peer: &Peer| peer.in_flight.is_none() && peer.due <= now;
        // `Member` sorts switches first, then nodes. Those are to install a revision before
        // switches use it.
        let (member, _) = self.members.iter().rev().find(|(_, peer)| is_due(peer))?;
        let install = self.sources().install(member);
        let given = install.as_ref().map(Install::revision);
        assert!(
            given.unwrap_or_default() <= self.ledger.durable() || unsaved,
            "no order leaves before its map is durable"
        );
        let lease = self.lease_for(member, given);
        let direct = lease.as_ref().and_then(|lease| self.direct_lease_for(member, lease));
        let hot = self.sources().hot(member, given).map(Arc::clone);
        let pace = hot::pace(&self.ledger.state, self.config.poll_interval);
        let rules_max = self.sources().rules_max(member);
        let may_end = self.may_end(member);
        let peer = self.members.get_mut(member)?;
        let clock = self.clock.order_for(member, peer);
        let verify = self.verifying.order_for(peer);
        peer.give(now, install.as_ref());
        peer.due = now
            + match member {
                Member::Switch(_) | Member::Cache(_) => peer.pace,
                Member::Node(_) if direct.is_some() => peer.pace.min(pace).min(DIRECT_POLL),
                Member::Node(_) => peer.pace.min(pace),
            };
        if let Some(order) = &hot {
            peer.hot_offered = order.revision;
            if matches!(member, Member::Switch(_)) {
                self.hot.give();
            }
        }
        self.orders.sent += 1;
        let (leader, incarnation) = (Some(self.ledger.leader()), self.ledger.registered(member));
        let version = self.members.common_orders();
        let order = Order {
            leader,
            incarnation,
            install,
            clock,
            lease,
            direct,
            hot,
            verify,
            version,
            rules_max,
            keys: None,
            may_end,
        };
        Some((member, order))
    }

    /// A node says that something should be heard of at once: its report is asked for, when what it
    /// was sent before has been answered. If this gets lost, it is heard of a little later.
    pub fn handle_alert(&mut self, now: Instant, node: NodeId) {
        self.awake(now);
        if let Some(peer) = self.members.get_mut(Member::Node(node)).filter(|it| it.follows()) {
            peer.due = now;
        }
    }

    /// A member answered its order.
    pub fn handle_report(&mut self, now: Instant, from: Member, mut report: Report) {
        self.awake(now);
        let decisions = &mut self.ledger.decisions;
        let Some(peer) = self.members.get_mut(from) else {
            let saw = format!("a report of {from}, which is not configured");
            return decisions.note(now, Level::Trouble, saw, "ignore it", "");
        };
        peer.in_flight = None;
        let incarnation = report.incarnation;
        if peer.is_over(from, &report, &self.ledger.state) {
            return;
        }
        if let Some(why) = report.versions.conflict() {
            self.heard(from, report, Standing::Unfit(why));
            return self.act();
        }
        let standing = match (from, &mut report.state) {
            (Member::Switch(_), MemberReport::Switch(counters)) => {
                counters.partitions.truncate(wire::PARTITIONS_MAX);
                match judge_switch(now, &self.ledger.state, counters) {
                    Standing::Accepted => self.register_switch(from, incarnation),
                    other => other,
                }
            }
            (Member::Node(node), MemberReport::Node(report)) => {
                bound(report);
                let may_hold = peer.may_hold;
                self.standing_of((node, may_hold), incarnation, report)
            }
            (Member::Cache(_), MemberReport::Cache(report)) => {
                judge_cache(now, &self.ledger.state, report)
            }
            (Member::Switch(_) | Member::Node(_) | Member::Cache(_), _) => {
                peer.contact = Contact::Silent;
                let saw = format!("{from} reports in the form of another role");
                let did = "ignore it; check the configured control address";
                return decisions.note(now, Level::Trouble, saw, did, "");
            }
        };
        self.heard(from, report, standing);
        self.act();
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
        for member in self.members.overdue(now, self.patience()) {
            self.note_silence(member);
        }
        self.clock.look(now, &mut self.members, self.mutant);
        self.act();
    }

    /// When [`Self::handle_timeout`] is to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let orders = |peer: &Peer| peer.in_flight.map_or(peer.due, |at| at + self.patience());
        let may_leave = self.ledger.has_begun() && self.deposed_by.is_none();
        let orders = self.members.iter().map(|(_, peer)| orders(peer)).filter(|_| may_leave);
        // Moments at which somebody may turn out to be silent, or nobody may do so any longer.
        let ends = self
            .members
            .iter()
            .flat_map(|(_, it)| [it.granted, it.direct, it.replaced].map(Granted::over_at));
        let ends = ends
            .chain(self.members.iter().map(|(_, it)| it.steady_at))
            .chain(self.members.iter().filter_map(|(_, it)| it.missed_at()))
            .chain(self.members.iter().filter_map(|(_, it)| it.given_up_at(self.config.lease)))
            .chain(self.switches_held_until())
            .chain([self.members.alone_at()])
            .chain(self.hot.due())
            .chain(self.clock.due(self.now))
            .chain(self.absences_due())
            .filter(|at| *at > self.now);
        orders.chain(ends).min()
    }

    fn patience(&self) -> Duration {
        self.config.poll_interval.saturating_mul(PATIENCE_POLLS)
    }

    fn switches_held_until(&self) -> Option<Instant> {
        let map = &self.ledger.state.map;
        // Others wait for what the active switch says of its fences.
        let active = self.members.get(Member::Switch(map.active_switch));
        let knows = |fence: &Fence| active.is_none_or(|it| it.has_installed(fence.since));
        if !map.fences.iter().all(knows) {
            return None;
        }
        self.orders.switches_held_until(self.now, &self.members, map.revision)
    }

    fn sources(&self) -> Sources<'_> {
        Sources {
            ledger: &self.ledger,
            members: &self.members,
            hot: &self.hot,
            switches: &self.config.switches,
            holds_switches: self.switches_held_until().is_some(),
            mutant: self.mutant,
        }
    }

    /// Every call begins here. Whoever has not been called for long (stopped, starved, or busy with
    /// a slow disk) has not asked anybody, so nobody's silence means anything yet.
    pub(crate) fn awake(&mut self, now: Instant) {
        let expected = self.poll_timeout().unwrap_or(now);
        self.now = now;
        if expected + self.config.poll_interval >= now {
            return;
        }
        self.members.excuse(now, self.patience());
        let saw = format!("{} ms in which nothing was done", now.since(expected).as_millis());
        let did = "ask everybody before taking anybody to be silent";
        self.ledger.decisions.note(now, Level::Usual, saw, did, "");
    }

    /// Notes what a member said.
    fn heard(&mut self, from: Member, report: Report, standing: Standing) {
        let (now, patience) = (self.now, self.patience());
        let Ledger { state, decisions, .. } = &mut self.ledger;
        self.clock.hear(now, (from, &report), &mut self.members, decisions, self.mutant);
        self.members.excuse_all_like(now, from, patience);
        let Some(peer) = self.members.get_mut(from) else { return };
        if peer.hear(now, patience, &report, standing) {
            let (saw, did) = peer.standing.clone().explain(from, report.revision());
            decisions.note(now, peer.standing.level(), saw, did, "");
        }
        let accepted = peer.standing == Standing::Accepted;
        if accepted && peer.wants_direct_lease(&report) {
            peer.due = now;
        }
        match (from, &report.state) {
            (Member::Node(node), MemberReport::Node(it)) => {
                self.hot.hear_node(now, (node, report.incarnation), it, &state.pins);
                self.watches.note(now, it);
                if accepted {
                    self.verifying.note(now, it);
                    self.placement.hear_node(now, node, it);
                }
                self.chains.hear(&state.map, (node, it), accepted, peer.report.as_ref());
            }
            (Member::Switch(index), MemberReport::Switch(it)) => {
                if accepted && index == state.map.active_switch {
                    let by = (index, report.incarnation);
                    self.placement.hear_switch(now, by, it, (&state.map, self.hot.order()));
                    if !state.map.handing_over {
                        let serves = (&state.map, report.incarnation);
                        self.hot.hear_switch(now, serves, it, decisions);
                    }
                }
            }
            (Member::Cache(_), MemberReport::Cache(it)) => self.hot.hear_cache(it),
            (Member::Switch(_) | Member::Node(_) | Member::Cache(_), _) => {}
        }
        peer.report = Some(report);
    }

    fn note_silence(&mut self, from: Member) {
        let Some(peer) = self.members.get_mut(from) else { return };
        if peer.fall_silent(self.now) {
            let away = matches!(from, Member::Node(node) if self.ledger.state.is_away(node));
            let (level, saw) = if peer.is_leaving() || away {
                (Level::Usual, format!("{from} has ended, as it was asked to"))
            } else {
                (Level::Trouble, format!("{from} does not answer"))
            };
            self.ledger.decisions.note(self.now, level, saw, "ask again", "");
        }
    }

    /// Does what has become possible, and lets everybody know what has been decided. A member that
    /// is behind is helped at once, unless it was given the present revision already and did not
    /// take it: that waits for its next turn.
    pub(crate) fn act(&mut self) {
        self.members.meet(self.now);
        if self.deposed_by.is_some() {
            return;
        }
        if self.ledger.is_durable() && self.members.may_decide() {
            self.step();
        }
        if !self.ledger.is_durable() {
            return;
        }
        self.look_at_hot_keys();
        if self.members.may_decide() {
            let held = self.switches_held_until().is_some();
            self.members.help_the_late(self.now, self.ledger.revision(), held);
        }
    }

    /// Decides whatever can be decided now. The last decision is durable.
    fn step(&mut self) {
        self.shorten_leases();
        self.look_at_direct();
        self.look_at_switches();
        self.look_at_fences();
        self.look_at_absences();
        let (now, lease, mutant) = (self.now, self.config.lease, self.mutant);
        let (members, hot) = (&self.members, &self.hot);
        let seen = chains::Seen { now, members, hot, lease, mutant };
        self.chains.look_at_load(&mut self.ledger, (seen, &mut self.placement));
        if self.chains.step(&mut self.ledger, (seen, &self.placement)) {
            let map = &self.ledger.state.map;
            self.watches.keep_running(map);
            self.members.forgive_the_unplaced(map);
            self.members.set_paces(self.now, map, self.config.poll_interval);
        }
    }

    /// A shorter lease than a predecessor's counts for successors once the longer ones are over.
    fn shorten_leases(&mut self) {
        let (lease_ms, known) = (self.config.lease_ms(), self.ledger.state.lease_ms);
        if known > lease_ms && self.members.alone_at() <= self.now {
            self.ledger.state.lease_ms = lease_ms;
            let saw = format!("no lease of {known} ms is left");
            self.ledger.advance(self.now, Level::Usual, saw, format!("count on {lease_ms} ms"));
        }
    }

    /// Looks for hot keys, and lets those who have to know of a change have it now.
    fn look_at_hot_keys(&mut self) {
        self.hot.look(&hot::HotInputs {
            now: self.now,
            state: &self.ledger.state,
            members: &self.members,
            selection: self.config.hot_selection,
            mutant: self.mutant,
        });
        for member in self.sources().late_with_hot() {
            if let Some(peer) = self.members.get_mut(member) {
                peer.due = self.now;
            }
        }
    }
}

/// Everybody, with the leases that a predecessor may have given them.
fn peers(config: &ControllerConfig, state: &Saved, now: Instant) -> BTreeMap<Member, Peer> {
    let (pace, lease) = (config.poll_interval, Duration::from_millis(state.lease_ms));
    let peer = || Peer::after(now, pace, (lease, config.overlap));
    let switches = (0..).zip(&config.switches).map(|(index, _)| (Member::Switch(index), peer()));
    let nodes = state.map.nodes.iter().map(|node| {
        let (id, peer) = (node.id, peer());
        // Who is not on record was given none, nor is by who cannot put it there any more.
        let direct = if state.may_be_direct(id) { peer.direct } else { Granted::none(now) };
        let may_hold = state.partitions_of(id) > 0;
        (Member::Node(id), Peer { may_hold, direct, ..peer })
    });
    // A cache has no lease of anybody who gives orders.
    let caches = state
        .map
        .caches
        .iter()
        .map(|cache| (Member::Cache(cache.id), Peer::new(now, pace, Duration::ZERO)));
    switches.chain(nodes).chain(caches).collect()
}
