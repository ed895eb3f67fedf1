//! A client and who uses it: first to fill the rack, then, in an open loop, as a load says.

use super::RackSpec;
use super::agenda::{Agenda, Alarm, Event, Unit};
use super::meter::Meter;
use super::net::{Net, SERVICE, client_endpoint};
use super::store::Contents;
use client::{
    Client, ClientConfig, Expiry, IN_FLIGHT_MAX, Outcome, Reply, Request, RetransmitBounds, Tickets,
};
use machine::{Instant, Rng};
use std::ops::Bound;
use std::time::Duration;
use std::vec;
use wire::Endpoint;
use workload::{Arrivals, Ending, Generator, Op, OpKind, Values};

/// One client.
pub(super) struct User {
    index: u16,
    deadline: Duration,
    pub(super) machine: Client,
    endpoint: Endpoint,
    alarm: Alarm,
    work: Activity,
    waiting: Tickets<Waiting>,
    /// When the next request is due, as was planned last.
    due: Instant,
    /// Requests that were due so far.
    started: u64,
    /// Tells this write's value from all others.
    stamp: u64,
    key: Vec<u8>,
    end: Vec<u8>,
    value: Vec<u8>,
}

/// What it is at.
pub(super) enum Activity {
    Rest,
    /// A write of each of these keys, some at a time.
    Fill(vec::IntoIter<u64>),
    /// Requests when they are due, until an instant.
    Load {
        generator: Box<Generator>,
        arrivals: Box<Arrivals>,
        /// Draws the keys of writes, if all are alike.
        writes: Option<Rng>,
        until: Instant,
    },
}

/// A request that waits.
struct Waiting {
    kind: OpKind,
    /// The only key, or the first.
    key: u64,
    /// How many there are.
    keys: u64,
    intended: Instant,
}

