//! What users have in common who write down what they see: they ask for one thing after the other,
//! and no two of them write the same.

use client::blocking::{Client, Space};
use client::{Expect, Expiry, LookupError, New, Outcome, PutOptions, Refusal, Reply, ScanOptions};
use machine::Instant;
use sim::check::{History, Key, Op, OpKind, Scan, complete};
use std::collections::BTreeMap;
use std::ops::Bound;
use wire::Version;

/// A keyspace that is hashed.
pub const HASHED: &str = "hashed";
/// A keyspace that is kept in order; its keys begin with a k.
pub const ORDERED: &str = "ordered";

/// A register that is scanned, by its number.
pub fn ordered(number: u64) -> Key {
    Key { ordered: true, key: format!("k{number}").into_bytes() }
}

/// Both keyspaces, as one client sees them.
#[derive(Clone, Debug)]
pub struct Spaces {
    hashed: Space,
    ordered: Option<Space>,
}

impl Spaces {
    /// Looks them up.
    ///
    /// # Errors
    ///
    /// If one is not there, or nobody answers.
    pub fn of(client: &Client) -> Result<Self, LookupError> {
        Ok(Self { hashed: client.keyspace(HASHED)?, ordered: Some(client.keyspace(ORDERED)?) })
    }

    /// The same of a cluster that keeps no keys in order.
    ///
    /// # Errors
    ///
    /// As [`of`](Self::of).
    pub fn without_order(client: &Client) -> Result<Self, LookupError> {
        Ok(Self { hashed: client.keyspace(HASHED)?, ordered: None })
    }

    /// Whether there are keys in order.
    pub fn have_order(&self) -> bool {
        self.ordered.is_some()
    }

    /// The one that is hashed.
    pub fn hashed(&self) -> &Space {
        &self.hashed
    }

    fn in_order(&self) -> &Space {
        self.ordered.as_ref().expect("who asks for keys in order has some")
    }

    fn of_key(&self, key: &Key) -> &Space {
        if key.ordered { self.in_order() } else { &self.hashed }
    }
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Answered,
    Unknown,
    /// Nothing that users ask for may be refused.
    Refused(String),
}

/// Where a user writes down what it saw.
pub trait Notebook {
    /// The time that all users go by.
    fn now(&self) -> Instant;
    /// Writes an operation down.
    fn record(&mut self, key: &Key, op: Op);
    /// Whatever the checker notices by itself.
    fn notice(&mut self, noticed: History);
    /// Counts how a request ended.
    fn settle(&mut self, ending: Ending);
}

/// A user, as far as all are alike. Asks one request at a time.
#[derive(Debug)]
pub struct Asker<B> {
    /// Where it writes.
    pub book: B,
    /// Through which client it asks.
    pub spaces: Spaces,
    index: usize,
    /// Values written so far, so that no two are the same.
    written: i64,
    /// What it last read of each key: value and version.
    seen: BTreeMap<Key, (i64, Version)>,
}

/// What a CAS makes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Nothing,
    Same,
    Value,
}

/// When a value goes by itself, and by when it is gone by everybody's clock.
pub type Goes = (Expiry, u64);

/// It stays.
pub const STAYS: Goes = (Expiry::Never, 0);

impl<B: Notebook> Asker<B> {
    /// One among several, by its number.
    pub fn new(index: usize, book: B, spaces: Spaces) -> Self {
        Self { book, spaces, index, written: 0, seen: BTreeMap::new() }
    }

    /// Its number.
    pub fn index(&self) -> usize {
        self.index
    }

    /// It goes on to other keys.
    pub fn forget(&mut self) {
        self.seen.clear();
    }

    /// Whether it has read a value of this key.
    pub fn has_seen(&self, key: &Key) -> bool {
        self.seen.contains_key(key)
    }

    pub fn get(&mut self, key: &Key) {
        let called = self.book.now();
        let outcome = self.spaces.of_key(key).get(&key.key);
        self.note(key, called, OpKind::Read(None), outcome.map(Reply::Get));
    }

    pub fn put(&mut self, key: &Key, (expiry, expiry_ms): Goes) {
        let (value, text) = self.new_value();
        let called = self.book.now();
        let space = self.spaces.of_key(key);
        let outcome = space.put(&key.key, text.as_bytes(), PutOptions { expiry });
        let outcome = outcome.map(|version| Reply::Put { version });
        self.note(key, called, OpKind::Put { value, expiry_ms }, outcome);
    }

    pub fn del(&mut self, key: &Key) {
        let called = self.book.now();
        let outcome = self.spaces.of_key(key).del(&key.key);
        self.note(key, called, OpKind::Del { existed: None }, outcome.map(Reply::Del));
    }

