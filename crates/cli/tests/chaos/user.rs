//! A user of the cluster: asks for one thing after the other, and writes down what it saw.

use crate::run::CLOCK_OFF_MS;
use crate::watch::{Watch, pause};
use client::Expiry;
use lab::user::{Asker, Change, Ending, Goes, Notebook, STAYS, Spaces, ordered};
use machine::{Instant, Rng};
use sim::check::{History, Key, Op, Scan};
use std::sync::Arc;
use std::time::Duration;

const REGISTERS: u64 = 8;
const COUNTERS: u64 = 2;
const FAVOURITES: u64 = 2;
const ORDERED_KEYS: u64 = 8;

/// Holds values that nobody else has ever written.
fn register(n: u64) -> Key {
    Key { ordered: false, key: format!("r{n}").into_bytes() }
}

/// Is read far more often than it is written, so that caches and copies hold it for a while.
fn favourite(n: u64) -> Key {
    Key { ordered: false, key: format!("f{n}").into_bytes() }
}

/// Is only added to: it may hold a value twice, so that nobody could expect one.
fn counter(n: u64) -> Key {
    Key { ordered: false, key: format!("c{n}").into_bytes() }
}

fn hashed_keys() -> Vec<Key> {
    let registers = (0..REGISTERS).map(register).chain((0..FAVOURITES).map(favourite));
    registers.chain((0..COUNTERS).map(counter)).collect()
}

/// Asks one request at a time.
#[derive(Debug)]
pub(crate) struct User {
    rng: Rng,
    asker: Asker<Seen>,
}

/// What a user saw.
#[derive(Debug)]
pub(crate) struct Seen {
    index: usize,
    watch: Arc<Watch>,
    /// Whether each request must be answered.
    sure: bool,
    /// Whether one was not that had to be: it asks for nothing more.
    gave_up: bool,
    pub(crate) history: History,
    /// Answers that it got.
    pub(crate) done: usize,
    /// Requests, or keys of multigets, that were not answered in time.
    pub(crate) unknown: usize,
}

impl Seen {
    fn violation(&mut self, what: &str) {
        self.history.violation(format!("user {}: {what}", self.index));
    }
}

impl Notebook for Seen {
    fn now(&self) -> Instant {
        self.watch.now()
    }

    fn record(&mut self, key: &Key, op: Op) {
        self.history.record(key, op);
    }

    fn notice(&mut self, noticed: History) {
        self.history.merge(noticed);
    }

    fn settle(&mut self, ending: Ending) {
        match ending {
            Ending::Answered => self.done += 1,
            Ending::Unknown => {
                self.unknown += 1;
                if self.sure {
                    self.gave_up = true;
                    self.violation("a request not answered by a cluster that is whole again");
                }
            }
            Ending::Refused(why) => self.violation(&format!("refused: {why}")),
        }
    }
}

/// Mean time between two requests of one user.
const THINK: Duration = Duration::from_millis(15);

impl User {
    pub(crate) fn new(seed: u64, index: usize, watch: Arc<Watch>, spaces: Spaces) -> Self {
        let seen = Seen {
            index,
            watch,
            sure: false,
            gave_up: false,
            history: History::default(),
            done: 0,
            unknown: 0,
        };
        let rng = Rng::new(seed).fork(&format!("user {index}"));
        Self { rng, asker: Asker::new(index, seen, spaces) }
    }

    /// From now on it asks through this client, and every request must be answered.
    pub(crate) fn be_sure(&mut self, spaces: Spaces) {
        (self.asker.book.sure, self.asker.spaces) = (true, spaces);
    }

    /// What it saw.
    pub(crate) fn seen(self) -> Seen {
        self.asker.book
    }

    /// Thinks, and asks for something.
    pub(crate) fn ask(&mut self) {
        if self.asker.book.gave_up {
            return;
        }
        let think = u64::try_from(THINK.as_micros()).expect("short");
        pause(Duration::from_micros(self.rng.below(2 * think)));
        if self.rng.chance(1, 3) {
            return self.ask_for_a_favourite();
        }
        let key = self.key();
        match self.rng.below(100) {
            0..25 => self.asker.get(&key),
            25..47 => {
                let goes = self.goes(&key);
                self.asker.put(&key, goes);
            }
            47..57 => self.asker.del(&key),
            57..70 => self.cas(&key),
            70..80 => {
                let counter = counter(self.rng.below(COUNTERS));
                let delta = i64::try_from(self.rng.below(9)).expect("small") + 1;
                self.asker.incr(&counter, delta);
            }
            80..91 => self.asker.mget(&hashed_keys()),
            _ if self.asker.spaces.have_order() => self.scan(),
            _ => self.asker.get(&key),
        }
    }

    fn ask_for_a_favourite(&mut self) {
        let key = favourite(self.rng.below(FAVOURITES));
        if self.rng.chance(1, 20) {
            self.asker.put(&key, STAYS);
        } else {
            self.asker.get(&key);
        }
    }

    /// Reads every key in every way.
    pub(crate) fn read_all(&mut self) {
        let have_order = self.asker.spaces.have_order();
        let in_order = (0..ORDERED_KEYS).map(ordered).filter(|_| have_order);
        for key in hashed_keys().into_iter().chain(in_order) {
            if !self.asker.book.gave_up {
                self.asker.get(&key);
            }
        }
        if !self.asker.book.gave_up {
            self.asker.mget(&hashed_keys());
        }
        if !self.asker.book.gave_up && have_order {
            let (first, last, limit) = (0, ORDERED_KEYS - 1, None);
            self.asker.scan(Scan { crowd: false, first, last, limit, reverse: false });
            self.asker.scan(Scan { crowd: false, first, last, limit, reverse: true });
        }
    }

    /// Expects what it last read, by version or by value.
    fn cas(&mut self, key: &Key) {
        let by_value = self.asker.has_seen(key) && !self.rng.chance(1, 2);
        let (change, goes) = match self.rng.below(4) {
            0 => (Change::Nothing, STAYS),
            1 => (Change::Same, self.goes(key)),
            _ => (Change::Value, STAYS),
        };
        self.asker.cas(key, by_value, change, goes);
    }

    fn scan(&mut self) {
        let (a, b) = (self.rng.below(ORDERED_KEYS), self.rng.below(ORDERED_KEYS));
        let limit = self.rng.chance(1, 2).then(|| self.rng.below(4) + 1);
        let limit = limit.map(|limit| usize::try_from(limit).expect("small"));
        let reverse = self.rng.chance(1, 2);
        self.asker.scan(Scan { crowd: false, first: a.min(b), last: a.max(b), limit, reverse });
    }

    fn key(&mut self) -> Key {
        if self.rng.chance(1, 3) && self.asker.spaces.have_order() {
            ordered(self.rng.below(ORDERED_KEYS))
        } else {
            register(self.rng.below(REGISTERS))
        }
    }

    /// Now and then a value goes by itself; not where it would be scanned, since a scan leaves out
    /// a value whose time has come without waiting for its tombstone. What is noted is when it is
    /// gone by everybody's clock.
    fn goes(&mut self, key: &Key) -> Goes {
        if key.ordered || !self.rng.chance(1, 5) {
            return STAYS;
        }
        let at = self.asker.book.now().unix_ms() + 1 + self.rng.below(400);
        (Expiry::AtMs(at), at + CLOCK_OFF_MS)
    }
}
