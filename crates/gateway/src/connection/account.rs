//! What a connection holds and how it gets on, for those who look at all connections: the budget of
//! memory, and whoever ends those that keep a place for nothing.

use super::Connection;
use super::held::held_by;
use bytes::BytesMut;
use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::time::Duration;
use tokio::time::timeout;

impl Connection {
    /// Notes what is held, and ends connections if all hold too much.
    pub(super) fn account(&mut self) {
        let (shared, entry) = (&self.shared, &self.peer.entry);
        let waiting = self.next.as_deref().map_or(0, held_by);
        let queued = entry.queued_bytes.load(Ordering::Relaxed);
        // Buffers, not what is in them: that is what memory they take.
        let buffers = self.input.capacity() + self.output.capacity();
        shared.budget.note(entry, buffers + self.under_way_bytes + waiting + queued);
        let held_max = shared.settings.held_max();
        if shared.budget.is_over(held_max) {
            let evicted = shared.budget.evict(&shared.clients, held_max);
            shared.stats.evicted.fetch_add(evicted as u64, Ordering::Relaxed);
            if evicted > 0 {
                tracing::warn!(evicted, held_max, "connections held too much and are ended");
            }
        }
    }

    /// Notes whether a command has begun to come and is not whole.
    pub(super) fn note_progress(&self) {
        let is_coming = self.next.is_none() && (self.parser.is_begun() || !self.input.is_empty());
        let may_come = self.closing.is_none() && self.held.is_none();
        self.peer.entry.note_coming(self.since_start(), is_coming && may_come);
    }

    /// Ends the connection because of what it holds; it is told so if nothing else is to be written
    /// before.
    pub(super) async fn end_evicted(mut self) {
        let silent = self.slots.is_empty() && self.streaming.is_none() && self.output.is_empty();
        (self.input, self.next, self.incoming) = (BytesMut::new(), None, None);
        if silent {
            let write = |context: &mut Context<'_>| self.stream.poll_write(context, EVICTED);
            // It fits what the kernel keeps, for nothing else waits there.
            if let Ok(Ok(1..)) = timeout(EVICTED_TIME_MAX, poll_fn(write)).await {
                self.end().await;
            }
        }
    }
}

/// What is said to one that goes because of what it holds.
const EVICTED: &[u8] = b"-ERR all clients together hold more than maxmemory-clients, and this one \
                         is among those that hold most\r\n";
/// How long it is tried to say so.
const EVICTED_TIME_MAX: Duration = Duration::from_secs(1);

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.budget.note(&self.peer.entry, 0);
    }
}