    /// Expects what it last read, by version or by value. What it has not read can only be new.
    pub fn cas(&mut self, key: &Key, by_value: bool, change: Change, goes: Goes) {
        let (new, text) = self.new_value();
        let seen = self.seen.get(key).copied();
        let wanted = seen.map(|(value, _)| value);
        let expected = wanted.map_or(String::new(), |value| value.to_string());
        let (expect, at) = match seen {
            Some(_) if by_value => (Expect::Value(expected.as_bytes()), None),
            Some((_, version)) => (Expect::Version(version), Some(version)),
            None => (Expect::Version(Version::NONE), Some(Version::NONE)),
        };
        let (new, value, (expiry, expiry_ms)) = match change {
            Change::Nothing if seen.is_some() => (New::Nothing, None, STAYS),
            Change::Same if seen.is_some() => (New::Same, wanted, goes),
            Change::Nothing | Change::Same | Change::Value => {
                (New::Value(text.as_bytes()), Some(new), STAYS)
            }
        };
        let called = self.book.now();
        let outcome = self.spaces.of_key(key).cas(&key.key, expect, new, PutOptions { expiry });
        let kind = OpKind::Cas { expect: wanted, at, value, expiry_ms, written: None };
        self.note(key, called, kind, outcome.map(Reply::Cas));
    }

    /// Adds to a counter.
    pub fn incr(&mut self, key: &Key, delta: i64) {
        let called = self.book.now();
        let outcome = self.spaces.of_key(key).incr(&key.key, delta);
        self.note(key, called, OpKind::Incr { delta, sum: None }, outcome.map(Reply::Incr));
    }

    /// Reads several keys that are hashed.
    pub fn mget(&mut self, keys: &[Key]) {
        let bytes: Vec<&[u8]> = keys.iter().map(|key| key.key.as_slice()).collect();
        let called = self.book.now();
        let outcomes = self.spaces.hashed.mget(&bytes);
        for (key, outcome) in keys.iter().zip(outcomes) {
            self.note(key, called, OpKind::Read(None), outcome.map(Reply::Get));
        }
    }

    /// Reads keys that are in order.
    pub fn scan(&mut self, scan: Scan) {
        let Scan { first, last, limit, reverse, .. } = scan;
        let [start, end] = [first, last].map(|n| Bound::Included(ordered(n).key));
        let options = ScanOptions { start, end, reverse, limit, ..ScanOptions::default() };
        let called = self.book.now();
        let outcome = self.spaces.in_order().scan(options);
        let returned = self.book.now();
        let Some(entries) = self.settle(outcome) else { return };
        let mut noticed = History::default();
        for (key, kind, version) in scan.reads(entries, &mut noticed) {
            self.record(&key, called, Some(returned), kind, version);
        }
        self.book.notice(noticed);
    }

    /// A value that nobody else writes, and how it is written.
    fn new_value(&mut self) -> (i64, String) {
        self.written += 1;
        let author = i64::try_from(self.index).expect("few users") + 1;
        let value = author * 1_000_000_000 + self.written;
        (value, value.to_string())
    }

    /// Writes down how a request for one key ended. A write that was refused had no effect:
    /// whatever is seen of it later is a violation, as the refusal is.
    fn note(&mut self, key: &Key, called: Instant, kind: OpKind, outcome: Outcome<Reply>) {
        let returned = self.book.now();
        let refused = outcome.is_refused();
        let Some(reply) = self.settle(outcome) else {
            if !refused && !matches!(kind, OpKind::Read(_)) {
                self.record(key, called, None, kind, Version::NONE);
            }
            return;
        };
        let mut noticed = History::default();
        let (kind, version) = complete(kind, &reply, &mut noticed);
        self.book.notice(noticed);
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
        version: Version,
    ) {
        let op = Op { client: self.index, called, returned, kind, version };
        self.book.record(key, op);
    }

    /// Counts an outcome; what was done, if it was.
    pub fn settle<T>(&mut self, outcome: Outcome<T>) -> Option<T> {
        let (done, ending) = match outcome {
            Outcome::Done(reply) => (Some(reply), Ending::Answered),
            Outcome::Unknown(_) => (None, Ending::Unknown),
            Outcome::Refused(why) if is_too_slow(why) => (None, Ending::Unknown),
            Outcome::Refused(why) => (None, Ending::Refused(why.to_string())),
        };
        self.book.settle(ending);
        done
    }
}

/// Whether a request for several packets was overtaken by its deadline, or by others who write the
/// same: that may be so in a cluster that is held up.
fn is_too_slow(why: Refusal) -> bool {
    matches!(
        why,
        Refusal::PartsUnanswered | Refusal::PartsMissing | Refusal::Replaced | Refusal::NotInTime
    )
}
