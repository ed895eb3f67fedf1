//! A rack in virtual time: one switch, many slow nodes, clients that ask in an open loop, and a
//! controller; all of them Keyway's own machines, on one queue of events.
//!
//! Nothing fails here; [`sim`] is for that. What is measured is where load goes: each node serves
//! requests one after the other, each for the same time, from a bounded queue
//! ([`machine::Service`]); the switch takes no time, and cables take a fixed one with a little
//! jitter. A trial is a function of the rack's seed and the trials before.

mod agenda;
mod bounds;
mod caches;
mod control;
mod finding;
mod learning;
mod losing;
mod meter;
mod net;
mod pace;
mod server;
mod spec;
mod store;
mod user;

pub use bounds::{Bounds, CACHED_TIMES_MAX};
pub use finding::{Finder, Finding};
pub use losing::Losses;
pub use meter::{CloseLook, STARTS_FOR, Starts};
pub use pace::Pace;
pub use spec::{Caches, Learning, Lookup, RackSpec};
pub use store::{Order, Store};

use crate::paper::Load;
use crate::paper::netcache::{NetCache, Way};
use agenda::{Alarm, Event, Unit};
use caches::{CacheNode, node_work_of};
use cluster::Resources;
use control::{Copies, KEYSPACE, Mail, START, SWITCH_INCARNATION, configuration};
use controller::{Controller, PlacementStatus};
use losing::RateControl;
use machine::{Instant, Outbox, Rng};
use meter::Meter;
use net::{Net, Owner, SERVICE, place_of};
use server::RackServer;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;
use store::Contents;
use switch::Pipeline;
use user::{Activity, User};
use workload::{Arrivals, Generator, IntervalSummary, Latencies, Population, Ranking};

/// How a trial went.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Requests that were meant to start in the window.
    pub begun: u64,
    /// Those of them that were answered.
    pub done: u64,
    /// Those of them that were refused because a node was full.
    pub full: u64,
    /// How long the window was.
    pub window: Duration,
    /// The 99th percentile of the time from when a request was meant to start to its end, which
    /// for those without an answer is [`Pace::deadline`]; in microseconds.
    pub p99_us: u64,
    /// Share of them that the switch itself answered.
    pub by_switch: f64,
    /// Share of them that cache nodes answered.
    pub by_caches: f64,
    /// How busy the busiest of those was.
    pub cache_busy: f64,
    /// Keys that they held in the end.
    pub cache_held: usize,
    /// Requests that each node served in a second.
    pub nodes: Vec<f64>,
    /// How busy the busiest node was in the window: 1 is always.
    pub busiest: f64,
    /// How busy the average node was.
    pub busy_mean: f64,
    /// How long all requests took that were meant to start in the window.
    pub latencies: Latencies,
    /// The window in pieces, if it was looked at closely.
    pub pieces: Vec<IntervalSummary>,
    /// What became of the requests of each [`STARTS_FOR`] of it, likewise.
    pub starts: Vec<Starts>,
}

impl Trial {
    /// Requests answered per second.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        self.done as f64 / self.window.as_secs_f64()
    }
}

/// The rack.
pub struct Rack {
    spec: RackSpec,
    now: Instant,
    rng: Rng,
    net: Net,
    switch: Pipeline,
    cache: Option<NetCache>,
    outbox: Outbox,
    nodes: Vec<RackServer>,
    cache_nodes: Vec<CacheNode>,
    /// Whether they were told of what is popular.
    caches_filled: bool,
    users: Vec<User>,
    controller: Controller,
    controller_alarm: Alarm,
    copies: Copies,
    /// Orders and reports on their way.
    post: VecDeque<Mail>,
    contents: Option<Contents>,
    meter: Meter,
    /// What clients set their rate by, if they go by what is lost.
    control: Option<RateControl>,
    /// Requests that the switch itself answered in the window of the meter.
    cached: u64,
    /// While the rack is filled, serving takes no time.
    filling: bool,
    /// Counts the keys that were written, for loads that write new ones.
    written: Population,
    trials: u64,
}

