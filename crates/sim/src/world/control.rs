//! The control plane of the world: orders out, reports back, the map in a store that survives.
//!
//! Each controller has a courier for each member, as its driver has: one order is on its way at a
//! time, one more may wait, and each is answered once, by a report or by silence. The order itself
//! may reach its member late, twice, or after its controller is gone.

use super::faults::{Harm, Relief};
use super::process::{Parcel, Process, ProcessState};
use super::{Unit, World};
use crate::actor::ORDERED_KEYS;
use crate::options::Options;
use crate::queue::Event;
use crate::role::Role;
use cluster::{
    Epoch, HotPolicy, Incarnation, Install, KeyspaceKind, Lease, Member, MemberReport, Mutant,
    NodeId, Order, PartitionId, Report, SwitchControl, SwitchCounters, Term, Unheeded, Versions,
};
use controller::{HotAction, HotNews, KeyspaceSpec, Saved};
use machine::Instant;
use node::ALERT_REST;
use node::engine::Engine as _;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use wire::Revision;

/// An order on its way to a member.
#[derive(Clone, Debug)]
pub(crate) struct Mandate {
    controller: u16,
    incarnation: Incarnation,
    number: u64,
    pub(super) to: Member,
    /// When it was given, by the world's time.
    given: Instant,
    /// The revision of its controller's map at that time.
    pub(super) map: Revision,
    pub(super) order: Arc<Order>,
}

/// What became of an order, on its way to the controller that gave it.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    controller: u16,
    incarnation: Incarnation,
    number: u64,
    from: Member,
    reply: Reply,
}

/// What a member says to an order.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Report(Box<Report>),
    /// It obeys a leader of this term.
    Deposed(Term),
    /// It refuses, could not be reached, or took too long.
    Nothing,
}

/// A node's wish to be asked for its report, on its way to a controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alert {
    controller: u16,
    node: NodeId,
}

/// Who carries a controller's orders to one member.
#[derive(Debug, Default)]
pub(super) struct Courier {
    /// The order on its way.
    busy: Option<u64>,
    /// The one to go next.
    next: Option<Order>,
}

impl World {
    pub(super) fn pump_controller(&mut self, index: usize) {
        self.count_delegations(index);
        self.look_at_placement(index);
        if self.keyspaces.is_none() {
            self.create_keyspaces(index);
        }
        if !self.save(index) || !self.may_order(index) {
            return;
        }
        let role = self.role_of_unit(Unit::Master(index));
        // With one of the orders in its hands it may be stopped.
        while self.process(role).state != ProcessState::Paused {
            let Some(master) = self.controllers.get_mut(index) else { return };
            let Some((to, order)) = master.machine.as_mut().and_then(|it| it.poll_order()) else {
                return;
            };
            self.check_leads(index);
            if let Some(hot) = &order.hot {
                let unnoticed = self.saved.as_ref().map(|saved| self.forgetful(saved));
                self.delegations.order(hot, &unnoticed.unwrap_or_default());
            }
            let Some(master) = self.controllers.get_mut(index) else { return };
            let courier = master.couriers.entry(to).or_default();
            if courier.busy.is_none() {
                self.send_order(index, to, order);
            } else if courier.next.is_none() {
                courier.next = Some(order);
            } else {
                self.hear_silence(index, to);
            }
        }
    }

    /// Counts the delegations that a controller has begun and ended since the last look.
    fn count_delegations(&mut self, index: usize) {
        let Some(master) = self.controllers.get_mut(index) else { return };
        let Some(controller) = &mut master.machine else { return };
        let news = std::iter::from_fn(|| controller.poll_hot_news());
        let decided = news.filter_map(|news| match news {
            HotNews::Decided(it) => {
                let key = String::from_utf8_lossy(&it.name.key).into_owned();
                Some((it.did, format!("{key}: {}", it.why)))
            }
            HotNews::CameOf(_) => None,
        });
        for (did, text) in decided.collect::<Vec<_>>() {
            match did {
                HotAction::DelegationBegun => {
                    self.stats.delegations_begun += 1;
                    self.note(format_args!("a delegation begins: {text}"));
                }
                HotAction::DelegationEnded => {
                    self.stats.delegations_ended += 1;
                    self.note(format_args!("a delegation ends: {text}"));
                }
                HotAction::Added
                | HotAction::Readers
                | HotAction::Removed
                | HotAction::Pinned
                | HotAction::Unpinned => {}
            }
        }
    }

