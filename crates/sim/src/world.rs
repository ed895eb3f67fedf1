//! The world itself: who is there, who is up, and what happens next.
//!
//! All machines run on one queue of events in virtual time. A run has two phases. While there are
//! faults, promises are watched and nothing needs to get anywhere. Then the world heals
//! ([`finish`]), and everything must.

mod alter;
mod budget;
mod caches;
mod control;
mod delegations;
mod durable;
mod faults;
mod finish;
mod hints;
mod hostile;
mod kept;
mod leaders;
mod leaving;
mod lost_map;
mod operator;
mod outage;
mod overhear;
mod placement;
mod process;
mod room;
mod rot;
mod start;
mod store;
mod strangers;
mod traffic;
mod trouble;
mod turning;

pub(crate) use control::{Alert, Answer, Mandate};
pub(crate) use faults::{Fault, Relief};
pub(crate) use hostile::GuardStep;
pub use hostile::{Attack, Attacks};
pub use outage::{Failure, Outages, measure_outages};
pub use overhear::overhear;
pub(crate) use start::PART_TIMES;
pub(crate) use store::{Call, Told};

use crate::actor::{Actor, Keyspaces};
use crate::check::{History, Judgement};
use crate::disk::Disk;
use crate::net::Net;
use crate::options::Options;
use crate::outcome::{Outcome, Stats};
use crate::queue::{Event, Queue};
use crate::role::{CACHE_SHARDS, Cast, Role};
use caches::cache_shards;
use cluster::{Incarnation, Member, NodeId, SwitchTables, Term};
use control::Courier;
use controller::{Controller, Saved};
use faults::Harm;
use machine::{Instant, Outbox, Rng};
use node::Node;
use process::Process;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Display;
use std::panic::catch_unwind;
use std::sync::Arc;
use switch::{Directory, Pipeline};
use wire::{Endpoint, Revision};

/// Runs one world to its end: faults first, then a healed network on which everything must end.
///
/// A machine that panics has broken a promise like any other.
#[must_use]
pub fn run(options: &Options) -> Outcome {
    catch_unwind(|| {
        let mut world = World::new(options);
        let end = world.now + options.lead + options.span;
        world.run_until(end, |_| false);
        world.finish();
        world.outcome()
    })
    .unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let violation = format!("a machine panicked: {}", text.unwrap_or("without a text"));
        let (journal, stats) = (Vec::new(), Stats::default());
        Outcome {
            violations: vec![violation],
            pictures: Vec::new(),
            journal,
            fingerprint: 0,
            stats,
        }
    })
}

pub(crate) struct World {
    now: Instant,
    options: Options,
    cast: Cast,
    rng: Rng,
    net: Net,
    queue: Queue,
    /// Where the network is not to be trusted.
    guard: Option<Box<hostile::Guard>>,
    /// By the cast's order of roles.
    processes: Vec<Process>,
    switches: Vec<Switch>,
    /// All shards of the first node, then those of the second, and so on.
    shards: Vec<Shard>,
    /// Orders that each node has carried out and will answer when that is durable.
    asked: Vec<Vec<durable::Asked>>,
    controllers: Vec<Master>,
    kept: kept::Kept,
    caches: Vec<Option<cache::Cache>>,
    actors: Vec<Actor>,
    /// When which machine wants to be called: see [`Unit`].
    wakes: Vec<Instant>,
    /// The map that the controllers' store holds, whose turn it is, and what else a shared one
    /// holds.
    saved: Option<Saved>,
    /// What it held before, the oldest first.
    old_maps: VecDeque<Saved>,
    /// What it held before it was lost or an older copy was put back, which somebody will notice.
    newest_map: Option<Saved>,
    /// Nodes whose disks were harmed, the incarnations that they were known by, and how; until
    /// their chains have gone on with or without them.
    aged: BTreeMap<NodeId, (Vec<Incarnation>, Harm)>,
    leader: u16,
    store: store::Store,
    /// Both keyspaces, once they exist.
    keyspaces: Option<Keyspaces>,
    history: History,
    healed: bool,
    /// Nodes that have little room.
    lacks: BTreeMap<u16, room::Lack>,
    /// How many replicas keyspaces are to have, as far as they were altered.
    altered: alter::Altered,
    /// Delegations of hot keys that last.
    delegations: delegations::Delegations,
    stores: u64,
    /// Records that have gone wrong by themselves.
    outbox: Outbox,
    /// Writes that a switch has sent on, where their retries are led astray.
    sent_on: BTreeSet<(u64, u64)>,
    journal: Vec<String>,
    stats: Stats,
    /// Events at the present instant, to notice a machine that never comes to rest.
    busy: u32,
}

