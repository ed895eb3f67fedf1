//! A closed loop of multigets from one socket: so many in flight, and a new one for each of which
//! every key has been answered.

use crate::load::closed_loop::{BATCH, RESEND_AFTER, SILENCE_MAX, now};
use crate::load::contents::{Contents, KEYS};
use crate::load::keyway::{Known, Reach, stamp_direct};
use crate::load::round::{Meter, Round};
use arrayvec::ArrayVec;
use machine::Rng;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use runtime::net::{Inbound, Outbound, Socket};
use std::io;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};
use wire::{Body, Endpoint, Fields as _, Header, MGET_KEYS_MAX, MgetKey, Op, Packet};

/// Who takes a multiget apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// The switch: one request for all keys goes to the service address.
    Switch,
    /// The client: one request with its keys goes to each server, past the switch.
    Server,
    /// Nobody: one GET for each key goes to the service address.
    Key,
}

/// A client.
pub(crate) struct Asker {
    socket: Socket,
    inbound: Inbound,
    outbound: Outbound,
    /// Datagrams since something was sent.
    queued: usize,
    client: u64,
    known: Known,
    split: Split,
    servers: Vec<u32>,
    rng: Rng,
    open: Open,
    datagram: Vec<u8>,
}

/// A few indices: of keys, or places of parts.
type Indices = ArrayVec<usize, MGET_KEYS_MAX>;

/// Requests that wait for answers, and the multigets that they are parts of.
#[derive(Debug, Default)]
struct Open {
    /// By their place, which the low part of a request's number says.
    parts: Vec<Part>,
    parts_free: Vec<usize>,
    multigets: Vec<Multiget>,
    multigets_free: Vec<usize>,
    /// Requests so far.
    numbered: u64,
}

#[derive(Debug)]
struct Part {
    seq: u64,
    multiget: usize,
    keys: Indices,
    /// Bit of each key that has no answer yet.
    missing: u32,
    to: Endpoint,
    /// The node that is stamped if the client does it.
    node: u16,
    sent_at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Multiget {
    keys: usize,
    /// Parts without all of their answers.
    missing: usize,
    began: Instant,
}

/// Places for parts at most; a power of two over what is ever in flight.
const PLACES: u64 = 4096;

impl Open {
    /// Makes a place for a multiget.
    fn begin(&mut self, keys: usize, began: Instant) -> usize {
        let multiget = Multiget { keys, missing: 0, began };
        place(&mut self.multigets, &mut self.multigets_free, multiget)
    }

    /// Adds a request to it; gives its place.
    fn add(&mut self, multiget: usize, keys: Indices, to: Endpoint, node: u16) -> usize {
        let whole = self.multigets.get_mut(multiget).expect("it has begun");
        whole.missing += 1;
        let (missing, sent_at) = (u32::MAX >> (MGET_KEYS_MAX - keys.len()), whole.began);
        let part = Part { seq: 0, multiget, keys, missing, to, node, sent_at };
        let at = place(&mut self.parts, &mut self.parts_free, part);
        assert!((at as u64) < PLACES, "fewer are in flight");
        self.numbered += 1;
        self.part(at).seq = self.numbered * PLACES + at as u64;
        at
    }

    fn part(&mut self, at: usize) -> &mut Part {
        self.parts.get_mut(at).expect("a place that was given")
    }

    /// Takes the answer for one key of a request. Frees what has all of its answers.
    fn answer(
        &mut self,
        contents: &Contents,
        (seq, index): (u64, u8),
        value: &[u8],
        now: Instant,
        round: &mut Round,
    ) {
        let at = usize::try_from(seq % PLACES).expect("a small number");
        let bit = 1u32.checked_shl(index.into()).expect("an index below the limit");
        let part = self.parts.get_mut(at).filter(|it| it.seq == seq && it.missing & bit != 0);
        let Some(part) = part else {
            round.strays += 1;
            return;
        };
        let key = *part.keys.get(usize::from(index)).expect("a key that was asked for");
        assert!(contents.is_right(key, value), "key {key}: a wrong value");
        part.missing &= !bit;
        if part.missing != 0 {
            return;
        }
        let number = part.multiget;
        self.parts_free.push(at);
        let whole = self.multigets.get_mut(number).expect("it has begun");
        whole.missing -= 1;
        if whole.missing == 0 {
            round.answered += whole.keys as u64;
            round.note_latency(now.duration_since(whole.began));
            self.multigets_free.push(number);
        }
    }

    fn multigets_in_flight(&self) -> usize {
        self.multigets.len() - self.multigets_free.len()
    }
}

/// Puts something where there is a place, or makes one.
fn place<T>(all: &mut Vec<T>, free: &mut Vec<usize>, it: T) -> usize {
    if let Some(at) = free.pop() {
        *all.get_mut(at).expect("a place that was given") = it;
        return at;
    }
    all.push(it);
    all.len() - 1
}

impl Asker {
    /// A client whose rounds are charged with the time of these processes.
    pub(crate) fn connect(
        reach: &Reach,
        contents: &Contents,
        split: Split,
        servers: Vec<u32>,
    ) -> io::Result<Self> {
        let socket = reach.bind()?;
        Ok(Self {
            inbound: Inbound::new(socket.family()),
            outbound: Outbound::new(socket.family()),
            socket,
            queued: 0,
            client: runtime::entropy::draw()?,
            known: Known::of(reach, contents),
            split,
            servers,
            rng: Rng::new(2),
            open: Open::default(),
            datagram: Vec::new(),
        })
    }

