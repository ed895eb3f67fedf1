//! A simulated user: keeps a few requests in flight and writes down what it saw.

use crate::history::{History, Key};
use crate::lincheck::{Op, OpKind};
use crate::options::Options;
use client::{
    CasReply, Client, ClientConfig, Expect, Expiry, IncrReply, Outcome, Reply, Request, Ticket,
    Value,
};
use cluster::Keyspace;
use machine::{Instant, Rng};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use wire::Endpoint;

/// One client and what it is doing.
pub(crate) struct Actor {
    pub(crate) machine: Client,
    pub(crate) endpoint: Endpoint,
    index: usize,
    rng: Rng,
    in_flight: usize,
    keys: u64,
    /// Requests still to be started.
    left: usize,
    started: i64,
    waiting: BTreeMap<Ticket, Asked>,
    /// What it last read of each register: value and version.
    seen: BTreeMap<Vec<u8>, (i64, u64)>,
    /// Once the network is healed every request must be answered.
    healed: bool,
    pub(crate) done: usize,
    pub(crate) unknown: usize,
}

struct Asked {
    at: Instant,
    healed: bool,
    what: What,
}

enum What {
    One(Key, OpKind),
    Many(Vec<Key>),
    Scan { first: u64, last: u64, limit: Option<usize>, reverse: bool },
}

/// Keys in the range keyspace: k0 to k7.
pub(crate) const ORDERED_KEYS: u64 = 8;

impl Actor {
    pub(crate) fn new(options: &Options, index: usize, service: Endpoint, at: Endpoint) -> Self {
        let rng = Rng::new(options.seed).fork(&format!("actor {index}"));
        let config = ClientConfig::new(service, 1_000 + index as u64);
        Self {
            machine: Client::new(config, rng.fork("machine")),
            endpoint: at,
            index,
            rng,
            in_flight: options.in_flight,
            keys: options.keys,
            left: options.requests,
            started: 0,
            waiting: BTreeMap::new(),
            seen: BTreeMap::new(),
            healed: false,
            done: 0,
            unknown: 0,
        }
    }

    /// From now on nothing may stay unanswered.
    pub(crate) fn heal(&mut self, requests: usize) {
        self.healed = true;
        self.left = requests;
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.left == 0 && self.waiting.is_empty()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes outcomes and starts requests.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        keyspaces: &[Arc<Keyspace>; 2],
        history: &mut History,
    ) {
        while let Some((ticket, outcome)) = self.machine.poll_outcome() {
            let asked = self.waiting.remove(&ticket).expect("outcomes are of what was started");
            self.conclude(now, asked, outcome, history);
        }
        while self.left > 0 && self.waiting.len() < self.in_flight {
            self.left -= 1;
            self.start(now, keyspaces);
        }
    }

    fn start(&mut self, now: Instant, keyspaces: &[Arc<Keyspace>; 2]) {
        self.started += 1;
        let value = (self.index as i64 + 1) * 1_000_000 + self.started;
        let text = value.to_string();
        let register = self.register();
        let counter = Key { ordered: false, key: format!("c{}", self.rng.below(2)).into_bytes() };
        let seen = self.seen.get(&register.key).copied();
        let (request, what) = match self.rng.below(100) {
            0..25 => (Request::Get { key: &register.key }, OpKind::Read(None)),
            25..45 => {
                let (expiry, expiry_ms) = self.draw_expiry(now, &register);
                let kind = OpKind::Put { value, expiry_ms };
                (Request::Put { key: &register.key, value: text.as_bytes(), expiry }, kind)
            }
            45..55 => (Request::Del { key: &register.key }, OpKind::Del { existed: None }),
            55..68 => {
                let by_version = self.rng.chance(1, 2);
                let expected = seen.map_or(String::new(), |(value, _)| value.to_string());
                let (expect, wanted) = match seen {
                    Some((value, version)) if by_version => (Expect::Version(version), Some(value)),
                    Some((value, _)) => (Expect::Value(expected.as_bytes()), Some(value)),
                    None => (Expect::Version(0), None),
                };
                let (key, expiry) = (&*register.key, Expiry::Never);
                let request = Request::Cas { key, expect, value: text.as_bytes(), expiry };
                let kind = OpKind::Cas { expect: wanted, value, written: None };
                self.submit(now, keyspaces, request, What::One(register.clone(), kind));
                return;
            }
            68..80 => {
                let delta = i64::try_from(self.rng.below(9)).expect("small") + 1;
                let kind = OpKind::Incr { delta, sum: None };
                let request = Request::Incr { key: &counter.key, delta };
                self.submit(now, keyspaces, request, What::One(counter.clone(), kind));
                return;
            }
            80..85 => {
                let request = Request::Get { key: &counter.key };
                let what = What::One(counter.clone(), OpKind::Read(None));
                self.submit(now, keyspaces, request, what);
                return;
            }
            85..93 => return self.start_mget(now, keyspaces),
            _ => return self.start_scan(now, keyspaces),
        };
        self.submit(now, keyspaces, request, What::One(register.clone(), what));
    }

