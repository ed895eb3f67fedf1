//! What a connection waits for, and what it finds when it is woken.

use super::event::Event;
use super::held::give_back;
use super::{Connection, OUTPUT_MAX};
use crate::stream::Stream;
use bytes::Buf as _;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tokio::time::Sleep;

impl Connection {
    pub(super) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        let entry = &self.peer.entry;
        entry.waker.register(context.waker());
        if entry.is_killed() {
            return Poll::Ready(Event::Over);
        }
        if entry.is_evicted() {
            return Poll::Ready(Event::Evicted);
        }
        if entry.is_draining() && self.closing.is_none() {
            return Poll::Ready(Event::Drain);
        }
        if self.paused.is_some() && entry.takes_resumed() {
            return Poll::Ready(Event::Resumed);
        }
        if let Poll::Ready(event) = self.poll_streaming(context) {
            return Poll::Ready(event);
        }
        if self.poll_running(context).is_ready() {
            return Poll::Ready(Event::Ended);
        }
        if let Poll::Ready(event) = self.poll_write(context) {
            return Poll::Ready(event);
        }
        if let Some(piece) = &mut self.piece
            && piece.as_mut().poll(context).is_ready()
        {
            self.piece = None;
            return Poll::Ready(Event::Read);
        }
        if let Poll::Ready(event) = self.poll_read(context) {
            return Poll::Ready(event);
        }
        let over = |sleep: &mut Pin<Box<Sleep>>, context: &mut Context<'_>| {
            sleep.as_mut().poll(context).is_ready()
        };
        if self.closing.as_mut().is_some_and(|sleep| over(sleep, context)) {
            return Poll::Ready(Event::Over);
        }
        if self.paused.as_mut().is_some_and(|sleep| over(sleep, context)) {
            return Poll::Ready(Event::Resumed);
        }
        Poll::Pending
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        if !self.output.is_empty() {
            let Poll::Ready(written) = self.stream.poll_write(context, &self.output) else {
                return Poll::Pending;
            };
            let Ok(len @ 1..) = written else { return Poll::Ready(Event::Over) };
            self.output.advance(len);
            self.unflushed = matches!(self.stream, Stream::Tls(_));
            give_back(&mut self.output);
            self.peer.entry.output.store(self.output.len(), Ordering::Relaxed);
            let written = u64::try_from(len).unwrap_or(u64::MAX);
            self.shared.stats.bytes_out.fetch_add(written, Ordering::Relaxed);
            return Poll::Ready(Event::Wrote);
        }
        if self.unflushed
            && let Poll::Ready(flushed) = self.stream.poll_flush(context)
        {
            self.unflushed = false;
            return Poll::Ready(if flushed.is_ok() { Event::Wrote } else { Event::Over });
        }
        Poll::Pending
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        let wanted = self.next.is_none()
            && self.streaming.is_none()
            && self.piece.is_none()
            && self.closing.is_none()
            && !self.input_ended
            && !self.alone
            && !self.is_full()
            && self.output.len() < OUTPUT_MAX;
        if !wanted {
            return Poll::Pending;
        }
        let Poll::Ready(read) = self.stream.poll_read_to(context, &mut self.input) else {
            return Poll::Pending;
        };
        let Ok(len) = read else { return Poll::Ready(Event::Over) };
        self.input_ended = len == 0;
        let read = u64::try_from(len).unwrap_or(u64::MAX);
        self.shared.stats.bytes_in.fetch_add(read, Ordering::Relaxed);
        self.peer.entry.note_come(read);
        Poll::Ready(Event::Read)
    }
}
