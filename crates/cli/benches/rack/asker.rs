//! A loop of multigets from one socket: so many in flight, and a new one for each of which every
//! key has been answered; or so many a second. What is sent, and to whom, is for the client
//! machine.

use crate::load::closed_loop::{SILENCE_MAX, now};
use crate::load::contents::{Contents, KEYS};
use crate::load::keyway::Reach;
use crate::load::pace::{Next, Pace};
use crate::load::round::{Meter, Round};
use client::{Client, ClientConfig, Coordination, Outcome, Reply, Request, Routes, Ticket, Value};
use cluster::Keyspace;
use machine::{Datagram, Rng};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use runtime::clock::Clock;
use runtime::net::{Inbound, Outbound, Socket};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::DropReason;

/// Who takes a multiget apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// The switch: one request for all keys goes to the service address.
    Switch,
    /// The same with hints.
    Assisted,
    /// The client: one request with its keys goes to each server, past the switch.
    Server,
    /// Nobody: one GET for each key goes to the service address.
    Key,
}

/// Keys in flight in an open loop, for each of which the client may have a request: half of what it
/// takes at once.
const KEYS_IN_FLIGHT_MAX: usize = 2_048;

/// A client.
pub(crate) struct Asker {
    socket: Socket,
    inbound: Inbound,
    outbound: Outbound,
    clock: Clock,
    client: Client,
    keyspace: Arc<Keyspace>,
    split: Split,
    servers: Vec<u32>,
    rng: Rng,
    /// Requests that wait for answers: which keys, and of which multiget they are part.
    parts: BTreeMap<Ticket, (Vec<usize>, u64)>,
    /// By their numbers.
    multigets: BTreeMap<u64, Multiget>,
    /// Multigets so far.
    numbered: u64,
}

#[derive(Clone, Copy, Debug)]
struct Multiget {
    keys: usize,
    /// Keys without an answer.
    missing: usize,
    began: Instant,
}

impl Asker {
    /// A client whose rounds are charged with the time of these processes.
    pub(crate) fn connect(reach: &Reach, split: Split, servers: Vec<u32>) -> io::Result<Self> {
        let socket = reach.bind()?;
        let directory = || Arc::new(Routes::new(&reach.map, socket.local().into()));
        let mut config = ClientConfig::new(reach.service, runtime::entropy::draw()?.max(1));
        config.coordination = match split {
            Split::Switch | Split::Key => Coordination::Switch,
            Split::Assisted => Coordination::Assisted(directory()),
            Split::Server => Coordination::Client(directory()),
        };
        Ok(Self {
            inbound: Inbound::new(socket.family()),
            outbound: Outbound::new(socket.family()),
            socket,
            clock: Clock::new(),
            client: Client::new(config, Rng::new(1)),
            keyspace: Arc::new(reach.keyspace().clone()),
            split,
            servers,
            rng: Rng::new(2),
            parts: BTreeMap::new(),
            multigets: BTreeMap::new(),
            numbered: 0,
        })
    }

    /// Asks for `keys` keys at a time, at random, for so long, and waits for the last answers. What
    /// is answered is counted in keys, and latencies are those of whole multigets.
    pub(crate) fn run(
        &mut self,
        contents: &Contents,
        keys: usize,
        pace: Pace,
        length: Duration,
    ) -> Round {
        let mut meter = Meter::start(&self.servers);
        let before = self.losses();
        let mut heard_at = now();
        let mut schedule = pace.schedule(heard_at, heard_at + length);
        let in_flight_max = pace.in_flight_max().min(KEYS_IN_FLIGHT_MAX / keys);
        loop {
            let (began, mut later) = (now(), None);
            while self.multigets.len() < in_flight_max {
                // Which keys is drawn below.
                match schedule.next(&mut self.rng, began, |_| 0) {
                    Next::Ask { due, .. } => self.ask(contents, keys, due),
                    Next::Later(due) => {
                        later = Some(due);
                        break;
                    }
                    Next::Over => break,
                }
            }
            self.send();
            if self.multigets.is_empty() && later.is_none() {
                let [resent, strays] = self.losses();
                (meter.round.resent, meter.round.strays) = (resent - before[0], strays - before[1]);
                return meter.stop(&self.servers);
            }
            if self.receive() {
                heard_at = now();
                self.conclude(contents, &mut meter.round);
            } else {
                assert!(heard_at.elapsed() < SILENCE_MAX, "the store does not answer");
                self.wait(later);
            }
        }
    }

