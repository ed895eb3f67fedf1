//! Many requests of one author, without a future for each.

use super::shared::DriverGuard;
use super::space::Space;
use crate::mailbox::{Mailbox, Numbered};
use crate::{Outcome, Refusal, Reply, Request, StartError};
use cluster::Keyspace;
use machine::Instant;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Begins requests about the keys of one keyspace, and collects their outcomes. Whoever has many
/// requests at once gets them cheaper than by a future for each: they share the way to the machine,
/// and one is woken once for all that are answered together.
///
/// Of all who have the same client, PUTs of one key that come while one is under way are one: the
/// last is sent and answers for all, which take effect right before it. The version that they are
/// told is that of the last: nobody should compare with it.
#[derive(Debug)]
pub struct Inbox {
    space: Space,
    mailbox: Arc<Mailbox>,
}

impl Inbox {
    /// One for requests about these keys.
    #[must_use]
    pub fn new(space: &Space) -> Self {
        Self { space: space.clone(), mailbox: Arc::default() }
    }

    /// Begins requests, as many as there are. Everybody else who has this client waits meanwhile.
    #[must_use]
    pub fn open(&self) -> Opening<'_> {
        let keyspace = self.space.keyspace.get();
        let mut held = self.space.client.shared.lock();
        let now = held.driver().map(|driver| driver.now()).unwrap_or_default();
        Opening { held, keyspace, now, mailbox: &self.mailbox }
    }

    /// Takes the outcomes that have come, in that order, each with the number of its request; they
    /// end up in `into`, which must be empty. Every request that was begun has one. Whoever gets
    /// [`Outcome::is_outdated`] asks again by the methods of [`Space`], which look the keyspace up.
    pub fn poll_outcomes(
        &self,
        context: &mut Context<'_>,
        into: &mut Vec<(u64, Outcome<Reply>)>,
    ) -> Poll<()> {
        let into: &mut Vec<Numbered> = into;
        self.mailbox.poll_take(context, into)
    }
}

/// Requests that are begun together.
pub struct Opening<'a> {
    held: DriverGuard<'a>,
    keyspace: Arc<Keyspace>,
    now: Instant,
    mailbox: &'a Arc<Mailbox>,
}

impl Opening<'_> {
    /// Begins a request; its outcome comes out of the inbox under this number. `false` if too many
    /// wait already: it was not begun, and the methods of [`Space`] wait until there is room.
    pub fn begin(&mut self, number: u64, request: Request<'_>) -> bool {
        let (now, mailbox) = (self.now, self.mailbox);
        let Some(driver) = self.held.driver() else {
            mailbox.put(number, Outcome::Refused(Refusal::Closed));
            return true;
        };
        match driver.begin(now, &self.keyspace, request, (mailbox, number)) {
            Ok(()) => self.held.note_begun(),
            Err(StartError::Busy) => return false,
            Err(why) => mailbox.put(number, Outcome::Refused(Refusal::NotSent(why))),
        }
        true
    }
}
