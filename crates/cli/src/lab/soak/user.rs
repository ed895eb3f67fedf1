//! A user with a native client: asks for one thing after the other, and writes down what it saw.

use super::notes::{KEYS, Notes, counter, number, ordered, register};
use super::room::{HASHED, ORDERED};
use crate::lab::process::pause;
use client::blocking::{Client, Space};
use client::{Expect, Expiry, LookupError, New, Outcome, PutOptions, Reply, ScanOptions};
use machine::{Instant, Rng};
use sim::check::{History, Key, Op, OpKind, Scan, complete};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Asks one request at a time.
#[derive(Debug)]
pub(super) struct User {
    index: usize,
    rng: Rng,
    notes: Arc<Notes>,
    hashed: Space,
    ordered: Space,
    generation: u64,
    /// Values written so far, so that no two are the same.
    written: i64,
    /// What it last read of keys of this generation: value and version.
    seen: BTreeMap<Key, (i64, u64)>,
}

/// Mean time between two requests of one user.
const THINK: Duration = Duration::from_millis(10);
/// Bytes of a big value.
const BIG: usize = 150_000;
/// Big values there are.
const BIG_KEYS: u64 = 8;
/// Keys that go by themselves, and when.
const FLEETING_KEYS: u64 = 2_000;
const FLEETING: Duration = Duration::from_secs(2);

impl User {
    pub(super) fn new(
        (seed, index): (u64, usize),
        notes: Arc<Notes>,
        client: &Client,
    ) -> Result<Self, LookupError> {
        Ok(Self {
            index,
            rng: Rng::new(seed).fork(&format!("user {index}")),
            notes,
            hashed: client.keyspace(HASHED)?,
            ordered: client.keyspace(ORDERED)?,
            generation: 0,
            written: 0,
            seen: BTreeMap::new(),
        })
    }

    /// Asks until the soak is over.
    pub(super) fn run(mut self) {
        while !self.notes.is_over() {
            let think = u64::try_from(THINK.as_micros()).expect("short");
            pause(Duration::from_micros(self.rng.below(2 * think)));
            let generation = self.notes.generation();
            if generation != self.generation {
                self.generation = generation;
                self.seen.clear();
            }
            self.ask();
        }
    }

    fn ask(&mut self) {
        let key = self.key();
        match self.rng.below(100) {
            0..30 => self.get(&key),
            30..50 => self.put(&key),
            50..56 => self.del(&key),
            56..66 => self.cas(&key),
            66..74 => self.incr(),
            74..82 => self.mget(),
            82..88 => self.scan(),
            88..91 => self.big(),
            _ => self.fleeting(),
        }
    }

    /// Half of all is about one key.
    fn key(&mut self) -> Key {
        match self.rng.below(4) {
            0 | 1 => register(self.generation, 0),
            2 => register(self.generation, self.rng.below(KEYS)),
            _ => ordered(number(self.generation, self.rng.below(KEYS))),
        }
    }

    fn space(&self, key: &Key) -> &Space {
        if key.ordered { &self.ordered } else { &self.hashed }
    }

    fn get(&mut self, key: &Key) {
        let called = self.notes.now();
        let outcome = self.space(key).get(&key.key);
        self.note(key, called, OpKind::Read(None), outcome.map(Reply::Get));
    }

    fn put(&mut self, key: &Key) {
        let (value, text) = self.new_value();
        let called = self.notes.now();
        let outcome = self.space(key).put(&key.key, text.as_bytes(), PutOptions::default());
        let outcome = outcome.map(|version| Reply::Put { version });
        self.note(key, called, OpKind::Put { value, expiry_ms: 0 }, outcome);
    }

    fn del(&mut self, key: &Key) {
        let called = self.notes.now();
        let outcome = self.space(key).del(&key.key);
        self.note(key, called, OpKind::Del { existed: None }, outcome.map(Reply::Del));
    }

    /// Expects what it last read.
    fn cas(&mut self, key: &Key) {
        let (value, text) = self.new_value();
        let seen = self.seen.get(key).copied();
        let at = seen.map_or(0, |(_, version)| version);
        let called = self.notes.now();
        let new = New::Value(text.as_bytes());
        let options = PutOptions::default();
        let outcome = self.space(key).cas(&key.key, Expect::Version(at), new, options);
        let kind = OpKind::Cas {
            expect: seen.map(|(value, _)| value),
            at: Some(at),
            value: Some(value),
            expiry_ms: 0,
            written: None,
        };
        self.note(key, called, kind, outcome.map(Reply::Cas));
    }

    fn incr(&mut self) {
        let key = counter(self.generation);
        let delta = i64::try_from(self.rng.below(9)).expect("small") + 1;
        let called = self.notes.now();
        let outcome = self.hashed.incr(&key.key, delta);
        self.note(&key, called, OpKind::Incr { delta, sum: None }, outcome.map(Reply::Incr));
    }

