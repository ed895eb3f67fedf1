//! Locks with a time limit, one for each user: taken for some time from now on, then looked at
//! until
//! they are gone. They go neither earlier nor later than is promised, whatever clocks show and
//! however often a request is sent again.

use super::{Actor, Ask, What};
use crate::check::History;
use crate::world::TIME_ERROR_MS;
use client::{Expiry, Outcome, Reply, Request, Value};
use cluster::Mutant;
use machine::Instant;
use std::time::Duration;

/// The lock of one user.
#[derive(Clone, Debug)]
pub(super) struct Lock {
    /// A new key after each time at which nobody knows whether it was taken.
    number: u64,
    held: Option<HeldLock>,
    asked: bool,
    /// Whether anything is promised of the time.
    pub(super) is_judged: bool,
    /// Milliseconds by which anything may be early or late.
    slack_ms: u64,
}

/// It was taken at some time between these two.
#[derive(Clone, Copy, Debug)]
struct HeldLock {
    called: Instant,
    returned: Instant,
    span_ms: u64,
}

/// What a request is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum LockStep {
    Take { span_ms: u64 },
    Look,
}

impl Lock {
    pub(super) fn new(skew_max: Duration) -> Self {
        let skew_ms = u64::try_from(skew_max.as_millis()).expect("short");
        let slack_ms = skew_ms + TIME_ERROR_MS;
        Self { number: 0, held: None, asked: false, is_judged: true, slack_ms }
    }

    /// The user is gone; the next one has a lock of its own.
    pub(super) fn forget(&mut self) {
        (self.held, self.asked) = (None, false);
    }

    fn may_go_from(&self, held: HeldLock) -> u64 {
        (held.called.unix_ms() + held.span_ms).saturating_sub(self.slack_ms)
    }

    fn is_gone_by(&self, held: HeldLock) -> u64 {
        held.returned.unix_ms() + held.span_ms + self.slack_ms
    }
}

impl Actor {
    /// Takes the lock if it is free, and else looks whether it is; false if that was asked already.
    pub(super) fn lock(&mut self, ask: &Ask<'_>) -> bool {
        if std::mem::replace(&mut self.lock.asked, true) {
            return false;
        }
        let key =
            format!("e{}-{}-{}", self.index, self.incarnations, self.lock.number).into_bytes();
        if self.lock.held.is_some() {
            self.submit(ask, Request::Get { key: &key }, What::Lock(LockStep::Look));
            return true;
        }
        let span_ms = 1 + self.rng.below(SPAN_MAX_MS);
        let expiry = if self.mutant == Some(Mutant::SpanByClient) {
            Expiry::AtMs(ask.local.unix_ms() + span_ms)
        } else {
            Expiry::In(Duration::from_millis(span_ms))
        };
        let what = What::Lock(LockStep::Take { span_ms });
        self.submit(ask, Request::Put { key: &key, value: b"1", expiry }, what);
        true
    }

    pub(super) fn conclude_lock(
        &mut self,
        (called, now): (Instant, Instant),
        step: LockStep,
        outcome: Outcome<Reply>,
        history: &mut History,
    ) {
        self.lock.asked = false;
        let found = match (step, outcome) {
            (LockStep::Take { span_ms }, Outcome::Done(_)) => {
                self.done += 1;
                self.lock.held = Some(HeldLock { called, returned: now, span_ms });
                return;
            }
            (LockStep::Take { .. }, _) => {
                self.unknown += 1;
                self.lock.number += 1;
                return;
            }
            (LockStep::Look, Outcome::Done(Reply::Get(found))) => found,
            (LockStep::Look, _) => return,
        };
        self.done += 1;
        let Some(held) = self.lock.held else { return };
        if self.lock.is_judged
            && let Err(why) = self.gate_lock(held, (called, now), found.as_ref())
        {
            history.violation(format!("client {}: a lock {held:?} {why}", self.index));
        }
        if found.is_none() {
            self.lock.held = None;
        }
    }

    fn gate_lock(
        &self,
        held: HeldLock,
        (called, returned): (Instant, Instant),
        found: Option<&Value>,
    ) -> Result<(), String> {
        let (from, by) = (self.lock.may_go_from(held), self.lock.is_gone_by(held));
        let Some(Value { expiry_ms, now_ms, .. }) = found else {
            let early = returned.unix_ms() < from;
            return if early { Err(format!("was gone at {returned:?}")) } else { Ok(()) };
        };
        if called.unix_ms() > by {
            return Err(format!("was there at {called:?}"));
        }
        if !(from..=by).contains(expiry_ms) {
            return Err(format!("ends at {expiry_ms}"));
        }
        let (least, most) = (called.unix_ms(), returned.unix_ms());
        let slack_ms = self.lock.slack_ms;
        let right = (least.saturating_sub(slack_ms)..=most + slack_ms).contains(now_ms);
        if right { Ok(()) } else { Err(format!("was looked at at {now_ms}, by a node's clock")) }
    }
}

/// Some longer than a client waits for the answer to one copy of a request, some not.
const SPAN_MAX_MS: u64 = 800;
