//! The world itself: who is there, who is up, and what happens next.

mod control;
mod faults;

use crate::actor::{Actor, PATIENCE};
use crate::disk::Disk;
use crate::history::History;
use crate::net::{Event, Net, Role};
use crate::options::Options;
use cluster::{Keyspace, NodeId, NodeSpec, StoreId};
use controller::{Controller, Saved};
use machine::{Instant, Outbox, Rng};
use node::Node;
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
    /// Keys whose histories were too much for the checker's bound of work.
    pub unchecked: usize,
    /// Crashes of any role.
    pub crashes: u64,
    /// Virtual time that passed.
    pub elapsed: Duration,
}

impl Stats {
    /// Both runs together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            events: self.events + other.events,
            done: self.done + other.done,
            unknown: self.unknown + other.unknown,
            operations: self.operations + other.operations,
            unchecked: self.unchecked + other.unchecked,
            crashes: self.crashes + other.crashes,
            elapsed: self.elapsed + other.elapsed,
        }
    }
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
    let (violations, unchecked) = world.history.check(options.clock_skew_max_ms);
    let stats = Stats { unchecked, ..stats };
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
    /// How far its clock is ahead of the world's.
    ahead: Duration,
}

impl Shard {
    /// When its machine wants to be called, in the world's time.
    fn timeout(&self) -> Option<Instant> {
        Some(self.machine.as_ref()?.poll_timeout()? - self.ahead)
    }
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
        let mut rng = Rng::new(options.seed).fork("clocks");
        let mut shards = Vec::new();
        for spec in &specs {
            let ahead = Duration::from_millis(rng.below(options.clock_skew_max_ms + 1));
            shards.extend((0..spec.shards).map(|index| Shard {
                node: spec.id,
                index,
                endpoint: spec.endpoint.with_port_offset(index).expect("few shards"),
                machine: None,
                disk: Some(Disk::new(StoreId(u64::from(spec.id.0) + 1))),
                flush_scheduled: false,
                ahead,
            }));
        }
        let actors = (0u16..).take(options.clients).map(|index| {
            Actor::new(options, index.into(), endpoint(SERVICE), endpoint(3_000 + index))
        });
        let mut world = Self {
            now: START,
            rng: Rng::new(options.seed).fork("world"),
            net: Net::new(options),
            switch: None,
            outbox: Outbox::default(),
            shards,
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
        let nodes = self.shards.iter().filter_map(Shard::timeout);
        let actors = self.actors.iter().filter_map(|actor| actor.machine.poll_timeout());
        let controller = self.controller.as_ref().and_then(Controller::poll_timeout);
        nodes.chain(actors).chain(controller).min()
    }

    fn time_passes(&mut self) {
        let now = self.now;
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        for index in 0..self.shards.len() {
            let shard = self.shards.get_mut(index).filter(|shard| due(shard.timeout()));
            let Some(shard) = shard else { continue };
            let local = now + shard.ahead;
            if let Some(machine) = &mut shard.machine {
                machine.handle_timeout(local);
            }
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
            let Some(shard) = self.shards.get_mut(index) else { return };
            let local = now + shard.ahead;
            let Some(machine) = &mut shard.machine else { return };
            machine.handle_packet(local, from, 0, &bytes);
            self.settle(index);
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

fn endpoint(port: u16) -> Endpoint {
    Endpoint { addr: [10; 16], port }
}

const SERVICE: u16 = 1_000;
/// Not zero, so that nothing works by accident only at the beginning of time.
const START: Instant = Instant::from_unix_ms(1_000_000);
