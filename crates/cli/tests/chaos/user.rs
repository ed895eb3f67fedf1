//! A user of the cluster: asks for one thing after the other, and writes down what it saw.

use crate::run::CLOCK_OFF_MS;
use crate::watch::{Watch, pause};
use client::blocking::{Client, Space};
use client::{Expect, Expiry, New, Outcome, PutOptions, Reply, ScanOptions};
use machine::{Instant, Rng};
use sim::check::{History, Key, Op, OpKind, Scan, complete};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// A keyspace that is hashed.
pub(crate) const HASHED: &str = "hashed";
/// A keyspace that is kept in order; its keys begin with a k.
pub(crate) const ORDERED: &str = "ordered";

const REGISTERS: u64 = 8;
const COUNTERS: u64 = 2;
const ORDERED_KEYS: u64 = 8;

/// Holds values that nobody else has ever written.
fn register(n: u64) -> Key {
    Key { ordered: false, key: format!("r{n}").into_bytes() }
}

/// Is only added to: it may hold a value twice, so that nobody could expect one.
fn counter(n: u64) -> Key {
    Key { ordered: false, key: format!("c{n}").into_bytes() }
}

/// A register that is scanned.
fn ordered(n: u64) -> Key {
    Key { ordered: true, key: format!("k{n}").into_bytes() }
}

fn hashed_keys() -> Vec<Key> {
    (0..REGISTERS).map(register).chain((0..COUNTERS).map(counter)).collect()
}

/// Asks one request at a time.
#[derive(Debug)]
pub(crate) struct User {
    index: usize,
    rng: Rng,
    watch: Arc<Watch>,
    spaces: Spaces,
    /// Whether each request must be answered.
    sure: bool,
    /// Whether one was not that had to be: it asks for nothing more.
    gave_up: bool,
    /// Values written so far, so that no two are the same.
    written: i64,
    /// What it last read of each key: value and version.
    seen: BTreeMap<Key, (i64, u64)>,
    pub(crate) history: History,
    /// Answers that it got.
    pub(crate) done: usize,
    /// Requests, or keys of multigets, that were not answered in time.
    pub(crate) unknown: usize,
}

/// Both keyspaces, as one client sees them.
#[derive(Clone, Debug)]
pub(crate) struct Spaces {
    hashed: Space,
    ordered: Space,
}

impl Spaces {
    /// Looks them up.
    pub(crate) fn of(client: &Client) -> Self {
        let look_up = |name| client.keyspace(name).expect("the cluster is up");
        Self { hashed: look_up(HASHED), ordered: look_up(ORDERED) }
    }

    /// The one that is hashed.
    pub(crate) fn hashed(&self) -> &Space {
        &self.hashed
    }

    fn of_key(&self, key: &Key) -> &Space {
        if key.ordered { &self.ordered } else { &self.hashed }
    }
}

/// Mean time between two requests of one user.
const THINK: Duration = Duration::from_millis(15);

impl User {
    pub(crate) fn new(seed: u64, index: usize, watch: Arc<Watch>, spaces: Spaces) -> Self {
        let rng = Rng::new(seed).fork(&format!("user {index}"));
        Self {
            index,
            rng,
            watch,
            spaces,
            sure: false,
            gave_up: false,
            written: 0,
            seen: BTreeMap::new(),
            history: History::default(),
            done: 0,
            unknown: 0,
        }
    }

    /// From now on it asks through this client, and every request must be answered.
    pub(crate) fn be_sure(&mut self, spaces: Spaces) {
        (self.sure, self.spaces) = (true, spaces);
    }

    /// Thinks, and asks for something.
    pub(crate) fn ask(&mut self) {
        if self.gave_up {
            return;
        }
        let think = u64::try_from(THINK.as_micros()).expect("short");
        pause(Duration::from_micros(self.rng.below(2 * think)));
        let key = self.key();
        match self.rng.below(100) {
            0..25 => self.get(&key),
            25..47 => self.put(&key),
            47..57 => self.del(&key),
            57..70 => self.cas(&key),
            70..80 => self.incr(),
            80..91 => self.mget(),
            _ => self.scan(),
        }
    }

