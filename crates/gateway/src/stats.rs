//! What the gateway counts: for INFO, LATENCY and `/metrics`.

use crate::command;
use crate::lookups::Lookups;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Counters of the whole gateway since its start, or since CONFIG RESETSTAT.
#[derive(Debug)]
pub(crate) struct Stats {
    commands: Vec<CommandStats>,
    /// Error replies, by their code word.
    errors: Mutex<BTreeMap<String, u64>>,
    /// Connections that were let in.
    pub(crate) connections: AtomicU64,
    /// Connections that were turned away, because there were too many.
    pub(crate) rejected: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    /// Connections ended because of what they sent.
    pub(crate) protocol_errors: AtomicU64,
    held_back: [AtomicU64; HeldBack::ALL.len()],
    overdue: [AtomicU64; Overdue::ALL.len()],
    /// Connections ended because of what they held.
    pub(crate) evicted: AtomicU64,
    /// Keys that were looked up and had a value, and those that had none.
    hits: AtomicU64,
    misses: AtomicU64,
    /// Transactions whose commands were carried out one after the other.
    pub(crate) ordered: AtomicU64,
    /// What there was when the rates were last taken, and the rates.
    rates: Mutex<(Rates, Rates)>,
}

/// What happens in a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rates {
    pub(crate) calls: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// Why nothing is read from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldBack {
    /// A command waits for those before it.
    Order,
    /// As many commands are under way as may be.
    Overlap,
    /// It does not read its replies.
    Replies,
    /// CLIENT PAUSE.
    Pause,
}

impl HeldBack {
    pub(crate) const ALL: [Self; 4] = [Self::Order, Self::Overlap, Self::Replies, Self::Pause];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Overlap => "overlap",
            Self::Replies => "replies",
            Self::Pause => "pause",
        }
    }
}

/// Why a connection was ended that kept a place for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// It has sent no command.
    Idle,
    /// A command came too slowly.
    Slow,
    /// It has not shown who it is.
    Stranger,
}

impl Overdue {
    pub(crate) const ALL: [Self; 3] = [Self::Idle, Self::Slow, Self::Stranger];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Slow => "slow",
            Self::Stranger => "stranger",
        }
    }
}

/// How many calls took less than so many microseconds.
pub(crate) fn within(latency: &Histogram<u64>, micros: u64) -> u64 {
    latency.count_between(0, micros.saturating_sub(1)).min(latency.len())
}

#[derive(Debug, Default)]
struct CommandStats {
    micros: AtomicU64,
    failed: AtomicU64,
    rejected: AtomicU64,
    /// Microseconds that calls took. Made at the first.
    latency: Mutex<Option<Histogram<u64>>>,
}

/// What is known of one command.
#[derive(Clone, Debug)]
pub(crate) struct CommandFigures {
    pub(crate) name: &'static str,
    pub(crate) calls: u64,
    pub(crate) micros: u64,
    pub(crate) failed: u64,
    pub(crate) rejected: u64,
    pub(crate) latency: Option<Histogram<u64>>,
}

/// Longest time that histograms tell apart: requests are given up long before.
const LATENCY_MICROS_MAX: u64 = 60_000_000;
/// Decimal digits of a time in histograms.
const LATENCY_DIGITS: u8 = 2;
/// Different code words that are counted. Clients cannot make up new ones.
const ERRORS_MAX: usize = 64;

impl Stats {
    pub(crate) fn new() -> Self {
        let commands = command::numbered().iter().map(|_| CommandStats::default()).collect();
        Self {
            commands,
            errors: Mutex::default(),
            connections: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            protocol_errors: AtomicU64::new(0),
            held_back: Default::default(),
            overdue: Default::default(),
            evicted: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            ordered: AtomicU64::new(0),
            rates: Mutex::default(),
        }
    }

    /// Keys were looked up.
    pub(crate) fn note_lookups(&self, lookups: Lookups) {
        let Lookups { hits, misses } = lookups;
        for (counter, more) in [(&self.hits, hits), (&self.misses, misses)] {
            if more > 0 {
                counter.fetch_add(more, Ordering::Relaxed);
            }
        }
    }

    /// Keys that were looked up so far.
    pub(crate) fn lookups(&self) -> Lookups {
        let [hits, misses] = [&self.hits, &self.misses].map(|it| it.load(Ordering::Relaxed));
        Lookups { hits, misses }
    }

    /// A command was carried out; `error` is the text of its reply, if that was one.
    pub(crate) fn note_call(&self, number: usize, took: Duration, error: Option<&str>) {
        if let Some(text) = error {
            self.note_failure(number, text);
        }
        self.note_calls(number, u64::try_from(took.as_micros()).unwrap_or(u64::MAX), 1);
    }

    /// A command was carried out so often, each time within so many microseconds.
    pub(crate) fn note_calls(&self, number: usize, micros: u64, count: u64) {
        let Some(stats) = self.commands.get(number) else { return };
        stats.micros.fetch_add(micros.saturating_mul(count), Ordering::Relaxed);
        let mut latency = lock(&stats.latency);
        let histogram = latency.get_or_insert_with(|| {
            Histogram::new_with_max(LATENCY_MICROS_MAX, LATENCY_DIGITS).expect("sound bounds")
        });
        histogram.saturating_record_n(micros, count);
    }