/// A switch, up or down.
struct Switch {
    pipeline: Option<Pipeline>,
    /// That of the pipeline.
    directory: Arc<Directory>,
    /// What it was last given.
    installed: Option<SwitchTables>,
    /// Revision of the last tables by which it stood by.
    stood_by: Revision,
}

impl Switch {
    /// Whether it was told to serve.
    fn serves(&self) -> bool {
        self.installed.as_ref().is_some_and(|it| it.active)
    }
}

impl Default for Switch {
    fn default() -> Self {
        let directory = Arc::new(Directory::new(Incarnation::default()));
        Self { pipeline: None, directory, installed: None, stood_by: Revision::NONE }
    }
}

/// One shard of a node, up or down.
struct Shard {
    index: u16,
    endpoint: Endpoint,
    machine: Option<Node<Disk>>,
    /// What a crashed one comes back with.
    disk: Option<Disk>,
    /// Whether the end of its sync is to come.
    syncing: bool,
    /// The most that its disk may hold, while that is little.
    capacity: Option<u64>,
    /// Alerts of the machine that were sent on, and when the next may be.
    alerts: u64,
    next_alert: Instant,
}

/// A controller, at work or not.
#[derive(Default)]
struct Master {
    machine: Option<Controller>,
    couriers: BTreeMap<Member, Courier>,
    orders: u64,
    /// How it stands with the store that it shares with others.
    candidate: Option<leaders::Candidate>,
    /// It is about to be stopped, with the next order in its hands.
    stops: bool,
    /// What it has changed because of the load.
    placed: placement::Placed,
}

impl Master {
    /// The newer term that a member has told of.
    fn deposed_by(&self) -> Option<Term> {
        self.machine.as_ref()?.deposed_by()
    }
}

/// Whoever has timers, by the place of its wake time.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Actor(usize),
    Shard(usize),
    Master(usize),
    Cache(usize),
}

impl World {
    /// Lets the world go on until `done`, which this says, or until `end`.
    pub(crate) fn run_until(&mut self, end: Instant, done: impl Fn(&Self) -> bool) -> bool {
        loop {
            if done(self) {
                return true;
            }
            if !self.step(end) {
                self.now = self.now.max(end);
                return false;
            }
        }
    }

