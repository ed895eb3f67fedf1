//! What a machine for long values and the face that drives it say to each other.

use crate::owned::OwnedRequest;
use crate::{Outcome, Reply};
use std::time::Duration;

/// What the face is to do before the machine goes on.
#[derive(Debug)]
pub(crate) enum Next<T> {
    /// Begin this request.
    Begin(OwnedRequest),
    /// Wait for the answer to the request that was begun first of those without one.
    Take,
    /// Forget all requests without an answer: it does not matter any more.
    Forget,
    /// Look the keyspace up again, and say whether it is another one.
    Renew,
    /// Wait so long.
    Rest(Duration),
    /// Nothing: it is over.
    End(T),
}

/// What has come of what the face did.
#[derive(Debug)]
pub(crate) enum Event {
    /// It is done; or nothing was to do yet.
    Done,
    /// This is the answer.
    Answer(Outcome<Reply>),
    /// Whether the keyspace is another one than it was.
    Renewed(bool),
}

impl<T> Next<T> {
    /// The same with another end.
    pub(super) fn map<U>(self, end: impl FnOnce(T) -> U) -> Next<U> {
        match self {
            Self::Begin(request) => Next::Begin(request),
            Self::Take => Next::Take,
            Self::Forget => Next::Forget,
            Self::Renew => Next::Renew,
            Self::Rest(time) => Next::Rest(time),
            Self::End(it) => Next::End(end(it)),
        }
    }
}