    fn register(&mut self) -> Key {
        if self.rng.chance(1, 3) {
            let key = format!("k{}", self.rng.below(ORDERED_KEYS)).into_bytes();
            Key { ordered: true, key }
        } else {
            Key { ordered: false, key: format!("r{}", self.rng.below(self.keys)).into_bytes() }
        }
    }

    /// Now and then a value that goes by itself; not where it would be scanned, since a scan leaves
    /// out a value whose time has come without waiting for its tombstone.
    fn draw_expiry(&mut self, now: Instant, key: &Key) -> (Expiry, u64) {
        if !key.ordered && self.rng.chance(1, 5) {
            let at = now.unix_ms() + 1 + self.rng.below(400);
            (Expiry::AtMs(at), at)
        } else {
            (Expiry::Never, 0)
        }
    }

    fn start_mget(&mut self, now: Instant, [hashed, _]: &[Arc<Keyspace>; 2]) {
        let of_text = |key: String| Key { ordered: false, key: key.into_bytes() };
        let mut keys: Vec<Key> = (0..self.keys).map(|n| of_text(format!("r{n}"))).collect();
        keys.extend((0..2).map(|n| of_text(format!("c{n}"))));
        let slices: Vec<&[u8]> = keys.iter().map(|key| key.key.as_slice()).collect();
        let request = Request::Mget { keys: &slices };
        let ticket = self.machine.start(now, hashed, request).expect("a sound request");
        let asked = Asked { at: now, healed: self.healed, what: What::Many(keys.clone()) };
        self.waiting.insert(ticket, asked);
    }

    fn start_scan(&mut self, now: Instant, [_, ordered]: &[Arc<Keyspace>; 2]) {
        let (a, b) = (self.rng.below(ORDERED_KEYS), self.rng.below(ORDERED_KEYS));
        let (first, last) = (a.min(b), a.max(b));
        let limit = self.rng.chance(1, 2).then(|| self.rng.below(4) + 1);
        let limit = limit.map(|limit| usize::try_from(limit).expect("small"));
        let reverse = self.rng.chance(1, 2);
        let (start, end) = (format!("k{first}"), format!("k{last}"));
        let request = Request::Range {
            start: Bound::Included(start.as_bytes()),
            end: Bound::Included(end.as_bytes()),
            reverse,
            limit,
        };
        let what = What::Scan { first, last, limit, reverse };
        let ticket = self.machine.start(now, ordered, request).expect("a sound request");
        self.waiting.insert(ticket, Asked { at: now, healed: self.healed, what });
    }

    fn submit(
        &mut self,
        now: Instant,
        keyspaces: &[Arc<Keyspace>; 2],
        request: Request<'_>,
        what: What,
    ) {
        let ordered = matches!(&what, What::One(key, _) if key.ordered);
        let [hashed, in_order] = keyspaces;
        let keyspace = if ordered { in_order } else { hashed };
        let ticket = self.machine.start(now, keyspace, request).expect("a sound request");
        self.waiting.insert(ticket, Asked { at: now, healed: self.healed, what });
    }

