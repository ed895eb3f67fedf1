//! How roles start, and how they end.

use super::caches::TRACKER;
use super::delegations::Delegations;
use super::faults::Harm;
use super::hostile::Guard;
use super::kept::Kept;
use super::leaders::Candidate;
use super::process::{Process, ProcessState};
use super::store::Store;
use super::{Master, START, Shard, Switch, World};
use crate::actor::Actor;
use crate::check::History;
use crate::clock::Clock;
use crate::disk::Disk;
use crate::net::Net;
use crate::options::Options;
use crate::outcome::Stats;
use crate::queue::Queue;
use crate::role::{CACHE_SHARDS, Cast, Role, cache_spec, node_spec, service};
use crate::routes::content_routing;
use cluster::{ClusterId, Incarnation, NodeId, Selection, StoreId, Superior, Term};
use controller::{Controller, ControllerConfig, Saved};
use machine::{Instant, Outbox, Rng};
use node::{Node, NodeConfig, PartTimes};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use switch::{Directory, Pipeline};

impl World {
    pub(crate) fn new(options: &Options) -> Self {
        let cast = Cast {
            clients: options.load.clients,
            switches: options.switches,
            nodes: options.nodes_all(),
            controllers: options.controllers,
            caches: options.caches,
            has_store: options.shared_store,
        };
        let mut clocks = Rng::new(options.seed).fork("clocks");
        let mut clock = || {
            let Options { clock_skew_max, clock_rate_max_percent, .. } = *options;
            Clock::draw(&mut clocks, START, clock_skew_max, clock_rate_max_percent)
        };
        let processes: Vec<Process> = cast.roles().map(|_| Process::new(clock())).collect();
        let begin = START + options.lead;
        let actors: Vec<Actor> =
            (0..cast.clients).map(|index| Actor::new(options, index, begin)).collect();
        let shards = (0..cast.nodes).flat_map(|node| shards(options, node)).collect::<Vec<_>>();
        let caches = usize::from(cast.caches * CACHE_SHARDS);
        let units = actors.len() + shards.len() + usize::from(cast.controllers) + caches;
        let mut world = Self {
            now: START,
            options: options.clone(),
            cast,
            rng: Rng::new(options.seed).fork("world"),
            net: Net::new(options, cast),
            queue: Queue::default(),
            guard: options.hostility.map(|it| Box::new(Guard::new(options, &it, cast))),
            processes,
            switches: (0..cast.switches).map(|_| Switch::default()).collect(),
            shards,
            asked: vec![Vec::new(); usize::from(cast.nodes)],
            controllers: (0..cast.controllers).map(|_| Master::default()).collect(),
            kept: Kept::default(),
            caches: (0..caches).map(|_| None).collect(),
            actors,
            wakes: vec![Instant(u64::MAX); units],
            saved: None,
            old_maps: VecDeque::new(),
            newest_map: None,
            aged: BTreeMap::new(),
            leader: 0,
            store: Store::default(),
            keyspaces: None,
            history: History::default(),
            healed: false,
            lacks: BTreeMap::new(),
            altered: super::alter::Altered::default(),
            delegations: Delegations::default(),
            stores: u64::from(cast.nodes),
            outbox: Outbox::default(),
            sent_on: BTreeSet::new(),
            journal: Vec::new(),
            stats: Stats::default(),
            busy: 0,
        };
        for role in cast.roles() {
            world.start(role);
        }
        world.begin_faults();
        world.begin_hostilities();
        world
    }

    /// Starts what is down. Of controllers that share no store, only the one whose turn it is: the
    /// others wait for the lock.
    pub(super) fn start(&mut self, role: Role) {
        if self.process(role).is_up() {
            return;
        }
        let shared = self.options.shared_store;
        let waits = |index| !shared && (index != self.leader || self.has_no_map());
        if matches!(role, Role::Controller(index) if waits(index)) {
            return;
        }
        self.note(format_args!("{role} starts"));
        if self.options.clock_steps {
            self.set_clock(role);
        }
        let incarnation = Incarnation(self.rng.next_u64());
        let mutant = self.options.mutant;
        let is_old = self.options.old_nodes && self.now == START;
        let process = self.process_mut(role);
        (process.state, process.incarnation) = (ProcessState::Up, incarnation);
        (process.superior, process.obeyed) = (Superior::default(), Term::default());
        process.is_old = is_old;
        if let Some(mutant) = mutant {
            process.superior.mutant(mutant);
        }
        self.guard.iter_mut().for_each(|guard| guard.begin(role));
        let local = self.local(role);
        match role {
            Role::Client(index) => {
                // The first incarnation began with the actor.
                if self.now != START
                    && let Some(actor) = self.actors.get_mut(usize::from(index))
                {
                    actor.start_over(self.now, &mut self.history);
                }
            }
            Role::Switch(index) => {
                let remembers = self.options.granted_clients_max;
                let directory = remembers.map_or_else(
                    || Directory::new(incarnation),
                    |clients| Directory::remembering(incarnation, clients),
                );
                let directory = Arc::new(directory);
                let mut pipeline = Pipeline::sharing(incarnation, Arc::clone(&directory));
                if let Some(mutant) = self.options.mutant {
                    pipeline.mutant(mutant);
                }
                if self.options.load.blind {
                    pipeline.choose_blindly();
                }
                if self.options.load.by_hints {
                    pipeline.split_by_hints();
                }
                if let Some(switch) = self.switches.get_mut(usize::from(index)) {
                    *switch = Switch { pipeline: Some(pipeline), directory, ..Switch::default() };
                }
            }
            Role::Node(node) => self.start_node(node, incarnation, local),
            Role::Controller(index) => self.start_controller(index, local),
            Role::Cache(index) => self.start_cache(index, incarnation, local),
            Role::Store => {}
        }
        for unit in self.units_of(role) {
            self.pump(unit);
        }
    }

