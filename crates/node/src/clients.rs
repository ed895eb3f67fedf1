//! Which clients a member remembers, and what a head says to one that it may have forgotten
//! (section 4 of `spec/protocol.md`, *Forgetting*).
//!
//! Room for sessions is bounded, and anybody can draw a client id, so that those heard longest ago
//! go when room is needed. What is left of them is one version: outcomes of writes up to it may be
//! forgotten. A write is taken only if an outcome of it would be known. Whoever was told a version
//! and then sent a write can prove that: its outcome is above it.

use crate::engine::Engine;
use crate::notes::{FORGOTTEN_NAME, session_name};
use crate::replica::{Context, Replica};
use crate::reply::{refuse, refuse_session};
use crate::session::{Outcome, Standing};
use cluster::Plant;
use wire::{Code, CopyEndBody, Header, Op, SinceBody};

impl Replica {
    /// Whether an outcome of this write, had it been taken before, would be known. If that is not
    /// certain the client is told what it can do, and this is `false`.
    pub(crate) fn would_know<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        op: Op,
        request: &Header,
        since: Option<SinceBody>,
    ) -> bool {
        let Header { client, seq, .. } = *request;
        let known = self.sessions.standing(client, seq) != Standing::New
            || self.pending_of(client, seq).is_some();
        if known || self.sessions.would_know(client, seq) || self.proves(since) {
            return true;
        }
        if since.is_some() {
            refuse(ctx, request, op, Code::Uncertain);
        } else {
            // What was forgotten is committed everywhere: no later head begins below it.
            refuse_session(ctx, request, op, self.history.stable().max(self.sessions.forgotten()));
        }
        false
    }

    /// Whether an outcome of a write that was first sent when its client knew of this version would
    /// still be known. A version that is not there yet proves nothing.
    fn proves(&self, since: Option<SinceBody>) -> bool {
        let since = since.map_or(0, |it| it.since);
        (self.sessions.forgotten()..=self.last_version).contains(&since)
    }

    /// A write has been dealt with that says which numbers its client had used when it was told.
    pub(crate) fn note_since(&mut self, request: &Header, since: Option<SinceBody>) {
        if let Some(since) = since.filter(|_| self.proves(since)) {
            self.sessions.knows_from(request.client, since.next);
        }
    }

    /// Whether there is room for one more outcome of this client, after others were forgotten if
    /// need be.
    pub(crate) fn makes_room<E: Engine>(&mut self, ctx: &mut Context<'_, E>, client: u64) -> bool {
        if self.sessions.has_room(client, ctx.sessions_max) {
            return true;
        }
        if self.sessions.is_laden(client) {
            return false;
        }
        self.forget_clients(ctx);
        self.sessions.has_room(client, ctx.sessions_max)
    }

    fn forget_clients<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        let (before, marked) = (self.sessions.len(), self.sessions.forgotten());
        let by_request = &self.by_request;
        let busy = |client| by_request.range((client, 0)..=(client, u64::MAX)).next().is_some();
        let gone = self.sessions.forget(ctx.now, self.history.stable(), busy, ctx.plant);
        let forgotten = before - self.sessions.len();
        if forgotten == 0 && ctx.plant != Some(Plant::ForgetUnmarked) {
            self.sessions.expect_to_forget();
        }
        if forgotten == 0 && self.sessions.forgotten() == marked {
            return;
        }
        ctx.counters.sessions_forgotten += forgotten as u64;
        for (client, seq) in gone {
            ctx.engine.note(self.id(), &session_name(client, seq), None);
        }
        self.note_forgotten(ctx);
    }

    fn note_forgotten<E: Engine>(&self, ctx: &mut Context<'_, E>) {
        if ctx.plant != Some(Plant::ForgetUnmarked) {
            let note = self.sessions.forgotten().to_be_bytes();
            ctx.engine.note(self.id(), FORGOTTEN_NAME, Some(&note));
        }
    }

    /// Keeps the outcome of the write of this version, in memory and as a note.
    pub(crate) fn keep_outcome<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        request: (u64, u64),
        floor: u64,
        version: u64,
        outcome: Outcome,
    ) {
        let (client, seq) = request;
        let ended = self.sessions.record(ctx.now, request, floor, version, outcome);
        let note = outcome.to_note(floor);
        ctx.engine.note(self.id(), &session_name(client, seq), Some(&note));
        for seq in ended {
            ctx.engine.note(self.id(), &session_name(client, seq), None);
        }
        // The head has made room, but each member forgets by itself.
        if self.sessions.len() > ctx.sessions_max {
            self.forget_clients(ctx);
        }
    }

    /// A joiner has been sent everything: it lacks what the tail had forgotten.
    pub(crate) fn take_forgotten<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        end: &CopyEndBody,
    ) {
        self.sessions.are_up_to(end.last_version);
        self.sessions.lacks_up_to(end.forgotten);
        if end.forgotten > 0 {
            self.note_forgotten(ctx);
        }
    }
}
