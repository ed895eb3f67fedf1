//! The world itself: who is there, who is up, and what happens next.

use crate::actor::{Actor, ORDERED_KEYS, PATIENCE};
use crate::disk::Disk;
use crate::history::History;
use crate::net::{Event, Net, Role};
use crate::options::Options;
use cluster::{
    Keyspace, KeyspaceKind, Member, NodeId, NodeReport, NodeSpec, Order, Report, StoreId,
    SwitchControl,
};
use controller::{Controller, ControllerConfig, KeyspaceSpec, Saved};
use machine::{Instant, Outbox, Rng};
use node::{Node, NodeConfig};
use std::sync::Arc;
use std::time::Duration;
use switch::Pipeline;
use wire::{Endpoint, HEADER_LEN};

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Every broken promise, in words; empty if all were kept.
    pub violations: Vec<String>,
    /// A hash over every event and its time: equal for equal options.
    pub fingerprint: u64,
    /// How much happened.
    pub stats: Stats,
}

/// How much happened in a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Events taken from the queue.
    pub events: u64,
    /// Requests that ended done.
    pub done: usize,
    /// Requests whose outcome stayed unknown.
    pub unknown: usize,
    /// Operations on single keys that the checker looked at.
    pub operations: usize,
    /// Crashes of any role.
    pub crashes: u64,
    /// Virtual time that passed.
    pub elapsed: Duration,
}

/// Runs one world to its end: faults first, then a healed network on which everything must end.
#[must_use]
pub fn run(options: &Options) -> Outcome {
    let mut world = World::new(options);
    world.run_until(|world| world.keyspaces.is_some());
    world.run_until(|world| world.actors.iter().all(Actor::is_idle));
    world.heal();
    world.run_until(|world| world.actors.iter().all(Actor::is_idle));
    for actor in &world.actors {
        if actor.waiting() > 0 {
            let left = actor.waiting();
            world.history.violation(format!("{left} requests never ended"));
        }
    }
    world.run_until(World::is_quiet);
    world.check_replicas();
    let stats = Stats {
        done: world.actors.iter().map(|actor| actor.done).sum(),
        unknown: world.actors.iter().map(|actor| actor.unknown).sum(),
        operations: world.history.len(),
        elapsed: world.now.since(START),
        ..world.stats
    };
    let violations = world.history.check(options.clock_skew_max_ms);
    Outcome { violations, fingerprint: world.net.fingerprint, stats }
}

struct World {
    now: Instant,
    options: Options,
    rng: Rng,
    net: Net,
    switch: Option<Pipeline>,
    outbox: Outbox,
    shards: Vec<Shard>,
    specs: Vec<NodeSpec>,
    controller: Option<Controller>,
    saved: Option<Saved>,
    actors: Vec<Actor>,
    /// The hash keyspace and the range keyspace, once they exist.
    keyspaces: Option<[Arc<Keyspace>; 2]>,
    history: History,
    healed: bool,
    stats: Stats,
}

/// One shard of a node, up or down.
struct Shard {
    node: NodeId,
    index: u16,
    endpoint: Endpoint,
    machine: Option<Node<Disk>>,
    /// What a crashed one comes back with.
    disk: Option<Disk>,
    flush_scheduled: bool,
}

impl World {
    fn new(options: &Options) -> Self {
        let specs: Vec<NodeSpec> = (0..options.nodes)
            .map(|id| NodeSpec {
                id: NodeId(id),
                endpoint: endpoint(2_000 + id * 8),
                shards: options.shards,
            })
            .collect();
        let shards = specs.iter().flat_map(|spec| {
            (0..spec.shards).map(|index| Shard {
                node: spec.id,
                index,
                endpoint: spec.endpoint.with_port_offset(index).expect("few shards"),
                machine: None,
                disk: Some(Disk::new(StoreId(u64::from(spec.id.0) + 1))),
                flush_scheduled: false,
            })
        });
        let actors = (0u16..).take(options.clients).map(|index| {
            Actor::new(options, index.into(), endpoint(SERVICE), endpoint(3_000 + index))
        });
        let mut world = Self {
            now: START,
            rng: Rng::new(options.seed).fork("world"),
            net: Net::new(options),
            switch: None,
            outbox: Outbox::default(),
            shards: shards.collect(),
            specs,
            controller: None,
            saved: None,
            actors: actors.collect(),
            keyspaces: None,
            history: History::default(),
            healed: false,
            stats: Stats::default(),
            options: options.clone(),
        };
        world.restart(Role::Switch);
        world.restart(Role::Controller);
        for node in 0..options.nodes {
            world.restart(Role::Node(node));
        }
        world.schedule_crash();
        world
    }

