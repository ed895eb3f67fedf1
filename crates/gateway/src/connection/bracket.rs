//! What a connection has queued and watches between MULTI and EXEC.

use crate::Reply;
use crate::command::Found;
use crate::store::Watched;
use bytes::Bytes;

/// What a connection has queued and watches.
#[derive(Debug, Default)]
pub(super) struct Bracket {
    /// After MULTI.
    pub(super) queue: Option<Queue>,
    pub(super) watched: Watched,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) commands: Vec<(Found, Vec<Bytes>)>,
    pub(super) bytes: usize,
    /// A command was refused: EXEC will be.
    pub(super) broken: bool,
}

impl Bracket {
    pub(super) fn is_open(&self) -> bool {
        self.queue.is_some()
    }

    /// A command within it was refused.
    pub(super) fn note_refusal(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.broken = true;
        }
    }

    /// Keys that were read for WATCH. Of one that is watched already the first version counts. They
    /// are copies, which do not hold on to all that was read with them.
    pub(super) fn watch(&mut self, read: Watched) {
        for (key, version) in read {
            self.watched.entry(Bytes::copy_from_slice(&key)).or_insert(version);
        }
    }

    /// Whether there is no room for so many more keys.
    pub(super) fn is_full_with(&self, more: usize) -> bool {
        self.watched.len() + more > WATCHED_MAX
    }
}

/// Commands that one transaction has at most.
pub(super) const QUEUED_MAX: usize = 16_384;

/// Bytes of their arguments, which a connection holds until EXEC.
pub(super) const QUEUED_BYTES_MAX: usize = 16 << 20;

/// There are more of either.
pub(super) const QUEUE_FULL: Reply =
    Reply::error("ERR a transaction has at most 16384 commands here, with 16 MiB of arguments");

/// Keys that a connection watches: far more than a transaction can be about.
pub(super) const WATCHED_MAX: usize = 1024;
