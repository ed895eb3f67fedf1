//! Datagrams on their way out, without an allocation for each.

use std::collections::VecDeque;
use std::ops::Range;
use wire::Endpoint;

/// A queue of datagrams whose bytes share one buffer, reused once the queue has run empty.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    queue: VecDeque<Waiting>,
    written: u64,
}

#[derive(Clone, Debug)]
struct Waiting {
    from: Option<Endpoint>,
    to: Endpoint,
    bytes: Range<usize>,
}

/// One datagram to send, lent by the [`Outbox`] it waited in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Where from, if not from where its sender receives.
    pub from: Option<Endpoint>,
    /// Where to.
    pub to: Endpoint,
    /// The UDP payload.
    pub payload: &'a [u8],
}

impl Outbox {
    /// Queues whatever `write` appends to the buffer it is given.
    pub fn push(&mut self, to: Endpoint, write: impl FnOnce(&mut Vec<u8>)) {
        self.push_from(None, to, write);
    }

    /// The same for a datagram that is to come from another address, if one is given.
    pub fn push_from(
        &mut self,
        from: Option<Endpoint>,
        to: Endpoint,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        if self.queue.is_empty() {
            self.bytes.clear();
        }
        let start = self.bytes.len();
        write(&mut self.bytes);
        assert!(self.bytes.len() >= start, "writers append");
        self.written += (self.bytes.len() - start) as u64;
        self.queue.push_back(Waiting { from, to, bytes: start..self.bytes.len() });
    }

    /// Queues a copy of these bytes.
    pub fn push_copy(&mut self, to: Endpoint, payload: &[u8]) {
        self.push(to, |out| out.extend_from_slice(payload));
    }

    /// Takes the datagram that has waited longest.
    pub fn pop(&mut self) -> Option<Datagram<'_>> {
        let Waiting { from, to, bytes } = self.queue.pop_front()?;
        let payload = self.bytes.get(bytes).expect("ranges lie inside the buffer");
        Some(Datagram { from, to, payload })
    }

    /// Moves everything that waits in `other` to the end of this queue.
    pub fn append(&mut self, other: &mut Self) {
        if self.queue.is_empty() {
            self.bytes.clear();
            std::mem::swap(self, other);
            std::mem::swap(&mut self.written, &mut other.written);
            return;
        }
        while let Some(Datagram { from, to, payload }) = other.pop() {
            self.push_from(from, to, |out| out.extend_from_slice(payload));
        }
    }

    /// Bytes that were ever written to it. What came here by [`append`](Self::append) may be among
    /// them or not.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// How many datagrams wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