    /// Copies sent, and answers to nothing that waited.
    fn losses(&self) -> [u64; 2] {
        let counters = self.client.counters();
        [counters.retransmits, counters.dropped(DropReason::UnknownRequest)]
    }

    /// Begins a multiget.
    fn ask(&mut self, contents: &Contents, keys: usize, began: Instant) {
        self.numbered += 1;
        let number = self.numbered;
        self.multigets.insert(number, Multiget { keys, missing: keys, began });
        let key = |rng: &mut Rng| usize::try_from(rng.below(KEYS as u64)).expect("an index");
        let indices: Vec<usize> = (0..keys).map(|_| key(&mut self.rng)).collect();
        if self.split == Split::Key {
            for index in indices {
                let key = contents.name(index);
                self.start(Request::Get { key }, vec![index], number);
            }
            return;
        }
        let names: Vec<&[u8]> = indices.iter().map(|at| contents.name(*at).as_slice()).collect();
        self.start(Request::Mget { keys: &names, within: None }, indices, number);
    }

    fn start(&mut self, request: Request<'_>, keys: Vec<usize>, multiget: u64) {
        let ticket = self.client.start(self.clock.now(), &self.keyspace, request);
        self.parts.insert(ticket.expect("a sound request, and few at once"), (keys, multiget));
    }

    fn send(&mut self) {
        while let Some(Datagram { to, payload, .. }) = self.client.poll_transmit() {
            self.outbound.push(to, payload);
            if self.outbound.is_full() {
                // What the kernel refuses is sent again like anything that gets lost.
                self.outbound.send(&self.socket);
            }
        }
        self.outbound.send(&self.socket);
    }

    /// Takes what has arrived, without waiting; whether there was something.
    fn receive(&mut self) -> bool {
        let count = self.inbound.receive(&self.socket).expect("the socket is open");
        let now = self.clock.now();
        for received in self.inbound.iter_mut() {
            self.client.handle_packet(now, received.from, received.payload);
        }
        if self.client.poll_timeout().is_some_and(|at| at <= now) {
            self.client.handle_timeout(now);
        }
        count > 0
    }

    /// Takes what was answered.
    fn conclude(&mut self, contents: &Contents, round: &mut Round) {
        let now = now();
        while let Some((ticket, outcome)) = self.client.poll_outcome() {
            let (keys, number) = self.parts.remove(&ticket).expect("it was started");
            let found = match outcome {
                Outcome::Done(Reply::Mget(found)) => found,
                Outcome::Done(Reply::Get(found)) => vec![Outcome::Done(found)],
                other => panic!("an answer {other:?}"),
            };
            for (key, found) in keys.iter().zip(found) {
                let Outcome::Done(Some(Value { value, .. })) = found else { panic!("{found:?}") };
                assert!(contents.is_right(*key, &value), "key {key}: a wrong value");
            }
            let whole = self.multigets.get_mut(&number).expect("it has begun");
            whole.missing -= keys.len();
            if whole.missing == 0 {
                round.answered += whole.keys as u64;
                round.note_latency(now.duration_since(whole.began));
                self.multigets.remove(&number);
            }
        }
    }

    /// Waits for an answer, until the client wants to do something or the next multiget is due.
    fn wait(&mut self, due: Option<Instant>) {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        let client = self.client.poll_timeout().map(|until| until.since(self.clock.now()));
        let due = due.map(|due| due.saturating_duration_since(now()));
        let left = client.into_iter().chain(due).min().expect("something waits or is due");
        // Whether it was interrupted shows when it looks again.
        let _ = ppoll(&mut fds, Some(TimeSpec::from_duration(left)), None);
    }
}
