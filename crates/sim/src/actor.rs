//! A simulated user: keeps a few requests in flight and writes down what it saw.

mod batch;
mod big;
mod conclude;
mod crowd;
mod draw;
mod gather;
mod lock;
mod many;

pub(crate) use draw::{focus, keys};

use crate::check::{History, Key, OpKind, Scan};
use crate::clock::nanos;
use crate::options::{Hostility, Options};
use crate::role::{client_endpoint, service};
use client::{
    Client, ClientConfig, Coordination, Outcome, Reply, Request, Routes, Ticket, UnknownReason,
};
use cluster::{Keyspace, Map, Mutant};
use envelope::PassNumber;
use lock::Lock;
use machine::{Instant, Rng};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use wire::{Endpoint, Version};

/// The hash keyspace and the range keyspace.
pub(crate) type Keyspaces = [Arc<Keyspace>; 2];

/// Sessions of a partition in worlds in which no client is forgotten for lack of room.
pub(crate) const SESSIONS_USUAL: usize = 1_000;

/// One client and what it is doing.
pub(crate) struct Actor {
    pub(crate) machine: Client,
    pub(crate) endpoint: Endpoint,
    config: ClientConfig,
    mutant: Option<Mutant>,
    index: usize,
    /// What it may do, where passes say that.
    class: Option<u16>,
    rng: Rng,
    /// How often it has gone away and come back as another.
    incarnations: u64,
    /// Nodes remember fewer clients than there are.
    forgotten_soon: bool,
    in_flight: usize,
    think: Duration,
    registers: u64,
    twins: Option<[[u8; 16]; 2]>,
    plain_percent: u64,
    many_percent: u64,
    batch_percent: u64,
    big_percent: u64,
    crowd_percent: u64,
    /// Uploads begun, over all incarnations.
    uploads: u64,
    reads_percent: u64,
    focus_percent: u64,
    focus_lasts: Duration,
    /// How often the keys that most requests are about have changed.
    focus: u64,
    fresh_percent: u64,
    lock_percent: u64,
    lock: Lock,
    agenda: Agenda,
    leave: Leave,
    /// When it wants to start its next request.
    next_at: Instant,
    started: i64,
    waiting: BTreeMap<Ticket, Asked>,
    /// When it was first answered in a healed world.
    aware_at: Option<Instant>,
    /// What it last read of each register: value and version.
    seen: BTreeMap<Vec<u8>, (i64, Version)>,
    /// Every answer to a request for one key, where somebody wants to know.
    pub(crate) answers: Option<Vec<Answered>>,
    pub(crate) done: usize,
    pub(crate) unknown: usize,
    /// Writes that were refused because a node was full.
    pub(crate) refused: usize,
}

/// Whether it ends of its own accord.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    Stays,
    /// As soon as it has all its answers.
    Soon,
    /// It has said goodbye: another one takes its place.
    Gone,
}

/// What it is to do.
#[derive(Clone, Debug)]
enum Agenda {
    /// Nothing but to take answers.
    Rest,
    /// Requests of all kinds, until told otherwise.
    Work,
    /// A read and a write of every ordered key each time, whatever is still unanswered.
    Probe,
    /// So many requests, each of which must be answered.
    Last(usize),
    /// To read these keys, and be answered.
    Read(VecDeque<Key>, ReadBy),
}

/// How single keys are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReadBy {
    Get,
    /// Each by a multiget of its own.
    Mget,
}

/// A request for one key that was answered.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) key: Key,
    pub(crate) write: bool,
    pub(crate) at: Instant,
}

struct Asked {
    at: Instant,
    /// It was asked of a healed world, and must be answered.
    sure: bool,
    what: What,
}

