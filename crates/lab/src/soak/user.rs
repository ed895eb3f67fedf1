//! A user with a native client, that asks for new keys every few seconds.

use super::notes::{KEYS, Notes, counter, number, register};
use crate::process::pause;
use crate::user::{Asker, Change, Ending, Notebook, STAYS, Spaces, ordered};
use client::{Expiry, PutOptions};
use machine::{Instant, Rng};
use sim::check::{History, Key, Op, Scan};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Asks one request at a time.
#[derive(Debug)]
pub(super) struct User {
    rng: Rng,
    asker: Asker<Page>,
}

/// Its part of the notes: those of one generation.
#[derive(Debug)]
struct Page {
    index: usize,
    notes: Arc<Notes>,
    generation: u64,
}

impl Notebook for Page {
    fn now(&self) -> Instant {
        self.notes.now()
    }

    fn record(&mut self, key: &Key, op: Op) {
        self.notes.record(self.generation, key, op);
    }

    fn notice(&mut self, noticed: History) {
        self.notes.merge(self.generation, noticed);
    }

    fn settle(&mut self, ending: Ending) {
        match ending {
            Ending::Answered => drop(self.notes.answered.fetch_add(1, Ordering::Relaxed)),
            Ending::Unknown => drop(self.notes.unknown.fetch_add(1, Ordering::Relaxed)),
            Ending::Refused(why) => {
                self.notes.fail(format!("user {}: refused: {why}", self.index));
            }
        }
    }
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
    pub(super) fn new((seed, index): (u64, usize), notes: Arc<Notes>, spaces: Spaces) -> Self {
        let page = Page { index, notes, generation: 0 };
        Self {
            rng: Rng::new(seed).fork(&format!("user {index}")),
            asker: Asker::new(index, page, spaces),
        }
    }

    /// Asks until the soak is over.
    pub(super) fn run(mut self) {
        while !self.asker.book.notes.is_over() {
            let think = u64::try_from(THINK.as_micros()).expect("short");
            pause(Duration::from_micros(self.rng.below(2 * think)));
            let generation = self.asker.book.notes.generation();
            if generation != self.asker.book.generation {
                self.asker.book.generation = generation;
                self.asker.forget();
            }
            self.ask();
        }
    }

    fn ask(&mut self) {
        let generation = self.asker.book.generation;
        let key = self.key(generation);
        match self.rng.below(100) {
            0..30 => self.asker.get(&key),
            30..50 => self.asker.put(&key, STAYS),
            50..56 => self.asker.del(&key),
            56..66 => self.asker.cas(&key, false, Change::Value, STAYS),
            66..74 => {
                let delta = i64::try_from(self.rng.below(9)).expect("small") + 1;
                self.asker.incr(&counter(generation), delta);
            }
            74..82 => {
                let keys: Vec<Key> = (0..KEYS).map(|n| register(generation, n)).collect();
                self.asker.mget(&keys);
            }
            82..88 => self.scan(generation),
            88..91 => self.big(),
            _ => self.fleeting(),
        }
    }

    /// Half of all is about one key.
    fn key(&mut self, generation: u64) -> Key {
        match self.rng.below(4) {
            0 | 1 => register(generation, 0),
            2 => register(generation, self.rng.below(KEYS)),
            _ => ordered(number(generation, self.rng.below(KEYS))),
        }
    }

    fn scan(&mut self, generation: u64) {
        let [first, last] = [0, KEYS - 1].map(|n| number(generation, n));
        let limit = self.rng.chance(1, 2).then(|| self.rng.below(4) + 1);
        let limit = limit.map(|limit| usize::try_from(limit).expect("small"));
        let reverse = self.rng.chance(1, 2);
        self.asker.scan(Scan { crowd: false, first, last, limit, reverse });
    }

    /// Writes a big value, or reads one, which is all of one piece.
    fn big(&mut self) {
        let key = format!("big{}", self.rng.below(BIG_KEYS));
        let space = self.asker.spaces.hashed();
        if self.rng.chance(1, 2) {
            let letter = b'a' + u8::try_from(self.rng.below(26)).expect("few letters");
            let outcome = space.put(key.as_bytes(), &vec![letter; BIG], PutOptions::default());
            self.asker.settle(outcome);
            return;
        }
        let outcome = space.get(key.as_bytes());
        let Some(Some(found)) = self.asker.settle(outcome) else { return };
        let mut letters = found.value.iter();
        let first = letters.next();
        if found.value.len() != BIG || letters.any(|it| Some(it) != first) {
            let bytes = found.value.len();
            self.asker.book.notes.fail(format!("{key} is of {bytes} bytes, or mixed"));
        }
    }

    /// Writes what goes by itself.
    fn fleeting(&mut self) {
        let key = format!("t{}", self.rng.below(FLEETING_KEYS));
        let options = PutOptions { expiry: Expiry::In(FLEETING) };
        let space = self.asker.spaces.hashed();
        let outcome = space.put(key.as_bytes(), &[b't'; 100], options);
        self.asker.settle(outcome);
    }
}
