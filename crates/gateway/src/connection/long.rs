//! Long values of a connection, piece by piece: one that comes in with a SET, and one that leaves
//! as a reply.

use super::bracket::{QUEUE_FULL, QUEUED_BYTES_MAX};
use super::event::Event;
use super::{Connection, OUTPUT_MAX};
use crate::command;
use bytes::Bytes;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

impl Connection {
    /// Takes the next piece of the reply that is being written. If there is none though some are
    /// missing, the client cannot be told in any other way than by the end of the connection.
    pub(super) fn poll_streaming(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        let Some((pieces, left)) = &mut self.streaming else { return Poll::Pending };
        if self.output.len() >= OUTPUT_MAX {
            return Poll::Pending;
        }
        let Poll::Ready(piece) = pieces.poll_recv(context) else { return Poll::Pending };
        let Some(piece) = piece else { return Poll::Ready(Event::Over) };
        self.output.extend_from_slice(&piece);
        *left = left.saturating_sub(piece.len() as u64);
        if *left == 0 {
            self.output.extend_from_slice(b"\r\n");
            self.streaming = None;
        }
        self.peer.entry.output.store(self.output.len(), Ordering::Relaxed);
        Poll::Ready(Event::Wrote)
    }

    /// Whether the long value of a SET need not be here as a whole: it is passed on before the rest
    /// has come, or no transaction has room for it. Of one that is queued nothing is done before
    /// EXEC.
    pub(super) fn may_take_in(&self) -> bool {
        let long = || self.parser.long_set(&self.input).unwrap_or_default();
        self.bracket.queue.as_ref().is_none_or(|queue| queue.bytes + long() > QUEUED_BYTES_MAX)
    }

    /// The long value of a SET comes in while the rest of the command is still to come: nobody sees
    /// it before that is carried out.
    pub(super) fn begin_value(&mut self, key: Bytes, len: usize) {
        if self.bracket.is_open() {
            self.incoming = Some(Err(QUEUE_FULL));
            return;
        }
        let args = [Bytes::from_static(b"set"), key.clone(), Bytes::new()];
        let admitted = self.admit(command::resolve(&args), &args);
        self.incoming = Some(match admitted {
            Ok(_) => self.store.take_in(&key, len),
            // It is said once the whole command has been read.
            Err((_, reply)) => Err(reply),
        });
    }

    /// Passes on what there is of a long value; whether that was the end of it.
    pub(super) fn feed(&mut self) -> bool {
        while self.piece.is_none() {
            let Some(piece) = self.parser.piece(&mut self.input) else {
                return !self.parser.is_in_value();
            };
            if let Some(Ok(incoming)) = &self.incoming {
                let pieces = incoming.pieces().clone();
                // Whoever takes them goes on to the end.
                self.piece = Some(Box::pin(async move { drop(pieces.send(piece).await) }));
            }
        }
        false
    }
}