    fn mget(&mut self) {
        let keys: Vec<Key> = (0..KEYS).map(|n| register(self.generation, n)).collect();
        let bytes: Vec<&[u8]> = keys.iter().map(|key| key.key.as_slice()).collect();
        let called = self.notes.now();
        let outcomes = self.hashed.mget(&bytes);
        for (key, outcome) in keys.iter().zip(outcomes) {
            self.note(key, called, OpKind::Read(None), outcome.map(Reply::Get));
        }
    }

    fn scan(&mut self) {
        let [first, last] = [0, KEYS - 1].map(|n| number(self.generation, n));
        let limit = self.rng.chance(1, 2).then(|| self.rng.below(4) + 1);
        let limit = limit.map(|limit| usize::try_from(limit).expect("small"));
        let scan = Scan { crowd: false, first, last, limit, reverse: self.rng.chance(1, 2) };
        let [start, end] = [first, last].map(|n| Bound::Included(ordered(n).key));
        let options =
            ScanOptions { start, end, reverse: scan.reverse, limit, ..ScanOptions::default() };
        let called = self.notes.now();
        let outcome = self.ordered.scan(options);
        let returned = self.notes.now();
        let Some(entries) = self.settle(outcome) else { return };
        let mut noticed = History::default();
        for (key, kind, version) in scan.reads(entries, &mut noticed) {
            self.record(&key, called, Some(returned), kind, version);
        }
        self.notes.merge(self.generation, noticed);
    }

    /// Writes a big value, or reads one, which is all of one piece.
    fn big(&mut self) {
        let key = format!("big{}", self.rng.below(BIG_KEYS));
        if self.rng.chance(1, 2) {
            let letter = b'a' + u8::try_from(self.rng.below(26)).expect("few letters");
            let outcome =
                self.hashed.put(key.as_bytes(), &vec![letter; BIG], PutOptions::default());
            self.settle(outcome);
            return;
        }
        let outcome = self.hashed.get(key.as_bytes());
        let Some(Some(found)) = self.settle(outcome) else { return };
        let mut letters = found.value.iter();
        let first = letters.next();
        if found.value.len() != BIG || letters.any(|it| Some(it) != first) {
            self.notes.fail(format!("{key} is of {} bytes, or mixed", found.value.len()));
        }
    }

    /// Writes what goes by itself.
    fn fleeting(&mut self) {
        let key = format!("t{}", self.rng.below(FLEETING_KEYS));
        let options = PutOptions { expiry: Expiry::In(FLEETING) };
        let outcome = self.hashed.put(key.as_bytes(), &[b't'; 100], options);
        self.settle(outcome);
    }

    /// A value that nobody else writes, and how it is written.
    fn new_value(&mut self) -> (i64, String) {
        self.written += 1;
        let author = i64::try_from(self.index).expect("few users") + 1;
        let value = author * 1_000_000_000 + self.written;
        (value, value.to_string())
    }

    /// Writes down how a request for one key ended.
    fn note(&mut self, key: &Key, called: Instant, kind: OpKind, outcome: Outcome<Reply>) {
        let returned = self.notes.now();
        let unknown = !outcome.is_refused();
        let Some(reply) = self.settle(outcome) else {
            if unknown && !matches!(kind, OpKind::Read(_)) {
                self.record(key, called, None, kind, 0);
            }
            return;
        };
        let mut noticed = History::default();
        let (kind, version) = complete(kind, &reply, &mut noticed);
        self.notes.merge(self.generation, noticed);
        self.record(key, called, Some(returned), kind, version);
        match kind {
            OpKind::Read(Some(value)) => drop(self.seen.insert(key.clone(), (value, version))),
            OpKind::Read(None) => drop(self.seen.remove(key)),
            OpKind::Put { .. } | OpKind::Del { .. } | OpKind::Cas { .. } | OpKind::Incr { .. } => {}
        }
    }

    fn record(
        &self,
        key: &Key,
        called: Instant,
        returned: Option<Instant>,
        kind: OpKind,
        version: u64,
    ) {
        let op = Op { client: self.index, called, returned, kind, version };
        self.notes.record(self.generation, key, op);
    }

    /// Counts an outcome; what was done, if it was. Nothing that is asked for may be refused.
    fn settle<T>(&self, outcome: Outcome<T>) -> Option<T> {
        match outcome {
            Outcome::Done(reply) => {
                self.notes.answered.fetch_add(1, Ordering::Relaxed);
                Some(reply)
            }
            Outcome::Unknown(_) => {
                self.notes.unknown.fetch_add(1, Ordering::Relaxed);
                None
            }
            Outcome::Refused(why) => {
                self.notes.fail(format!("user {}: refused: {why}", self.index));
                None
            }
        }
    }
}