    /// Makes what the controller decided durable. A controller that may crash does so now and then
    /// while it saves; the store then holds the one state or the other. Says whether it lives on.
    fn save(&mut self, index: usize) -> bool {
        if self.options.shared_store {
            return self.save_in_store(index);
        }
        let role = self.role_of_unit(Unit::Master(index));
        loop {
            let local = self.local(role);
            let Some(master) = self.controllers.get_mut(index) else { return false };
            let Some(machine) = &mut master.machine else { return false };
            let Some(saved) = machine.poll_save() else { return true };
            let fragile = !self.options.faults.controller_every.is_zero() && !self.healed;
            let crashes = fragile && self.keyspaces.is_some() && self.rng.chance(1, 30);
            let revision = saved.map.revision;
            let reaches = !crashes || self.rng.chance(1, 2);
            if !crashes {
                machine.handle_saved(local, revision);
                // It has decided what comes next, by the map as it is now.
                self.look_at_placement(index);
            }
            if reaches {
                self.replace_saved(saved);
            }
            if crashes {
                self.crash(role, Harm::None);
                return false;
            }
        }
    }

    /// The store holds this from now on.
    pub(super) fn replace_saved(&mut self, saved: Saved) {
        self.note_changes(&saved);
        self.tell_clients(&saved.map);
        self.old_maps.extend(self.saved.replace(saved));
        if self.old_maps.len() > OLD_MAPS_MAX {
            self.old_maps.pop_front();
        }
    }

