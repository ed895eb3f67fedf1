//! Where outcomes wait for one who has begun many requests, each under a number of its own.

use crate::{Outcome, Reply};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// An outcome, and the number of the request whose it is.
pub(crate) type Numbered = (u64, Outcome<Reply>);

/// Outcomes that have come. There are no more of them than requests that were begun.
#[derive(Debug, Default)]
pub(crate) struct Mailbox(Mutex<Mail>);

#[derive(Debug, Default)]
struct Mail {
    came: Vec<Numbered>,
    /// Whoever has looked and found nothing.
    waker: Option<Waker>,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An outcome has come. Of many that come together, the first wakes whoever waits.
    pub(crate) fn put(&self, number: u64, outcome: Outcome<Reply>) {
        let mut mail = self.lock();
        mail.came.push((number, outcome));
        if let Some(waker) = mail.waker.take() {
            waker.wake();
        }
    }

    /// Takes all that have come, in that order, if any have; `into` is empty.
    pub(crate) fn poll_take(
        &self,
        context: &mut Context<'_>,
        into: &mut Vec<Numbered>,
    ) -> Poll<()> {
        let mut mail = self.lock();
        if mail.came.is_empty() {
            match &mut mail.waker {
                Some(waker) => waker.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
            return Poll::Pending;
        }
        std::mem::swap(&mut mail.came, into);
        Poll::Ready(())
    }
}