    /// Reads every key in every way.
    pub(crate) fn read_all(&mut self) {
        for key in hashed_keys().into_iter().chain((0..ORDERED_KEYS).map(ordered)) {
            if !self.gave_up {
                self.get(&key);
            }
        }
        if !self.gave_up {
            self.mget();
            let (first, last, limit) = (0, ORDERED_KEYS - 1, None);
            self.scan_keys(Scan { crowd: false, first, last, limit, reverse: false });
            self.scan_keys(Scan { crowd: false, first, last, limit, reverse: true });
        }
    }

    fn get(&mut self, key: &Key) {
        let called = self.watch.now();
        let outcome = self.spaces.of_key(key).get(&key.key);
        self.note(key, called, OpKind::Read(None), outcome.map(Reply::Get));
    }

    fn put(&mut self, key: &Key) {
        let (value, text) = self.new_value();
        let called = self.watch.now();
        let (expiry, expiry_ms) = self.expiry(key, called);
        let space = self.spaces.of_key(key);
        let outcome = space.put(&key.key, text.as_bytes(), PutOptions { expiry });
        let outcome = outcome.map(|version| Reply::Put { version });
        self.note(key, called, OpKind::Put { value, expiry_ms }, outcome);
    }

    fn del(&mut self, key: &Key) {
        let called = self.watch.now();
        let outcome = self.spaces.of_key(key).del(&key.key);
        self.note(key, called, OpKind::Del { existed: None }, outcome.map(Reply::Del));
    }

    /// Expects what it last read, by version or by value.
    fn cas(&mut self, key: &Key) {
        let (value, text) = self.new_value();
        let seen = self.seen.get(key).copied();
        let expected = seen.map_or(String::new(), |(value, _)| value.to_string());
        let (expect, at) = match seen {
            Some((_, version)) if self.rng.chance(1, 2) => {
                (Expect::Version(version), Some(version))
            }
            Some(_) => (Expect::Value(expected.as_bytes()), None),
            None => (Expect::Version(0), Some(0)),
        };
        let called = self.watch.now();
        let wanted = seen.map(|(value, _)| value);
        let (new, value, (expiry, expiry_ms)) = match self.rng.below(4) {
            0 if seen.is_some() => (New::Nothing, None, (Expiry::Never, 0)),
            1 if seen.is_some() => (New::Same, wanted, self.expiry(key, called)),
            _ => (New::Value(text.as_bytes()), Some(value), (Expiry::Never, 0)),
        };
        let outcome = self.spaces.of_key(key).cas(&key.key, expect, new, PutOptions { expiry });
        let kind = OpKind::Cas { expect: wanted, at, value, expiry_ms, written: None };
        self.note(key, called, kind, outcome.map(Reply::Cas));
    }

    fn incr(&mut self) {
        let key = counter(self.rng.below(COUNTERS));
        let delta = i64::try_from(self.rng.below(9)).expect("small") + 1;
        let called = self.watch.now();
        let outcome = self.spaces.hashed.incr(&key.key, delta);
        self.note(&key, called, OpKind::Incr { delta, sum: None }, outcome.map(Reply::Incr));
    }

    fn mget(&mut self) {
        let keys = hashed_keys();
        let bytes: Vec<&[u8]> = keys.iter().map(|key| key.key.as_slice()).collect();
        let called = self.watch.now();
        let outcomes = self.spaces.hashed.mget(&bytes);
        for (key, outcome) in keys.iter().zip(outcomes) {
            self.note(key, called, OpKind::Read(None), outcome.map(Reply::Get));
        }
    }

