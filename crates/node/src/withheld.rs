//! Answers that wait until the switch knows of what they show.
//!
//! The switch does not see which versions an answer to MGET or RANGE shows, so they have to be
//! covered first. A client that is told to ask again finds a newer version then, if a key is
//! written more often than a cover travels, and never gets an answer. So the answer waits itself:
//! it says what was so when it was made, after the request had come.

use crate::cover::Place;
use crate::engine::Engine;
use crate::replica::Context;
use crate::reply::send;
use cluster::PartitionId;
use machine::Instant;
use std::time::Duration;
use wire::Header;

/// A version of a hot key that an answer shows and that is not covered yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uncovered {
    pub(crate) place: Place,
    pub(crate) version: u64,
}

/// The answers of a shard that wait.
#[derive(Debug, Default)]
pub(crate) struct Withheld {
    answers: Vec<Answer>,
}

#[derive(Debug)]
struct Answer {
    header: Header,
    payload: Box<[u8]>,
    shows: Vec<Uncovered>,
    deadline: Instant,
}

impl Withheld {
    /// Whether one more may wait. What waits in vain goes.
    pub(crate) fn has_room(&mut self, now: Instant) -> bool {
        if self.answers.len() >= WITHHELD_MAX {
            self.answers.retain(|it| now < it.deadline);
        }
        self.answers.len() < WITHHELD_MAX
    }

    /// Withholds an answer, of payload `parts`, that shows what is not covered.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        header: &Header,
        parts: &[&[u8]],
        shows: Vec<Uncovered>,
    ) {
        let payload = parts.concat().into();
        self.answers.push(Answer { header: *header, payload, shows, deadline: now + WAITS_MAX });
    }

    /// Lets go what shows something of a partition that is not to be kept.
    pub(crate) fn retain(&mut self, keep: impl Fn(PartitionId) -> bool) {
        self.answers.retain(|it| it.shows.iter().all(|shown| keep(shown.place.partition())));
    }

    /// Takes out the answers that show nothing any more that is not covered, now that this is.
    fn take_ready(&mut self, covered: Uncovered) -> Vec<Answer> {
        let is_covered =
            |it: &Uncovered| it.place == covered.place && it.version <= covered.version;
        let ready = |answer: &mut Answer| {
            answer.shows.retain(|it| !is_covered(it));
            answer.shows.is_empty()
        };
        self.answers.extract_if(.., ready).collect()
    }
}

/// A version has been covered: gives the answers that have waited for it.
pub(crate) fn release<E: Engine>(ctx: &mut Context<'_, E>, covered: Uncovered) {
    for answer in ctx.hot.withheld.take_ready(covered) {
        send(ctx, &answer.header, &[&answer.payload]);
    }
}

/// Answers that wait in a shard, each in a datagram: what else would show what is not covered is
/// `NOT_HERE`. A multiget in several datagrams may go beyond it.
pub(crate) const WITHHELD_MAX: usize = 256;

/// A client sends its request again about then.
const WAITS_MAX: Duration = Duration::from_millis(20);