    /// Asks for `keys` keys at a time, at random, for so long, and waits for the last answers. What
    /// is answered is counted in keys, and latencies are those of whole multigets.
    pub(crate) fn run(
        &mut self,
        contents: &Contents,
        keys: usize,
        in_flight: usize,
        length: Duration,
    ) -> Round {
        let mut meter = Meter::start(&self.servers);
        let mut heard_at = now();
        let end = heard_at + length;
        loop {
            let began = now();
            while began < end && self.open.multigets_in_flight() < in_flight {
                self.ask(contents, keys, began);
            }
            self.send();
            if self.open.multigets_in_flight() == 0 {
                return meter.stop(&self.servers);
            }
            if self.receive(contents, &mut meter.round) {
                heard_at = now();
            } else if !self.wait() {
                assert!(heard_at.elapsed() < SILENCE_MAX, "the store does not answer");
                meter.round.resent += self.resend(contents);
            }
        }
    }

    /// Begins a multiget.
    fn ask(&mut self, contents: &Contents, keys: usize, began: Instant) {
        let multiget = self.open.begin(keys, began);
        let key = |rng: &mut Rng| usize::try_from(rng.below(KEYS as u64)).expect("an index");
        let keys: Indices = (0..keys).map(|_| key(&mut self.rng)).collect();
        let service = self.known.service;
        let mut parts = Indices::new();
        let mut add = |keys, to, node| parts.push(self.open.add(multiget, keys, to, node));
        match self.split {
            Split::Switch => add(keys, service, 0),
            Split::Key => keys.iter().for_each(|key| add(Indices::from_iter([*key]), service, 0)),
            Split::Server => {
                group(&self.known, &keys).into_iter().for_each(|it| add(it.keys, it.to, it.node));
            }
        }
        parts.iter().for_each(|at| self.queue(contents, *at));
    }

    fn queue(&mut self, contents: &Contents, at: usize) {
        let Self { known, split, client, datagram, .. } = self;
        let part = self.open.part(at);
        datagram.clear();
        if *split == Split::Key {
            let index = *part.keys.first().expect("one key");
            let header = known.header(Op::Get, index);
            let header = Header { client: *client, seq: part.seq, ..header };
            wire::emit(datagram, &header, &[contents.name(index)]);
        } else {
            let mut header = Header {
                op: Op::Mget as u8,
                keyspace: known.keyspace,
                client: *client,
                seq: part.seq,
                bitmap: part.missing,
                ..Header::default()
            };
            if *split == Split::Server {
                stamp_direct(&mut header, self.socket.local());
                header.set_chain([part.node]);
            }
            let keys = part.keys.iter().map(|index| {
                let (hashed, _) = known.key(*index);
                let key = contents.name(*index).as_slice();
                MgetKey { match_value: hashed.match_value, keyhash: hashed.keyhash, key }
            });
            wire::emit_mget(datagram, &header, keys);
        }
        self.outbound.push(part.to, datagram);
        self.queued += 1;
        if self.queued == BATCH {
            self.send();
        }
    }

    fn send(&mut self) {
        // What the kernel refuses is sent again like anything that gets lost.
        self.outbound.send(&self.socket);
        self.queued = 0;
    }

    /// Takes what has arrived, without waiting; whether there was something.
    fn receive(&mut self, contents: &Contents, round: &mut Round) -> bool {
        let count = self.inbound.receive(&self.socket).expect("the socket is open");
        let now = now();
        for received in self.inbound.iter_mut() {
            let packet = Packet::parse(received.payload);
            let packet = packet.unwrap_or_else(|reason| panic!("a reply is {}", reason.name()));
            let header = packet.header();
            assert_eq!(header.client(), self.client, "a reply to somebody else");
            let seq = header.seq();
            let mut answer = |index, value| {
                self.open.answer(contents, (seq, index), value, now, round);
            };
            match (packet.body(), header.code()) {
                (Ok(Body::GetReply(entry)), 0) => answer(0, entry.value),
                (Ok(Body::MgetReply(entries)), 0) => {
                    for (index, code, entry) in entries.iter() {
                        assert_eq!(code, 0, "an entry with code {code}");
                        answer(index, entry.value);
                    }
                }
                (body, code) => panic!("an answer {body:?}, code {code}"),
            }
        }
        count > 0
    }

    /// Waits for an answer; `false` if none came for a while.
    fn wait(&self) -> bool {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(RESEND_AFTER).expect("a short time");
        poll(&mut fds, timeout).is_ok_and(|ready| ready > 0)
    }

    /// Asks again for what has waited for too long. Gives the number of such requests.
    fn resend(&mut self, contents: &Contents) -> u64 {
        let late = |part: &Part| part.missing != 0 && part.sent_at.elapsed() >= RESEND_AFTER;
        let parts = self.open.parts.iter().enumerate();
        let late: Vec<usize> = parts.filter(|(_, part)| late(part)).map(|(at, _)| at).collect();
        for at in &late {
            self.open.part(*at).sent_at = now();
            self.queue(contents, *at);
        }
        self.send();
        late.len() as u64
    }
}

/// Keys of one server.
struct Group {
    to: Endpoint,
    node: u16,
    keys: Indices,
}

/// Does the switch's work, and better: each server is to get its own keys and no others.
fn group(known: &Known, keys: &Indices) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for index in keys {
        let (_, route) = known.key(*index);
        match groups.iter_mut().find(|group| group.to == route.tail) {
            Some(group) => group.keys.push(*index),
            None => groups.push(Group {
                to: route.tail,
                node: route.tail_id,
                keys: Indices::from_iter([*index]),
            }),
        }
    }
    groups
}