impl Rack {
    /// A rack whose nodes hold all keys, and rest.
    ///
    /// # Panics
    ///
    /// If there are no nodes or keys, too many, or chains longer than there are nodes.
    #[must_use]
    pub fn new(spec: RackSpec) -> Self {
        let rng = Rng::new(spec.seed);
        let config = configuration(&spec);
        let controller = Controller::new(config, None, START).expect("a sound configuration");
        let mut rack = Self {
            spec,
            now: START,
            net: Net::new(spec.pace.hop(), spec.finding.cables_past, rng.fork("net")),
            switch: Pipeline::new(SWITCH_INCARNATION),
            cache: spec.arm.caches().then(|| NetCache::new(SERVICE, rng.fork("cache"))),
            outbox: Outbox::default(),
            cache_nodes: (0..spec.cache_count()).map(|it| CacheNode::new(it, &spec)).collect(),
            caches_filled: false,
            nodes: (0..spec.nodes).map(|index| RackServer::new(index, &spec)).collect(),
            users: (0..spec.clients()).map(|index| User::new(index, &spec, &rng)).collect(),
            rng,
            controller,
            controller_alarm: Alarm::new(),
            copies: Copies::default(),
            post: VecDeque::new(),
            contents: None,
            meter: Meter::idle(),
            control: None,
            cached: 0,
            filling: true,
            written: Population::new(spec.stored.min(spec.keys)),
            trials: 0,
        };
        rack.form();
        let keyspace = rack.controller.map().keyspace(KEYSPACE).expect("it was formed").clone();
        rack.contents = Some(Contents::new(&spec, keyspace, &rack.rng));
        rack.fill(&(0..spec.stored.min(spec.keys)).collect::<Vec<u64>>());
        rack.tell_map();
        rack
    }

    /// Requests per second that its way of spreading load cannot get beyond.
    pub(crate) fn limit(&self, bounds: &Bounds) -> f64 {
        self.spec.arm.limit(bounds)
    }

    /// Lets it get used to a load that it does not know, at this rate, if that takes it longer than
    /// to get used to a rate.
    pub fn get_used_to(&mut self, load: &Load, rate: f64) {
        self.fill_caches(load, rate);
        let settling = self.spec.arm.settling();
        if !settling.is_zero() {
            self.run(load, rate, settling, None);
        }
    }

    /// Writes the keys of these numbers.
    fn fill(&mut self, numbers: &[u64]) {
        self.filling = true;
        self.meter = Meter::new(self.now, FILL_MAX, None);
        let (clients, keys) = (self.users.len(), numbers.len() as u64);
        for (index, user) in self.users.iter_mut().enumerate() {
            let keys: Vec<u64> = numbers.iter().copied().skip(index).step_by(clients).collect();
            user.turn_to(Activity::Fill(keys.into_iter()), &mut self.net.agenda, self.now);
        }
        let end = self.now + FILL_MAX;
        while self.meter.done < keys && self.step(end) {}
        assert_eq!(self.meter.done, keys, "every key is written");
        self.filling = false;
    }

    /// Writes what is not stored and becomes popular within a time.
    fn store_what_becomes_popular(&mut self, load: &Load, rng: &Rng, time: Duration) {
        let Some(shift) = load.shift.filter(|_| self.spec.stored < self.spec.keys) else { return };
        let contents = self.contents.as_mut().expect("the rack is filled");
        let begin = Instant(0);
        let mut ranking = Ranking::new(self.spec.keys, Some(shift), begin, rng.fork("shift"));
        let mut found = BTreeSet::new();
        let mut at = begin;
        while at <= begin + time {
            at = at + shift.every;
            ranking.advance(at);
            let popular = (0..self.spec.stored).map(|rank| contents.number(ranking.key_at(rank)));
            found.extend(popular.filter(|number| !contents.is_stored(*number)));
        }
        let found: Vec<u64> = found.into_iter().collect();
        contents.store(&found);
        self.fill(&found);
    }

    /// Asks for `rate` requests a second, and looks at a window of the time after the rack has got
    /// used to it, closely if `look` says how.
    ///
    /// # Panics
    ///
    /// If the rate is not positive, or a value was read that was never written to its key.
    pub fn run(
        &mut self,
        load: &Load,
        rate: f64,
        window: Duration,
        look: Option<CloseLook>,
    ) -> Trial {
        self.control = None;
        self.ask(load, rate, (self.warm_up(), window), look)
    }