    /// Lets the world go on until `done` or until patience ends.
    fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        let deadline = self.now + PATIENCE;
        loop {
            self.drain();
            if done(self) || self.now > deadline {
                return;
            }
            let event_at = self.net.next_at();
            let Some(next) = self.next_timeout().into_iter().chain(event_at).min() else { return };
            assert!(next >= self.now || event_at != Some(next), "time goes forward");
            self.now = self.now.max(next);
            if event_at.is_some_and(|at| at <= self.now) {
                if let Some(event) = self.net.pop() {
                    self.stats.events += 1;
                    self.happen(event);
                }
            } else {
                self.time_passes();
            }
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        let nodes = self.shards.iter().filter_map(|s| s.machine.as_ref()?.poll_timeout());
        let actors = self.actors.iter().filter_map(|actor| actor.machine.poll_timeout());
        let controller = self.controller.as_ref().and_then(Controller::poll_timeout);
        nodes.chain(actors).chain(controller).min()
    }

    fn time_passes(&mut self) {
        let now = self.now;
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        for index in 0..self.shards.len() {
            let Some(machine) = self.machine(index).filter(|m| due(m.poll_timeout())) else {
                continue;
            };
            machine.handle_timeout(now);
            self.settle(index);
        }
        for actor in self.actors.iter_mut().filter(|a| due(a.machine.poll_timeout())) {
            actor.machine.handle_timeout(now);
        }
        if let Some(controller) = self.controller.as_mut().filter(|c| due(c.poll_timeout())) {
            controller.handle_timeout(now);
        }
    }

