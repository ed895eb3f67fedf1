//! What all users saw, written down by generations of keys, and judged while the soak goes on.
//!
//! A history of an hour is more than a checker can bear, and than memory should hold. So users go
//! on to new keys every few seconds; when nobody can be told any more of those of a generation, its
//! history is judged and forgotten, and its keys are deleted.

use crate::process::pause;
use crate::user::{HASHED, ORDERED, ordered};
use client::blocking::Client;
use console::note;
use machine::Instant;
use runtime::clock::Clock;
use sim::check::{History, Key, Op};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// For how long users ask for the same keys.
const GENERATION: Duration = Duration::from_secs(3);
/// When the last word of a generation has been heard: after the patience of every user.
const SETTLED: Duration = Duration::from_secs(6);
/// Registers, counters and ordered keys of each.
pub(super) const KEYS: u64 = 6;
/// Numbers of ordered keys begin here, so that all have as many digits.
const FIRST: u64 = 1_000_000_000;
/// How far the clocks of nodes may differ: each process follows that of the machine in its own way.
const CLOCK_SKEW_MS: u64 = 20;

/// Shared by all that work in a soak.
#[derive(Debug)]
pub(super) struct Notes {
    clock: Mutex<Clock>,
    pub(super) began: Instant,
    histories: Mutex<BTreeMap<u64, History>>,
    /// Nothing goes wrong any more, and users stop.
    pub(super) over: AtomicBool,
    pub(super) answered: AtomicU64,
    pub(super) unknown: AtomicU64,
    /// Keys whose histories were judged.
    pub(super) judged: AtomicU64,
    failures: Mutex<Vec<String>>,
}

/// Failures that are told: the first are what matters.
const FAILURES_MAX: usize = 100;

impl Notes {
    pub(super) fn new() -> Self {
        let mut clock = Clock::new();
        Self {
            began: clock.now(),
            clock: Mutex::new(clock),
            histories: Mutex::default(),
            over: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            judged: AtomicU64::new(0),
            failures: Mutex::default(),
        }
    }

    pub(super) fn now(&self) -> Instant {
        lock(&self.clock).now()
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// The present generation.
    pub(super) fn generation(&self) -> u64 {
        let since = self.now().since(self.began).as_millis();
        u64::try_from(since / GENERATION.as_millis()).expect("a soak ends some day")
    }

    pub(super) fn record(&self, generation: u64, key: &Key, op: Op) {
        lock(&self.histories).entry(generation).or_default().record(key, op);
    }

    /// Whatever the checker notices by itself.
    pub(super) fn merge(&self, generation: u64, history: History) {
        lock(&self.histories).entry(generation).or_default().merge(history);
    }

    pub(super) fn fail(&self, what: String) {
        let mut failures = lock(&self.failures);
        // Whoever watches need not wait an hour for it, nor read it a hundred times.
        if !failures.contains(&what) {
            note!("soak: wrong: {what}");
        }
        if failures.len() < FAILURES_MAX {
            failures.push(what);
        }
    }

    pub(super) fn failures(&self) -> Vec<String> {
        lock(&self.failures).clone()
    }

    /// Judges each generation when its time has come, and deletes its keys, until the end.
    pub(super) fn judge(&self, client: &Client) {
        let (mut next, mut last) = (0, None);
        loop {
            if last.is_none() && self.is_over() {
                last = Some(self.generation());
            }
            let settled = GENERATION * u32::try_from(next + 1).unwrap_or(u32::MAX) + SETTLED;
            if self.now().since(self.began) >= settled {
                self.judge_one(next);
                forget(client, next);
                next += 1;
            } else if last.is_some_and(|last| next > last) {
                return;
            } else {
                pause(LOOK_AGAIN);
            }
        }
    }

    fn judge_one(&self, generation: u64) {
        let Some(history) = lock(&self.histories).remove(&generation) else { return };
        self.judged.fetch_add(history.keys().count() as u64, Ordering::Relaxed);
        let judgement = history.check(CLOCK_SKEW_MS);
        for violation in judgement.violations {
            self.fail(violation);
        }
        if judgement.unchecked > 0 {
            let count = judgement.unchecked;
            note!("soak: {count} keys of generation {generation} were too much for the checker");
        }
    }
}

const LOOK_AGAIN: Duration = Duration::from_millis(50);

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds values that nobody else has ever written.
pub(super) fn register(generation: u64, n: u64) -> Key {
    Key { ordered: false, key: format!("r{generation}-{n}").into_bytes() }
}

/// Is only added to.
pub(super) fn counter(generation: u64) -> Key {
    Key { ordered: false, key: format!("c{generation}").into_bytes() }
}

/// The number of an ordered key.
pub(super) fn number(generation: u64, n: u64) -> u64 {
    FIRST + generation * KEYS + n
}

/// Deletes the keys of a generation. What is not answered stays; it is little.
fn forget(client: &Client, generation: u64) {
    let registers = (0..KEYS).map(|n| register(generation, n)).chain([counter(generation)]);
    let ordered = (0..KEYS).map(|n| ordered(number(generation, n)));
    for (name, keys) in
        [(HASHED, registers.collect::<Vec<_>>()), (ORDERED, ordered.collect::<Vec<_>>())]
    {
        if let Ok(space) = client.keyspace(name) {
            let keys: Vec<&[u8]> = keys.iter().map(|key| key.key.as_slice()).collect();
            drop(space.mdel(&keys));
        }
    }
}