impl User {
    pub(super) fn new(index: u16, spec: &RackSpec, rng: &Rng) -> Self {
        let (pace, deadline) = (spec.pace, spec.deadline());
        let mut config = ClientConfig::new(SERVICE, u64::from(index) + 1);
        (config.deadline, config.in_flight_max) = (deadline, IN_FLIGHT_MAX);
        let usual = RetransmitBounds::default();
        let least = pace.retry_min().min(usual.max);
        config.retransmit = RetransmitBounds { min: least, first: least, ..usual };
        Self {
            index,
            deadline,
            machine: Client::new(config, rng.fork(&format!("client {index}"))),
            endpoint: client_endpoint(index),
            alarm: Alarm::new(),
            work: Activity::Rest,
            waiting: Tickets::new(),
            due: Instant(0),
            started: 0,
            stamp: u64::from(index) << GRANT_BITS,
            key: Vec::new(),
            end: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Begins something else.
    pub(super) fn turn_to(&mut self, work: Activity, agenda: &mut Agenda, now: Instant) {
        self.work = work;
        match &self.work {
            Activity::Rest => {}
            Activity::Fill(_) => self.plan_request(now, agenda),
            Activity::Load { .. } => self.plan_next(agenda),
        }
    }

    /// Asks at another rate from now on.
    pub(super) fn ask_at(&mut self, now: Instant, rate: f64, agenda: &mut Agenda) {
        if let Activity::Load { arrivals, .. } = &mut self.work {
            arrivals.set_rate(now, rate);
        }
        self.plan_next(agenda);
    }

    fn plan_next(&mut self, agenda: &mut Agenda) {
        if let Activity::Load { arrivals, until, .. } = &self.work
            && arrivals.next_start() <= *until
        {
            self.plan_request(arrivals.next_start(), agenda);
        }
    }

    fn plan_request(&mut self, at: Instant, agenda: &mut Agenda) {
        self.due = at;
        agenda.plan(at, Event::Request { client: self.index });
    }

    /// How many requests were due so far.
    pub(super) fn started(&self) -> u64 {
        self.started
    }

    /// A request is due, unless that was planned anew since.
    pub(super) fn request(
        &mut self,
        now: Instant,
        contents: &Contents,
        meter: &mut Meter,
        agenda: &mut Agenda,
    ) {
        if now == self.due {
            self.start_due(now, contents, meter);
            self.plan_next(agenda);
        }
    }

    /// Whether it waits for nothing.
    pub(super) fn is_idle(&self) -> bool {
        self.machine.in_flight() == 0
    }

    /// Starts what is due.
    fn start_due(&mut self, now: Instant, contents: &Contents, meter: &mut Meter) {
        while let Some((op, intended)) = self.next_due(now, contents) {
            self.started += 1;
            self.start(now, &op, intended, contents, meter);
        }
    }

    /// The next operation whose time has come, on keys by their places in the order of names, and
    /// when that was.
    fn next_due(&mut self, now: Instant, contents: &Contents) -> Option<(Op, Instant)> {
        match &mut self.work {
            Activity::Rest => None,
            Activity::Fill(_) if self.machine.in_flight() >= FILL_IN_FLIGHT => None,
            Activity::Fill(keys) => keys.next().map(|key| (Op::Put { key }, now)),
            Activity::Load { generator, arrivals, writes, until } => {
                let intended = arrivals.due(now.min(*until))?;
                let op = match generator.next_op(now) {
                    Op::Insert { key } if key >= contents.keys() => return None,
                    Op::Insert { key } => Op::Put { key: contents.number(key) },
                    Op::Get { key } => Op::Get { key: contents.number(key) },
                    Op::Put { key } => {
                        let key = writes.as_mut().map_or(key, |rng| rng.below(contents.keys()));
                        Op::Put { key: contents.number(key) }
                    }
                    Op::Scan { from, length } => Op::Scan { from: contents.number(from), length },
                    _ => unreachable!("loads are made of reads, writes and scans"),
                };
                Some((op, intended))
            }
        }
    }

    /// Starts a request. One that the client has no room for has failed at once.
    fn start(
        &mut self,
        now: Instant,
        op: &Op,
        intended: Instant,
        contents: &Contents,
        meter: &mut Meter,
    ) {
        let (key, keys) = match *op {
            Op::Get { key } | Op::Put { key } => (key, 1),
            Op::Scan { from, length } => (from, length.min(contents.keys() - from)),
            _ => unreachable!("loads are made of reads, writes and scans"),
        };
        let kind = op.kind();
        self.key.clear();
        contents.names.write(key, &mut self.key);
        let request = match kind {
            OpKind::Get => Request::Get { key: &self.key },
            OpKind::Scan => {
                self.end.clear();
                contents.names.write(key + keys - 1, &mut self.end);
                let (start, end) = (Bound::Included(&self.key[..]), Bound::Included(&self.end[..]));
                Request::Range { start, end, reverse: false, limit: None, keys_only: false }
            }
            _ => {
                self.stamp += 1;
                self.value.clear();
                contents.values.write(key, self.stamp, &mut self.value);
                Request::Put { key: &self.key, value: &self.value, expiry: Expiry::Never }
            }
        };
        meter.request(intended);
        match self.machine.start(now, &contents.keyspace, request) {
            Ok(ticket) => self.waiting.insert(ticket, Waiting { kind, key, keys, intended }),
            Err(_) => meter.end(intended + self.deadline, kind, Ending::Refused, intended),
        }
    }

    /// Takes a datagram.
    pub(super) fn hear(&mut self, now: Instant, from: Endpoint, bytes: &[u8]) {
        self.machine.handle_packet(now, from, bytes);
    }

    /// Its alarm has come.
    pub(super) fn wake(&mut self, now: Instant) {
        if self.alarm.rings(now) && self.machine.poll_timeout().is_some_and(|at| at <= now) {
            self.machine.handle_timeout(now);
        }
    }

    /// Takes outcomes, sends what is to be sent, and sets the alarm.
    pub(super) fn pump(
        &mut self,
        now: Instant,
        contents: &Contents,
        meter: &mut Meter,
        net: &mut Net,
    ) {
        while let Some((ticket, outcome)) = self.machine.poll_outcome() {
            let waiting = self.waiting.take(ticket).expect("every request has a note");
            let Waiting { kind, key, keys, intended } = waiting;
            meter.full(&outcome, intended);
            let ending = match outcome {
                Outcome::Done(Reply::Get(None)) if contents.is_stored(key) => Ending::NotFound,
                Outcome::Done(Reply::Get(Some(found))) => {
                    let wrong = Values::stamp_of(key, &found.value).is_none();
                    meter.wrong += u64::from(wrong);
                    Ending::Done
                }
                Outcome::Done(Reply::Range(found)) => {
                    let right = (key..key + keys).zip(&found).filter(|(number, (name, value))| {
                        contents.names.index(name) == Some(*number)
                            && Values::stamp_of(*number, &value.value).is_some()
                    });
                    let right = right.count() == found.len() && found.len() as u64 == keys;
                    meter.wrong += u64::from(!right);
                    Ending::Done
                }
                Outcome::Done(_) => Ending::Done,
                Outcome::Refused(_) => Ending::Refused,
                Outcome::Unknown(_) => Ending::Unknown,
            };
            meter.end(now, kind, ending, intended);
        }
        if let Activity::Fill(_) = self.work {
            self.start_due(now, contents, meter);
        }
        while let Some(datagram) = self.machine.poll_transmit() {
            net.post(now, self.endpoint, datagram);
        }
        if let Some(at) = self.machine.poll_timeout() {
            self.alarm.set(&mut net.agenda, now, Unit::Client(self.index), at);
        }
    }
}

/// Writes of one client at a time while the rack is filled.
const FILL_IN_FLIGHT: usize = 64;

/// Grants of one client.
const GRANT_BITS: u32 = 40;