    fn scan(&mut self) {
        let (a, b) = (self.rng.below(ORDERED_KEYS), self.rng.below(ORDERED_KEYS));
        let limit = self.rng.chance(1, 2).then(|| self.rng.below(4) + 1);
        let limit = limit.map(|limit| usize::try_from(limit).expect("small"));
        let reverse = self.rng.chance(1, 2);
        self.scan_keys(Scan { crowd: false, first: a.min(b), last: a.max(b), limit, reverse });
    }

    fn scan_keys(&mut self, scan: Scan) {
        let Scan { first, last, limit, reverse, .. } = scan;
        let bound = |n| Bound::Included(ordered(n).key);
        let (start, end) = (bound(first), bound(last));
        let options = ScanOptions { start, end, reverse, limit, ..ScanOptions::default() };
        let called = self.watch.now();
        let outcome = self.spaces.ordered.scan(options);
        let returned = self.watch.now();
        let Some(entries) = self.settle(outcome) else { return };
        for (key, kind, version) in scan.reads(entries, &mut self.history) {
            self.record(&key, called, Some(returned), kind, version);
        }
    }

    fn key(&mut self) -> Key {
        if self.rng.chance(1, 3) {
            ordered(self.rng.below(ORDERED_KEYS))
        } else {
            register(self.rng.below(REGISTERS))
        }
    }

    /// A value that nobody else writes, and how it is written.
    fn new_value(&mut self) -> (i64, String) {
        self.written += 1;
        let author = i64::try_from(self.index).expect("few users") + 1;
        let value = author * 1_000_000 + self.written;
        (value, value.to_string())
    }

    /// Now and then a value goes by itself; not where it would be scanned, since a scan leaves out
    /// a value whose time has come without waiting for its tombstone. What is noted is when it is
    /// gone by everybody's clock.
    fn expiry(&mut self, key: &Key, now: Instant) -> (Expiry, u64) {
        if key.ordered || !self.rng.chance(1, 5) {
            return (Expiry::Never, 0);
        }
        let at = now.unix_ms() + 1 + self.rng.below(400);
        (Expiry::AtMs(at), at + CLOCK_OFF_MS)
    }

    /// Writes down how a request for one key ended. A write that was refused had no effect:
    /// whatever is seen of it later is a violation, as the refusal is.
    fn note(&mut self, key: &Key, called: Instant, kind: OpKind, outcome: Outcome<Reply>) {
        let returned = self.watch.now();
        let refused = outcome.is_refused();
        let Some(reply) = self.settle(outcome) else {
            if !refused && !matches!(kind, OpKind::Read(_)) {
                self.record(key, called, None, kind, 0);
            }
            return;
        };
        let (kind, version) = complete(kind, &reply, &mut self.history);
        self.record(key, called, Some(returned), kind, version);
        match kind {
            OpKind::Read(Some(value)) => drop(self.seen.insert(key.clone(), (value, version))),
            OpKind::Read(None) => drop(self.seen.remove(key)),
            OpKind::Put { .. } | OpKind::Del { .. } | OpKind::Cas { .. } | OpKind::Incr { .. } => {}
        }
    }

    fn record(
        &mut self,
        key: &Key,
        called: Instant,
        returned: Option<Instant>,
        kind: OpKind,
        version: u64,
    ) {
        let op = Op { client: self.index, called, returned, kind, version };
        self.history.record(key, op);
    }

    /// Counts an outcome; what was done, if it was.
    fn settle<T>(&mut self, outcome: Outcome<T>) -> Option<T> {
        match outcome {
            Outcome::Done(reply) => {
                self.done += 1;
                Some(reply)
            }
            Outcome::Unknown(_) => {
                self.unknown += 1;
                if self.sure {
                    self.gave_up = true;
                    self.violation("a request not answered by a cluster that is whole again");
                }
                None
            }
            Outcome::Refused(why) => {
                self.violation(&format!("refused: {why}"));
                None
            }
        }
    }

    fn violation(&mut self, what: &str) {
        self.history.violation(format!("user {}: {what}", self.index));
    }
}
