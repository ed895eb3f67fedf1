//! The network: loses, doubles, delays and so reorders what is sent over it.

use crate::options::Options;
use cluster::{Member, Order, Report};
use machine::{Instant, Rng, mix};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;
use wire::Endpoint;

/// Something that happens at an instant.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A datagram arrives.
    Datagram { from: Endpoint, to: Endpoint, bytes: Vec<u8> },
    /// An order reaches its member.
    Order { to: Member, order: Order },
    /// A report reaches the controller; `None` if the member could not be reached.
    Report { from: Member, report: Option<Report> },
    /// A node shard makes durable what it handled and lets its answers go.
    Flush { shard: usize },
    /// Somebody crashes.
    Crash,
    /// Somebody comes back.
    Restart(Role),
}

/// Who can crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Switch,
    /// All shards of a node at once.
    Node(u16),
    Controller,
}

pub(crate) struct Net {
    rng: Rng,
    queue: BinaryHeap<Reverse<Entry>>,
    scheduled: u64,
    loss_permille: u64,
    duplicate_permille: u64,
    delay_min: Duration,
    delay_max: Duration,
    /// A hash over everything that arrived, and when.
    pub(crate) fingerprint: u64,
}

/// Ordered by time, then by number: ties never depend on the heap's internals.
struct Entry {
    at: Instant,
    number: u64,
    event: Event,
}

impl Net {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            rng: Rng::new(options.seed).fork("net"),
            queue: BinaryHeap::new(),
            scheduled: 0,
            loss_permille: options.loss_permille,
            duplicate_permille: options.duplicate_permille,
            delay_min: options.delay_min,
            delay_max: options.delay_max,
            fingerprint: 0,
        }
    }

    /// Ends loss and duplication, and most of the delay.
    pub(crate) fn heal(&mut self) {
        self.loss_permille = 0;
        self.duplicate_permille = 0;
        self.delay_max = self.delay_min + Duration::from_micros(50);
    }

    /// Puts a datagram on the wire: none, one or two copies of it arrive.
    pub(crate) fn send(&mut self, now: Instant, from: Endpoint, to: Endpoint, bytes: &[u8]) {
        let copies = if self.rng.chance(self.loss_permille, 1_000) {
            0
        } else if self.rng.chance(self.duplicate_permille, 1_000) {
            2
        } else {
            1
        };
        for _ in 0..copies {
            let delay = self.delay();
            self.schedule(now + delay, Event::Datagram { from, to, bytes: bytes.to_vec() });
        }
    }

    /// A delay as the network gives it.
    pub(crate) fn delay(&mut self) -> Duration {
        let spread = (self.delay_max - self.delay_min).as_nanos();
        let spread = u64::try_from(spread).expect("delays are far below 584 years");
        self.delay_min + Duration::from_nanos(self.rng.below(spread + 1))
    }

    /// Whether a control message gets lost this time.
    pub(crate) fn loses(&mut self) -> bool {
        self.rng.chance(self.loss_permille, 1_000)
    }

    pub(crate) fn schedule(&mut self, at: Instant, event: Event) {
        self.scheduled += 1;
        self.queue.push(Reverse(Entry { at, number: self.scheduled, event }));
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.queue.peek().map(|Reverse(entry)| entry.at)
    }

    /// Takes the next event.
    pub(crate) fn pop(&mut self) -> Option<Event> {
        let Reverse(entry) = self.queue.pop()?;
        self.fingerprint = mix(self.fingerprint ^ entry.at.0);
        if let Event::Datagram { to, bytes, .. } = &entry.event {
            let bytes = bytes.iter().fold(u64::from(to.port), |hash, b| mix(hash ^ u64::from(*b)));
            self.fingerprint = mix(self.fingerprint ^ bytes);
        }
        Some(entry.event)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
