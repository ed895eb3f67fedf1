//! One load thread: starts operations when they are due, records how they end.

use super::link::Link;
use super::plan::{OPEN_IN_FLIGHT_MAX, Pace, Plan};
use super::processor::of_this_thread;
use client::{
    CasReply, Counters, Expect, Expiry, IncrReply, New, Outcome, Reply, Request, StartError,
    Tickets,
};
use console::exit::Failure;
use machine::Instant;
use std::iter::StepBy;
use std::ops::{Bound, Range};
use std::sync::mpsc::Sender;
use std::time::Duration;
use wire::Version;
use workload::{
    Arrivals, Ending, Generator, Interval, KeyNames, Op, OpKind, Population, Recorder, Values,
};

/// A load thread.
pub(crate) struct Worker<'a> {
    plan: &'a Plan,
    link: Link,
    source: Source,
    population: Population,
    pacing: Pacing,
    start: Instant,
    waiting: Tickets<Waiting>,
    /// An operation that the client had no room for.
    held: Option<(Op, Instant)>,
    /// Nothing more will be started.
    over: bool,
    /// Tells this write's value from all others of its key.
    stamp: u64,
    recorder: Recorder,
    /// How late operations began.
    lateness: Recorder,
    wrong_values: u64,
    ticks: Ticks,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// Where operations come from.
pub(crate) enum Source {
    /// A mix, until `end`.
    Mix { generator: Box<Generator>, end: Instant },
    /// A write of each of these keys.
    Keys(StepBy<Range<u64>>),
}

enum Pacing {
    Open(Arrivals),
    Closed(usize),
}

/// Reports what happened in each piece of the run as it ends.
struct Ticks {
    piece: Duration,
    next: u32,
    to: Sender<(u32, Interval)>,
}

/// What a thread has measured.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) recorder: Recorder,
    /// How late operations of an open loop began though there was room for them: the time that this
    /// thread did not have.
    pub(crate) lateness: Recorder,
    /// Values that were never written to the key they were read from.
    pub(crate) wrong_values: u64,
    /// Operations that were due but could not be started before the end.
    pub(crate) never_started: u64,
    /// What the client counted.
    pub(crate) counters: Counters,
    /// Processor time that the thread has spent.
    pub(crate) spent: Duration,
}

/// A request that waits, as part of an operation.
struct Waiting {
    kind: OpKind,
    intended: Instant,
    part: Part,
}

enum Part {
    Read { key: u64 },
    ReadBeforeWrite { key: u64 },
    ReadBeforeCas { key: u64 },
    Write,
    Insert { key: u64 },
    Delete,
    Cas,
    Incr,
    Mget { keys: Vec<u64> },
    Scan,
}

impl<'a> Worker<'a> {
    /// Thread number `index` of a run that starts at `start`.
    pub(crate) fn new(
        plan: &'a Plan,
        index: usize,
        start: Instant,
        source: Source,
        population: Population,
        ticks: Sender<(u32, Interval)>,
    ) -> Result<Self, Failure> {
        let (in_flight_max, pacing) = match plan.pace {
            Pace::Open(rate) => {
                let rng = plan.rng().fork(&format!("arrivals {index}"));
                let arrivals = Arrivals::new(rate / plan.threads as f64, start, rng);
                (OPEN_IN_FLIGHT_MAX, Pacing::Open(arrivals))
            }
            Pace::Closed(in_flight) => {
                let share = (in_flight + index) / plan.threads;
                (share.max(1), Pacing::Closed(share))
            }
        };
        let Plan { services, deadline, retransmit, passes, .. } = plan;
        let mut link =
            Link::open(services, *deadline, *retransmit, in_flight_max, passes.as_ref())?;
        link.coordinate(&plan.coordination)?;
        Ok(Self {
            plan,
            link,
            source,
            population,
            pacing,
            start,
            waiting: Tickets::new(),
            held: None,
            over: false,
            stamp: (index as u64) << GRANT_BITS,
            recorder: Recorder::new(),
            lateness: Recorder::new(),
            wrong_values: 0,
            ticks: Ticks { piece: plan.piece, next: 1, to: ticks },
            key: Vec::new(),
            value: Vec::new(),
        })
    }

    /// Runs until the source is exhausted and all requests have ended.
    pub(crate) fn run(mut self) -> Result<Finished, Failure> {
        loop {
            let now = self.link.now();
            self.tick(now);
            if let Some((op, intended)) = self.held.take() {
                self.start_op(now, op, intended)?;
            }
            if !self.over {
                self.over = self.start_due(now)?;
            }
            if self.over && self.held.is_none() && self.link.client.in_flight() == 0 {
                return Ok(self.finish());
            }
            let until = self.wake_at();
            self.link.turn(until)?;
            self.take_outcomes();
        }
    }

