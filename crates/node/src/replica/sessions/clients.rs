//! Which clients a member remembers, and what a head says to one that it may have forgotten
//! (section 4 of `spec/protocol.md`, *Forgetting*).
//!
//! Room for sessions is bounded, and anybody can draw a client id, so that those heard longest ago
//! go when room is needed. What is left of them is one version: outcomes of writes up to it may be
//! forgotten. A write is taken only if an outcome of it would be known. Whoever was told a version
//! and then sent a write can prove that: its outcome is above it.

use crate::engine::Engine;
use crate::replica::Replica;
use crate::replica::notes::{FORGOTTEN_NAME, ended_name, session_name};
use crate::replica::sessions::ended::ENDED_PER_SESSION_MAX;
use crate::replica::sessions::table::{Outcome, Standing};
use crate::shard::context::Context;
use crate::shard::reply::{refuse, refuse_session};
use cluster::{MaybeMutant, Mutant};
use wire::{Code, CopyEndBody, CopyEndedBody, CopySessionBody, DropReason, Header, Op, SinceBody};

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
        let gone = self.sessions.forget(ctx.now, self.history.stable(), busy, ctx.mutant);
        let forgotten = before - self.sessions.len();
        if forgotten == 0 && !ctx.mutant.is(Mutant::ForgetUnrecorded) {
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
        if !ctx.mutant.is(Mutant::ForgetUnrecorded) {
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
        if self.sessions.ended.holds(client) {
            // It was pending when its client said goodbye.
            self.note_ended(ctx, client, version);
            return;
        }
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

    /// A client has said goodbye to the head, which says so to the others. That all of its requests
    /// have ended was true when it was said and stays so, whatever comes before or after: it needs
    /// no place in the order of writes, and who does not hear it keeps a session for some time.
    pub(crate) fn hear_goodbye<E: Engine>(&mut self, ctx: &mut Context<'_, E>, client: u64) {
        if !self.end_client(ctx, client) || !ctx.leased {
            return;
        }
        for (place, member) in self.partition.chain.iter().enumerate().skip(1) {
            let Some(to) = ctx.directory.endpoint(*member, self.id()) else { continue };
            let header = self.message_header(ctx, place, Op::ChainGoodbye, 0);
            ctx.out.push(to, |out| {
                wire::emit(out, &Header { client, ..header }, &[]);
            });
        }
    }

    /// The head has been told goodbye.
    pub(crate) fn take_goodbye<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        client: u64,
    ) -> Result<(), DropReason> {
        self.end_client(ctx, client);
        Ok(())
    }

    /// Keeps of a client's session only that it has ended; says whether there was one.
    fn end_client<E: Engine>(&mut self, ctx: &mut Context<'_, E>, client: u64) -> bool {
        let ends = self.sessions.has(client);
        if ends && self.makes_room_for_ended(ctx) {
            let ended = self.sessions.end(ctx.now, client, ctx.mutant);
            let (newest, gone) = ended.unwrap_or_default();
            for (client, seq) in gone {
                ctx.engine.note(self.id(), &session_name(client, seq), None);
            }
            if self.sessions.ended.holds(client) {
                self.note_ended(ctx, client, newest);
            }
        }
        ends || self.sessions.ended.holds(client)
    }

    /// Whether there is room for one more client that has said goodbye. Who said it first is
    /// forgotten like any client.
    fn makes_room_for_ended<E: Engine>(&mut self, ctx: &mut Context<'_, E>) -> bool {
        while self.sessions.ended.len() >= ENDED_PER_SESSION_MAX * ctx.sessions_max {
            let by_request = &self.by_request;
            let busy = |client| by_request.range((client, 0)..=(client, u64::MAX)).next().is_some();
            let stable = self.history.stable();
            let Some(gone) = self.sessions.forget_ended(stable, busy, ctx.mutant) else {
                return false;
            };
            ctx.counters.sessions_forgotten += 1;
            ctx.engine.note(self.id(), &ended_name(gone), None);
            self.note_forgotten(ctx);
        }
        true
    }

    /// Keeps on record that a client has said goodbye, and that it has a write of this version.
    fn note_ended<E: Engine>(&mut self, ctx: &mut Context<'_, E>, client: u64, version: u64) {
        let newest = self.sessions.ended.note(ctx.now, client, version);
        ctx.engine.note(self.id(), &ended_name(client), Some(&newest.to_be_bytes()));
    }

    /// A learner is sent a client that has said goodbye to the chain: as many as its tail holds.
    pub(crate) fn take_ended<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        ended: &CopyEndedBody,
    ) {
        let gone = self.sessions.end(ctx.now, ended.client, MaybeMutant::default());
        for (client, seq) in gone.map(|(_, gone)| gone).unwrap_or_default() {
            ctx.engine.note(self.id(), &session_name(client, seq), None);
        }
        self.note_ended(ctx, ended.client, ended.newest);
    }

    /// Forgets what nobody asks about any more: nothing of it is on its way.
    pub(crate) fn end_silent<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        for (client, seq) in self.sessions.end_idle(ctx.now) {
            ctx.engine.note(self.id(), &session_name(client, seq), None);
        }
        while let Some(client) = self.sessions.end_ended(ctx.now) {
            ctx.engine.note(self.id(), &ended_name(client), None);
        }
    }

    /// A learner has been sent everything: it lacks what the tail had forgotten.
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

impl Outcome {
    /// As a learner is sent it.
    pub(crate) fn to_copy(self, client: u64, seq: u64, floor: u64) -> CopySessionBody {
        CopySessionBody {
            kind: 0,
            origin: self.origin as u8,
            code: self.code as u8,
            client,
            seq,
            floor,
            version: self.version,
            result: self.result,
        }
    }

    /// What a learner was sent; `None` if it is no outcome.
    pub(crate) fn from_copy(body: &CopySessionBody) -> Option<Self> {
        Some(Self {
            origin: Op::from_wire(body.origin).filter(|op| op.is_write())?,
            code: Code::from_wire(body.code).filter(|code| code.is_decided())?,
            version: body.version,
            result: body.result,
        })
    }
}