    /// Writes down which chains a saved map changes.
    pub(super) fn note_changes(&mut self, saved: &Saved) {
        let before = self.saved.iter().flat_map(|it| &it.map.partitions);
        let before: BTreeSet<(PartitionId, Epoch)> = before.map(|it| (it.id, it.epoch)).collect();
        for it in saved.map.partitions.iter().filter(|it| !before.contains(&(it.id, it.epoch))) {
            let join = |nodes: &[NodeId]| {
                nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" > ")
            };
            let learner = it.learner().map(|id| format!(" + {id}")).unwrap_or_default();
            let open = if it.open { "open" } else { "closed" };
            let (id, epoch, chain) = (it.id, it.epoch, join(it.members()));
            self.note(format_args!("partition {id} epoch {epoch} {open}: {chain}{learner}"));
        }
    }

    /// Sends an order whose courier is free.
    fn send_order(&mut self, index: usize, to: Member, order: Order) {
        let role = self.role_of_unit(Unit::Master(index));
        let incarnation = self.process(role).incarnation;
        let Some(master) = self.controllers.get_mut(index) else { return };
        master.orders += 1;
        let number = master.orders;
        master.couriers.entry(to).or_default().busy = Some(number);
        let controller = u16::try_from(index).expect("few controllers");
        let lost = Answer { controller, incarnation, number, from: to, reply: Reply::Nothing };
        self.queue.schedule(self.now + PATIENCE, Event::Answer(lost));
        let map = master.machine.as_ref().map_or(Revision::NONE, |it| it.map().revision);
        let (given, order) = (self.now, Arc::new(order));
        let mandate = Mandate { controller, incarnation, number, to, given, map, order };
        if std::mem::take(&mut master.stops) {
            self.stop_with(role, mandate);
            let until = self.now + self.length();
            let relief = Relief::GoOn(role, incarnation.0);
            return self.queue.schedule(until, Event::Relief(relief));
        }
        self.carry_order(&mandate);
    }

    pub(super) fn carry_order(&mut self, mandate: &Mandate) {
        let from = Role::Controller(mandate.controller);
        for at in self.net.carry_stream(self.now, from, mandate.to.into()).into_iter().flatten() {
            self.queue.schedule(at, Event::Order(mandate.clone()));
        }
        self.keep(mandate);
    }

    pub(super) fn order_arrives(&mut self, mandate: Mandate) {
        self.arrive(mandate.to.into(), Parcel::Order(mandate));
    }

    /// A member obeys an order, or refuses it.
    pub(super) fn take_order(&mut self, role: Role, mandate: Mandate) {
        let local = self.local(role);
        let process = self.process_mut(role);
        let (order, incarnation) = (Order::clone(&mandate.order), process.incarnation);
        // There is one cluster.
        match process.superior.heed(local.unix_ms(), None, incarnation, order) {
            Ok(order) => {
                self.check_obedience(role, &order);
                self.guard.iter_mut().for_each(|guard| guard.tell(role, mandate.given));
                self.carry_out(role, local, (&mandate, &order));
            }
            Err(Unheeded::Deposed { newest, .. }) => {
                self.stats.unheeded += 1;
                self.answer(role, &mandate, Reply::Deposed(newest));
            }
            Err(Unheeded::FromAfar(_)) => self.answer(role, &mandate, Reply::Nothing),
        }
    }

    fn carry_out(&mut self, role: Role, local: Instant, (mandate, order): (&Mandate, &Order)) {
        let Order { install, clock, lease, direct, hot, verify, may_end, .. } = order;
        let leaving = self.process(role).leaving;
        self.note_may_end(role, *may_end);
        match role {
            Role::Switch(index) => {
                let switch = self.switches.get_mut(usize::from(index));
                let Some(switch) = switch else { return };
                let served = switch.serves();
                let Some(pipeline) = &mut switch.pipeline else { return };
                if let Some(Install::Tables(tables)) = install {
                    pipeline.install(tables).expect("tables of a sound map");
                    if pipeline.revision() == tables.revision {
                        switch.installed = Some(tables.clone());
                        if let Some(routes) = self.net.routes().filter(|_| tables.active) {
                            routes.learn(self.now, tables);
                        }
                    }
                }
                if let Some(lease) = lease {
                    // Switch and node guard each other: both must break the rule to do harm.
                    let ignores = self.options.mutant == Some(Mutant::IgnoreLease);
                    let duration_ms = if ignores { u64::MAX } else { lease.duration_ms };
                    pipeline.renew(local, &Lease { duration_ms, ..*lease });
                }
                if let Some(hot) = hot {
                    pipeline.install_hot(hot).expect("few keys");
                }
                let counters = SwitchCounters { leaving, ..pipeline.counters() };
                let report = self.report(role, MemberReport::Switch(counters));
                self.answer(role, mandate, Reply::Report(Box::new(report)));
                self.look_at_switch(index, served, mandate);
            }
            Role::Node(node) => {
                for index in self.shards_of(node) {
                    let Some(shard) = self.shards.get_mut(index) else { return };
                    let Some(machine) = &mut shard.machine else { return };
                    // The driver's check: an assignment for another memory is not for this one.
                    if let Some(Install::Assignment(assignment)) = install
                        && machine.engine().store_id() == assignment.store
                    {
                        machine.install(local, assignment);
                    }
                    if let Some(clock) = clock {
                        machine.set_clock(clock);
                    }
                    if let Some(lease) = lease {
                        machine.renew(lease);
                    }
                    if let Some(lease) = direct {
                        machine.renew_direct(lease);
                    }
                    if let Some(hot) = hot {
                        machine.install_hot(local, Arc::clone(hot));
                    }
                    if let Some(order) = verify {
                        machine.install_verify(local, order);
                    }
                }
                for index in self.shards_of(node) {
                    self.pump(Unit::Shard(index));
                }
                self.wait_for_turns(node, mandate);
            }
            Role::Cache(index) => self.order_cache(index, local, (mandate, order)),
            Role::Client(_) | Role::Controller(_) | Role::Store => {}
        }
    }

    /// Nobody obeys a leader that it knows to be deposed, nor an order for another than itself.
    fn check_obedience(&mut self, role: Role, order: &Order) {
        let process = self.process_mut(role);
        let (before, mine) = (process.obeyed, process.incarnation);
        let term = order.leader.map_or(before, |leader| leader.term);
        process.obeyed = before.max(term);
        if term < before {
            let text = format!("{role} obeys a leader of term {term} after one of term {before}");
            self.history.violation(text);
        }
        if order.incarnation.is_some_and(|of| of != mine) && order.install.is_some() {
            self.history.violation(format!("{role} installs what is for another incarnation"));
        }
    }

    /// What a member says now.
    pub(super) fn report(&mut self, role: Role, state: MemberReport) -> Report {
        let &Process { incarnation, is_old, .. } = self.process(role);
        let ours = Versions::ours();
        let chain = if is_old { 0 } else { ours.chain };
        let versions = Versions { chain, ..ours };
        Report { incarnation, at: self.local(role), versions, keys: None, state }
    }

    /// Sends back what became of an order.
    pub(super) fn answer(&mut self, from: Role, mandate: &Mandate, reply: Reply) {
        let Mandate { controller, incarnation, number, to, .. } = *mandate;
        let answer = Answer { controller, incarnation, number, from: to, reply };
        let arrivals = self.net.carry_stream(self.now, from, Role::Controller(controller));
        for at in arrivals.into_iter().flatten() {
            self.queue.schedule(at, Event::Answer(answer.clone()));
        }
    }

    pub(super) fn answer_arrives(&mut self, answer: Answer) {
        self.arrive(Role::Controller(answer.controller), Parcel::Answer(answer));
    }

    /// A controller takes the answer to an order, if its courier still waits for that.
    pub(super) fn take_answer(&mut self, answer: Answer) {
        let Answer { controller, incarnation, number, from, reply } = answer;
        let role = Role::Controller(controller);
        if self.process(role).incarnation != incarnation {
            return;
        }
        let (index, local) = (usize::from(controller), self.local(role));
        let Some(master) = self.controllers.get_mut(index) else { return };
        let Some(courier) = master.couriers.get_mut(&from) else { return };
        if courier.busy != Some(number) {
            return;
        }
        courier.busy = None;
        let next = courier.next.take();
        let Some(machine) = &mut master.machine else { return };
        match reply {
            Reply::Report(report) => machine.handle_report(local, from, *report),
            Reply::Deposed(newest) => machine.handle_deposed(local, from, newest),
            Reply::Nothing => machine.handle_silence(local, from),
        }
        if let Some(order) = next {
            self.send_order(index, from, order);
        }
        self.pump(Unit::Master(index));
    }

    /// Sends on that a shard's controller should hear of something at once.
    pub(super) fn alert(&mut self, index: usize) {
        let now = self.now;
        let role = self.role_of_unit(Unit::Shard(index));
        let (Role::Node(node), Some(shard)) = (role, self.shards.get_mut(index)) else { return };
        let Some(machine) = &shard.machine else { return };
        let alerts = machine.alerts();
        if shard.alerts == alerts || now < shard.next_alert {
            return;
        }
        (shard.alerts, shard.next_alert) = (alerts, now + ALERT_REST);
        for controller in (0..).take(self.controllers.len()) {
            let arrivals = self.net.carry_stream(now, role, Role::Controller(controller));
            for at in arrivals.into_iter().flatten() {
                let alert = Alert { controller, node: NodeId(node) };
                self.queue.schedule(at, Event::Alert(alert));
            }
        }
    }

    pub(super) fn alert_arrives(&mut self, alert: Alert) {
        self.arrive(Role::Controller(alert.controller), Parcel::Alert(alert));
    }

    /// A controller takes a node's alert.
    pub(super) fn take_alert(&mut self, Alert { controller, node }: Alert) {
        let (index, local) = (usize::from(controller), self.local(Role::Controller(controller)));
        let master = self.controllers.get_mut(index);
        if let Some(machine) = master.and_then(|master| master.machine.as_mut()) {
            machine.handle_alert(local, node);
            self.pump(Unit::Master(index));
        }
    }

    fn hear_silence(&mut self, index: usize, from: Member) {
        let local = self.local(self.role_of_unit(Unit::Master(index)));
        let master = self.controllers.get_mut(index);
        if let Some(machine) = master.and_then(|master| master.machine.as_mut()) {
            machine.handle_silence(local, from);
        }
        self.look_at_placement(index);
    }

    /// Creates both keyspaces as soon as the controller knows its nodes, and shows them to the
    /// clients once they are durable.
    fn create_keyspaces(&mut self, index: usize) {
        let local = self.local(self.role_of_unit(Unit::Master(index)));
        let Options { partitions, replicas, .. } = self.options;
        let splits = (1..u64::from(partitions))
            .map(|n| format!("k{}", n * ORDERED_KEYS / u64::from(partitions)).into_bytes());
        let prefix = Vec::new();
        let kinds = [
            ("hashed", KeyspaceKind::Hash, Vec::new()),
            ("ordered", KeyspaceKind::Range { prefix }, splits.collect()),
        ];
        for (name, kind, splits) in kinds {
            let master = self.controllers.get_mut(index);
            let Some(controller) = master.and_then(|it| it.machine.as_mut()) else { return };
            if controller.map().keyspace(name).is_none() {
                let name = name.to_owned();
                let hot = match kind {
                    KeyspaceKind::Hash => self.options.hot,
                    KeyspaceKind::Range { .. } => HotPolicy::Replicate,
                };
                let spec = KeyspaceSpec { name, kind, partitions, replicas, splits, hot };
                if controller.create_keyspace(local, spec).is_err() {
                    return; // A node has not been heard of yet.
                }
            }
        }
        if self.save(index) {
            self.show_keyspaces();
        }
    }

    /// Shows the keyspaces to the clients, once both are saved.
    pub(super) fn show_keyspaces(&mut self) {
        let Some(saved) = self.saved.as_ref().filter(|_| self.keyspaces.is_none()) else { return };
        let keyspace = |name| saved.map.keyspace(name).cloned().map(Arc::new);
        self.keyspaces = keyspace("hashed").zip(keyspace("ordered")).map(<[_; 2]>::from);
        if let (Some([one, other]), Some([hashed, _])) = (self.options.load.twins, &self.keyspaces)
        {
            assert_eq!(hashed.keyhash(&one), hashed.keyhash(&other), "they are twins");
        }
        for index in 0..self.actors.len() {
            self.rearm(Unit::Actor(index));
        }
    }
}

/// States of the controller that an old copy of its store may be of.
const OLD_MAPS_MAX: usize = 12;

/// How long a courier waits for the answer to an order, as the real one does.
const PATIENCE: Duration = Duration::from_millis(200);