    /// Starts what is due. Says whether nothing more will come.
    fn start_due(&mut self, now: Instant) -> Result<bool, Failure> {
        let end = self.end();
        while self.held.is_none() {
            let waiting = self.link.client.in_flight();
            let intended = match &mut self.pacing {
                Pacing::Closed(most) => (waiting < *most && now < end).then_some(now),
                Pacing::Open(_) if waiting >= OPEN_IN_FLIGHT_MAX => None,
                Pacing::Open(arrivals) => arrivals.due(now.min(end)),
            };
            let Some(intended) = intended else { break };
            let op = match &mut self.source {
                Source::Mix { generator, .. } => generator.next_op(now),
                Source::Keys(keys) => match keys.next() {
                    Some(key) => Op::Put { key },
                    None => return Ok(true),
                },
            };
            // With less room it is the cluster that holds operations up.
            if waiting < OPEN_IN_FLIGHT_MAX / 2 {
                self.lateness.record(op.kind(), Ending::Done, now.since(intended));
            }
            self.start_op(now, op, intended)?;
        }
        Ok(now >= end)
    }

    /// When the last operation may start.
    fn end(&self) -> Instant {
        match &self.source {
            Source::Mix { end, .. } => *end,
            Source::Keys(_) => Instant(u64::MAX),
        }
    }

    /// Starts the first request of an operation, or holds the operation if there is no room.
    fn start_op(&mut self, now: Instant, op: Op, intended: Instant) -> Result<(), Failure> {
        let kind = op.kind();
        let plan = self.plan;
        let part = match &op {
            Op::Get { key } => Part::Read { key: *key },
            Op::Rmw { key } => Part::ReadBeforeWrite { key: *key },
            Op::Cas { key } => Part::ReadBeforeCas { key: *key },
            Op::Put { .. } => Part::Write,
            Op::Insert { key } => Part::Insert { key: *key },
            Op::Del { .. } => Part::Delete,
            Op::Incr { .. } => Part::Incr,
            Op::Mget { keys } => Part::Mget { keys: keys.clone() },
            Op::Scan { .. } => Part::Scan,
        };
        let waiting = Waiting { kind, intended, part };
        let started = match &op {
            Op::Get { key } | Op::Rmw { key } | Op::Cas { key } => {
                name(&plan.names, *key, &mut self.key);
                self.send(now, waiting, |key, _| Request::Get { key })
            }
            Op::Put { key } | Op::Insert { key } => {
                self.new_value(*key);
                let expiry = Expiry::Never;
                self.send(now, waiting, |key, value| Request::Put { key, value, expiry })
            }
            Op::Del { key } => {
                name(&plan.names, *key, &mut self.key);
                self.send(now, waiting, |key, _| Request::Del { key })
            }
            Op::Incr { counter } => {
                name(&plan.counters, *counter, &mut self.key);
                self.send(now, waiting, |key, _| Request::Incr { key, delta: 1 })
            }
            Op::Mget { keys } => {
                let (mut all, mut ends) = (Vec::new(), Vec::with_capacity(keys.len()));
                for key in keys {
                    plan.names.write(*key, &mut all);
                    ends.push(all.len());
                }
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let name = |(start, end)| all.get(start..end).expect("it was written there");
                let names: Vec<&[u8]> = starts.zip(ends.iter().copied()).map(name).collect();
                self.send(now, waiting, |_, _| Request::Mget { keys: &names, within: None })
            }
            Op::Scan { from, length } => {
                name(&plan.names, *from, &mut self.key);
                let limit = usize::try_from(*length).ok();
                self.send(now, waiting, |key, _| Request::Range {
                    start: Bound::Included(key),
                    end: Bound::Unbounded,
                    reverse: false,
                    limit,
                    keys_only: false,
                })
            }
        };
        match started {
            Ok(()) => Ok(()),
            Err(StartError::Busy) => {
                self.held = Some((op, intended));
                Ok(())
            }
            Err(error) => Err(Failure::usage(error.to_string())),
        }
    }