    fn conclude(
        &mut self,
        now: Instant,
        asked: Asked,
        outcome: Outcome<Reply>,
        history: &mut History,
    ) {
        let reply = match outcome {
            Outcome::Done(reply) => Some(reply),
            Outcome::Unknown(_) => None,
            Outcome::Refused(why) => {
                history.violation(format!("client {}: refused: {why}", self.index));
                return;
            }
        };
        if reply.is_some() {
            self.done += 1;
        } else {
            self.unknown += 1;
            if asked.healed {
                history.violation(format!("client {}: unknown on a healed network", self.index));
            }
        }
        let returned = reply.is_some().then_some(now);
        let op =
            |kind, version| Op { client: self.index, called: asked.at, returned, kind, version };
        match asked.what {
            What::One(key, kind) => {
                let (kind, version) = match reply {
                    Some(reply) => complete(kind, &reply, history),
                    None if matches!(kind, OpKind::Read(_)) => return,
                    None => (kind, 0),
                };
                history.record(&key, op(kind, version));
                match kind {
                    OpKind::Read(Some(value)) => self.seen.insert(key.key, (value, version)),
                    OpKind::Read(None) => self.seen.remove(&key.key),
                    _ => None,
                };
            }
            What::Many(keys) => {
                let Some(Reply::Mget(values)) = reply else { return };
                for (key, outcome) in keys.iter().zip(values) {
                    if let Outcome::Done(value) = outcome {
                        let (kind, version) = read(value.as_ref(), history);
                        history.record(key, op(kind, version));
                    }
                }
            }
            What::Scan { first, last, limit, reverse } => {
                let Some(Reply::Range(entries)) = reply else { return };
                self.conclude_scan(now, asked.at, (first, last), limit, reverse, entries, history);
            }
        }
    }

    /// A scan reads every key of its interval, those that it does not return as well.
    #[expect(clippy::too_many_arguments, reason = "the parts of one scan")]
    fn conclude_scan(
        &self,
        now: Instant,
        called: Instant,
        (first, last): (u64, u64),
        limit: Option<usize>,
        reverse: bool,
        entries: Vec<(Vec<u8>, Value)>,
        history: &mut History,
    ) {
        let in_order = entries.windows(2).all(|pair| match pair {
            [(a, _), (b, _)] => {
                if reverse {
                    a > b
                } else {
                    a < b
                }
            }
            _ => true,
        });
        if !in_order || limit.is_some_and(|limit| entries.len() > limit) {
            history.violation(format!("scan out of order or over its limit: {entries:?}"));
        }
        let cut = limit.is_some_and(|limit| entries.len() == limit);
        let reached = entries.last().filter(|_| cut).map(|(key, _)| key.clone());
        let mut found: BTreeMap<Vec<u8>, Value> = entries.into_iter().collect();
        for n in first..=last {
            let key = format!("k{n}").into_bytes();
            let beyond = |end: &Vec<u8>| if reverse { key < *end } else { key > *end };
            let value = found.remove(&key);
            if reached.as_ref().is_some_and(beyond) {
                continue;
            }
            let (kind, version) = read(value.as_ref(), history);
            let op = Op { client: self.index, called, returned: Some(now), kind, version };
            history.record(&Key { ordered: true, key }, op);
        }
        if !found.is_empty() {
            history.violation(format!("a scan gave keys outside its interval: {found:?}"));
        }
    }
}

/// Fills in what the reply says was seen, and at which version.
fn complete(kind: OpKind, reply: &Reply, history: &mut History) -> (OpKind, u64) {
    match (kind, reply) {
        (OpKind::Read(_), Reply::Get(value)) => read(value.as_ref(), history),
        (OpKind::Put { .. }, Reply::Put { version }) => (kind, *version),
        (OpKind::Del { .. }, Reply::Del(del)) => {
            let version = if del.existed { del.version } else { 0 };
            (OpKind::Del { existed: Some(del.existed) }, version)
        }
        (OpKind::Cas { expect, value, .. }, Reply::Cas(CasReply::Written { version })) => {
            (OpKind::Cas { expect, value, written: Some(true) }, *version)
        }
        (OpKind::Cas { expect, value, .. }, Reply::Cas(CasReply::Mismatch { .. })) => {
            (OpKind::Cas { expect, value, written: Some(false) }, 0)
        }
        (OpKind::Incr { delta, .. }, Reply::Incr(IncrReply::Sum { sum, version })) => {
            (OpKind::Incr { delta, sum: Some(*sum) }, *version)
        }
        (kind, reply) => {
            history.violation(format!("{kind:?} answered by {reply:?}"));
            (kind, 0)
        }
    }
}

fn read(value: Option<&Value>, history: &mut History) -> (OpKind, u64) {
    let seen = value.map(|value| number(value, history));
    (OpKind::Read(seen), value.map_or(0, |value| value.version))
}

fn number(value: &Value, history: &mut History) -> i64 {
    let text = String::from_utf8_lossy(&value.value);
    text.parse().unwrap_or_else(|_| {
        history.violation(format!("a value that nobody wrote: {text:?}"));
        -1
    })
}

/// Long enough for every retry of a request and for a crashed role to come back.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
