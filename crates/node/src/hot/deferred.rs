//! Answers that wait until the switch knows of what they show.
//!
//! The switch does not see which versions an answer to MGET or RANGE shows, so they have to be
//! published first. A client that is told to ask again finds a newer version then, if a key is
//! written more often than HOT_PUBLISH travels, and never gets an answer. So the answer waits
//! itself: it says what was so when it was made, after the request had come.

use crate::hot::publications::DirectoryKey;
use cluster::PartitionId;
use machine::Instant;
use std::time::Duration;
use wire::{Header, Version};

/// A version of a hot key that an answer shows and that is not published yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unpublished {
    pub(crate) place: DirectoryKey,
    pub(crate) version: Version,
}

/// The answers of a shard that wait.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    answers: Vec<DeferredReply>,
}

/// An answer that waits.
#[derive(Debug)]
pub(crate) struct DeferredReply {
    pub(crate) header: Header,
    pub(crate) payload: Box<[u8]>,
    shows: Vec<Unpublished>,
    deadline: Instant,
}

impl Deferred {
    /// Whether one more may wait. What waits in vain goes.
    pub(crate) fn has_room(&mut self, now: Instant) -> bool {
        if self.answers.len() >= DEFERRED_MAX {
            self.answers.retain(|it| now < it.deadline);
        }
        self.answers.len() < DEFERRED_MAX
    }

    /// Defers an answer, of payload `parts`, that shows what is not published.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        header: &Header,
        parts: &[&[u8]],
        shows: Vec<Unpublished>,
    ) {
        let payload = parts.concat().into();
        self.answers.push(DeferredReply {
            header: *header,
            payload,
            shows,
            deadline: now + WAITS_MAX,
        });
    }

    /// Lets go what shows something of a partition that is not to be kept.
    pub(crate) fn retain(&mut self, keep: impl Fn(PartitionId) -> bool) {
        self.answers.retain(|it| it.shows.iter().all(|shown| keep(shown.place.partition())));
    }

    /// Takes out the answers that show nothing any more that is not published, now that this is.
    pub(crate) fn take_ready(&mut self, published: Unpublished) -> Vec<DeferredReply> {
        let is_published =
            |it: &Unpublished| it.place == published.place && it.version <= published.version;
        let ready = |answer: &mut DeferredReply| {
            answer.shows.retain(|it| !is_published(it));
            answer.shows.is_empty()
        };
        self.answers.extract_if(.., ready).collect()
    }
}

/// Answers that wait in a shard, each in a datagram: what else would show what is not published is
/// `NOT_HERE`. A multiget in several datagrams may go beyond it.
pub(crate) const DEFERRED_MAX: usize = 256;

/// A client sends its request again about then.
const WAITS_MAX: Duration = Duration::from_millis(20);
