//! What happens next: events in the order of virtual time, and a hash over all of them.

use crate::role::Role;
use crate::world::{Alert, Answer, Call, Fault, GuardStep, Mandate, Relief, Told};
use machine::{Instant, mix};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use wire::Endpoint;

/// Something that happens at an instant.
#[derive(Debug)]
pub(crate) enum Event {
    /// A datagram arrives.
    Datagram { from: Endpoint, to: Endpoint, bytes: Vec<u8> },
    /// An order reaches its member.
    Order(Mandate),
    /// What became of an order reaches the controller that gave it.
    Answer(Answer),
    /// A node's alert reaches a controller.
    Alert(Alert),
    /// What a controller asks of the store that it shares with others reaches that.
    Call(Call),
    /// What that says reaches the controller, or nothing does in time.
    Told(Told),
    /// A sync of a node shard has ended.
    Synced { shard: usize },
    /// A slow process has done with what it was at and takes what comes next.
    Serve { role: Role, incarnation: u64 },
    /// Something breaks, or an operator acts.
    Fault(Fault),
    /// Something that broke is whole again.
    Relief(Relief),
    /// Something about envelopes is due.
    Guard(GuardStep),
}

/// The events to come.
#[derive(Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    scheduled: u64,
    /// A hash over everything that happened, and when.
    fingerprint: u64,
}

/// Ordered by time, then by number: ties never depend on the heap's internals.
struct Entry {
    at: Instant,
    number: u64,
    event: Event,
}

impl Queue {
    pub(crate) fn schedule(&mut self, at: Instant, event: Event) {
        self.scheduled += 1;
        self.heap.push(Reverse(Entry { at, number: self.scheduled, event }));
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// The next event.
    pub(crate) fn peek(&self) -> Option<&Event> {
        self.heap.peek().map(|Reverse(entry)| &entry.event)
    }

    /// Takes the next event.
    pub(crate) fn pop(&mut self) -> Option<Event> {
        let Reverse(entry) = self.heap.pop()?;
        self.note(entry.at.0);
        self.note(entry.number);
        if let Event::Datagram { to, bytes, .. } = &entry.event {
            self.note(u64::from(to.port));
            self.note_bytes(bytes);
        }
        Some(entry.event)
    }

    /// A hash over everything that was taken out, and when.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn note(&mut self, number: u64) {
        self.fingerprint = mix(self.fingerprint ^ number);
    }

    fn note_bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.note(u64::from_le_bytes(*word));
        }
        self.note(rest.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
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