    /// Lets the next thing happen, unless that is after `end`.
    fn step(&mut self, end: Instant) -> bool {
        let wakes = self.wakes.iter().copied().enumerate();
        let (place, wake) = wakes.min_by_key(|(_, at)| *at).expect("there are machines");
        let event_at = self.queue.next_at().unwrap_or(Instant(u64::MAX));
        let next = wake.min(event_at);
        if next > end || next == Instant(u64::MAX) {
            return false;
        }
        if next > self.now {
            (self.now, self.busy) = (next, 0);
        }
        self.busy += 1;
        if self.busy >= BUSY_MAX {
            if self.busy == BUSY_MAX {
                let unit = self.unit(place);
                let what = if event_at <= wake { "the queue".into() } else { format!("{unit:?}") };
                self.history.violation(format!("something never comes to rest: {what}"));
            }
            return false;
        }
        if event_at <= wake {
            let event = self.queue.pop().expect("it was seen");
            self.stats.events += 1;
            self.happen(event);
        } else {
            self.time_passes(self.unit(place));
        }
        true
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Datagram { from, to, bytes } => self.datagram_arrives(from, to, bytes),
            Event::Order(mandate) => self.order_arrives(mandate),
            Event::Answer(answer) => self.answer_arrives(answer),
            Event::Alert(alert) => self.alert_arrives(alert),
            Event::Call(call) => self.call_arrives(call),
            Event::Told(told) => self.told_arrives(told),
            Event::Synced { shard } => self.sync_ends(shard),
            Event::Serve { role, incarnation } => self.serve_next(role, incarnation),
            Event::Fault(fault) => self.fault(fault),
            Event::Relief(relief) => self.relieve(relief),
            Event::Guard(step) => self.take_guard_step(step),
        }
    }

    /// Calls a machine whose time has come, or looks when it will.
    fn time_passes(&mut self, unit: Unit) {
        let local = self.local(self.role_of_unit(unit));
        let is_due = self.timeout_of(unit).is_some_and(|at| at <= local);
        match unit {
            Unit::Actor(index) => {
                let actor = self.actors.get_mut(index).filter(|_| is_due);
                if let Some(actor) = actor {
                    actor.machine.handle_timeout(local);
                }
                // It may as well want to start a request.
                return self.pump(unit);
            }
            Unit::Shard(index) => {
                let shard = self.shards.get_mut(index).filter(|_| is_due);
                if let Some(machine) = shard.and_then(|shard| shard.machine.as_mut()) {
                    machine.handle_timeout(local);
                    return self.pump(unit);
                }
            }
            Unit::Cache(index) => {
                let cache = self.caches.get_mut(index).filter(|_| is_due);
                if let Some(cache) = cache.and_then(Option::as_mut) {
                    cache.handle_timeout(local);
                    return self.pump(unit);
                }
            }
            Unit::Master(index) => {
                if is_due {
                    self.ask_the_store(index, local);
                    let master = self.controllers.get_mut(index);
                    if let Some(machine) = master.and_then(|master| master.machine.as_mut()) {
                        machine.handle_timeout(local);
                    }
                    return self.pump(unit);
                }
            }
        }
        self.rearm(unit);
    }

    /// When a machine wants to be called, by its own clock.
    fn timeout_of(&self, unit: Unit) -> Option<Instant> {
        match unit {
            Unit::Actor(index) => self.actors.get(index)?.machine.poll_timeout(),
            Unit::Shard(index) => self.shards.get(index)?.machine.as_ref()?.poll_timeout(),
            Unit::Master(index) => self.timeout_of_controller(index),
            Unit::Cache(index) => self.caches.get(index)?.as_ref()?.poll_timeout(),
        }
    }

    /// Sends what a machine wants sent, and notes when it wants to be called.
    fn pump(&mut self, unit: Unit) {
        match unit {
            Unit::Actor(index) => self.pump_actor(index),
            Unit::Shard(index) => self.settle(index),
            Unit::Master(index) => self.pump_controller(index),
            Unit::Cache(index) => self.pump_cache(index),
        }
        self.rearm(unit);
    }

    /// Notes when a machine wants to be called.
    fn rearm(&mut self, unit: Unit) {
        let timeout = self.timeout_of(unit);
        let role = self.role_of_unit(unit);
        let process = self.process(role);
        let is_free = process.is_free();
        let timed = timeout.filter(|_| is_free).map(|local| process.clock.when(local));
        let wanted = match unit {
            Unit::Actor(index) if is_free && self.keyspaces.is_some() => {
                self.actors.get(index).and_then(Actor::wants_at)
            }
            Unit::Actor(_) | Unit::Shard(_) | Unit::Master(_) | Unit::Cache(_) => None,
        };
        let at = timed.into_iter().chain(wanted).min().unwrap_or(Instant(u64::MAX));
        let place = self.place(unit);
        if let Some(wake) = self.wakes.get_mut(place) {
            *wake = at.max(self.now);
        }
    }

    fn place(&self, unit: Unit) -> usize {
        match unit {
            Unit::Actor(index) => index,
            Unit::Shard(index) => self.actors.len() + index,
            Unit::Master(index) => self.actors.len() + self.shards.len() + index,
            Unit::Cache(index) => self.wakes.len() - self.caches.len() + index,
        }
    }

    fn unit(&self, place: usize) -> Unit {
        let (actors, shards) = (self.actors.len(), self.shards.len());
        let members = self.wakes.len() - self.caches.len();
        if place >= members {
            Unit::Cache(place - members)
        } else if place < actors {
            Unit::Actor(place)
        } else if place < actors + shards {
            Unit::Shard(place - actors)
        } else {
            Unit::Master(place - actors - shards)
        }
    }

    fn role_of_unit(&self, unit: Unit) -> Role {
        let number = |index| u16::try_from(index).expect("few of each");
        match unit {
            Unit::Actor(index) => Role::Client(number(index)),
            Unit::Shard(index) => Role::Node(number(index / usize::from(self.options.shards))),
            Unit::Master(index) => Role::Controller(number(index)),
            Unit::Cache(shard) => Role::Cache(number(shard) / CACHE_SHARDS),
        }
    }

    /// Everything of a role that has timers.
    fn units_of(&self, role: Role) -> Vec<Unit> {
        match role {
            Role::Client(index) => vec![Unit::Actor(index.into())],
            Role::Switch(_) => Vec::new(),
            Role::Node(node) => self.shards_of(node).map(Unit::Shard).collect(),
            Role::Controller(index) => vec![Unit::Master(index.into())],
            Role::Cache(index) => cache_shards(index).map(Unit::Cache).collect(),
            Role::Store => Vec::new(),
        }
    }

    /// The places of a node's shards.
    fn shards_of(&self, node: u16) -> std::ops::Range<usize> {
        let shards = usize::from(self.options.shards);
        let first = usize::from(node) * shards;
        first..first + shards
    }

    /// The present by the clock of a role.
    fn local(&mut self, role: Role) -> Instant {
        let now = self.now;
        self.process_mut(role).clock.read(now)
    }

    fn process(&self, role: Role) -> &Process {
        self.processes.get(self.cast.index(role)).expect("every role has a process")
    }

    fn process_mut(&mut self, role: Role) -> &mut Process {
        self.processes.get_mut(self.cast.index(role)).expect("every role has a process")
    }

    /// The controller at work, if there is one.
    fn controller(&self) -> Option<&Controller> {
        self.controllers.get(usize::from(self.leader))?.machine.as_ref()
    }

    /// Writes down what happens to whom.
    fn note(&mut self, what: impl Display) {
        let ms = self.now.since(START).as_secs_f64() * 1_000.0;
        self.journal.push(format!("{ms:9.2} ms  {what}"));
    }

    fn outcome(self) -> Outcome {
        let stats = Stats {
            done: self.actors.iter().map(|actor| actor.done).sum(),
            unknown: self.actors.iter().map(|actor| actor.unknown).sum(),
            refused: self.actors.iter().map(|actor| actor.refused).sum(),
            operations: self.history.len(),
            elapsed: self.now.since(START),
            attacks: self.guard.as_ref().map(|guard| guard.attacks()).unwrap_or_default(),
            ..self.stats
        };
        let skew_ms = u64::try_from(self.options.clock_skew_max.as_millis()).expect("short");
        // Recorded expiries are the latest.
        let skew_ms = skew_ms + 2 * TIME_ERROR_MS;
        let Judgement { violations, pictures, unchecked } = self.history.check(skew_ms);
        let stats = Stats { unchecked, ..stats };
        let (journal, fingerprint) = (self.journal, self.queue.fingerprint());
        Outcome { violations, pictures, journal, fingerprint, stats }
    }
}

/// Steps at one instant: more than any machine takes for all that can wait for it.
const BUSY_MAX: u32 = 200_000;

/// Not zero, so that nothing works by accident only at the beginning of time, and so late that
/// clocks can be set back by a day.
const START: Instant = Instant::from_unix_ms(100_000_000);

/// Milliseconds by which nodes may be wrong about the time, beyond what clocks are apart: half of
/// the longest time from an order to its answer, and what is made up for of that.
pub(crate) const TIME_ERROR_MS: u64 = 120;