    /// Starts a request made of the key and value in the buffers.
    fn send<'b>(
        &'b mut self,
        now: Instant,
        waiting: Waiting,
        request: impl FnOnce(&'b [u8], &'b [u8]) -> Request<'b>,
    ) -> Result<(), StartError> {
        let request = request(&self.key, &self.value);
        let ticket = self.link.client.start(now, &self.plan.keyspace, request)?;
        self.waiting.insert(ticket, waiting);
        Ok(())
    }

    /// Puts the name of a key, and a value for it that was never written, into the buffers.
    fn new_value(&mut self, key: u64) {
        name(&self.plan.names, key, &mut self.key);
        self.stamp += 1;
        self.value.clear();
        self.plan.values.write(key, self.stamp, &mut self.value);
    }

    fn take_outcomes(&mut self) {
        let now = self.link.now();
        while let Some((ticket, outcome)) = self.link.client.poll_outcome() {
            let waiting = self.waiting.take(ticket).expect("every request has a note");
            if let Part::Insert { key } = waiting.part {
                self.population.ended(key);
            }
            let reply = match outcome {
                Outcome::Done(reply) => reply,
                Outcome::Refused(_) => {
                    self.end_op(now, &waiting, Ending::Refused);
                    continue;
                }
                Outcome::Unknown(_) => {
                    self.end_op(now, &waiting, Ending::Unknown);
                    continue;
                }
            };
            let ending = match (&waiting.part, &reply) {
                (
                    Part::ReadBeforeWrite { key } | Part::ReadBeforeCas { key },
                    Reply::Get(found),
                ) => {
                    self.check(*key, found.as_ref());
                    self.write_after_read(now, *key, found.as_ref(), &waiting)
                }
                (part, reply) => Some(self.judge(part, reply)),
            };
            if let Some(ending) = ending {
                self.end_op(now, &waiting, ending);
            }
        }
    }

    /// Starts the second request of an operation. If the client has no room for it, the operation
    /// has ended.
    fn write_after_read(
        &mut self,
        now: Instant,
        key: u64,
        found: Option<&client::Value>,
        before: &Waiting,
    ) -> Option<Ending> {
        self.new_value(key);
        let Waiting { kind, intended, part } = before;
        let expiry = Expiry::Never;
        let started = if matches!(part, Part::ReadBeforeCas { .. }) {
            let expect = Expect::Version(found.map_or(Version::NONE, |value| value.version));
            let waiting = Waiting { kind: *kind, intended: *intended, part: Part::Cas };
            self.send(now, waiting, |key, value| Request::Cas {
                key,
                expect,
                new: New::Value(value),
                expiry,
            })
        } else {
            let waiting = Waiting { kind: *kind, intended: *intended, part: Part::Write };
            self.send(now, waiting, |key, value| Request::Put { key, value, expiry })
        };
        started.err().map(|_| Ending::Refused)
    }

    /// How an operation ended, given the reply to its last request.
    fn judge(&mut self, part: &Part, reply: &Reply) -> Ending {
        match (part, reply) {
            (Part::Read { key }, Reply::Get(found)) => {
                self.check(*key, found.as_ref());
                if found.is_some() { Ending::Done } else { Ending::NotFound }
            }
            (Part::Mget { keys }, Reply::Mget(outcomes)) => self.judge_mget(keys, outcomes),
            (_, Reply::Range(entries)) => {
                for (key, value) in entries {
                    if let Some(index) = self.plan.names.index(key) {
                        self.check(index, Some(value));
                    }
                }
                self.wrong_values += u64::from(!entries.is_sorted_by(|(a, _), (b, _)| a < b));
                Ending::Done
            }
            (_, Reply::Del(reply)) if !reply.existed => Ending::NotFound,
            (_, Reply::Cas(CasReply::Mismatch { .. })) => Ending::Conflict,
            (_, Reply::Incr(IncrReply::NotANumber | IncrReply::Overflow)) => Ending::Conflict,
            _ => Ending::Done,
        }
    }

    fn judge_mget(&mut self, keys: &[u64], outcomes: &[Outcome<Option<client::Value>>]) -> Ending {
        let mut ending = Ending::Done;
        for (key, outcome) in keys.iter().zip(outcomes) {
            match outcome {
                Outcome::Done(Some(value)) => self.check(*key, Some(value)),
                Outcome::Done(None) if ending == Ending::Done => ending = Ending::NotFound,
                Outcome::Done(None) => {}
                Outcome::Refused(_) => ending = Ending::Refused,
                Outcome::Unknown(_) => return Ending::Unknown,
            }
        }
        ending
    }

    fn check(&mut self, key: u64, found: Option<&client::Value>) {
        let wrong = found.is_some_and(|it| Values::stamp_of(key, &it.value).is_none());
        self.wrong_values += u64::from(wrong);
    }

    fn end_op(&mut self, now: Instant, waiting: &Waiting, ending: Ending) {
        self.recorder.record(waiting.kind, ending, now.since(waiting.intended));
    }

    fn tick(&mut self, now: Instant) {
        while now >= self.ticks.at(self.start) {
            let interval = self.recorder.take_interval();
            // Nobody listens when the run is not to be shown.
            self.ticks.to.send((self.ticks.next, interval)).ok();
            self.ticks.next += 1;
        }
    }

    fn wake_at(&mut self) -> Instant {
        let tick = self.ticks.at(self.start);
        if self.over {
            return tick;
        }
        let at = tick.min(self.end());
        match &self.pacing {
            Pacing::Open(arrivals) if self.link.client.in_flight() < OPEN_IN_FLIGHT_MAX => {
                at.min(arrivals.next_start())
            }
            Pacing::Open(_) | Pacing::Closed(_) => at,
        }
    }

    fn finish(mut self) -> Finished {
        let end = self.end();
        let never_started = match &mut self.pacing {
            Pacing::Open(arrivals) => std::iter::from_fn(|| arrivals.due(end)).count() as u64,
            Pacing::Closed(_) => 0,
        };
        Finished {
            recorder: self.recorder,
            lateness: self.lateness,
            wrong_values: self.wrong_values,
            never_started,
            counters: self.link.client.counters().clone(),
            spent: of_this_thread(),
        }
    }
}

impl Ticks {
    fn at(&self, start: Instant) -> Instant {
        start + self.piece * self.next
    }
}

/// Grants of one thread: room for years of writes.
const GRANT_BITS: u32 = 48;

fn name(names: &KeyNames, index: u64, buffer: &mut Vec<u8>) {
    buffer.clear();
    names.write(index, buffer);
}