    /// Somebody has set the clock of a machine whose process was down. Not before the cluster has a
    /// time of its own: of what is said of it, most has to be right.
    fn set_clock(&mut self, role: Role) {
        let told = |shard: &&Shard| {
            shard.machine.as_ref().is_some_and(|machine| machine.clock().is_some())
        };
        let told = self.shards.iter().filter(told).count();
        let most = told * 2 > self.shards.len();
        let known = self.controller().is_some_and(Controller::knows_the_time);
        let may = match role {
            Role::Client(_) | Role::Switch(_) | Role::Cache(_) | Role::Store => true,
            Role::Node(_) => known || most,
            Role::Controller(_) => most,
        };
        if matches!(role, Role::Controller(_)) && !most && self.now != START {
            self.note("nobody knows what time it is");
            self.actors.iter_mut().for_each(Actor::lose_time);
        }
        let hours = [0, 0, 1, -1, 5, -20];
        let hours = self.rng.below(6).try_into().ok().and_then(|at: usize| hours.get(at).copied());
        let hours = hours.filter(|_| may).unwrap_or(0);
        self.process_mut(role).clock.set(hours * 3_600_000);
        if hours != 0 {
            self.note(format_args!("the clock of {role} is {hours} hours ahead"));
        }
    }

    fn start_node(&mut self, node: u16, incarnation: Incarnation, local: Instant) {
        for index in self.shards_of(node) {
            let Some(shard) = self.shards.get_mut(index) else { continue };
            let Some(disk) = shard.disk.take() else { continue };
            let (shards, rate) = (self.options.shards, 0);
            let (index, tracker) = (shard.index, TRACKER);
            let config = NodeConfig { shard: index, shards, incarnation, rate, tracker };
            let mut machine = Node::new(config, disk, local);
            machine.set_part_times(PART_TIMES);
            machine.set_sessions_max(self.options.sessions_max);
            if let Some(mutant) = self.options.mutant {
                machine.mutant(mutant);
            }
            shard.machine = Some(machine);
        }
        self.apply_room(node);
    }

    pub(super) fn controller_config(&self) -> ControllerConfig {
        ControllerConfig {
            seed: self.options.seed,
            switches: (0..self.options.switches).map(service).collect(),
            nodes: (0..self.options.nodes).map(|id| node_spec(id, self.options.shards)).collect(),
            cluster: ClusterId(self.options.seed),
            caches: (0..self.options.caches).map(cache_spec).collect(),
            controls: BTreeMap::new(),
            poll_interval: self.options.poll,
            lease: self.options.lease,
            overlap: Duration::ZERO,
            copy_bytes_per_s: self.options.copy_bytes_per_s,
            hot_selection: Selection::default(),
            content: self.options.content.then(content_routing),
            load_floor: self.options.load_floor,
            split_bytes: self.options.split_bytes,
        }
    }

    fn start_controller(&mut self, index: u16, local: Instant) {
        if !self.options.shared_store {
            return self.lead_alone(index, self.saved.clone(), local);
        }
        if let Some(it) = self.controllers.get_mut(usize::from(index)) {
            *it = Master { candidate: Some(Candidate::new(local)), ..Master::default() };
        }
    }

    /// A controller leads that has a store of its own, which holds this.
    pub(super) fn lead_alone(&mut self, index: u16, saved: Option<Saved>, local: Instant) {
        let controller = Controller::new(self.controller_config(), saved, local);
        let machine = self.mutated(controller.expect("a sound configuration"));
        if let Some(it) = self.controllers.get_mut(usize::from(index)) {
            *it = Master { machine: Some(machine), ..Master::default() };
        }
    }

    /// A controller that breaks the rule that is broken in this world, if any is.
    pub(super) fn mutated(&self, mut controller: Controller) -> Controller {
        if let Some(mutant) = self.options.mutant {
            controller.mutant(mutant);
        }
        controller
    }