    /// A command that was carried out was answered with an error.
    pub(crate) fn note_failure(&self, number: usize, error: &str) {
        self.note_error(error);
        if let Some(stats) = self.commands.get(number) {
            stats.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A command was not carried out.
    pub(crate) fn note_rejection(&self, number: Option<usize>, error: &str) {
        if let Some(stats) = number.and_then(|number| self.commands.get(number)) {
            stats.rejected.fetch_add(1, Ordering::Relaxed);
        }
        self.note_error(error);
    }

    fn note_error(&self, text: &str) {
        let word = text.split(' ').next().unwrap_or_default();
        let mut errors = lock(&self.errors);
        if let Some(count) = errors.get_mut(word) {
            *count += 1;
        } else if errors.len() < ERRORS_MAX {
            errors.insert(word.to_owned(), 1);
        }
    }

    /// Figures of every command that came in.
    pub(crate) fn commands(&self) -> Vec<CommandFigures> {
        let all = command::numbered().iter().zip(&self.commands);
        let figures = all.map(|(spec, stats)| {
            let latency = lock(&stats.latency).clone();
            CommandFigures {
                name: spec.name,
                calls: latency.as_ref().map_or(0, Histogram::len),
                micros: stats.micros.load(Ordering::Relaxed),
                failed: stats.failed.load(Ordering::Relaxed),
                rejected: stats.rejected.load(Ordering::Relaxed),
                latency,
            }
        });
        figures.filter(|it| it.calls + it.rejected > 0).collect()
    }

    /// Error replies, by code word.
    pub(crate) fn errors(&self) -> Vec<(String, u64)> {
        lock(&self.errors).iter().map(|(word, count)| (word.clone(), *count)).collect()
    }

    /// Commands that were carried out.
    pub(crate) fn calls(&self) -> u64 {
        let calls = |stats: &CommandStats| lock(&stats.latency).as_ref().map_or(0, Histogram::len);
        self.commands.iter().map(calls).sum()
    }

    /// Microseconds that commands took.
    pub(crate) fn micros(&self) -> u64 {
        self.commands.iter().map(|stats| stats.micros.load(Ordering::Relaxed)).sum()
    }

    /// Bytes from and to clients.
    pub(crate) fn bytes(&self) -> u64 {
        let (read, written) = (&self.bytes_in, &self.bytes_out);
        read.load(Ordering::Relaxed).saturating_add(written.load(Ordering::Relaxed))
    }

    /// A client has to wait from now on.
    pub(crate) fn note_held_back(&self, why: HeldBack) {
        self.held_back_counter(why).fetch_add(1, Ordering::Relaxed);
    }

    /// How often clients had to wait.
    pub(crate) fn held_back(&self, why: HeldBack) -> u64 {
        self.held_back_counter(why).load(Ordering::Relaxed)
    }

    /// A connection was ended.
    pub(crate) fn note_overdue(&self, why: Overdue) {
        self.overdue_counter(why).fetch_add(1, Ordering::Relaxed);
    }

    /// How many connections were ended for that.
    pub(crate) fn overdue(&self, why: Overdue) -> u64 {
        self.overdue_counter(why).load(Ordering::Relaxed)
    }

    fn overdue_counter(&self, why: Overdue) -> &AtomicU64 {
        let [idle, slow, stranger] = &self.overdue;
        match why {
            Overdue::Idle => idle,
            Overdue::Slow => slow,
            Overdue::Stranger => stranger,
        }
    }

    fn held_back_counter(&self, why: HeldBack) -> &AtomicU64 {
        let [order, overlap, replies, pause] = &self.held_back;
        match why {
            HeldBack::Order => order,
            HeldBack::Overlap => overlap,
            HeldBack::Replies => replies,
            HeldBack::Pause => pause,
        }
    }

    /// To be called once a second.
    pub(crate) fn take_rates(&self) {
        let now = Rates {
            calls: self.calls(),
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
        };
        let mut rates = lock(&self.rates);
        let (before, _) = *rates;
        let rate = Rates {
            calls: now.calls.saturating_sub(before.calls),
            bytes_in: now.bytes_in.saturating_sub(before.bytes_in),
            bytes_out: now.bytes_out.saturating_sub(before.bytes_out),
        };
        *rates = (now, rate);
    }

    /// What happened in the last second.
    pub(crate) fn rates(&self) -> Rates {
        lock(&self.rates).1
    }

    /// Begins at zero again.
    pub(crate) fn reset(&self) {
        for stats in &self.commands {
            for counter in [&stats.micros, &stats.failed, &stats.rejected] {
                counter.store(0, Ordering::Relaxed);
            }
            *lock(&stats.latency) = None;
        }
        lock(&self.errors).clear();
        *lock(&self.rates) = Default::default();
        let whys = self.held_back.iter().chain(&self.overdue).chain([
            &self.evicted,
            &self.ordered,
            &self.hits,
            &self.misses,
        ]);
        whys.for_each(|counter| counter.store(0, Ordering::Relaxed));
        let Self { connections, rejected, bytes_in, bytes_out, protocol_errors, .. } = self;
        for counter in [connections, rejected, bytes_in, bytes_out, protocol_errors] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