enum What {
    One(Key, OpKind),
    Many(Vec<Key>),
    /// A lock with a time limit.
    Lock(lock::LockStep),
    /// A step of an operation on a big value.
    Big(big::BigStep),
    /// Each on its own.
    Writes(Vec<(Key, OpKind)>),
    /// All at once.
    Batch(Vec<batch::Planned>),
    Scan(Scan),
    /// How many keys of the hash keyspace have a value.
    Count,
}

/// Keys in the range keyspace: k0 to k7.
pub(crate) const ORDERED_KEYS: u64 = 8;

impl Actor {
    pub(crate) fn new(options: &Options, index: u16, now: Instant) -> Self {
        let mut rng = Rng::new(options.seed).fork(&format!("actor {index}"));
        let mut services: Vec<Endpoint> = (0..options.switches).map(service).collect();
        // Not all of them begin with the same.
        services.rotate_left(usize::from(index % options.switches));
        let mut config = ClientConfig::new(services, 0);
        config.deadline = options.load.patience;
        config.in_flight_max = client::IN_FLIGHT_MAX;
        let class = options.hostility.map(|it| class_of(&it, options.load.clients, index));
        config.client_id = client_id(class, index.into(), 0);
        let mut machine = Client::new(config.clone(), rng.fork("machine"));
        if let Some(mutant) = options.mutant {
            machine.mutant(mutant);
        }
        let first = Duration::from_nanos(rng.below(nanos(options.load.think) + 1));
        Self {
            machine,
            endpoint: client_endpoint(index),
            config,
            mutant: options.mutant,
            index: index.into(),
            class,
            rng,
            incarnations: 0,
            in_flight: options.load.in_flight,
            think: options.load.think,
            registers: options.load.registers,
            forgotten_soon: options.sessions_max < SESSIONS_USUAL,
            twins: options.load.twins,
            plain_percent: options.load.plain_percent,
            many_percent: options.load.many_percent,
            batch_percent: options.load.batch_percent,
            big_percent: options.load.big_percent,
            crowd_percent: options.load.crowd_percent,
            uploads: 0,
            reads_percent: options.load.reads_percent,
            focus_percent: options.load.focus_percent,
            focus_lasts: options.load.focus_lasts,
            focus: 0,
            fresh_percent: options.load.fresh_percent,
            lock_percent: options.load.lock_percent,
            lock: Lock::new(options.clock_skew_max),
            agenda: Agenda::Work,
            leave: Leave::Stays,
            next_at: now + first,
            started: 0,
            waiting: BTreeMap::new(),
            aware_at: None,
            seen: BTreeMap::new(),
            answers: None,
            done: 0,
            unknown: 0,
            refused: 0,
        }
    }

    /// From now on it gives its multigets hints by this map, and so do those that take its place.
    pub(crate) fn assist_by(&mut self, map: &Map) {
        let directory = Routes::new(map, self.endpoint);
        self.config.coordination = Coordination::Assisted(Arc::new(directory));
        self.machine.coordinate(self.config.coordination.clone());
    }

    /// Whether it has a map for hints.
    pub(crate) fn assists(&self) -> bool {
        matches!(self.config.coordination, Coordination::Assisted(_))
    }

    /// From now on it only takes answers.
    pub(crate) fn rest(&mut self) {
        self.agenda = Agenda::Rest;
    }

    /// From now on it probes, and remembers the answers.
    pub(crate) fn probe(&mut self, now: Instant, every: Duration) {
        (self.agenda, self.think, self.next_at) = (Agenda::Probe, every, now);
        self.answers = Some(Vec::new());
    }

    /// It starts this many requests more, none of which may stay unanswered, each so long after the
    /// one before, more or less.
    pub(crate) fn work_on(&mut self, now: Instant, requests: usize, think: Duration) {
        (self.agenda, self.think, self.next_at) = (Agenda::Last(requests), think, now);
    }

    /// It reads these keys, and must be answered.
    pub(crate) fn read(&mut self, now: Instant, keys: impl IntoIterator<Item = Key>, by: ReadBy) {
        self.agenda = Agenda::Read(keys.into_iter().collect(), by);
        (self.think, self.next_at, self.in_flight) = (Duration::ZERO, now, READS_IN_FLIGHT);
    }