    /// Ends a process. A node's disk is harmed if the promise still holds then
    /// ([`budget`](super::budget)).
    pub(super) fn crash(&mut self, role: Role, harm: Harm) {
        self.stats.crashes += 1;
        if self.delegations.any_is_under_way() {
            let [nodes, switches, controllers] = &mut self.stats.crashes_under_delegations;
            match role {
                Role::Client(_) | Role::Cache(_) | Role::Store => {}
                Role::Node(_) => *nodes += 1,
                Role::Switch(_) => *switches += 1,
                Role::Controller(_) => *controllers += 1,
            }
        }
        self.process_mut(role).end();
        self.note(format_args!("{role} crashes"));
        match role {
            Role::Client(_) | Role::Store => {}
            Role::Cache(index) => self.end_cache(index),
            Role::Switch(index) => {
                if let Some(switch) = self.switches.get_mut(usize::from(index)) {
                    *switch = Switch::default();
                }
            }
            Role::Node(node) => {
                let may = harm != Harm::None && self.may_forget(node);
                // One older copy at a time: the others know better.
                let may = may && (matches!(harm, Harm::Lost) || self.aged.is_empty());
                let may = may && self.can_recall_without(node);
                self.crash_node(node, if may { harm } else { Harm::None });
            }
            Role::Controller(index) => {
                self.check_equal(index);
                if let Some(master) = self.controllers.get_mut(usize::from(index)) {
                    *master = Master::default();
                }
                if !self.options.shared_store {
                    // Whoever stands by takes over as soon as the lock is free.
                    self.leader = (index + 1) % self.cast.controllers;
                    let at = self.now + self.length();
                    self.schedule_restart(Role::Controller(self.leader), at);
                }
            }
        }
        for unit in self.units_of(role) {
            self.rearm(unit);
        }
    }

    fn crash_node(&mut self, node: u16, harm: Harm) {
        if let Some(asked) = self.asked.get_mut(usize::from(node)) {
            asked.clear();
        }
        let forgets = harm == Harm::Lost;
        if forgets {
            self.stores += 1;
            self.stats.disks_lost += 1;
            self.delegations.forget(NodeId(node));
            self.note(format_args!("node {node} has lost its disk"));
        }
        let store = StoreId(self.stores);
        // A crash after a sync and before the answers have left leaves everything on the disk.
        let synced = self.rng.chance(1, 2);
        let ages = self.options.faults.aged_percent > 0;
        let keeps_copy = ages && self.rng.chance(1, 2);
        // Now and then only the store of one shard is put back.
        let only = ages && self.rng.chance(1, 4);
        let only = (harm == Harm::Aged && only).then(|| self.shards_of(node).start);
        let syncs = 1 + self.below(8);
        let mut aged = false;
        let now = self.local(Role::Node(node));
        for index in self.shards_of(node) {
            let Some(shard) = self.shards.get_mut(index) else { continue };
            shard.syncing = false;
            let Some(mut machine) = shard.machine.take() else { continue };
            let syncing = machine.is_syncing();
            if synced {
                machine.end_sync(now, Ok(())).expect("simulated disks do not fail");
                machine.flush().expect("simulated disks do not fail");
            }
            let mut disk = machine.into_engine();
            // Or all but that, or all but what is being synced as well.
            disk.crash(synced || syncing && self.rng.chance(1, 2));
            aged |= match harm {
                Harm::Aged if only.is_none_or(|only| only == index) => disk.put_back(),
                Harm::Torn => disk.lose_syncs(syncs.into()),
                Harm::Spent => disk.spend_versions(),
                Harm::None | Harm::Lost | Harm::Aged => false,
            };
            if keeps_copy {
                disk.keep_copy();
            }
            shard.disk = Some(if forgets { new_disk(&self.options, store) } else { disk });
        }
        if aged {
            self.stats.disks_aged += 1;
            self.delegations.forget(NodeId(node));
            let incarnation = self.process(Role::Node(node)).incarnation;
            // By which it is known: the map may not have heard of the last one.
            let saved = self.saved.as_ref();
            let known = saved.and_then(|saved| saved.incarnations.get(&NodeId(node)).copied());
            let incarnations = known.into_iter().chain([incarnation]).collect();
            self.aged.entry(NodeId(node)).or_insert((incarnations, harm));
            self.note(format_args!("the disk of node {node} is {harm:?}"));
        }
    }
}

/// The shards of a node, with empty disks.
fn shards(options: &Options, node: u16) -> Vec<Shard> {
    let spec = node_spec(node, options.shards);
    let shard = |index| Shard {
        index,
        endpoint: spec.endpoint.with_port_offset(index).expect("few shards"),
        machine: None,
        disk: Some(new_disk(options, StoreId(u64::from(node) + 1))),
        syncing: false,
        capacity: None,
        alerts: 0,
        next_alert: Instant(0),
    };
    (0..spec.shards).map(shard).collect()
}

fn new_disk(options: &Options, store: StoreId) -> Disk {
    let mut disk = Disk::new(store);
    if !options.sync_delay_max.is_zero() {
        disk.sync_apart();
    }
    disk
}

/// Short, so that uploads are given up and readers come too late while there are faults.
pub(crate) const PART_TIMES: PartTimes =
    PartTimes { idle: Duration::from_millis(1_000), grace: Duration::from_millis(20) };
