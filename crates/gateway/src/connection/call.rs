//! A command on its way from its arguments to its reply.

use crate::Reply;
use crate::command::Keyed;
use crate::store::{Incoming, Plan, Seen, Sights, Watched};
use bytes::Bytes;
use smallvec::smallvec;
use tokio::time::Instant;

/// A command that is carried out.
pub(super) struct Call {
    /// Which command it is.
    pub(super) number: usize,
    /// Its arguments; a future that carries it out has them meanwhile.
    pub(super) args: Vec<Bytes>,
    /// When it was begun: the time that it waits for others is not counted.
    pub(super) began: Instant,
}

/// What came of a command.
pub(super) struct Completion {
    pub(super) reply: Reply,
    /// What a GET or an MGET tells of its keys.
    pub(super) sights: Sights,
    /// Keys that are watched from now on.
    pub(super) watched: Option<Watched>,
}

impl From<Reply> for Completion {
    fn from(reply: Reply) -> Self {
        Self { reply, sights: Sights::new(), watched: None }
    }
}

impl From<(Reply, Seen)> for Completion {
    fn from((reply, seen): (Reply, Seen)) -> Self {
        Self::from((reply, smallvec![seen]))
    }
}

impl From<(Reply, Sights)> for Completion {
    fn from((reply, sights): (Reply, Sights)) -> Self {
        Self { reply, sights, watched: None }
    }
}

/// A command that is under way.
pub(super) struct Slot {
    pub(super) call: Call,
    pub(super) stage: Stage,
}

/// How far it is.
pub(super) enum Stage {
    /// Its turn has not come. If it is the SET of a long value, that has come already.
    Waits(KeyedCall, Option<Box<Result<Incoming, Reply>>>),
    /// One request is enough, which is begun together with those of others.
    Planned(KeyedCall, Plan),
    /// That request is on its way.
    Asked(KeyedCall, Plan),
    /// A future carries it out.
    Runs,
    /// It was carried out, and these keys are watched from now on; what it is answered with, they
    /// know who know what overlaps.
    Ended(Option<Watched>),
}

/// What is to be done for a command about keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyedCall {
    pub(super) command: Keyed,
    /// Whether a GET may be answered with a value that streams: no other GET overlaps with it.
    pub(super) streams: bool,
}

/// What a future has made of the command with that number; and its arguments, if it had them.
pub(super) type Done = (u64, Option<Vec<Bytes>>, Completion);

/// Calls of one command that took equally long and are not counted yet: of a pipeline many do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallTally {
    pub(super) number: usize,
    pub(super) micros: u64,
    pub(super) count: u64,
}