    /// Whether all it was asked for has ended.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
            && match &self.agenda {
                Agenda::Rest | Agenda::Last(0) => true,
                Agenda::Read(keys, _) => keys.is_empty(),
                Agenda::Work | Agenda::Probe | Agenda::Last(_) => false,
            }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// When it wants to start a request, if it does.
    pub(crate) fn wants_at(&self) -> Option<Instant> {
        match self.leave {
            Leave::Stays => {}
            Leave::Soon => return self.waiting.is_empty().then_some(self.next_at),
            Leave::Gone => return Some(self.next_at),
        }
        let wants = match &self.agenda {
            Agenda::Rest | Agenda::Last(0) => false,
            Agenda::Read(keys, _) => !keys.is_empty(),
            Agenda::Probe => return Some(self.next_at),
            Agenda::Work | Agenda::Last(_) => true,
        };
        (wants && self.waiting.len() < self.in_flight).then_some(self.next_at)
    }

    /// Takes outcomes and starts requests. `now` is the world's time, `local` its own.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        local: Instant,
        keyspaces: &Keyspaces,
        history: &mut History,
    ) {
        if self.leave == Leave::Gone && self.next_at <= now {
            self.start_over(now, history);
        }
        while let Some((ticket, outcome)) = self.machine.poll_outcome() {
            let asked = self.waiting.remove(&ticket).expect("outcomes are of what was started");
            let ask = Ask { now, local, keyspaces };
            self.take(&ask, asked, outcome, history);
        }
        if self.leave == Leave::Soon && self.waiting.is_empty() {
            self.machine.say_goodbye(local);
            (self.leave, self.next_at) = (Leave::Gone, now + self.think);
            return;
        }
        while self.wants_at().is_some_and(|at| at <= now) {
            let wait = Duration::from_nanos(self.rng.below(2 * nanos(self.think) + 1));
            self.next_at = now + wait;
            let mut ask = Ask { now, local, keyspaces };
            match &mut self.agenda {
                Agenda::Rest => return,
                Agenda::Probe => {
                    self.next_at = now + self.think;
                    self.probe_all(&mut ask);
                }
                Agenda::Work => self.start(&mut ask),
                Agenda::Last(left) => {
                    *left -= 1;
                    self.start(&mut ask);
                }
                Agenda::Read(keys, by) => {
                    let (Some(key), by) = (keys.pop_front(), *by) else { return };
                    self.read_one(&ask, &key, by);
                }
            }
        }
    }

    /// Takes an outcome, which may only be a step of what was asked.
    fn take(
        &mut self,
        ask: &Ask<'_>,
        asked: Asked,
        outcome: Outcome<Reply>,
        history: &mut History,
    ) {
        let Asked { at, sure, what } = asked;
        let went_on = match (what, outcome) {
            (What::Big(step), outcome) => self.go_on_with_big(ask, (at, sure), step, outcome),
            (What::Lock(step), outcome) => {
                self.conclude_lock((at, ask.now), step, outcome, history);
                Ok(None)
            }
            (What::One(key, OpKind::Read(_)), Outcome::Done(Reply::Get(Some(found))))
                if found.big =>
            {
                self.fetch(ask, (at, sure), (key, 0), found).map(|()| None)
            }
            (what, outcome) => Ok(Some((what, outcome))),
        };
        match went_on {
            Ok(None) => {}
            Ok(Some((what, outcome))) => {
                self.conclude(ask.now, Asked { at, sure, what }, outcome, history);
            }
            Err(why) => history.violation(format!("client {}: {why}", self.index)),
        }
    }

    /// A client that gives up early is replaced by one with the usual patience, now that everything
    /// must be answered.
    pub(crate) fn be_patient(&mut self, now: Instant, history: &mut History) {
        if self.config.deadline < PATIENCE {
            self.config.deadline = PATIENCE;
            self.start_over(now, history);
        }
    }

    /// It ends of its own accord, once it has been answered, and says goodbye.
    pub(crate) fn take_leave(&mut self) {
        if self.leave == Leave::Stays && matches!(self.agenda, Agenda::Work) {
            self.leave = Leave::Soon;
        }
    }

    /// The process ends, and another one takes its place: whatever it waited for stays unknown.
    pub(crate) fn start_over(&mut self, now: Instant, history: &mut History) {
        for asked in std::mem::take(&mut self.waiting).into_values() {
            let outcome = Outcome::Unknown(UnknownReason::Closed);
            self.conclude(now, asked, outcome, history);
        }
        self.incarnations += 1;
        self.leave = Leave::Stays;
        self.lock.forget();
        self.config.client_id = client_id(self.class, self.index, self.incarnations);
        self.machine = Client::new(self.config.clone(), self.rng.fork("machine"));
        if let Some(mutant) = self.mutant {
            self.machine.mutant(mutant);
        }
    }

    /// Puts many keys of their own at once, whatever is in flight.
    pub(crate) fn flood(
        &mut self,
        now: Instant,
        local: Instant,
        keyspaces: &Keyspaces,
        writes: usize,
    ) {
        let ask = Ask { now, local, keyspaces };
        for n in 0..writes {
            self.started += 1;
            let value = self.value();
            let key = Key { ordered: false, key: format!("f{n}").into_bytes() };
            let kind = OpKind::Put { value, expiry_ms: 0 };
            self.put(&ask, key, value, kind);
        }
    }

    /// From now on nobody knows what time it is in the cluster, so nothing is said of it any more.
    pub(crate) fn lose_time(&mut self) {
        self.lock.is_judged = false;
    }

    /// The keys of the range keyspace.
    pub(crate) fn ordered_keys() -> impl Iterator<Item = Vec<u8>> {
        (0..ORDERED_KEYS).map(|n| format!("k{n}").into_bytes())
    }

    fn read_one(&mut self, ask: &Ask<'_>, key: &Key, by: ReadBy) {
        match by {
            ReadBy::Get => {
                let what = What::One(key.clone(), OpKind::Read(None));
                self.submit(ask, Request::Get { key: &key.key }, what);
            }
            ReadBy::Mget => {
                let (keys, what) = ([&key.key[..]], What::Many(vec![key.clone()]));
                self.submit(ask, Request::Mget { keys: &keys, within: None }, what);
            }
        }
    }

    fn is_sure(&self) -> bool {
        matches!(self.agenda, Agenda::Last(_) | Agenda::Read(..))
    }

    /// A value that nobody else writes.
    fn value(&self) -> i64 {
        (self.index as i64 + 1) * 1_000_000 + self.started
    }
}

/// What a request is started with.
struct Ask<'a> {
    now: Instant,
    local: Instant,
    keyspaces: &'a Keyspaces,
}

/// The id of a client: where there are passes, that of the only one of its pass.
fn client_id(class: Option<u16>, index: usize, incarnations: u64) -> u64 {
    let number = (index as u64 + 1) * 1_000 + incarnations;
    let pass = class.map(|class| PassNumber::new(class, number).expect("there are few"));
    pass.map_or(number, |pass| pass.client(0))
}

/// The last clients may only read.
fn class_of(hostility: &Hostility, clients: u16, index: u16) -> u16 {
    if index >= clients.saturating_sub(hostility.readers) { READERS } else { 0 }
}

/// The class of clients that may only read.
pub(crate) const READERS: u16 = 1;

/// Reads at once when all keys are read: many, and no flood.
const READS_IN_FLIGHT: usize = 64;

/// How long clients wait for an answer unless they are told otherwise.
const PATIENCE: Duration = Duration::from_secs(5);