    /// Asks for as much as is served but for some losses, and looks at a window of the time after
    /// `settling`. The first rate is near the truth at best.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub fn run_losing(
        &mut self,
        load: &Load,
        (losses, rate): (Losses, f64),
        (settling, window): (Duration, Duration),
        look: Option<CloseLook>,
    ) -> Trial {
        self.control = Some(RateControl::new(losses, rate));
        self.ask(load, rate, (settling, window), look)
    }

    fn ask(
        &mut self,
        load: &Load,
        rate: f64,
        (settling, window): (Duration, Duration),
        look: Option<CloseLook>,
    ) -> Trial {
        self.trials += 1;
        let rng = self.rng.fork(&format!("trial {}", self.trials));
        self.store_what_becomes_popular(load, &rng, window);
        let begin = self.now;
        let from = begin + settling;
        let until = from + window;
        self.meter = Meter::new(from, window, look);
        self.meter.begin(&mut self.net.agenda);
        let keys = load.keys(self.spec.keys);
        let population = if load.new_keys { self.written.clone() } else { Population::new(keys) };
        let spec = load.spec(keys);
        let share = rate / self.users.len() as f64;
        for (index, user) in self.users.iter_mut().enumerate() {
            // What shifts, shifts for the first time one interval after the window has begun.
            let generator =
                Generator::new(&spec, population.clone(), from, &rng, index).expect("a sound load");
            let arrivals = Arrivals::new(share, begin, rng.fork(&format!("arrivals {index}")));
            let (generator, arrivals) = (Box::new(generator), Box::new(arrivals));
            let writes = load.even_writes.then(|| rng.fork(&format!("writes {index}")));
            let work = Activity::Load { generator, arrivals, writes, until };
            user.turn_to(work, &mut self.net.agenda, begin);
        }
        self.nodes.iter_mut().for_each(|server| server.served_permille = 0);
        self.cached = 0;
        self.count_caches();
        self.watch_losses();
        let end = until + self.spec.pace.deadline() * 2;
        while (self.now < until || !self.is_idle()) && self.step(end) {}
        self.trial(window)
    }

    /// Popularity moves: the key that had this rank at the beginning is the most popular one from
    /// now on, and those that were less popular than it follow.
    pub fn move_popularity(&mut self, first: u64) {
        self.contents.as_mut().expect("the rack is filled").begin_at(first);
    }

    /// What the controller has done because of the load, and what it sees of it.
    #[must_use]
    pub fn placement(&self) -> PlacementStatus {
        self.controller.status(self.now).placement
    }

    /// How full each node is that may hold a bounded amount, as it reports: 1 is all of that.
    pub fn fullness(&self) -> impl Iterator<Item = f64> {
        self.nodes.iter().filter_map(|server| {
            let Resources { memory, memory_max, .. } = server.machine.report(self.now).resources;
            Some(memory as f64 / memory_max? as f64)
        })
    }

    /// How many replicas nodes were given, whatever for.
    #[must_use]
    pub fn copies(&self) -> u64 {
        self.copies.begun
    }

    /// How many partitions there are.
    #[must_use]
    pub fn partition_count(&self) -> usize {
        self.controller.map().partitions.len()
    }

    /// How long each trial lasts before its window.
    pub(crate) fn warm_up(&self) -> Duration {
        self.spec.arm.warm_up()
    }

    fn is_idle(&self) -> bool {
        self.users.iter().all(User::is_idle)
    }

    /// Lets it end without load what it has begun. An overload leaves writes behind that are sent
    /// down their chains again and again, and those of the same keys that come next wait for them.
    pub(crate) fn come_to_rest(&mut self) {
        let end = self.now + REST_MAX;
        while !(self.is_idle() && self.nodes.iter().all(RackServer::is_idle)) && self.step(end) {}
    }

    fn trial(&mut self, window: Duration) -> Trial {
        let meter = std::mem::replace(&mut self.meter, Meter::idle());
        assert_eq!(meter.wrong, 0, "what was read is not what was written");
        let seconds = window.as_secs_f64();
        let served = |server: &RackServer| server.served_permille as f64 / 1_000.0;
        let nodes = self.nodes.iter().map(|server| served(server) / seconds).collect();
        let busy = |server: &RackServer| served(server) / f64::from(server.rate) / seconds;
        let busy: Vec<f64> = self.nodes.iter().map(busy).collect();
        let (answered, cache_busy) = self.counted_caches(window);
        Trial {
            begun: meter.begun,
            done: meter.done,
            full: meter.full,
            window,
            p99_us: meter.recorder.summary(window).all.latency.p99_us,
            by_switch: self.cached as f64 / meter.begun.max(1) as f64,
            by_caches: answered as f64 / meter.begun.max(1) as f64,
            cache_busy,
            cache_held: self.held_by_caches(),
            nodes,
            busiest: busy.iter().copied().fold(0.0, f64::max),
            busy_mean: busy.iter().sum::<f64>() / busy.len() as f64,
            latencies: meter.recorder.all_latencies(),
            pieces: meter.pieces,
            starts: meter.starts,
        }
    }

    /// Lets the next thing happen, unless that is after `end`.
    fn step(&mut self, end: Instant) -> bool {
        let Some((at, event)) = self.net.agenda.next(end) else { return false };
        self.now = at;
        match event {
            Event::Arrival { parcel } => self.arrive(parcel),
            Event::Served { node } => self.with_server(node, RackServer::serve),
            Event::Cached { cache } => self.with_cache(cache, CacheNode::serve),
            Event::Request { client } => self.with_user(client, |user, now, contents, rest| {
                user.request(now, contents, rest.0, &mut rest.1.agenda);
            }),
            Event::Wake(Unit::Client(client)) => {
                self.with_user(client, |user, now, _, _| user.wake(now));
            }
            Event::Wake(Unit::Node(node)) => self.with_server(node, RackServer::wake),
            Event::Wake(Unit::Cache(cache)) => {
                self.with_cache(cache, |cache, now, net, _| cache.wake(now, net));
            }
            Event::Wake(Unit::Controller) => self.wake_controller(),
            Event::Mail => self.mail_arrives(),
            Event::Alert { node } => self.alert_arrives(node),
            Event::Tick => self.meter.tick(at, &mut self.net.agenda),
            Event::Change => self.change_rate(),
        }
        true
    }

    fn arrive(&mut self, parcel: u32) {
        let slot = self.net.slot(parcel);
        match place_of(slot.to) {
            Owner::Switch => self.forward(parcel),
            Owner::Client(client) => {
                let taken = self.net.take(parcel);
                self.with_user(client, |user, now, _, _| user.hear(now, taken.from, &taken.bytes));
                self.net.put_back(parcel, taken);
            }
            Owner::Node(node) => {
                let work = node_work_of(&slot.bytes).filter(|_| !self.filling);
                self.with_server(node, |server, now, net, _| match work {
                    Some(work) => server.queue(now, net, work, parcel),
                    None => server.handle(now, net, parcel, 0),
                });
            }
            Owner::Cache(cache) => {
                let free = self.filling;
                self.with_cache(cache, |cache, now, net, _| cache.arrive(now, net, parcel, free));
            }
            Owner::Coordinator(node) => {
                self.with_server(node, |server, now, net, _| server.coordinate(now, net, parcel));
            }
        }
    }

    fn forward(&mut self, parcel: u32) {
        let mut taken = self.net.take(parcel);
        let (now, from, bytes) = (self.now, taken.from, &mut taken.bytes);
        // What it drops it counts; its clients ask again.
        if let Some(cache) = &mut self.cache {
            let way = cache.process(now, from, bytes, &mut self.switch, &mut self.outbox);
            self.cached += u64::from(way == Ok(Way::Answered) && self.meter.covers(now));
        } else {
            let _ = self.switch.process(now, from, bytes, &mut self.outbox);
        }
        self.net.put_back(parcel, taken);
        while let Some(mut datagram) = self.outbox.pop() {
            datagram.to = self.spec.looked_up_at(&datagram).unwrap_or(datagram.to);
            self.net.post(self.now, SERVICE, datagram);
        }
    }

    /// Lets something happen to a client, and then does what it wants done.
    fn with_user(
        &mut self,
        client: u16,
        what: impl FnOnce(&mut User, Instant, &Contents, (&mut Meter, &mut Net)),
    ) {
        let user = self.users.get_mut(usize::from(client)).expect("clients are not taken away");
        let contents = self.contents.as_ref().expect("nobody asks before there is a keyspace");
        what(user, self.now, contents, (&mut self.meter, &mut self.net));
        user.pump(self.now, contents, &mut self.meter, &mut self.net);
    }

    fn with_server(
        &mut self,
        node: u16,
        what: impl FnOnce(&mut RackServer, Instant, &mut Net, &Meter),
    ) {
        let server = self.nodes.get_mut(usize::from(node)).expect("nodes are not taken away");
        what(server, self.now, &mut self.net, &self.meter);
    }
}

/// How long a rack may take to come to rest.
const REST_MAX: Duration = Duration::from_secs(10);

/// How long filling may take: a client writes 64 keys in half a millisecond.
const FILL_MAX: Duration = Duration::from_secs(600);