    fn machine(&mut self, index: usize) -> Option<&mut Node<Disk>> {
        self.shards.get_mut(index)?.machine.as_mut()
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Datagram { from, to, bytes } => self.deliver(from, to, bytes),
            Event::Order { to, order } => self.obey(to, &order),
            Event::Report { from, report } => self.hear(from, report),
            Event::Flush { shard } => self.flush(shard),
            Event::Crash => {
                self.crash();
                self.schedule_crash();
            }
            Event::Restart(role) => self.restart(role),
        }
    }

    fn deliver(&mut self, from: Endpoint, to: Endpoint, mut bytes: Vec<u8>) {
        let now = self.now;
        if to == endpoint(SERVICE) {
            let Some(switch) = &mut self.switch else { return };
            // What it drops it counts; the world looks at what the clients see.
            let _ = switch.process(from, &mut bytes, &mut self.outbox);
            while let Some(datagram) = self.outbox.pop() {
                self.net.send(now, to, datagram.to, datagram.payload);
            }
        } else if let Some(actor) = self.actors.iter_mut().find(|actor| actor.endpoint == to) {
            actor.machine.handle_packet(now, from, &bytes);
        } else if let Some(index) = self.shards.iter().position(|shard| shard.endpoint == to) {
            if let Some(machine) = self.machine(index) {
                machine.handle_packet(now, from, 0, &bytes);
                self.settle(index);
            }
        } else {
            let header = bytes.first_chunk::<HEADER_LEN>().is_some();
            self.history.violation(format!("sent to nobody: {to}, whole header: {header}"));
        }
    }

    /// After a node has handled something: its answers wait for the next sync.
    fn settle(&mut self, index: usize) {
        let most = u64::try_from(self.options.sync_delay_max.as_nanos()).expect("short");
        if most == 0 {
            self.flush(index);
            return;
        }
        let delay = Duration::from_nanos(self.rng.below(most));
        let Some(shard) = self.shards.get_mut(index) else { return };
        if !std::mem::replace(&mut shard.flush_scheduled, true) {
            self.net.schedule(self.now + delay, Event::Flush { shard: index });
        }
    }

    fn flush(&mut self, index: usize) {
        let Some(shard) = self.shards.get_mut(index) else { return };
        shard.flush_scheduled = false;
        let Some(machine) = &mut shard.machine else { return };
        machine.flush().expect("simulated disks do not fail");
        while let Some(datagram) = machine.poll_transmit() {
            self.net.send(self.now, shard.endpoint, datagram.to, datagram.payload);
        }
    }

    fn obey(&mut self, to: Member, order: &Order) {
        let report = if self.net.loses() { None } else { self.carry_out(to, order) };
        let wait = if report.is_some() { self.net.delay() } else { Duration::from_millis(50) };
        self.net.schedule(self.now + wait, Event::Report { from: to, report });
    }

    fn carry_out(&mut self, to: Member, order: &Order) -> Option<Report> {
        match to {
            Member::Switch(_) => {
                let switch = self.switch.as_mut()?;
                if let Order::Tables(tables) = order {
                    switch.install(tables).expect("tables of a sound map");
                }
                Some(Report::Switch(switch.counters()))
            }
            Member::Node(id) => {
                let now = self.now;
                let mine = (0..self.shards.len())
                    .filter(|i| self.shards.get(*i).is_some_and(|s| s.node == id));
                let mine: Vec<usize> = mine.collect();
                if let Order::Assign(assignment) = order {
                    for index in &mine {
                        self.machine(*index)?.install(now, assignment);
                        self.settle(*index);
                    }
                }
                let mut reports = Vec::new();
                for index in &mine {
                    reports.push(self.machine(*index)?.report());
                }
                merge_reports(&reports).map(Report::Node)
            }
        }
    }

    fn hear(&mut self, from: Member, report: Option<Report>) {
        let Some(controller) = &mut self.controller else { return };
        match report {
            Some(report) => controller.handle_report(self.now, from, report),
            None => controller.handle_silence(self.now, from),
        }
        if self.keyspaces.is_none() {
            self.create_keyspaces();
        }
    }

    /// Creates both keyspaces as soon as the controller knows its nodes, and shows them to the
    /// clients once they are durable.
    fn create_keyspaces(&mut self) {
        let Some(controller) = &mut self.controller else { return };
        let Options { partitions, replicas, .. } = self.options;
        let splits = (1..u64::from(partitions))
            .map(|n| format!("k{}", n * ORDERED_KEYS / u64::from(partitions)).into_bytes());
        let prefix = Vec::new();
        let kinds = [
            ("hashed", KeyspaceKind::Hash, Vec::new()),
            ("ordered", KeyspaceKind::Range { prefix }, splits.collect()),
        ];
        for (name, kind, splits) in kinds {
            if controller.map().keyspace(name).is_none() {
                let name = name.to_owned();
                let spec = KeyspaceSpec { name, kind, partitions, replicas, splits };
                if controller.create_keyspace(self.now, spec).is_err() {
                    return; // A node has not been heard of yet.
                }
            }
        }
        self.save();
        let Some(controller) = &self.controller else { return };
        let keyspace = |name| controller.map().keyspace(name).cloned().map(Arc::new);
        self.keyspaces = keyspace("hashed").zip(keyspace("ordered")).map(<[_; 2]>::from);
    }

    fn save(&mut self) {
        let Some(controller) = &mut self.controller else { return };
        while let Some(saved) = controller.poll_save() {
            let revision = saved.map.revision;
            self.saved = Some(saved);
            controller.handle_saved(self.now, revision);
        }
    }

    /// Sends what the machines want sent.
    fn drain(&mut self) {
        self.save();
        if let Some(controller) = &mut self.controller {
            while let Some((to, order)) = controller.poll_order() {
                let delay = self.net.delay();
                self.net.schedule(self.now + delay, Event::Order { to, order });
            }
        }
        let Some(keyspaces) = &self.keyspaces else { return };
        for actor in &mut self.actors {
            actor.advance(self.now, keyspaces, &mut self.history);
            while let Some(datagram) = actor.machine.poll_transmit() {
                self.net.send(self.now, actor.endpoint, datagram.to, datagram.payload);
            }
        }
    }

    fn schedule_crash(&mut self) {
        let mean = u64::try_from(self.options.crash_every.as_nanos()).expect("short");
        if mean > 0 && !self.healed {
            let wait = Duration::from_nanos(mean / 2 + self.rng.below(mean));
            self.net.schedule(self.now + wait, Event::Crash);
        }
    }

    fn crash(&mut self) {
        if self.healed {
            return;
        }
        let role = match self.rng.below(10) {
            0..2 => Role::Switch,
            2..4 => Role::Controller,
            _ => {
                let node = self.rng.below(u64::from(self.options.nodes));
                Role::Node(u16::try_from(node).expect("below a 16-bit number"))
            }
        };
        match role {
            Role::Switch => self.switch = None,
            Role::Controller => self.controller = None,
            Role::Node(node) => {
                for shard in self.shards.iter_mut().filter(|s| s.node == NodeId(node)) {
                    let Some(machine) = shard.machine.take() else { continue };
                    let mut disk = machine.into_engine();
                    disk.crash();
                    shard.disk = Some(disk);
                }
            }
        }
        self.stats.crashes += 1;
        let wait = Duration::from_micros(100 + self.rng.below(400_000));
        self.net.schedule(self.now + wait, Event::Restart(role));
    }

    fn restart(&mut self, role: Role) {
        match role {
            Role::Switch if self.switch.is_none() => self.switch = Some(Pipeline::new()),
            Role::Controller if self.controller.is_none() => {
                let config = ControllerConfig {
                    seed: self.options.seed,
                    switches: vec![endpoint(SERVICE)],
                    nodes: self.specs.clone(),
                    clock_skew_max_ms: self.options.clock_skew_max_ms,
                    poll_interval: Duration::from_millis(100),
                };
                let controller = Controller::new(config, self.saved.clone(), self.now);
                self.controller = Some(controller.expect("a sound configuration"));
            }
            Role::Node(node) => {
                for shard in self.shards.iter_mut().filter(|s| s.node == NodeId(node)) {
                    let Some(disk) = shard.disk.take() else { continue };
                    let config = NodeConfig { shard: shard.index, shards: self.options.shards };
                    let mut machine = Node::new(config, disk, self.now);
                    if let Some(plant) = self.options.plant {
                        machine.plant(plant);
                    }
                    shard.machine = Some(machine);
                }
            }
            Role::Switch | Role::Controller => {}
        }
    }

    /// Ends all faults and asks every client for some more requests.
    fn heal(&mut self) {
        self.healed = true;
        self.net.heal();
        self.restart(Role::Switch);
        self.restart(Role::Controller);
        for node in 0..self.options.nodes {
            self.restart(Role::Node(node));
        }
        self.run_until(World::is_ready);
        for actor in &mut self.actors {
            actor.heal(HEALED_REQUESTS);
        }
    }

    /// Whether everybody has installed the newest map.
    fn is_ready(&self) -> bool {
        let Some(controller) = &self.controller else { return false };
        let revision = controller.map().revision;
        let switch = self.switch.as_ref().is_some_and(|s| s.revision() == revision);
        let node = |s: &Shard| s.machine.as_ref().is_some_and(|m| m.report().revision == revision);
        switch && self.shards.iter().all(node)
    }

    fn is_quiet(&self) -> bool {
        self.shards.iter().all(|s| s.machine.as_ref().is_some_and(|m| m.pending() == 0))
    }

    /// Once all is quiet, every member of a chain holds the same values.
    fn check_replicas(&mut self) {
        if !self.is_quiet() {
            self.history.violation("writes stay pending on a healed network".into());
        }
        let Some(controller) = &self.controller else { return };
        for partition in &controller.map().partitions {
            let values = |node: NodeId| {
                let shard = partition.id.0 % u32::from(self.options.shards);
                let mut shards = self.shards.iter();
                let found = shards.find(|s| s.node == node && u32::from(s.index) == shard)?;
                let disk = found.machine.as_ref()?.engine();
                let mine = disk.values().filter(|((keyspace, at, _), ..)| {
                    *keyspace == partition.keyspace && partition.holds(cluster::Match(*at))
                });
                Some(
                    mine.map(|(k, version, v)| (k.clone(), version, v.to_vec()))
                        .collect::<Vec<_>>(),
                )
            };
            let copies: Vec<_> = partition.chain.iter().map(|node| values(*node)).collect();
            if copies.windows(2).any(|pair| pair.first() != pair.last()) {
                self.history.violation(format!("replicas of {} differ: {copies:?}", partition.id));
            }
        }
    }
}

fn merge_reports(reports: &[NodeReport]) -> Option<NodeReport> {
    Some(NodeReport {
        revision: reports.iter().map(|r| r.revision).min()?,
        store: reports.first()?.store,
        requests: reports.iter().map(|r| r.requests).sum(),
        pending: reports.iter().map(|r| r.pending).sum(),
    })
}

fn endpoint(port: u16) -> Endpoint {
    Endpoint { addr: [10; 16], port }
}

const SERVICE: u16 = 1_000;
/// Not zero, so that nothing works by accident only at the beginning of time.
const START: Instant = Instant::from_unix_ms(1_000_000);
/// Requests of each client on the healed network.
const HEALED_REQUESTS: usize = 10;
